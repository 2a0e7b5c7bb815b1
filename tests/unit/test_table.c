#include "cmd/optable.h"
#include "cmd/table.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
	const char *path;
	uint64_t size;
	bool hot;
	double iops;
	const char *note;
};

static json_t *get_path(const void *row)
{
	return table_json_name(((const struct row *)row)->path);
}

static json_t *get_size(const void *row)
{
	return table_json_size(((const struct row *)row)->size);
}

static json_t *get_hot(const void *row)
{
	return json_boolean(((const struct row *)row)->hot);
}

static json_t *get_iops(const void *row)
{
	return table_json_real(((const struct row *)row)->iops);
}

static json_t *get_note(const void *row)
{
	return table_json_text(((const struct row *)row)->note);
}

static json_t *get_disks(const void *row)
{
	static const char *const disks[] = { "sda", "sdb" };

	return table_json_strings(disks, ((const struct row *)row)->hot ? 2 : 0);
}

static const struct column child_columns[] = {
	{ .key = "name", .type = COLUMN_NAME, .help = "x", .get = get_path },
	{ .key = "size", .type = COLUMN_SIZE, .help = "x", .get = get_size },
	{ 0 },
};

static const struct table_spec child_table = { .key = "children", .columns = child_columns };

static json_t *get_children(const void *row)
{
	const struct row *r = row;

	return table_json_rows(&child_table, TABLE_ROWS(r, r->hot));
}

static json_t *get_seconds(const void *row)
{
	(void)row;
	return json_real(185);
}

static json_t *get_since(const void *row)
{
	(void)row;
	return table_json_time(UINT64_C(1700000000999999999));
}

static json_t *get_rate(const void *row)
{
	(void)row;
	return json_integer(210000000);
}

static const struct column columns[] = {
	{ .key = "path", .type = COLUMN_NAME, .shown = true, .help = "x", .get = get_path },
	{ .key = "size", .type = COLUMN_SIZE, .shown = true, .help = "x", .get = get_size },
	{ .key = "hot", .type = COLUMN_BOOL, .shown = true, .help = "x", .get = get_hot },
	{ .key = "iops", .type = COLUMN_REAL, .help = "x", .get = get_iops },
	{ .key = "note", .shown = true, .help = "x", .get = get_note },
	{ .key = "disks", .type = COLUMN_LIST, .help = "x", .get = get_disks },
	{ .key = "seconds", .type = COLUMN_SECONDS, .help = "x", .get = get_seconds },
	{ .key = "since", .type = COLUMN_TIME, .help = "x", .get = get_since },
	{ .key = "rate", .type = COLUMN_RATE, .help = "x", .get = get_rate },
	{ .key = "children",
	  .type = COLUMN_LIST,
	  .json_only = true,
	  .help = "x",
	  .get = get_children },
	{ 0 },
};

static const struct table_spec table = { .key = "files", .columns = columns };

static const struct row plain = { "/db/psc.dmnd", 46053457920, true, 207.34, NULL };
static const struct row odd = { "/db/a\n\xff b", 0, false, NAN, "two\twords" };

/* The printed table; free() it. NULL with err filled. */
static char *print(const struct global_args *args, const struct row *rows, size_t n,
                   struct dbt_err *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int r;

	assert_non_null(out);
	r = table_print(&table, args, TABLE_ROWS(rows, n), out, err);
	assert_int_equal(fclose(out), 0);
	if (r == 0)
		return text;
	free(text);
	return NULL;
}

static void check_text(const struct global_args *args, const char *wanted)
{
	const struct row rows[] = { plain, odd };
	struct dbt_err err;
	char *text = print(args, rows, 2, &err);

	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

static void text_rounds_and_escapes(void **state)
{
	const struct global_args args = { 0 };

	(void)state;
	check_text(&args, "PATH             SIZE HOT NOTE\n"
	                  "/db/psc.dmnd    42.9G yes \n"
	                  "/db/a\\x0a\\xff b    0B no  two\\x09words\n");
}

static void raw_keeps_words_together(void **state)
{
	const struct global_args args = { .raw = true, .noheadings = true, .bytes = true };

	(void)state;
	check_text(&args, "/db/psc.dmnd 46053457920 yes \n"
	                  "/db/a\\x0a\\xff\\x20b 0 no two\\x09words\n");
}

static void columns_can_be_chosen_and_added(void **state)
{
	const struct global_args chosen = { .output = "IOPS,disks,seconds,since,rate",
		                            .raw = true },
				 added = { .output = "+iops,path", .raw = true };

	(void)state;
	check_text(&chosen, "IOPS DISKS SECONDS SINCE RATE\n"
	                    "207.3 sda,sdb 3m\\x2005s 2023-11-14\\x2022:13:20 210\\x20MB/s\n"
	                    "  3m\\x2005s 2023-11-14\\x2022:13:20 210\\x20MB/s\n");
	check_text(&added, "PATH SIZE HOT NOTE IOPS\n"
	                   "/db/psc.dmnd 42.9G yes  207.3\n"
	                   "/db/a\\x0a\\xff\\x20b 0B no two\\x09words \n");
}

static void bad_columns_are_explained(void **state)
{
	static const char *const cases[][2] = {
		{ "path,zzz", "unknown column 'zzz'; there are path, size, hot, iops, note, disks, "
		              "seconds, since, rate, children" },
		{ "children", "the column 'children' is shown with --json only" },
		{ "path,,size", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct global_args args = { .output = cases[i][0] };
		struct dbt_err err;

		assert_true(table_check_output(&table, &args, &err) < 0);
		assert_int_equal(err.kind, DBT_ERR_USAGE);
		if (cases[i][1])
			assert_string_equal(err.text, cases[i][1]);
	}
}

static void json_has_every_column_and_real_types(void **state)
{
	const struct row rows[] = { plain, odd };
	const struct global_args args = { .json = true };
	struct dbt_err err;
	char *text = print(&args, rows, 2, &err);
	json_t *top, *row;

	(void)state;
	assert_non_null(text);
	assert_non_null(strstr(text, "\"iops\": 207.34,"));
	top = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(top);
	assert_int_equal(json_object_size(top), 1);
	assert_int_equal(json_array_size(json_object_get(top, "files")), 2);

	row = json_array_get(json_object_get(top, "files"), 0);
	assert_int_equal(json_object_size(row), 11); /* ten columns and path_raw */
	assert_string_equal(json_string_value(json_object_get(row, "path")), "/db/psc.dmnd");
	assert_true(json_is_null(json_object_get(row, "path_raw")));
	assert_true(json_integer_value(json_object_get(row, "size")) == 46053457920);
	assert_true(json_is_true(json_object_get(row, "hot")));
	assert_true(json_is_null(json_object_get(row, "note")));
	assert_true(json_integer_value(json_object_get(row, "since")) == 1700000000);
	assert_int_equal(json_array_size(json_object_get(row, "disks")), 2);
	row = json_array_get(json_object_get(row, "children"), 0);
	assert_int_equal(json_object_size(row), 3);
	assert_true(json_is_null(json_object_get(row, "name_raw")));

	row = json_array_get(json_object_get(top, "files"), 1);
	assert_string_equal(json_string_value(json_object_get(row, "path")),
	                    "/db/a\n\xef\xbf\xbd b");
	assert_string_equal(json_string_value(json_object_get(row, "path_raw")), "L2RiL2EK/yBi");
	assert_true(json_is_null(json_object_get(row, "iops")));
	assert_int_equal(json_array_size(json_object_get(row, "children")), 0);
	json_decref(top);
}

static void json_without_rows_is_an_empty_list(void **state)
{
	const struct global_args args = { .json = true };
	struct dbt_err err;
	char *text = print(&args, NULL, 0, &err);

	(void)state;
	assert_string_equal(text, "{\n  \"files\": []\n}\n");
	free(text);
}

static void json_shows_the_chosen_columns(void **state)
{
	const struct row rows[] = { plain };
	const struct global_args args = { .json = true, .output = "hot,path" };
	struct dbt_err err;
	char *text = print(&args, rows, 1, &err);

	(void)state;
	assert_string_equal(text, "{\n  \"files\": [\n    {\n      \"hot\": true,\n      \"path\": "
	                          "\"/db/psc.dmnd\",\n      \"path_raw\": null\n    }\n  ]\n}\n");
	free(text);
}

static void large_sizes_are_clamped(void **state)
{
	json_t *json = table_json_size(UINT64_MAX);

	(void)state;
	assert_true(json_integer_value(json) == INT64_MAX);
	json_decref(json);
}

static json_t *out_of_memory(const void *row)
{
	(void)row;
	return NULL;
}

static void a_cell_without_memory_is_an_error(void **state)
{
	static const struct column failing[] = {
		{ .key = "path", .type = COLUMN_NAME, .shown = true, .help = "x", .get = get_path },
		{ .key = "bad", .shown = true, .help = "x", .get = out_of_memory },
		{ 0 },
	};
	static const struct table_spec spec = { .key = "x", .columns = failing };
	const struct global_args json = { .json = true }, text = { 0 };
	struct dbt_err err;

	(void)state;
	assert_int_equal(table_print(&spec, &json, TABLE_ROWS(&plain, 1), stdout, &err), -12);
	assert_int_equal(table_print(&spec, &text, TABLE_ROWS(&plain, 1), stdout, &err), -12);
	assert_null(table_json_rows(&spec, TABLE_ROWS(&plain, 1)));
}

/* Keys are stable for ever, lower case, and never twice; every column explains itself. */
static void the_tables_of_the_program_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; commands[i]; i++) {
		const struct column *all = commands[i]->table ? commands[i]->table->columns : NULL;
		size_t shown = 0;

		for (const struct column *c = all; c && c->key; c++) {
			assert_int_equal(strspn(c->key, "abcdefghijklmnopqrstuvwxyz0123456789_"),
			                 strlen(c->key));
			assert_non_null(c->help);
			assert_non_null(c->get);
			assert_false(c->shown && c->json_only);
			shown += c->shown;
			for (const struct column *d = all; d < c; d++)
				assert_string_not_equal(c->key, d->key);
		}
		assert_true(!all || shown > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_rounds_and_escapes),
		cmocka_unit_test(raw_keeps_words_together),
		cmocka_unit_test(columns_can_be_chosen_and_added),
		cmocka_unit_test(bad_columns_are_explained),
		cmocka_unit_test(json_has_every_column_and_real_types),
		cmocka_unit_test(json_without_rows_is_an_empty_list),
		cmocka_unit_test(json_shows_the_chosen_columns),
		cmocka_unit_test(large_sizes_are_clamped),
		cmocka_unit_test(a_cell_without_memory_is_an_error),
		cmocka_unit_test(the_tables_of_the_program_are_sound),
	};

	(void)setenv("TZ", "UTC", 1);
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
