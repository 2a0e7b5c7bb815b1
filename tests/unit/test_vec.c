#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void push_grows_and_zeroes(void **state)
{
	struct {
		uint32_t *items;
		size_t n, cap;
	} v = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t *slot = dbt_vec_push(&v);

		assert_non_null(slot);
		assert_int_equal(*slot, 0);
		*slot = i;
	}
	assert_int_equal(v.n, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(v.items[i], i);
	free(v.items);
}

/* Sizes that do not fit into size_t are refused before any memory is asked for. */
static void overflow_is_refused(void **state)
{
	size_t cap = SIZE_MAX / 2 + 1;

	(void)state;
	assert_null(dbt_vec_grow(NULL, cap, &cap, 1));
	assert_int_equal(cap, SIZE_MAX / 2 + 1);
	/* Twice this times 16 is 2^64: without the check, 0 bytes. */
	cap = (size_t)1 << 59;
	assert_null(dbt_vec_grow(NULL, cap, &cap, 16));
	assert_true(cap == (size_t)1 << 59);
	cap = 0;
	assert_null(dbt_vec_grow(NULL, 0, &cap, SIZE_MAX / 4));
	assert_int_equal(cap, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_grows_and_zeroes),
		cmocka_unit_test(overflow_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
