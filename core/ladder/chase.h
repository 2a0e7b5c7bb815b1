/* The latency of memory: each load needs the one before, so nothing overlaps and nothing can be
 * fetched ahead. The addresses are the cache lines of a working set in one random cycle. */
#ifndef DBT_LADDER_CHASE_H
#define DBT_LADDER_CHASE_H

#include "ladder/arena.h"
#include "sys/ctx.h"

#include <stdint.h>

/* Lays the cycle into the first set_bytes of the arena (a power of two from 4 KiB to 256 GiB).
 * Returns 0 or -ENOMEM. */
int dbt_chase_prepare(struct dbt_arena *arena, uint64_t set_bytes);

/* The median time of a load over some rounds, in nanoseconds. About 50 ms; stops early when the
 * run is cancelled. */
double dbt_chase_ns(const struct dbt_ctx *ctx, const struct dbt_arena *arena);

/* Bytes a second that this many threads read from the arena, in order: the best of some rounds.
 * 0 when no thread could be had. */
uint64_t dbt_sweep_rate(const struct dbt_ctx *ctx, const struct dbt_arena *arena, unsigned threads);

#endif
