#include "base/buf.h"
#include "base/err.h"
#include "base/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- buf ---- */

static void buf_grows_and_ends_with_nul(void **state)
{
	struct dbt_buf buf = { 0 };
	char *taken;

	(void)state;
	assert_string_equal(dbt_buf_str(&buf), "");
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(dbt_buf_addf(&buf, "%u,", i), 0);
	assert_int_equal(buf.len, strlen(buf.data));
	assert_non_null(strstr(buf.data, ",999,"));
	dbt_buf_clear(&buf);
	assert_string_equal(dbt_buf_str(&buf), "");
	assert_int_equal(dbt_buf_add(&buf, "a\0b", 3), 0);
	assert_int_equal(buf.len, 3);
	assert_memory_equal(buf.data, "a\0b", 4);
	assert_int_equal(dbt_buf_add(&buf, NULL, 0), 0);
	assert_int_equal(dbt_buf_addc(&buf, 'c'), 0);
	taken = dbt_buf_take(&buf);
	assert_memory_equal(taken, "a\0bc", 5);
	assert_null(buf.data);
	free(taken);
	taken = dbt_buf_take(&buf);
	assert_string_equal(taken, "");
	free(taken);
	dbt_buf_release(&buf);
}

static void buf_refuses_what_no_memory_can_hold(void **state)
{
	struct dbt_buf buf = { 0 };

	(void)state;
	assert_int_equal(dbt_buf_adds(&buf, "kept"), 0);
	assert_int_equal(dbt_buf_reserve(&buf, SIZE_MAX), -ENOMEM);
	assert_int_equal(dbt_buf_reserve(&buf, SIZE_MAX - 4), -ENOMEM);
	assert_int_equal(dbt_buf_reserve(&buf, SIZE_MAX / 2 + 100), -ENOMEM);
	assert_string_equal(dbt_buf_str(&buf), "kept");
	dbt_buf_release(&buf);
}

/* ---- err ---- */

static void err_says_what_failed_and_why(void **state)
{
	struct dbt_err err;

	(void)state;
	assert_int_equal(dbt_err_sys(&err, -ENOENT, "cannot open '%s'", "x"), -ENOENT);
	assert_string_equal(err.text, "cannot open 'x': no such file or directory");
	assert_int_equal(err.kind, DBT_ERR_SYSTEM);
	assert_int_equal(dbt_err_wrap(&err, "promotion %d", 7), -ENOENT);
	assert_string_equal(err.text, "promotion 7: cannot open 'x': no such file or directory");
	assert_int_equal(dbt_err_add(&err, "nothing was %s", "changed"), -ENOENT);
	assert_string_equal(err.text, "promotion 7: cannot open 'x': no such file or directory; "
	                              "nothing was changed");
	dbt_err_clear(&err);
	assert_int_equal(err.kind, DBT_ERR_NONE);
	assert_string_equal(err.text, "");
}

static void err_kinds_follow_the_errno(void **state)
{
	static const struct {
		int code;
		enum dbt_err_kind kind;
	} cases[] = {
		{ -ENOSPC, DBT_ERR_NOSPACE },
		{ EDQUOT, DBT_ERR_NOSPACE },
		{ -ECANCELED, DBT_ERR_INTERRUPTED },
		{ -EIO, DBT_ERR_SYSTEM },
		{ 0, DBT_ERR_SYSTEM },
	};
	struct dbt_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(dbt_err_sys(&err, cases[i].code, "x") < 0);
		assert_int_equal(err.kind, cases[i].kind);
	}
	assert_int_equal(dbt_err_sys(&err, -ECANCELED, "cannot copy 'a'"), -ECANCELED);
	assert_string_equal(err.text, "cannot copy 'a': interrupted");
	assert_int_equal(dbt_err_refuse(&err, "no"), -EPERM);
	assert_int_equal(err.kind, DBT_ERR_REFUSED);
	assert_int_equal(dbt_err_set(&err, DBT_ERR_BUSY, EAGAIN, "busy"), -EAGAIN);
	assert_int_equal(err.kind, DBT_ERR_BUSY);
}

static void err_may_be_null(void **state)
{
	(void)state;
	assert_int_equal(dbt_err_set(NULL, DBT_ERR_BUSY, -EAGAIN, "x"), -EAGAIN);
	assert_int_equal(dbt_err_set(NULL, DBT_ERR_BUSY, 0, "x"), -EIO);
	assert_int_equal(dbt_err_sys(NULL, ENOENT, "x"), -ENOENT);
	assert_int_equal(dbt_err_refuse(NULL, "x"), -EPERM);
	assert_true(dbt_err_wrap(NULL, "x") < 0);
	assert_true(dbt_err_add(NULL, "x") < 0);
	dbt_err_clear(NULL);
}

/* A sentence that does not fit is cut, and stays a string. */
static void err_cuts_long_sentences(void **state)
{
	static char longer[DBT_ERR_TEXT_BYTES * 2];
	struct dbt_err err;

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	assert_int_equal(dbt_err_sys(&err, -EIO, "%s", longer), -EIO);
	assert_int_equal(strlen(err.text), DBT_ERR_TEXT_BYTES - 1);
	assert_int_equal(dbt_err_wrap(&err, "%s", longer), -EIO);
	assert_int_equal(dbt_err_add(&err, "%s", longer), -EIO);
	assert_int_equal(strlen(err.text), DBT_ERR_TEXT_BYTES - 1);
}

static void err_texts_read_inside_a_sentence(void **state)
{
	(void)state;
	assert_string_equal(dbt_err_text(-EACCES), "permission denied");
	assert_string_equal(dbt_err_text(ENOSPC), "no space left on device");
	assert_string_equal(dbt_err_text(EADV), "advertise error");
	assert_string_equal(dbt_err_text(EDOTDOT), "RFS specific error");
	assert_string_equal(dbt_err_text(99999), "error 99999");
}

/* ---- units ---- */

static void sizes_are_parsed(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0, 0 },
		{ "4096", 0, 4096 },
		{ "4096B", 0, 4096 },
		{ "1k", 0, 1024 },
		{ "1K", 0, 1024 },
		{ "1KB", 0, 1024 },
		{ "1KiB", 0, 1024 },
		{ "1.5K", 0, 1536 },
		{ "0.5G", 0, 536870912 },
		{ "43G", 0, UINT64_C(46170898432) },
		{ "1.999999999T", 0, UINT64_C(2199023254452) },
		{ "15E", 0, UINT64_C(15) << 60 },
		{ "16E", -ERANGE, 0 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "15.9999999999999E", 0, UINT64_MAX - ((UINT64_C(1) << 60) / 1000000000) },
		{ "", -EINVAL, 0 },
		{ "K", -EINVAL, 0 },
		{ ".5G", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 K", -EINVAL, 0 },
		{ "1KK", -EINVAL, 0 },
		{ "1Ki", -EINVAL, 0 },
		{ "1.5", -EINVAL, 0 },
		{ "1.2.3K", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "10%", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = 0;
		int r = dbt_units_parse_size(cases[i].text, &bytes);

		if (r != cases[i].r)
			fail_msg("'%s' gives %d", cases[i].text, r);
		/* A fraction may be cut by one byte. */
		if (r == 0 && bytes - cases[i].bytes > 1 && cases[i].bytes - bytes > 1)
			fail_msg("'%s' gives %llu", cases[i].text, (unsigned long long)bytes);
	}
}

/* The reference is lsblk (lib/strutils.c of util-linux, size_to_human_string). */
static void sizes_are_printed_as_lsblk_does(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0B" },
		{ 512, "512B" },
		{ 1023, "1023B" },
		{ 1024, "1K" },
		{ 1536, "1.5K" },
		{ 1048575, "1M" },
		{ 46053457920, "42.9G" },
		{ UINT64_C(1) << 40, "1T" },
		{ UINT64_MAX, "16E" },
	};
	char text[DBT_UNITS_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(dbt_units_size(cases[i].bytes, text), cases[i].text);
}

static void durations_and_rates_are_short(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0.00 ms" },
		{ 50000, "0.05 ms" },
		{ 4830000, "4.8 ms" },
		{ 19000000, "19 ms" },
		{ 850000000, "850 ms" },
		{ UINT64_C(13200000000), "13.2 s" },
		{ UINT64_C(185000000000), "3m 05s" },
		{ UINT64_C(7800000000000), "2h 10m" },
	};
	char text[DBT_UNITS_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(dbt_units_duration(cases[i].ns, text), cases[i].text);
	assert_string_equal(dbt_units_rate(0, text), "0 B/s");
	assert_string_equal(dbt_units_rate(210000000, text), "210 MB/s");
	assert_string_equal(dbt_units_rate(UINT64_C(3200000000), text), "3.2 GB/s");
	assert_string_equal(dbt_units_rate(999999, text), "1.0 MB/s");
	assert_string_equal(dbt_units_rate(UINT64_MAX, text), "18446744 TB/s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_grows_and_ends_with_nul),
		cmocka_unit_test(buf_refuses_what_no_memory_can_hold),
		cmocka_unit_test(err_says_what_failed_and_why),
		cmocka_unit_test(err_kinds_follow_the_errno),
		cmocka_unit_test(err_may_be_null),
		cmocka_unit_test(err_cuts_long_sentences),
		cmocka_unit_test(err_texts_read_inside_a_sentence),
		cmocka_unit_test(sizes_are_parsed),
		cmocka_unit_test(sizes_are_printed_as_lsblk_does),
		cmocka_unit_test(durations_and_rates_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
