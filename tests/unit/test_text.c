#include "base/nearest.h"
#include "cmd/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void utf8_is_judged_as_rfc_3629_says(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\xc3\xa4", 2 },
		{ "\xe2\x82\xac", 3 },
		{ "\xf0\x9f\xa7\xac", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 }, /* U+10FFFF */
		{ "\x80", 0 },             /* begins in the middle */
		{ "\xc0\x80", 0 },         /* longer than needed */
		{ "\xe0\x80\xaf", 0 },
		{ "\xf0\x80\x80\xaf", 0 },
		{ "\xed\xa0\x80", 0 },     /* a surrogate */
		{ "\xf4\x90\x80\x80", 0 }, /* beyond U+10FFFF */
		{ "\xff", 0 },
		{ "\xe2\x82", 0 }, /* cut */
		{ "\xc3z", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(text_utf8_len(cases[i].bytes, strlen(cases[i].bytes)),
		                 cases[i].len);
	assert_true(text_is_utf8("", 0));
	assert_false(text_is_utf8("ab\xff", 3));
}

static void what_is_not_utf8_is_replaced(void **state)
{
	struct dbt_buf buf = { 0 };

	(void)state;
	assert_int_equal(text_add_utf8(&buf, "a\xff\xe2\x82z\xc3\xa4", 7), 0);
	assert_string_equal(dbt_buf_str(&buf), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xc3\xa4");
	assert_true(text_is_utf8(buf.data, buf.len));
	dbt_buf_release(&buf);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
	struct dbt_buf buf = { 0 };

	(void)state;
	assert_int_equal(text_add_escaped(&buf, "a\nb\x1b[31m\x7f\xc2\x9b\xff \xc3\xa4\\"), 0);
	assert_string_equal(dbt_buf_str(&buf), "a\\x0ab\\x1b[31m\\x7f\\xc2\\x9b\\xff \xc3\xa4\\");
	dbt_buf_release(&buf);
}

/* RFC 4648, section 10 */
static void base64_as_in_the_rfc(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "\xff\xfe\xfd", "//79" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dbt_buf buf = { 0 };

		assert_int_equal(text_add_base64(&buf, cases[i][0], strlen(cases[i][0])), 0);
		assert_string_equal(dbt_buf_str(&buf), cases[i][1]);
		dbt_buf_release(&buf);
	}
}

static void the_nearest_word_is_near(void **state)
{
	static const char *const words[] = { "scan",     "status",  "promote", "probe",
		                             "rollback", "reclaim", "recover" };
	static const struct {
		const char *typed, *wanted;
	} cases[] = {
		{ "scna", "scan" },
		{ "sacn", "scan" },
		{ "stat", "status" },
		{ "promoet", "promote" },
		{ "rolback", "rollback" },
		{ "rollbcak", "rollback" },
		{ "recl", "reclaim" },
		{ "zebra", NULL },
		{ "", NULL },
		{ "x", NULL },
		{ "undo", NULL },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = dbt_nearest(cases[i].typed, words, 7);

		if (cases[i].wanted)
			assert_string_equal(got ? got : "nothing", cases[i].wanted);
		else
			assert_null(got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_judged_as_rfc_3629_says),
		cmocka_unit_test(what_is_not_utf8_is_replaced),
		cmocka_unit_test(control_characters_do_not_reach_the_terminal),
		cmocka_unit_test(base64_as_in_the_rfc),
		cmocka_unit_test(the_nearest_word_is_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
