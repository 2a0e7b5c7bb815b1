/* The text of the DNA experiment and the orders in which it is read, in memory. */
#ifndef DBT_LADDER_DNATEXT_H
#define DBT_LADDER_DNATEXT_H

#include "ladder/arena.h"
#include "ladder/count.h"
#include "sys/ctx.h"

#include <stdint.h>

/* An array of this many positions stays in the second cache. */
enum { DBT_DNA_SMALL_INDEX_BITS = 15 };

struct dbt_dnatext {
	unsigned bits;
	struct dbt_arena text[2];  /* by enum dbt_pages: the same letters */
	struct dbt_arena index[2]; /* uint32_t: all positions in one random order */
	uint32_t *small_index;     /* 2^15 positions, each a multiple of 2^(bits - 15) */
	uint32_t *small_offsets;   /* 2^(bits - 15), what to add for each pass over them */
};

/* Memory that a text of 2^bits needs in all. */
uint64_t dbt_dnatext_bytes(unsigned bits);

/* Shorter texts are the beginning of longer ones. Returns 0 or -ENOMEM. */
int dbt_dnatext_new(const struct dbt_ctx *ctx, unsigned bits, struct dbt_dnatext *ret);
void dbt_dnatext_free(struct dbt_dnatext *text);

const uint8_t *dbt_dnatext_letters(const struct dbt_dnatext *text, enum dbt_pages pages);
const uint32_t *dbt_dnatext_order(const struct dbt_dnatext *text, enum dbt_pages pages);

/* All letters once, in the order of small_index within a pass. */
void dbt_dnatext_count_small_index(const struct dbt_dnatext *text, struct dbt_counts *counts);

#endif
