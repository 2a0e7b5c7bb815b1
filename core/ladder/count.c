#include "ladder/count.h"

/* Four counters of 16 bits in one register: a counter in memory would make each byte wait for the
 * store of the one before whenever the letters are equal. After LANE_MAX bytes they are emptied. */
enum { LANE_BITS = 16, LANE_MAX = 65535 };

static inline uint64_t lane_of(uint8_t letter)
{
	uint64_t lane = (uint64_t)(letter & 6U) << 3; /* 0, 16, 32 or 48 */

	/* One turn, one byte. */
	__asm__ volatile("" : "+r"(lane));
	return UINT64_C(1) << lane;
}

static void empty_lanes(uint64_t lanes, struct dbt_counts *counts)
{
	for (unsigned i = 0; i < DBT_BASES; i++)
		counts->n[i] += (lanes >> (i * LANE_BITS)) & LANE_MAX;
}

static size_t block_end(size_t i, size_t n)
{
	return n - i < LANE_MAX ? n : i + LANE_MAX;
}

void dbt_count_order(const uint8_t *text, size_t n, struct dbt_counts *counts)
{
	for (size_t i = 0; i < n;) {
		uint64_t lanes = 0;

		for (const size_t end = block_end(i, n); i < end; i++)
			lanes += lane_of(text[i]);
		empty_lanes(lanes, counts);
	}
}

void dbt_count_index(const uint8_t *text, const uint32_t *index, size_t n,
                     struct dbt_counts *counts)
{
	for (size_t i = 0; i < n;) {
		uint64_t lanes = 0;

		for (const size_t end = block_end(i, n); i < end; i++)
			lanes += lane_of(text[index[i]]);
		empty_lanes(lanes, counts);
	}
}

void dbt_count_dependent(const uint8_t *text, const uint32_t *index, size_t n,
                         struct dbt_counts *counts)
{
	uint8_t last = 0;

	for (size_t i = 0; i < n;) {
		uint64_t lanes = 0;

		for (const size_t end = block_end(i, n); i < end; i++) {
			/* Letters are below 128: nothing is added, which only the text tells. */
			last = text[(size_t)index[i] + (last >> 7)];
			lanes += lane_of(last);
		}
		empty_lanes(lanes, counts);
	}
}
