#include "ladder/chase.h"

#include "base/cleanup.h"
#include "ladder/draw.h"
#include "ladder/median.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum {
	LINE_BYTES = 64,
	CHASE_ROUNDS = 5,
	SWEEP_ROUNDS = 5,
	MAX_THREADS = 256,
};

static const uint64_t ROUND_NS = 10000000;
static const uint64_t WARM_STEPS = 1 << 22;

int dbt_chase_prepare(struct dbt_arena *arena, uint64_t set_bytes)
{
	const size_t lines = set_bytes / LINE_BYTES;
	dbt_autofree uint32_t *order = malloc(lines * sizeof(*order));
	struct dbt_draw draw = { .state = set_bytes };
	char *base = arena->data;

	if (!order)
		return -ENOMEM;
	dbt_draw_order(&draw, order, lines);
	for (size_t i = 0; i < lines; i++)
		*(void **)(void *)(base + (size_t)order[i] * LINE_BYTES) =
			base + (size_t)order[(i + 1) % lines] * LINE_BYTES;
	return 0;
}

/* Four loads a turn, so that the loop itself does not count. */
static void *follow(void *at, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i += 4) {
		at = *(void **)at;
		at = *(void **)at;
		at = *(void **)at;
		at = *(void **)at;
	}
	/* Nobody uses the end; the compiler must not know. */
	__asm__ volatile("" : "+r"(at));
	return at;
}

double dbt_chase_ns(const struct dbt_ctx *ctx, const struct dbt_arena *arena)
{
	double rounds[CHASE_ROUNDS];
	uint64_t steps = 4096;
	void *at = arena->data;
	size_t n = 0;

	/* One lap brings a set that fits into its cache; of a larger one a part is enough. */
	at = follow(at, arena->bytes / LINE_BYTES < WARM_STEPS ? arena->bytes / LINE_BYTES
	                                                       : WARM_STEPS);
	while (n < CHASE_ROUNDS && !(n > 0 && dbt_ctx_cancelled(ctx))) {
		uint64_t start = ctx->sys->now_ns(), ns;

		at = follow(at, steps);
		ns = ctx->sys->now_ns() - start;
		if (ns < ROUND_NS / 2) {
			steps *= 2;
			continue;
		}
		rounds[n++] = (double)ns / (double)steps;
	}
	return dbt_median(rounds, n);
}

/* --- in order --- */

struct sweep {
	const uint64_t *words;
	size_t n;
	uint64_t sum;
};

static void *sweep_main(void *arg)
{
	struct sweep *sweep = arg;
	uint64_t sums[8] = { 0 };

	for (size_t i = 0; i + 8 <= sweep->n; i += 8)
		for (size_t k = 0; k < 8; k++)
			sums[k] += sweep->words[i + k];
	for (size_t k = 0; k < 8; k++)
		sweep->sum += sums[k];
	return NULL;
}

/* Each thread reads its own part of the arena. Returns nanoseconds, 0 when a thread is missing. */
static uint64_t sweep_once(const struct dbt_ctx *ctx, const struct dbt_arena *arena,
                           unsigned threads)
{
	pthread_t ids[MAX_THREADS];
	struct sweep sweeps[MAX_THREADS];
	size_t words = arena->bytes / sizeof(uint64_t) / threads;
	uint64_t start = ctx->sys->now_ns();
	unsigned started = 0;

	for (unsigned i = 0; i < threads; i++)
		sweeps[i] = (struct sweep){ (const uint64_t *)arena->data + i * words, words, 0 };
	while (started + 1 < threads &&
	       pthread_create(&ids[started], NULL, sweep_main, &sweeps[started]) == 0)
		started++;
	if (started + 1 == threads)
		(void)sweep_main(&sweeps[started]);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(ids[i], NULL);
	for (unsigned i = 0; i < threads; i++)
		__asm__ volatile("" : : "r"(sweeps[i].sum));
	return started + 1 == threads ? ctx->sys->now_ns() - start : 0;
}

uint64_t dbt_sweep_rate(const struct dbt_ctx *ctx, const struct dbt_arena *arena, unsigned threads)
{
	uint64_t best_ns = UINT64_MAX, ns;

	if (threads == 0 || threads > MAX_THREADS)
		threads = threads == 0 ? 1 : MAX_THREADS;
	for (int i = 0; i < SWEEP_ROUNDS && !dbt_ctx_cancelled(ctx); i++) {
		ns = sweep_once(ctx, arena, threads);
		if (ns == 0)
			return 0;
		if (ns < best_ns)
			best_ns = ns;
	}
	return best_ns == UINT64_MAX ? 0 : (uint64_t)((double)arena->bytes * 1e9 / (double)best_ns);
}
