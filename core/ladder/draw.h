/* Numbers that look random and are the same on every machine, so that two runs do the same work. */
#ifndef DBT_LADDER_DRAW_H
#define DBT_LADDER_DRAW_H

#include <stddef.h>
#include <stdint.h>

struct dbt_draw {
	uint64_t state; /* any start is fine */
};

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static inline uint64_t dbt_draw_next(struct dbt_draw *draw)
{
	uint64_t z = (draw->state += 0x9e3779b97f4a7c15U);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

/* 0 to below - 1, for below > 0 and up to 2^32. */
static inline uint64_t dbt_draw_below(struct dbt_draw *draw, uint64_t below)
{
	return ((dbt_draw_next(draw) >> 32) * below) >> 32;
}

/* The numbers 0 to n - 1 in a random order (Fisher and Yates). */
static inline void dbt_draw_order(struct dbt_draw *draw, uint32_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (size_t i = n; i > 1; i--) {
		size_t j = dbt_draw_below(draw, i);
		uint32_t kept = order[i - 1];

		order[i - 1] = order[j];
		order[j] = kept;
	}
}

#endif
