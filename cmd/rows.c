#include "cmd/rows.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rows_add(struct promotion_rows *rows, struct dbt_promotion *p, const char *state)
{
	struct promotion_row *row = dbt_vec_push(rows);

	if (!row)
		return -ENOMEM;
	row->p = *p;
	row->state = state;
	*p = (struct dbt_promotion){ 0 };
	return 0;
}

void rows_release(struct promotion_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		dbt_promotion_release(&rows->items[i].p);
		free(rows->items[i].detail);
	}
	free(rows->items);
	*rows = (struct promotion_rows){ 0 };
}

int rows_print(struct app *app, const struct table_spec *spec, const struct promotion_rows *rows,
               int done)
{
	struct dbt_err err = { 0 };

	progress_clear(&app->progress);
	if (table_print(spec, &app->args, TABLE_ROWS(rows->items, rows->n), stdout, &err) < 0)
		return msg_fail(&err);
	return done;
}

/* --- members -------------------------------------------------------------------------------------------- */

static json_t *member_path(const void *row)
{
	return table_json_name(((const struct dbt_pmember *)row)->path);
}

static json_t *member_copy(const void *row)
{
	return table_json_name(((const struct dbt_pmember *)row)->copy);
}

static json_t *member_size(const void *row)
{
	return table_json_size(((const struct dbt_pmember *)row)->source.size_bytes);
}

static json_t *member_hash(const void *row)
{
	const struct dbt_pmember *m = row;

	return m->xxh128[0] ? json_string(m->xxh128) : json_null();
}

static const struct column member_columns[] = {
	{ .key = "path", .type = COLUMN_NAME, .help = "the file", .get = member_path },
	{ .key = "copy", .type = COLUMN_NAME, .help = "its copy", .get = member_copy },
	{ .key = "size", .type = COLUMN_SIZE, .help = "its size", .get = member_size },
	{ .key = "xxh128", .help = "its XXH3-128 hash", .get = member_hash },
	{ 0 },
};

static const struct table_spec member_table = { .key = "members", .columns = member_columns };

/* --- promotions ----------------------------------------------------------------------------------------- */

static const struct dbt_promotion *promotion(const void *row)
{
	return &((const struct promotion_row *)row)->p;
}

static json_t *get_id(const void *row)
{
	return promotion(row)->id ? json_integer(promotion(row)->id) : json_null();
}

static json_t *get_name(const void *row)
{
	return table_json_name(promotion(row)->name);
}

static json_t *get_path(const void *row)
{
	return table_json_name(promotion(row)->path);
}

static json_t *joined(const char *dir, size_t dir_len, const char *name)
{
	dbt_autofree char *path = NULL;

	if (asprintf(&path, "%.*s%s", (int)dir_len, dir, name) < 0) {
		path = NULL;
		return NULL;
	}
	return table_json_name(path);
}

/* A set's copies stand in a directory of its name. */
static json_t *get_copy(const void *row)
{
	const struct dbt_promotion *p = promotion(row);
	dbt_autofree char *dir = NULL;

	if (!p->is_set)
		return table_json_name(p->n_members ? p->members[0].copy : NULL);
	if (asprintf(&dir, "%s/", strcmp(p->target, "/") == 0 ? "" : p->target) < 0) {
		dir = NULL;
		return NULL;
	}
	return joined(dir, strlen(dir), p->name);
}

static json_t *get_original(const void *row)
{
	const struct dbt_promotion *p = promotion(row);
	const struct dbt_pmember *m = p->members;
	const char *slash;

	/* Each file of a set has its own, and a planned one or one that is back in place has none. */
	if (p->is_set || p->n_members == 0 || m->reclaimed || p->state == DBT_STATE_PLANNED ||
	    !dbt_state_is_active(p->state))
		return json_null();
	slash = strrchr(m->path, '/');
	return joined(m->path, (size_t)(slash - m->path) + 1, m->kept);
}

static json_t *get_size(const void *row)
{
	return table_json_size(dbt_promotion_size(promotion(row)));
}

static json_t *get_hash(const void *row)
{
	const struct dbt_promotion *p = promotion(row);

	return p->is_set || dbt_promotion_is_tree(p) || p->n_members == 0
	               ? json_null()
	               : member_hash(&p->members[0]);
}

static json_t *get_state(const void *row)
{
	const struct promotion_row *r = row;

	return json_string(r->state ? r->state : dbt_state_name(r->p.state));
}

static json_t *get_seconds(const void *row)
{
	return promotion(row)->elapsed_ns
	               ? table_json_real((double)promotion(row)->elapsed_ns / 1e9)
	               : json_null();
}

static json_t *get_since(const void *row)
{
	return table_json_time(promotion(row)->promoted_ns);
}

static json_t *get_health(const void *row)
{
	const struct promotion_row *r = row;

	return r->judged ? json_string(dbt_health_name(r->health)) : json_null();
}

static const char *health_color(const void *row)
{
	const struct promotion_row *r = row;

	return r->judged && r->health != DBT_HEALTH_OK ? "red" : NULL;
}

static json_t *get_detail(const void *row)
{
	return table_json_text(((const struct promotion_row *)row)->detail);
}

static json_t *get_members(const void *row)
{
	const struct dbt_promotion *p = promotion(row);

	return table_json_rows(&member_table, TABLE_ROWS(p->members, p->is_set ? p->n_members : 0));
}

#define ID                                                                                         \
	{                                                                                          \
		.key = "id", .type = COLUMN_COUNT, .shown = true,                                  \
		.help = "number of the promotion", .get = get_id                                   \
	}
#define NAME                                                                                       \
	{                                                                                          \
		.key = "name", .type = COLUMN_NAME, .shown = true, .help = "name of the database", \
		.get = get_name                                                                    \
	}
#define PATH                                                                                       \
	{                                                                                          \
		.key = "path", .type = COLUMN_NAME, .help = "the database's path", .get = get_path \
	}
#define PATH_                                                                                      \
	{                                                                                          \
		.key = "path", .type = COLUMN_NAME, .shown = true, .help = "the database's path",  \
		.get = get_path                                                                    \
	}
#define COPY                                                                                       \
	{                                                                                          \
		.key = "copy", .type = COLUMN_NAME, .shown = true, .help = "where the copy is",    \
		.get = get_copy                                                                    \
	}
#define ORIGINAL                                                                                   \
	{                                                                                          \
		.key = "original", .type = COLUMN_NAME, .help = "where the original is kept",      \
		.get = get_original                                                                \
	}
#define SIZE                                                                                       \
	{                                                                                          \
		.key = "size", .type = COLUMN_SIZE, .shown = true,                                 \
		.help = "bytes of all its files", .get = get_size                                  \
	}
#define HASH                                                                                       \
	{                                                                                          \
		.key = "xxh128", .help = "XXH3-128 hash of a single file", .get = get_hash         \
	}
#define STATE                                                                                      \
	{                                                                                          \
		.key = "state", .shown = true, .help = "state of the promotion", .get = get_state  \
	}

static const struct column moved_columns[] = {
	ID,
	NAME,
	PATH_,
	COPY,
	ORIGINAL,
	SIZE,
	HASH,
	STATE,
	{ .key = "seconds",
	  .type = COLUMN_SECONDS,
	  .shown = true,
	  .help = "time it took",
	  .get = get_seconds },
	{ .key = "members",
	  .type = COLUMN_LIST,
	  .json_only = true,
	  .nested = &member_table,
	  .help = "the files of a set",
	  .get = get_members },
	{ 0 },
};

const struct table_spec moved_table = { .key = "promotions", .columns = moved_columns };

static const struct column status_columns[] = {
	ID,
	NAME,
	PATH,
	COPY,
	ORIGINAL,
	SIZE,
	HASH,
	{ .key = "since",
	  .type = COLUMN_TIME,
	  .shown = true,
	  .help = "when it was promoted",
	  .get = get_since },
	STATE,
	{ .key = "health",
	  .shown = true,
	  .help = "ok, or what is wrong",
	  .get = get_health,
	  .color = health_color },
	{ .key = "detail",
	  .help = "what is wrong and what to do",
	  .wrap = true,
	  .get = get_detail },
	{ 0 },
};

const struct table_spec status_table = { .key = "promotions", .columns = status_columns };

int rows_end(struct app *app, struct promotion_rows *rows, int status)
{
	if (rows->n > 0 || app->args.json)
		status = rows_print(app, &moved_table, rows, status);
	rows_release(rows);
	return status;
}
