/* dbtier formats: the catalogue. */
#include "cmd/app.h"
#include "cmd/table.h"
#include "survey/dbkind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static json_t *get_id(const void *row)
{
	return table_json_text(((const struct dbt_format *)row)->id);
}

static json_t *get_name(const void *row)
{
	return table_json_text(((const struct dbt_format *)row)->name);
}

static json_t *get_tools(const void *row)
{
	return table_json_text(((const struct dbt_format *)row)->tools);
}

static json_t *get_members(const void *row)
{
	return table_json_text(((const struct dbt_format *)row)->members);
}

static json_t *get_note(const void *row)
{
	return table_json_text(((const struct dbt_format *)row)->note);
}

/* The class of the format, or the one that its hot members agree on. */
static enum dbt_class class_of(const struct dbt_format *f, bool *ret_mixed)
{
	enum dbt_class class = f->class;

	*ret_mixed = false;
	for (const struct dbt_rule *rule = f->rules;
	     f->class == DBT_CLASS_UNKNOWN && rule && rule->pattern; rule++) {
		if (!(rule->flags & DBT_RULE_HOT))
			continue;
		if (class != DBT_CLASS_UNKNOWN && class != rule->class)
			*ret_mixed = true;
		class = rule->class;
	}
	return class;
}

static json_t *get_access(const void *row)
{
	bool mixed;
	enum dbt_class class = class_of(row, &mixed);

	return table_json_text(mixed ? "mixed" : dbt_class_word(class));
}

static json_t *get_moves(const void *row)
{
	switch (((const struct dbt_format *)row)->moves) {
	case DBT_MOVES_FILE:
		return table_json_text("file");
	case DBT_MOVES_SET:
		return table_json_text("set");
	case DBT_MOVES_DIRECTORY:
		return table_json_text("directory");
	}
	return json_null();
}

static const struct column columns[] = {
	{ .key = "id",
	  .shown = true,
	  .get = get_id,
	  .help = "name of the format, for scan --format" },
	{ .key = "name", .shown = true, .get = get_name, .help = "the same in words" },
	{ .key = "access",
	  .shown = true,
	  .get = get_access,
	  .help = "how its tools read it; mixed: its files differ" },
	{ .key = "moves",
	  .shown = true,
	  .get = get_moves,
	  .help = "what may be moved by itself: a file, the whole set, the directory" },
	{ .key = "tools",
	  .shown = true,
	  .wrap = true,
	  .get = get_tools,
	  .help = "programs that read it" },
	{ .key = "members", .wrap = true, .get = get_members, .help = "its files" },
	{ .key = "note", .wrap = true, .get = get_note, .help = "what to know before moving it" },
	{ 0 },
};

static const struct table_spec table = { .key = "formats", .columns = columns };

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct dbt_format *)a)->id, ((const struct dbt_format *)b)->id);
}

static int run(struct app *app, void *args, char **operands, size_t n_operands)
{
	struct dbt_err err = { 0 };
	struct dbt_format *rows;
	size_t n = 0;
	int r;

	(void)args;
	(void)operands;
	(void)n_operands;
	while (dbt_formats[n])
		n++;
	rows = calloc(n ? n : 1, sizeof(*rows));
	if (!rows) {
		(void)dbt_err_sys(&err, -ENOMEM, "cannot list the formats");
		return msg_fail(&err);
	}
	for (size_t i = 0; i < n; i++)
		rows[i] = *dbt_formats[i];
	qsort(rows, n, sizeof(*rows), by_id);
	r = table_print(&table, &app->args, TABLE_ROWS(rows, n), stdout, &err);
	free(rows);
	return r < 0 ? msg_fail(&err) : EXIT_DONE;
}

const struct command cmd_formats = {
	.name = "formats",
	.summary = "list the formats that scan recognises",
	.operand_kind = OPERAND_NONE,
	.table = &table,
	.run = run,
};
