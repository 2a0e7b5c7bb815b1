#include "cmd/progress.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t clock_ns;

static uint64_t fake_clock(void)
{
	return clock_ns;
}

static struct dbt_sys fake_sys;

/* A progress that prints into *text once it is closed. */
static struct progress begin(enum progress_mode mode, char **text, size_t *len)
{
	struct progress p = { .mode = mode, .out = open_memstream(text, len), .sys = &fake_sys };

	fake_sys = dbt_sys_real;
	fake_sys.now_ns = fake_clock;
	clock_ns = UINT64_C(1000000000000);
	assert_non_null(p.out);
	return p;
}

static void report(struct progress *p, const char *phase, uint64_t done, uint64_t total)
{
	const struct dbt_progress now = {
		.phase = phase, .name = "/db/a\nb", .done_bytes = done, .total_bytes = total
	};

	progress_report(p, &now);
}

static void the_rate_is_that_of_the_last_ten_seconds(void **state)
{
	char *text = NULL;
	size_t len = 0;
	struct progress p = begin(PROGRESS_JSON, &text, &len);
	uint64_t done = 0;

	(void)state;
	report(&p, "copy", 0, 1000000000);
	assert_int_equal(progress_rate(&p), 0);
	for (int i = 0; i < 300; i++) { /* half a minute at 10 MB/s */
		clock_ns += 100000000;
		report(&p, "copy", done += 1000000, 1000000000);
	}
	assert_in_range(progress_rate(&p), 9900000, 10100000);
	for (int i = 0; i < 120; i++) { /* then 12 s at 1 MB/s */
		clock_ns += 100000000;
		report(&p, "copy", done += 100000, 1000000000);
	}
	assert_in_range(progress_rate(&p), 990000, 1010000);
	/* Another phase begins anew. */
	report(&p, "prove", 0, 1000000000);
	assert_int_equal(progress_rate(&p), 0);
	assert_int_equal(fclose(p.out), 0);
	free(text);
}

static void json_comes_once_a_second(void **state)
{
	char *text = NULL, *save = NULL;
	size_t len = 0, lines = 0;
	struct progress p = begin(PROGRESS_JSON, &text, &len);

	(void)state;
	for (uint64_t i = 0; i <= 50; i++) { /* five seconds */
		report(&p, "copy", i * 1000000, 100000000);
		clock_ns += 100000000;
	}
	assert_int_equal(fclose(p.out), 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *json = json_loads(line, 0, NULL);

		assert_non_null(json);
		assert_string_equal(json_string_value(json_object_get(json, "phase")), "copy");
		assert_string_equal(json_string_value(json_object_get(json, "name")), "/db/a\nb");
		assert_int_equal(json_integer_value(json_object_get(json, "total")), 100000000);
		if (lines == 0) {
			assert_true(json_is_null(json_object_get(json, "seconds_left")));
		} else {
			assert_in_range(json_integer_value(json_object_get(json, "rate")), 9900000,
			                10100000);
			assert_int_equal(json_integer_value(json_object_get(json, "seconds_left")),
			                 10 - (int)lines);
		}
		json_decref(json);
		lines++;
	}
	assert_int_equal(lines, 6);
	free(text);
}

static void the_line_rewrites_itself_and_can_be_taken_away(void **state)
{
	char *text = NULL;
	size_t len = 0;
	struct progress p = begin(PROGRESS_LINE, &text, &len);

	(void)state;
	report(&p, "copy", 1 << 20, 4 << 20);
	clock_ns += 50000000; /* too early for another */
	report(&p, "copy", 2 << 20, 4 << 20);
	clock_ns += 1000000000;
	report(&p, "copy", 3 << 20, 4 << 20);
	progress_hide();
	progress_hide();
	progress_clear(&p);
	assert_int_equal(fclose(p.out), 0);
	assert_string_equal(text, "\rcopy   25%  1M of 4M  /db/a\\x0ab\033[K"
	                          "\rcopy   75%  3M of 4M  2.0 MB/s  0 s left  /db/a\\x0ab\033[K"
	                          "\r\033[K");
	free(text);
}

static void a_line_fits_the_terminal(void **state)
{
	static char name[500];
	char *text = NULL;
	size_t len = 0;
	struct progress p = begin(PROGRESS_LINE, &text, &len);
	const struct dbt_progress now = { .phase = "scan", .name = name };

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(name); i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	progress_report(&p, &now);
	progress_hide();
	assert_int_equal(fclose(p.out), 0);
	/* 79 characters: "scan", two blanks, the rest in two bytes each, none of them cut. */
	assert_int_equal(strcspn(text + 1, "\033"), 6 + 73 * 2);
	free(text);
}

static void off_is_silent(void **state)
{
	char *text = NULL;
	size_t len = 0;
	struct progress p = begin(PROGRESS_OFF, &text, &len);

	(void)state;
	report(&p, "copy", 1, 2);
	progress_hide();
	assert_int_equal(fclose(p.out), 0);
	assert_int_equal(len, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rate_is_that_of_the_last_ten_seconds),
		cmocka_unit_test(json_comes_once_a_second),
		cmocka_unit_test(the_line_rewrites_itself_and_can_be_taken_away),
		cmocka_unit_test(a_line_fits_the_terminal),
		cmocka_unit_test(off_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
