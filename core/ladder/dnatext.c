#include "ladder/dnatext.h"

#include "ladder/draw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS_PER_DRAW = 32 };

static void write_letters(uint8_t *text, size_t n)
{
	struct dbt_draw draw = { .state = 1 };

	for (size_t i = 0; i < n; i += LETTERS_PER_DRAW) {
		uint64_t bits = dbt_draw_next(&draw);

		for (size_t k = 0; k < LETTERS_PER_DRAW; k++, bits >>= 2)
			text[i + k] = (uint8_t) "ACGT"[bits & 3];
	}
}

static int make_small_index(struct dbt_dnatext *text)
{
	const size_t positions = (size_t)1 << DBT_DNA_SMALL_INDEX_BITS;
	const unsigned shift = text->bits - DBT_DNA_SMALL_INDEX_BITS;
	const size_t passes = (size_t)1 << shift;
	struct dbt_draw draw = { .state = 3 };

	text->small_index = malloc(positions * sizeof(*text->small_index));
	text->small_offsets = malloc(passes * sizeof(*text->small_offsets));
	if (!text->small_index || !text->small_offsets)
		return -ENOMEM;
	dbt_draw_order(&draw, text->small_index, positions);
	for (size_t i = 0; i < positions; i++)
		text->small_index[i] <<= shift;
	dbt_draw_order(&draw, text->small_offsets, passes);
	return 0;
}

uint64_t dbt_dnatext_bytes(unsigned bits)
{
	/* Letters and positions, on small and on huge pages, and the passes of the small index. */
	return (UINT64_C(1) << bits) * (1 + sizeof(uint32_t)) * 2 +
	       (UINT64_C(1) << bits >> DBT_DNA_SMALL_INDEX_BITS) * sizeof(uint32_t);
}

int dbt_dnatext_new(const struct dbt_ctx *ctx, unsigned bits, struct dbt_dnatext *ret)
{
	const size_t n = (size_t)1 << bits;
	struct dbt_dnatext text = { .bits = bits };
	struct dbt_draw draw = { .state = 2 };
	int r = 0;

	for (enum dbt_pages pages = DBT_PAGES_SMALL; pages <= DBT_PAGES_HUGE && r == 0; pages++) {
		r = dbt_arena_new(ctx, n, pages, &text.text[pages]);
		if (r == 0)
			r = dbt_arena_new(ctx, n * sizeof(uint32_t), pages, &text.index[pages]);
	}
	if (r == 0)
		r = make_small_index(&text);
	if (r < 0) {
		dbt_dnatext_free(&text);
		return r;
	}
	write_letters(text.text[DBT_PAGES_SMALL].data, n);
	dbt_draw_order(&draw, text.index[DBT_PAGES_SMALL].data, n);
	memcpy(text.text[DBT_PAGES_HUGE].data, text.text[DBT_PAGES_SMALL].data, n);
	memcpy(text.index[DBT_PAGES_HUGE].data, text.index[DBT_PAGES_SMALL].data,
	       n * sizeof(uint32_t));
	*ret = text;
	return 0;
}

void dbt_dnatext_free(struct dbt_dnatext *text)
{
	for (enum dbt_pages pages = DBT_PAGES_SMALL; pages <= DBT_PAGES_HUGE; pages++) {
		dbt_arena_free(&text->text[pages]);
		dbt_arena_free(&text->index[pages]);
	}
	free(text->small_index);
	free(text->small_offsets);
	*text = (struct dbt_dnatext){ 0 };
}

const uint8_t *dbt_dnatext_letters(const struct dbt_dnatext *text, enum dbt_pages pages)
{
	return text->text[pages].data;
}

const uint32_t *dbt_dnatext_order(const struct dbt_dnatext *text, enum dbt_pages pages)
{
	return text->index[pages].data;
}

void dbt_dnatext_count_small_index(const struct dbt_dnatext *text, struct dbt_counts *counts)
{
	const size_t passes = (size_t)1 << (text->bits - DBT_DNA_SMALL_INDEX_BITS);
	const uint8_t *letters = dbt_dnatext_letters(text, DBT_PAGES_SMALL);

	for (size_t i = 0; i < passes; i++)
		dbt_count_index(letters + text->small_offsets[i], text->small_index,
		                (size_t)1 << DBT_DNA_SMALL_INDEX_BITS, counts);
}
