#include "ladder/dna.h"

#include "base/units.h"
#include "base/vec.h"
#include "ladder/arena.h"
#include "ladder/dnafile.h"
#include "ladder/dnarun.h"
#include "ladder/dnatext.h"
#include "ladder/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *id, *words;
} modes[DBT_DNA_MODES] = {
	[DBT_DNA_MEMORY_ORDER] = { "memory-order", "memory in order" },
	[DBT_DNA_MEMORY_SHUFFLED] = { "memory-shuffled", "memory shuffled" },
	[DBT_DNA_MEMORY_HUGE] = { "memory-shuffled-huge", "memory shuffled, huge pages" },
	[DBT_DNA_MEMORY_SMALL_INDEX] = { "memory-shuffled-small-index",
	                                 "memory shuffled, index in cache" },
	[DBT_DNA_MEMORY_DEPENDENT] = { "memory-shuffled-dependent",
	                               "memory shuffled, one after the other" },
	[DBT_DNA_FILE_ORDER_COLD] = { "file-order-cold", "file in order, cold" },
	[DBT_DNA_FILE_SHUFFLED_COLD] = { "file-shuffled-cold", "file shuffled, cold" },
	[DBT_DNA_FILE_ORDER_WARM] = { "file-order-warm", "file in order, warm (memory)" },
	[DBT_DNA_FILE_SHUFFLED_WARM] = { "file-shuffled-warm", "file shuffled, warm (memory)" },
};

const char *dbt_dna_words(enum dbt_dna_mode mode)
{
	return modes[mode].words;
}

const char *dbt_dna_id(enum dbt_dna_mode mode)
{
	return modes[mode].id;
}

bool dbt_dna_is_file(enum dbt_dna_mode mode)
{
	return mode >= DBT_DNA_MEMORY_MODES;
}

bool dbt_dna_is_cold(enum dbt_dna_mode mode)
{
	return mode == DBT_DNA_FILE_ORDER_COLD || mode == DBT_DNA_FILE_SHUFFLED_COLD;
}

struct work {
	const struct dbt_ctx *ctx;
	const struct dbt_dna_opts *opts;
	struct dbt_events events;
	struct dbt_dnafile *files; /* one for each directory */
	char **failures;           /* why a directory has none; NULL it has */
	struct dbt_dna *dna;
};

/* The longest text within the memory limit. */
static int choose_bits(struct work *w, struct dbt_err *err)
{
	uint64_t limit = dbt_arena_limit(w->ctx);
	char text[DBT_UNITS_TEXT_BYTES];
	unsigned bits = w->opts->max_bits;

	while (bits > DBT_DNA_MIN_BITS && dbt_dnatext_bytes(bits) > limit)
		bits--;
	if (dbt_dnatext_bytes(bits) > limit)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENOMEM,
		                   "a quarter of the free memory, %s, is too little for the "
		                   "experiment",
		                   dbt_units_size(limit, text));
	w->dna->max_bits = bits;
	if (bits < w->opts->max_bits &&
	    asprintf(&w->dna->limited,
	             "the text ends at 2^%u: a longer one would take more than a quarter of the "
	             "free memory",
	             bits) < 0) {
		w->dna->limited = NULL;
		return dbt_err_sys(err, -ENOMEM, "cannot begin");
	}
	return 0;
}

/* What one directory cannot do is no end for the others. */
static bool ends_all(const struct dbt_err *err, int code)
{
	return code == -ECANCELED || code == -ENOMEM || err->kind == DBT_ERR_VERIFY;
}

static int keep_failure(struct dbt_err *err, char **ret)
{
	*ret = strdup(err->text);
	return *ret ? 0 : dbt_err_sys(err, -ENOMEM, "cannot keep a measurement");
}

static int run_file_point(const struct dbt_dnarun *run, const char *failure,
                          struct dbt_dna_point *point, struct dbt_err *err)
{
	int r;

	if (failure) {
		point->cache_misses = point->tlb_misses = -1;
		point->note = strdup(failure);
		return point->note ? 0 : dbt_err_sys(err, -ENOMEM, "cannot keep a measurement");
	}
	r = dbt_dnarun(run, point, err);
	return r < 0 && !ends_all(err, r) ? keep_failure(err, &point->note) : r;
}

static int run_point(struct work *w, const struct dbt_dnatext *text, enum dbt_dna_mode mode,
                     size_t dir, struct dbt_err *err)
{
	const struct dbt_dnarun run = { .ctx = w->ctx,
		                        .text = text,
		                        .file = dbt_dna_is_file(mode) ? &w->files[dir] : NULL,
		                        .events = &w->events };
	struct dbt_progress progress = { .phase = "count", .name = dbt_dna_words(mode) };
	struct dbt_dna_point *point = dbt_vec_push(w->dna);

	if (!point)
		return dbt_err_sys(err, -ENOMEM, "cannot keep a measurement");
	*point = (struct dbt_dna_point){ .mode = mode, .dir = dir, .bits = text->bits };
	if (w->ctx->progress)
		w->ctx->progress(w->ctx->progress_data, &progress);
	return dbt_dna_is_file(mode) ? run_file_point(&run, w->failures[dir], point, err)
	                             : dbt_dnarun(&run, point, err);
}

static int run_length(struct work *w, unsigned bits, struct dbt_err *err)
{
	struct dbt_dnatext text;
	int r = dbt_dnatext_new(w->ctx, bits, &text);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot get the memory for a text of 2^%u", bits);
	for (enum dbt_dna_mode mode = 0; mode < DBT_DNA_MEMORY_MODES && r == 0; mode++)
		r = run_point(w, &text, mode, 0, err);
	for (size_t dir = 0; dir < w->opts->n_dirs; dir++)
		for (enum dbt_dna_mode mode = DBT_DNA_MEMORY_MODES; mode < DBT_DNA_MODES && r == 0;
		     mode++)
			r = run_point(w, &text, mode, dir, err);
	if (bits == w->dna->max_bits)
		w->dna->huge_share = (double)text.text[DBT_PAGES_HUGE].huge_bytes /
		                     (double)text.text[DBT_PAGES_HUGE].bytes;
	dbt_dnatext_free(&text);
	return r;
}

static int make_files(struct work *w, struct dbt_err *err)
{
	struct dbt_dnatext text;
	int r;

	if (w->opts->n_dirs == 0)
		return 0;
	w->files = calloc(w->opts->n_dirs, sizeof(*w->files));
	w->failures = calloc(w->opts->n_dirs, sizeof(*w->failures));
	for (size_t i = 0; w->files && i < w->opts->n_dirs; i++)
		w->files[i] = DBT_DNAFILE_NONE;
	r = w->files && w->failures ? dbt_dnatext_new(w->ctx, w->dna->max_bits, &text) : -ENOMEM;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot begin");
	for (size_t i = 0; i < w->opts->n_dirs && r == 0; i++) {
		struct dbt_progress progress = { .phase = "write", .name = w->opts->dirs[i] };

		if (w->ctx->progress)
			w->ctx->progress(w->ctx->progress_data, &progress);
		r = dbt_dnafile_new(w->ctx, w->opts->dirs[i],
		                    dbt_dnatext_letters(&text, DBT_PAGES_SMALL),
		                    UINT64_C(1) << text.bits, &w->files[i], err);
		if (r < 0 && !ends_all(err, r))
			r = keep_failure(err, &w->failures[i]);
	}
	dbt_dnatext_free(&text);
	return r;
}

static void close_files(struct work *w)
{
	for (size_t i = 0; w->files && i < w->opts->n_dirs; i++)
		dbt_dnafile_close(&w->files[i]);
	for (size_t i = 0; w->failures && i < w->opts->n_dirs; i++)
		free(w->failures[i]);
	free(w->files);
	free(w->failures);
}

static int by_series(const void *a, const void *b)
{
	const struct dbt_dna_point *x = a, *y = b;

	if (dbt_dna_is_file(x->mode) != dbt_dna_is_file(y->mode))
		return dbt_dna_is_file(x->mode) ? 1 : -1;
	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	if (x->mode != y->mode)
		return x->mode < y->mode ? -1 : 1;
	return (x->bits > y->bits) - (x->bits < y->bits);
}

int dbt_dna_run(const struct dbt_ctx *ctx, const struct dbt_dna_opts *opts, struct dbt_dna *ret,
                struct dbt_err *err)
{
	struct dbt_dna dna = { 0 };
	struct work w = { .ctx = ctx, .opts = opts, .dna = &dna };
	int r;

	dbt_events_open(&w.events);
	for (unsigned i = 0; i < DBT_EVENTS; i++)
		if (w.events.codes[i] < 0)
			dna.event_code = w.events.codes[i];
	r = choose_bits(&w, err);
	if (r == 0)
		r = make_files(&w, err);
	for (unsigned bits = DBT_DNA_MIN_BITS; bits <= dna.max_bits && r == 0; bits++)
		r = run_length(&w, bits, err);
	close_files(&w);
	dbt_events_close(&w.events);
	if (r < 0) {
		dbt_dna_release(&dna);
		return r;
	}
	qsort(dna.items, dna.n, sizeof(*dna.items), by_series);
	*ret = dna;
	return 0;
}

void dbt_dna_release(struct dbt_dna *dna)
{
	for (size_t i = 0; i < dna->n; i++)
		free(dna->items[i].note);
	free(dna->items);
	free(dna->limited);
	*dna = (struct dbt_dna){ 0 };
}

bool dbt_dna_failed(const struct dbt_dna *dna, size_t dir)
{
	for (size_t i = 0; i < dna->n; i++)
		if (dbt_dna_is_file(dna->items[i].mode) && dna->items[i].dir == dir &&
		    dna->items[i].known)
			return false;
	return true;
}

const struct dbt_dna_point *dbt_dna_find(const struct dbt_dna *dna, enum dbt_dna_mode mode,
                                         size_t dir, unsigned bits)
{
	for (size_t i = 0; i < dna->n; i++) {
		const struct dbt_dna_point *p = &dna->items[i];

		if (p->mode == mode && p->dir == dir && p->bits == bits)
			return p;
	}
	return NULL;
}
