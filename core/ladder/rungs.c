#include "ladder/rungs.h"

#include "base/units.h"
#include "base/vec.h"
#include "ladder/arena.h"
#include "ladder/caches.h"
#include "ladder/chase.h"
#include "ladder/devrung.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char dbt_rungs_book[] =
	"Peter Norvig's and Jeff Dean's 'numbers everyone should know', as of 2012";

/* The working set of the memory rung: several times what any cache of one processor holds. */
static const uint64_t MEMORY_SET_BYTES = UINT64_C(256) << 20;
static const uint64_t SMALLEST_SET_BYTES = 4096;
static const double HARDLY_FASTER = 0.7;

static uint64_t power_of_two_below(uint64_t value)
{
	uint64_t power = SMALLEST_SET_BYTES;

	while (power <= value / 2)
		power *= 2;
	return power;
}

static int chase(const struct dbt_ctx *ctx, uint64_t set_bytes, enum dbt_pages pages,
                 double *ret_ns, bool *ret_huge)
{
	struct dbt_arena arena;
	int r = dbt_arena_new(ctx, set_bytes, pages, &arena);

	if (r < 0)
		return r;
	r = dbt_chase_prepare(&arena, set_bytes);
	if (r == 0)
		*ret_ns = dbt_chase_ns(ctx, &arena);
	*ret_huge = arena.huge_bytes >= arena.bytes;
	dbt_arena_free(&arena);
	return r;
}

static int set_note(struct dbt_rung *rung, const char *text)
{
	free(rung->note);
	rung->note = strdup(text);
	return rung->note ? 0 : -ENOMEM;
}

static int measure_latency(const struct dbt_ctx *ctx, struct dbt_rung *rung)
{
	bool huge = false;
	int r = chase(ctx, rung->set_bytes, DBT_PAGES_SMALL, &rung->lat_small_ns, &huge);

	if (r == 0)
		r = chase(ctx, rung->set_bytes, DBT_PAGES_HUGE, &rung->lat_ns, &huge);
	if (r == 0 && !huge) {
		rung->lat_ns = rung->lat_small_ns;
		r = set_note(rung, "no huge pages to be had: measured with 4 KiB pages");
	}
	return r;
}

static struct dbt_rung *push(struct dbt_rungs *rungs, enum dbt_rung_kind kind, const char *name)
{
	struct dbt_rung *rung = dbt_vec_push(rungs);

	if (!rung)
		return NULL;
	*rung = (struct dbt_rung){ .kind = kind, .name = strdup(name), .tier = DBT_TIER_RAM };
	return rung->name ? rung : NULL;
}

static void tell(const struct dbt_ctx *ctx, const char *name)
{
	struct dbt_progress progress = { .phase = "measure", .name = name };

	if (ctx->progress)
		ctx->progress(ctx->progress_data, &progress);
}

static int cancelled(const struct dbt_ctx *ctx, struct dbt_err *err)
{
	return dbt_ctx_cancelled(ctx) ? dbt_err_sys(err, -ECANCELED, "the ladder was stopped") : 0;
}

static int measure_caches(const struct dbt_ctx *ctx, const struct dbt_caches *caches,
                          struct dbt_rungs *rungs, struct dbt_err *err)
{
	static const double book_ns[DBT_CACHE_LEVELS] = { 0.5, 7, 0, 0 };
	char name[16];
	int r = 0;

	for (unsigned i = 0; i < DBT_CACHE_LEVELS && r == 0; i++) {
		struct dbt_rung *rung;

		if (caches->bytes[i] < 2 * SMALLEST_SET_BYTES)
			continue;
		(void)snprintf(name, sizeof(name), "L%u cache", i + 1);
		tell(ctx, name);
		rung = push(rungs, DBT_RUNG_CACHE, name);
		if (!rung)
			return dbt_err_sys(err, -ENOMEM, "cannot keep a measurement");
		rung->size_bytes = caches->bytes[i];
		rung->set_bytes = power_of_two_below(caches->bytes[i] / 2);
		rung->book_lat_ns = book_ns[i];
		r = cancelled(ctx, err);
		if (r == 0 && measure_latency(ctx, rung) < 0)
			r = dbt_err_sys(err, -ENOMEM, "cannot measure the %s", name);
	}
	return r;
}

static int sweep(const struct dbt_ctx *ctx, struct dbt_rung *rung)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct dbt_arena arena;
	int r = dbt_arena_new(ctx, rung->set_bytes, DBT_PAGES_HUGE, &arena);

	if (r < 0)
		return r;
	rung->stream1 = dbt_sweep_rate(ctx, &arena, 1);
	rung->stream4 = dbt_sweep_rate(ctx, &arena, processors > 0 ? (unsigned)processors : 1);
	dbt_arena_free(&arena);
	return 0;
}

/* The last cache is shared, of a virtual machine often with strangers. */
static int judge_last_cache(struct dbt_rungs *rungs)
{
	const struct dbt_rung *memory = &rungs->items[rungs->n - 1];
	struct dbt_rung *last = rungs->n > 1 ? &rungs->items[rungs->n - 2] : NULL;

	if (!last || last->note || last->lat_ns < HARDLY_FASTER * memory->lat_ns)
		return 0;
	return set_note(last, "hardly faster than memory: most of it is not ours");
}

static int measure_memory(const struct dbt_ctx *ctx, const struct dbt_caches *caches,
                          struct dbt_rungs *rungs, struct dbt_err *err)
{
	const uint64_t limit = dbt_arena_limit(ctx);
	uint64_t largest = 0;
	struct dbt_rung *rung;
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	int r = cancelled(ctx, err);

	for (unsigned i = 0; i < DBT_CACHE_LEVELS; i++)
		if (caches->bytes[i] > largest)
			largest = caches->bytes[i];
	tell(ctx, "memory");
	rung = r == 0 ? push(rungs, DBT_RUNG_MEMORY, "memory") : NULL;
	if (!rung)
		return r < 0 ? r : dbt_err_sys(err, -ENOMEM, "cannot keep a measurement");
	rung->size_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
	rung->set_bytes = MEMORY_SET_BYTES;
	while (rung->set_bytes < largest * 4)
		rung->set_bytes *= 2;
	/* The order of the lines takes a sixteenth more. */
	while (rung->set_bytes > SMALLEST_SET_BYTES && rung->set_bytes > limit / 17 * 16)
		rung->set_bytes /= 2;
	rung->book_lat_ns = 100;
	rung->book_stream = 4000000000; /* 1 MB in 250 us */
	r = measure_latency(ctx, rung);
	if (r == 0 && rung->set_bytes < largest * 4)
		r = set_note(rung, "little free memory: the caches hold a part of what was read");
	if (r == 0)
		r = judge_last_cache(rungs);
	if (r == 0)
		r = sweep(ctx, rung);
	return r < 0 ? dbt_err_sys(err, r, "cannot measure the memory") : 0;
}

static int by_latency(const void *a, const void *b)
{
	const struct dbt_rung *x = a, *y = b;

	/* What could not be measured comes last. */
	if ((x->lat_ns > 0) != (y->lat_ns > 0))
		return x->lat_ns > 0 ? -1 : 1;
	if (x->lat_ns != y->lat_ns)
		return x->lat_ns < y->lat_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int measure_devices(const struct dbt_ctx *ctx, const struct dbt_rungs_opts *opts,
                           struct dbt_rungs *rungs, struct dbt_err *err)
{
	const size_t first = rungs->n;
	int r = 0;

	for (size_t i = 0; i < opts->n_dirs && r == 0; i++) {
		struct dbt_rung *rung = push(rungs, DBT_RUNG_DEVICE, opts->dirs[i]);

		if (!rung)
			return dbt_err_sys(err, -ENOMEM, "cannot keep a measurement");
		tell(ctx, opts->dirs[i]);
		r = dbt_devrung_measure(ctx, opts->pattern_ns, rung, err);
	}
	if (r == 0 && rungs->n > first)
		qsort(rungs->items + first, rungs->n - first, sizeof(*rungs->items), by_latency);
	return r;
}

int dbt_rungs_measure(const struct dbt_ctx *ctx, const struct dbt_rungs_opts *opts,
                      struct dbt_rungs *ret, struct dbt_err *err)
{
	struct dbt_rungs rungs = { 0 };
	struct dbt_caches caches;
	int r;

	dbt_caches_read(ctx, &caches);
	r = measure_caches(ctx, &caches, &rungs, err);
	if (r == 0)
		r = measure_memory(ctx, &caches, &rungs, err);
	if (r == 0)
		r = measure_devices(ctx, opts, &rungs, err);
	if (r < 0)
		dbt_rungs_release(&rungs);
	else
		*ret = rungs;
	return r;
}

void dbt_rungs_release(struct dbt_rungs *rungs)
{
	for (size_t i = 0; i < rungs->n; i++) {
		free(rungs->items[i].name);
		free(rungs->items[i].device);
		free(rungs->items[i].note);
	}
	free(rungs->items);
	*rungs = (struct dbt_rungs){ 0 };
}
