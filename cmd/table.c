#include "cmd/table.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/units.h"
#include "cmd/optable.h"
#include "cmd/progress.h"
#include "cmd/text.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_COLUMNS = 64, MAX_NAME_BYTES = 200, JSON_REAL_DIGITS = 15 };

/* The columns to print, in the order of --output. */
struct selection {
	const struct column *columns[MAX_COLUMNS];
	size_t n;
};

json_t *table_json_name(const char *bytes)
{
	return bytes ? json_string_nocheck(bytes) : json_null();
}

static json_t *utf8_string(const char *text)
{
	struct dbt_buf buf = { 0 };
	json_t *json = NULL;

	if (text_add_utf8(&buf, text, strlen(text)) == 0)
		json = json_string(dbt_buf_str(&buf));
	dbt_buf_release(&buf);
	return json;
}

json_t *table_json_text(const char *text_or_null)
{
	return text_or_null ? utf8_string(text_or_null) : json_null();
}

json_t *table_json_size(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *table_json_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *table_json_time(uint64_t wall_ns)
{
	return wall_ns ? json_integer((json_int_t)(wall_ns / 1000000000U)) : json_null();
}

json_t *table_json_strings(const char *const *items, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < n; i++)
		if (json_array_append_new(list, utf8_string(items[i])) < 0) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

static const struct column *find_column(const struct table_spec *spec, const char *name, size_t len)
{
	for (const struct column *c = spec->columns; c->key; c++)
		if (strlen(c->key) == len && strncasecmp(c->key, name, len) == 0)
			return c;
	return NULL;
}

static int unknown_column(const struct table_spec *spec, const char *name, size_t len,
                          struct dbt_err *err)
{
	const char *words[MAX_COLUMNS], *near;
	char asked[MAX_NAME_BYTES + 1];
	struct dbt_buf list = { 0 };
	size_t n = 0;
	int r = 0;

	for (const struct column *c = spec->columns; c->key && n < MAX_COLUMNS && r == 0; c++) {
		r = dbt_buf_addf(&list, "%s%s", n ? ", " : "", c->key);
		words[n++] = c->key;
	}
	(void)snprintf(asked, sizeof(asked), "%.*s",
	               (int)(len < MAX_NAME_BYTES ? len : MAX_NAME_BYTES), name);
	near = dbt_nearest(asked, words, n);
	if (r == 0)
		r = dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                "unknown column '%s'%s%s%s; there are %s", asked,
		                near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "",
		                dbt_buf_str(&list));
	else
		r = dbt_err_sys(err, r, "cannot list the columns");
	dbt_buf_release(&list);
	return r;
}

enum answer_form { FORM_TEXT = 0, FORM_TEXT_FOR_PROGRAMS, FORM_JSON };

static enum answer_form form_of(const struct global_args *args)
{
	return args->json                 ? FORM_JSON
	       : args->raw || args->pairs ? FORM_TEXT_FOR_PROGRAMS
	                                  : FORM_TEXT;
}

static void select_default(const struct table_spec *spec, enum answer_form form,
                           struct selection *sel)
{
	sel->n = 0;
	for (const struct column *c = spec->columns; c->key && sel->n < MAX_COLUMNS; c++)
		if (form == FORM_JSON ? !c->text_only : c->shown && !(form && c->text_only))
			sel->columns[sel->n++] = c;
}

static void select_all(const struct table_spec *spec, enum answer_form form, struct selection *sel)
{
	for (const struct column *c = spec->columns; c->key && sel->n < MAX_COLUMNS; c++)
		if (form == FORM_JSON ? !c->text_only : !c->json_only && !(form && c->text_only))
			sel->columns[sel->n++] = c;
}

static bool is_selected(const struct selection *sel, const struct column *column)
{
	for (size_t i = 0; i < sel->n; i++)
		if (sel->columns[i] == column)
			return true;
	return false;
}

/* "name,size" or "+stack": what comes after the plus is added to the default. */
static int select_columns(const struct table_spec *spec, const struct global_args *args,
                          struct selection *sel, struct dbt_err *err)
{
	const char *list = args->output;

	sel->n = 0;
	if (args->all_columns)
		select_all(spec, form_of(args), sel);
	else if (!list || *list == '+')
		select_default(spec, form_of(args), sel);
	if (!list)
		return 0;
	for (list += *list == '+'; *list; list += *list == ',') {
		size_t len = strcspn(list, ",");
		const struct column *c = find_column(spec, list, len);

		if (!c)
			return unknown_column(spec, list, len, err);
		if (c->json_only && !args->json)
			return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
			                   "the column '%s' is shown with --json only", c->key);
		if (c->text_only && args->json)
			return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
			                   "the column '%s' is not for --json", c->key);
		if (!is_selected(sel, c) && sel->n < MAX_COLUMNS)
			sel->columns[sel->n++] = c;
		list += len;
	}
	if (sel->n == 0)
		return unknown_column(spec, "", 0, err);
	return 0;
}

static int find_sort(const struct table_spec *spec, const struct global_args *args,
                     const struct column **ret, struct dbt_err *err)
{
	*ret = args->sort ? find_column(spec, args->sort, strlen(args->sort)) : NULL;
	if (!args->sort || (*ret && !(*ret)->json_only && !(*ret)->text_only))
		return 0;
	return *ret ? dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "rows cannot be ordered by '%s'",
	                          (*ret)->key)
	            : unknown_column(spec, args->sort, strlen(args->sort), err);
}

int table_check_output(const struct table_spec *spec, const struct global_args *args,
                       struct dbt_err *err)
{
	const struct column *by;
	struct selection sel;
	int r = select_columns(spec, args, &sel, err);

	return r < 0 ? r : find_sort(spec, args, &by, err);
}

/* KEY and KEY_raw of a name. cell is borrowed. */
static int set_name(json_t *object, const char *key, const json_t *cell)
{
	struct dbt_buf raw_key = { 0 }, raw = { 0 };
	const char *bytes = json_string_value(cell);
	json_t *raw_value = NULL;
	int r = dbt_buf_addf(&raw_key, "%s_raw", key);

	if (!bytes || text_is_utf8(bytes, strlen(bytes)))
		raw_value = json_null();
	else if (text_add_base64(&raw, bytes, strlen(bytes)) == 0)
		raw_value = json_string(dbt_buf_str(&raw));
	if (r == 0 && (json_object_set_new(object, key, table_json_text(bytes)) < 0 ||
	               json_object_set_new(object, dbt_buf_str(&raw_key), raw_value) < 0))
		r = -ENOMEM;
	dbt_buf_release(&raw_key);
	dbt_buf_release(&raw);
	return r;
}

static const void *row_at(struct table_rows rows, size_t i)
{
	return (const char *)rows.items + (rows.order ? rows.order[i] : i) * rows.item_bytes;
}

/* One row as an object; NULL when out of memory. */
static json_t *row_object(const struct selection *sel, const void *row)
{
	json_t *object = json_object();
	int r = 0;

	for (size_t i = 0; object && i < sel->n; i++) {
		const struct column *c = sel->columns[i];
		json_t *cell = c->get(row);

		if (!cell) {
			r = -ENOMEM;
		} else if (c->type == COLUMN_NAME) {
			r = set_name(object, c->key, cell);
			json_decref(cell);
		} else {
			r = json_object_set_new(object, c->key, cell);
		}
		if (r < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *rows_array(const struct selection *sel, struct table_rows rows)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < rows.n; i++)
		if (json_array_append_new(list, row_object(sel, row_at(rows, i))) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

json_t *table_json_rows(const struct table_spec *spec, struct table_rows rows)
{
	struct selection sel;

	select_default(spec, FORM_JSON, &sel);
	return rows_array(&sel, rows);
}

static int print_json(const struct table_spec *spec, const struct selection *sel,
                      struct table_rows rows, FILE *out, struct dbt_err *err)
{
	json_t *list = rows_array(sel, rows);
	json_t *top = list ? json_pack("{s:o}", spec->key, list) : NULL;
	char *text = NULL;

	if (top && (!rows.more || json_object_update(top, rows.more) == 0))
		text = json_dumps(top, JSON_INDENT(2) | JSON_REAL_PRECISION(JSON_REAL_DIGITS));
	json_decref(top);
	if (!text)
		return dbt_err_sys(err, -ENOMEM, "cannot print the answer");
	(void)fputs(text, out);
	(void)fputc('\n', out);
	free(text);
	return 0;
}

static int text_of_list(const json_t *list, struct dbt_buf *buf)
{
	int r = 0;

	for (size_t i = 0; i < json_array_size(list) && r == 0; i++) {
		const char *item = json_string_value(json_array_get(list, i));

		r = dbt_buf_addf(buf, "%s%s", i ? "," : "", item ? item : "");
	}
	return r;
}

static int text_of_time(json_int_t seconds, struct dbt_buf *buf)
{
	time_t t = (time_t)seconds;
	char text[64];
	struct tm tm;

	if (!localtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) == 0)
		return dbt_buf_addf(buf, "%" JSON_INTEGER_FORMAT, seconds);
	return dbt_buf_adds(buf, text);
}

/* A number for people: with its unit, unless --bytes asks for the plain one. */
static int text_of_number(const struct column *c, const json_t *cell, bool bytes,
                          struct dbt_buf *buf)
{
	uint64_t value = (uint64_t)json_integer_value(cell);
	char text[DBT_UNITS_TEXT_BYTES];

	switch (c->type) {
	case COLUMN_SIZE:
		if (!bytes)
			return dbt_buf_adds(buf, dbt_units_size(value, text));
		break;
	case COLUMN_RATE:
		if (!bytes)
			return dbt_buf_adds(buf, dbt_units_rate(value, text));
		break;
	case COLUMN_NS:
		if (json_is_real(cell))
			return dbt_buf_adds(buf, dbt_units_short(json_real_value(cell), text));
		return dbt_buf_adds(buf, dbt_units_duration(value, text));
	case COLUMN_SECONDS:
		value = (uint64_t)(json_number_value(cell) * 1e9);
		return dbt_buf_adds(buf, dbt_units_duration(value, text));
	case COLUMN_TIME:
		return text_of_time(json_integer_value(cell), buf);
	case COLUMN_SHARE:
		return dbt_buf_addf(buf, "%.0f %%", json_number_value(cell) * 100);
	case COLUMN_TEXT:
	case COLUMN_COUNT:
	case COLUMN_REAL:
	case COLUMN_BOOL:
	case COLUMN_LIST:
	case COLUMN_NAME:
		break;
	}
	if (json_is_real(cell))
		return dbt_buf_addf(buf, "%.1f", json_real_value(cell));
	return dbt_buf_addf(buf, "%" JSON_INTEGER_FORMAT, json_integer_value(cell));
}

/* Unset is empty. Control characters are escaped by libsmartcols. */
static int text_of_cell(const struct column *c, const json_t *cell, bool bytes, struct dbt_buf *buf)
{
	switch (json_typeof(cell)) {
	case JSON_NULL:
	case JSON_OBJECT:
		return 0;
	case JSON_STRING:
		return dbt_buf_adds(buf, json_string_value(cell));
	case JSON_TRUE:
		return dbt_buf_adds(buf, "yes");
	case JSON_FALSE:
		return dbt_buf_adds(buf, "no");
	case JSON_ARRAY:
		return text_of_list(cell, buf);
	case JSON_INTEGER:
	case JSON_REAL:
		return text_of_number(c, cell, bytes, buf);
	}
	return 0;
}

static bool is_right(const struct column *c)
{
	switch (c->type) {
	case COLUMN_SIZE:
	case COLUMN_COUNT:
	case COLUMN_NS:
	case COLUMN_SECONDS:
	case COLUMN_RATE:
	case COLUMN_REAL:
	case COLUMN_SHARE:
		return true;
	case COLUMN_TEXT:
	case COLUMN_TIME:
	case COLUMN_BOOL:
	case COLUMN_LIST:
	case COLUMN_NAME:
		break;
	}
	return c->right;
}

static int add_columns(struct libscols_table *table, const struct selection *sel)
{
	for (size_t i = 0; i < sel->n; i++) {
		const struct column *c = sel->columns[i];
		int flags = (is_right(c) ? SCOLS_FL_RIGHT : 0) | (c->wrap ? SCOLS_FL_WRAP : 0) |
		            (c->text_only ? SCOLS_FL_TRUNC : 0);
		char header[64];
		size_t n = 0;

		for (; c->key[n] && n < sizeof(header) - 1; n++)
			header[n] = (char)(c->key[n] >= 'a' && c->key[n] <= 'z' ? c->key[n] - 32
			                                                        : c->key[n]);
		header[n] = '\0';
		if (!scols_table_new_column(table, header, c->width_hint, flags))
			return -ENOMEM;
	}
	return 0;
}

static int add_line(struct libscols_table *table, const struct selection *sel, bool bytes,
                    const void *row)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	struct dbt_buf buf = { 0 };
	int r = line ? 0 : -ENOMEM;

	for (size_t i = 0; i < sel->n && r == 0; i++) {
		json_t *cell = sel->columns[i]->get(row);

		dbt_buf_clear(&buf);
		r = cell ? text_of_cell(sel->columns[i], cell, bytes, &buf) : -ENOMEM;
		if (r == 0)
			r = scols_line_set_data(line, i, dbt_buf_str(&buf));
		if (r == 0 && sel->columns[i]->color)
			r = scols_cell_set_color(scols_line_get_cell(line, i),
			                         sel->columns[i]->color(row));
		json_decref(cell);
	}
	dbt_buf_release(&buf);
	return r;
}

/* https://no-color.org: set to anything but nothing. */
bool table_wants_color(const struct global_args *args, FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	return !args->no_color && !(no_color && *no_color) && !args->raw && !args->pairs &&
	       isatty(fileno(out));
}

static int print_text(const struct selection *sel, const struct global_args *args,
                      struct table_rows rows, FILE *out, struct dbt_err *err)
{
	struct libscols_table *table = scols_new_table();
	int r = table ? 0 : -ENOMEM;

	if (r == 0) {
		(void)scols_table_set_stream(table, out);
		(void)scols_table_enable_raw(table, args->raw);
		(void)scols_table_enable_export(table, args->pairs);
		(void)scols_table_enable_noheadings(table, args->noheadings);
		(void)scols_table_enable_colors(table, table_wants_color(args, out));
		if (args->width > 0) {
			(void)scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
			(void)scols_table_set_termwidth(table, args->width);
		}
		r = add_columns(table, sel);
	}
	for (size_t i = 0; i < rows.n && r == 0; i++)
		r = add_line(table, sel, args->bytes, row_at(rows, i));
	if (r == 0)
		r = scols_print_table(table);
	scols_unref_table(table);
	return r == 0 ? 0 : dbt_err_sys(err, r, "cannot print the table");
}

struct sorted {
	json_t *cell;
	size_t at;
};

/* What is not set comes first, then no before yes. */
static int rank(const json_t *cell)
{
	return json_is_null(cell) ? 0 : json_is_false(cell) ? 1 : 2;
}

static int compare_cells(const json_t *x, const json_t *y)
{
	if (json_is_number(x) && json_is_number(y))
		return (json_number_value(x) > json_number_value(y)) -
		       (json_number_value(x) < json_number_value(y));
	if (json_is_string(x) && json_is_string(y))
		return strcmp(json_string_value(x), json_string_value(y));
	return rank(x) - rank(y);
}

/* Rows that are alike stay in their order. */
static int by_cell(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	int order = compare_cells(x->cell, y->cell);

	return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* The indexes of the rows by that column; NULL when out of memory. The caller frees. */
static size_t *sort_rows(const struct column *by, struct table_rows rows)
{
	struct sorted *list = calloc(rows.n ? rows.n : 1, sizeof(*list));
	size_t *order = calloc(rows.n ? rows.n : 1, sizeof(*order));
	size_t n = 0;

	for (; list && order && n < rows.n; n++) {
		list[n] = (struct sorted){ .cell = by->get(row_at(rows, n)), .at = n };
		if (!list[n].cell)
			break;
	}
	if (list && order && n == rows.n) {
		qsort(list, n, sizeof(*list), by_cell);
		for (size_t i = 0; i < n; i++)
			order[i] = list[i].at;
	} else {
		free(order);
		order = NULL;
	}
	for (size_t i = 0; i < n; i++)
		json_decref(list[i].cell);
	free(list);
	return order;
}

int table_print(const struct table_spec *spec, const struct global_args *args,
                struct table_rows rows, FILE *out, struct dbt_err *err)
{
	dbt_autofree size_t *order = NULL;
	const struct column *by = NULL;
	struct selection sel;
	int r = select_columns(spec, args, &sel, err);

	if (r == 0)
		r = find_sort(spec, args, &by, err);
	if (r < 0)
		return r;
	if (by) {
		rows.order = order = sort_rows(by, rows);
		if (!order)
			return dbt_err_sys(err, -ENOMEM, "cannot order the rows");
	}
	progress_hide();
	if (args->json)
		return print_json(spec, &sel, rows, out, err);
	return print_text(&sel, args, rows, out, err);
}
