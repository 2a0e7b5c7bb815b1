#include "base/cleanup.h"
#include "ladder/arena.h"
#include "ladder/caches.h"
#include "ladder/chase.h"
#include "ladder/conclude.h"
#include "ladder/count.h"
#include "ladder/dna.h"
#include "ladder/dnatext.h"
#include "ladder/draw.h"
#include "ladder/median.h"
#include "ladder/rungs.h"
#include "sys/root.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct dbt_root root = { .fd = -1 };
static struct dbt_ctx ctx;

static int open_root(void **state)
{
	(void)state;
	if (dbt_root_open(&root, NULL) < 0)
		return -1;
	dbt_ctx_init(&ctx, &root);
	return 0;
}

static int close_root(void **state)
{
	(void)state;
	dbt_root_close(&root);
	return 0;
}

static void an_order_has_every_position_once(void **state)
{
	enum { N = 10007 };
	static uint32_t order[N];
	static bool seen[N];
	struct dbt_draw draw = { .state = 7 };
	size_t in_place = 0;

	(void)state;
	dbt_draw_order(&draw, order, N);
	for (size_t i = 0; i < N; i++) {
		assert_true(order[i] < N);
		assert_false(seen[order[i]]);
		seen[order[i]] = true;
		in_place += order[i] == i;
	}
	/* One position is expected to stay; a dozen would be no shuffling. */
	assert_true(in_place < 12);
}

static void the_median_is_the_middle(void **state)
{
	double odd[] = { 9, 1, 5 }, even[] = { 4, 1, 3, 2 };

	(void)state;
	assert_true(dbt_median(odd, 3) == 5);
	assert_true(dbt_median(even, 4) == 2.5);
	assert_true(dbt_median(odd, 0) == 0);
}

/* What the loops should find, counted in the most plain way. */
static struct dbt_counts plain(const uint8_t *text, size_t n)
{
	struct dbt_counts c = { 0 };

	for (size_t i = 0; i < n; i++)
		switch (text[i]) {
		case 'A':
			c.n[0]++;
			break;
		case 'C':
			c.n[1]++;
			break;
		case 'T':
			c.n[2]++;
			break;
		case 'G':
			c.n[3]++;
			break;
		default:
			fail();
		}
	return c;
}

static void all_ways_count_the_same(void **state)
{
	static const unsigned lengths[] = { 15, 16, 18, 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct dbt_dnatext text;
		const size_t n = (size_t)1 << lengths[i];
		struct dbt_counts expected, c[5] = { 0 };

		assert_int_equal(dbt_dnatext_new(&ctx, lengths[i], &text), 0);
		expected = plain(dbt_dnatext_letters(&text, DBT_PAGES_SMALL), n);
		for (unsigned k = 0; k < DBT_BASES; k++)
			assert_true(expected.n[k] > n / 5 && expected.n[k] < n / 3);
		dbt_count_order(dbt_dnatext_letters(&text, DBT_PAGES_SMALL), n, &c[0]);
		dbt_count_index(dbt_dnatext_letters(&text, DBT_PAGES_SMALL),
		                dbt_dnatext_order(&text, DBT_PAGES_SMALL), n, &c[1]);
		dbt_count_index(dbt_dnatext_letters(&text, DBT_PAGES_HUGE),
		                dbt_dnatext_order(&text, DBT_PAGES_HUGE), n, &c[2]);
		dbt_count_dependent(dbt_dnatext_letters(&text, DBT_PAGES_SMALL),
		                    dbt_dnatext_order(&text, DBT_PAGES_SMALL), n, &c[3]);
		dbt_dnatext_count_small_index(&text, &c[4]);
		for (size_t k = 0; k < 5; k++)
			assert_memory_equal(&c[k], &expected, sizeof(expected));
		dbt_dnatext_free(&text);
	}
}

/* The cached index must reach each letter once, not only give the right sum. */
static void the_small_index_reaches_every_letter(void **state)
{
	struct dbt_dnatext text;
	dbt_autofree bool *seen = calloc(1 << 18, sizeof(*seen));

	(void)state;
	assert_non_null(seen);
	assert_int_equal(dbt_dnatext_new(&ctx, 18, &text), 0);
	for (size_t pass = 0; pass < 8; pass++)
		for (size_t i = 0; i < 1 << 15; i++) {
			size_t at = (size_t)text.small_index[i] + text.small_offsets[pass];

			assert_true(at < 1 << 18);
			assert_false(seen[at]);
			seen[at] = true;
		}
	dbt_dnatext_free(&text);
}

static void a_longer_text_begins_like_a_shorter_one(void **state)
{
	struct dbt_dnatext a, b;

	(void)state;
	assert_int_equal(dbt_dnatext_new(&ctx, 15, &a), 0);
	assert_int_equal(dbt_dnatext_new(&ctx, 17, &b), 0);
	assert_memory_equal(dbt_dnatext_letters(&a, DBT_PAGES_SMALL),
	                    dbt_dnatext_letters(&b, DBT_PAGES_HUGE), 1 << 15);
	dbt_dnatext_free(&a);
	dbt_dnatext_free(&b);
}

static void the_chase_visits_every_line(void **state)
{
	enum { SET = 1 << 20, LINES = SET / 64 };
	struct dbt_arena arena;
	size_t steps = 0;
	char *at;

	(void)state;
	assert_int_equal(dbt_arena_new(&ctx, SET, DBT_PAGES_SMALL, &arena), 0);
	assert_int_equal(dbt_chase_prepare(&arena, SET), 0);
	at = arena.data;
	do {
		at = *(char **)(void *)at;
		assert_true(at >= (char *)arena.data && at < (char *)arena.data + SET);
		steps++;
	} while (at != arena.data && steps <= LINES);
	assert_int_equal(steps, LINES);
	assert_true(dbt_chase_ns(&ctx, &arena) > 0);
	dbt_arena_free(&arena);
}

static void small_pages_are_small(void **state)
{
	struct dbt_arena arena;

	(void)state;
	assert_int_equal(dbt_arena_new(&ctx, 8 << 20, DBT_PAGES_SMALL, &arena), 0);
	assert_int_equal((uintptr_t)arena.data % (2 << 20), 0);
	assert_int_equal(arena.huge_bytes, 0);
	dbt_arena_free(&arena);
	dbt_arena_free(&arena);
}

static void memory_limits_of_groups_count(void **state)
{
	struct dbt_root captured;
	struct dbt_ctx there;
	struct dbt_caches caches;

	(void)state;
	assert_int_equal(dbt_root_open(&captured, TEST_FIXTURES "/ladder/machine"), 0);
	dbt_ctx_init(&there, &captured);
	/* 8 GiB are available; the group above may take 1 GiB and has taken 512 MiB. */
	assert_int_equal(dbt_arena_limit(&there), 128 << 20);
	dbt_root_close(&captured);
	dbt_caches_read(&ctx, &caches);
	for (size_t i = 1; i < DBT_CACHE_LEVELS; i++)
		assert_true(caches.bytes[i] == 0 || caches.bytes[i] >= caches.bytes[i - 1]);
}

/* --- what follows from numbers --- */

static struct dbt_dna_point points[DBT_DNA_MODES * 3];

static void put(struct dbt_dna *dna, enum dbt_dna_mode mode, double first, double middle,
                double last)
{
	const double ns[] = { first, middle, last };

	for (unsigned i = 0; i < 3; i++)
		points[dna->n++] = (struct dbt_dna_point){ .mode = mode,
			                                   .bits = 15 + i,
			                                   .known = ns[i] > 0,
			                                   .ns = ns[i],
			                                   .cache_misses = -1,
			                                   .tlb_misses = -1 };
	dna->items = points;
	dna->max_bits = 17;
}

static const struct dbt_dna_series MEMORY = { DBT_DNA_MEMORY_SHUFFLED, 0 };
static const struct dbt_dna_series FILE_ORDER = { DBT_DNA_FILE_ORDER_COLD, 0 };

static void crossings(void **state)
{
	struct dbt_dna dna = { 0 };
	unsigned bits = 0;

	(void)state;
	put(&dna, DBT_DNA_MEMORY_SHUFFLED, 1, 3, 10);
	put(&dna, DBT_DNA_FILE_ORDER_COLD, 2, 2, 2);
	assert_true(dbt_dna_crossing(&dna, FILE_ORDER, MEMORY, &bits));
	assert_int_equal(bits, 16);
	assert_false(dbt_dna_crossing(&dna, MEMORY, FILE_ORDER, &bits));
	assert_int_equal(bits, 16);
	/* An unknown length is skipped, an unknown longest one ends it. */
	points[4].known = false;
	assert_true(dbt_dna_crossing(&dna, FILE_ORDER, MEMORY, &bits));
	assert_int_equal(bits, 17);
	points[5].known = false;
	assert_false(dbt_dna_crossing(&dna, FILE_ORDER, MEMORY, &bits));
}

static bool says(const struct dbt_sentences *s, const char *part)
{
	for (size_t i = 0; i < s->n; i++)
		if (strstr(s->items[i], part))
			return true;
	return false;
}

static void the_conclusion_follows_from_the_numbers(void **state)
{
	const char *dirs[] = { "/srv/db" };
	struct dbt_dna dna = { .huge_share = 1, .event_code = -ENOENT };
	struct dbt_sentences s;

	(void)state;
	put(&dna, DBT_DNA_MEMORY_ORDER, 0.5, 0.5, 0.5);
	put(&dna, DBT_DNA_MEMORY_SHUFFLED, 1, 4, 11);
	put(&dna, DBT_DNA_MEMORY_HUGE, 1, 3, 7);
	put(&dna, DBT_DNA_MEMORY_SMALL_INDEX, 1, 4, 11.1);
	put(&dna, DBT_DNA_MEMORY_DEPENDENT, 2, 20, 110);
	put(&dna, DBT_DNA_FILE_ORDER_COLD, 20, 5, 5);
	put(&dna, DBT_DNA_FILE_SHUFFLED_COLD, 5e6, 5e6, 5e6);
	assert_int_equal(dbt_dna_conclude(&dna, dirs, 1, &s), 0);
	assert_true(says(&s, "22.0 times as long as in order"));
	assert_true(
		says(&s, "(huge pages) takes it from 11 ns to 7.0 ns at 2^17: 40 % of the growth"));
	assert_true(says(&s, "from 11 ns to 11 ns at 2^17: no gain"));
	assert_true(says(&s, "10.0 at a time"));
	assert_true(
		says(&s, "From 2^17 on, reading '/srv/db' in order, cold, beats random memory"));
	assert_true(says(&s, "takes 5.0 ms: 1000000 times as long as one in order"));
	assert_true(says(&s, "no counts of cache and TLB misses here (no such file or directory)"));
	dbt_sentences_release(&s);

	/* The other way round: nothing is claimed that the numbers do not say. */
	dna = (struct dbt_dna){ .huge_share = 0 };
	put(&dna, DBT_DNA_MEMORY_ORDER, 0.5, 0.5, 0.5);
	put(&dna, DBT_DNA_MEMORY_SHUFFLED, 1, 1, 1);
	put(&dna, DBT_DNA_MEMORY_HUGE, 1, 1, 1);
	put(&dna, DBT_DNA_MEMORY_SMALL_INDEX, 1, 1, 1);
	put(&dna, DBT_DNA_MEMORY_DEPENDENT, 1, 1, 1);
	put(&dna, DBT_DNA_FILE_ORDER_COLD, 9, 9, 9);
	put(&dna, DBT_DNA_FILE_SHUFFLED_COLD, 0, 0, 0);
	points[dna.n - 1].cache_misses = -1;
	points[5].cache_misses = 0.25;
	points[5].tlb_misses = 0.5;
	assert_int_equal(dbt_dna_conclude(&dna, dirs, 1, &s), 0);
	assert_false(says(&s, "of the growth"));
	assert_false(says(&s, "at a time"));
	assert_true(says(&s, "no longer than in the shortest text: there is nothing to explain"));
	assert_false(says(&s, "each read needs the one before"));
	assert_true(says(&s, "does not beat random memory up to 2^17"));
	assert_true(says(&s, "Cold reads of '/srv/db' are not told"));
	assert_true(says(&s, "25 miss the last cache"));
	assert_true(says(&s, "50 miss the TLB"));
	dbt_sentences_release(&s);
}

static void causes_are_told_of_what_grows_only(void **state)
{
	struct dbt_dna dna = { .huge_share = 0 };
	struct dbt_sentences s;

	(void)state;
	put(&dna, DBT_DNA_MEMORY_ORDER, 0.5, 0.5, 0.5);
	put(&dna, DBT_DNA_MEMORY_SHUFFLED, 1, 2, 4);
	put(&dna, DBT_DNA_MEMORY_HUGE, 1, 2, 4);
	put(&dna, DBT_DNA_MEMORY_SMALL_INDEX, 1, 2, 1);
	put(&dna, DBT_DNA_MEMORY_DEPENDENT, 1, 2, 4);
	assert_int_equal(dbt_dna_conclude(&dna, NULL, 0, &s), 0);
	assert_true(says(&s, "The kernel gave no huge pages"));
	assert_true(says(&s, "from 4.0 ns to 1.0 ns at 2^17: 100 % of the growth"));
	assert_false(says(&s, "at a time"));
	dbt_sentences_release(&s);

	/* One length only: no growth can be seen. */
	dna.max_bits = DBT_DNA_MIN_BITS;
	assert_int_equal(dbt_dna_conclude(&dna, NULL, 0, &s), 0);
	assert_true(says(&s, "Memory at 2^15: a byte takes 0.50 ns counted in order, 1.0 ns in"));
	assert_false(says(&s, "growth"));
	assert_false(says(&s, "and 1.0 ns at 2^15"));
	dbt_sentences_release(&s);
}

/* A directory that gave nothing is named once, with the reason. */
static void a_failed_directory_is_named(void **state)
{
	const char *dirs[] = { "/srv/db" };
	struct dbt_dna dna = { .huge_share = 1 };
	struct dbt_sentences s;

	(void)state;
	put(&dna, DBT_DNA_MEMORY_ORDER, 0.5, 0.5, 0.5);
	put(&dna, DBT_DNA_FILE_SHUFFLED_COLD, 0, 0, 0);
	for (size_t i = 0; i < dna.n; i++)
		if (points[i].mode == DBT_DNA_FILE_SHUFFLED_COLD) {
			points[i].known = false;
			points[i].note = (char *)(uintptr_t) "read-only";
		}
	assert_true(dbt_dna_failed(&dna, 0));
	assert_int_equal(dbt_dna_conclude(&dna, dirs, 1, &s), 0);
	assert_true(says(&s, "'/srv/db' could not be measured: read-only."));
	assert_false(says(&s, "Cold reads"));
	dbt_sentences_release(&s);
}

static void a_stop_ends_the_experiment(void **state)
{
	const struct dbt_dna_opts opts = { .max_bits = 16 };
	atomic_int cancel = 15;
	struct dbt_ctx stopped = ctx;
	struct dbt_dna dna;
	struct dbt_err err;

	(void)state;
	stopped.cancel = &cancel;
	assert_int_equal(dbt_dna_run(&stopped, &opts, &dna, &err), -ECANCELED);
}

static void points_come_by_series(void **state)
{
	const struct dbt_dna_opts opts = { .max_bits = 16 };
	struct dbt_dna dna;
	struct dbt_err err;

	(void)state;
	assert_int_equal(dbt_dna_run(&ctx, &opts, &dna, &err), 0);
	assert_int_equal(dna.n, (size_t)DBT_DNA_MEMORY_MODES * 2);
	for (size_t i = 0; i < dna.n; i++) {
		assert_int_equal(dna.items[i].mode, i / 2);
		assert_int_equal(dna.items[i].bits, 15 + i % 2);
		assert_true(dna.items[i].known && dna.items[i].ns > 0);
	}
	dbt_dna_release(&dna);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_has_every_position_once),
		cmocka_unit_test(the_median_is_the_middle),
		cmocka_unit_test(all_ways_count_the_same),
		cmocka_unit_test(the_small_index_reaches_every_letter),
		cmocka_unit_test(a_longer_text_begins_like_a_shorter_one),
		cmocka_unit_test(the_chase_visits_every_line),
		cmocka_unit_test(small_pages_are_small),
		cmocka_unit_test(memory_limits_of_groups_count),
		cmocka_unit_test(crossings),
		cmocka_unit_test(the_conclusion_follows_from_the_numbers),
		cmocka_unit_test(causes_are_told_of_what_grows_only),
		cmocka_unit_test(a_failed_directory_is_named),
		cmocka_unit_test(a_stop_ends_the_experiment),
		cmocka_unit_test(points_come_by_series),
	};

	return cmocka_run_group_tests(tests, open_root, close_root);
}
