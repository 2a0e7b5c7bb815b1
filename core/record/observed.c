/* How databases were seen to be read. The table is made when there is something to write: a ledger of an earlier dbtier has
 * none, and an earlier dbtier has no use for it. */
#include "base/vec.h"
#include "record/ledger.h"
#include "record/sql.h"

#include <errno.h>
#include <stdlib.h>

void dbt_observed_release(struct dbt_observed_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].path);
		free(list->items[i].class_name);
	}
	free(list->items);
	*list = (struct dbt_observed_list){ 0 };
}

static int save_one(struct dbt_ledger *ledger, const struct dbt_observed *o, struct dbt_err *err)
{
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger, "INSERT OR REPLACE INTO observed VALUES(?,?,?,?,?,?,?,?)", err);

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_bytes(s, 1, o->path);
	dbt_sql_bind_text(s, 2, o->class_name);
	dbt_sql_bind_u64(s, 3, o->wall_ns);
	dbt_sql_bind_u64(s, 4, o->rate_bytes_s);
	(void)sqlite3_bind_double(s, 5, o->misses_s);
	dbt_sql_bind_u64(s, 6, o->mean_bytes);
	(void)sqlite3_bind_double(s, 7, o->jumps);
	(void)sqlite3_bind_double(s, 8, o->waiting);
	return dbt_sql_finish(ledger, s, err);
}

int dbt_ledger_save_observed(struct dbt_ledger *ledger, const struct dbt_observed_list *list,
                             struct dbt_err *err)
{
	int r = dbt_sql_begin(ledger, err);

	if (r < 0)
		return r;
	r = dbt_sql_exec(ledger,
	                 "CREATE TABLE IF NOT EXISTS observed(path BLOB PRIMARY KEY,"
	                 " class TEXT NOT NULL, wall_ns INTEGER NOT NULL, rate INTEGER NOT NULL,"
	                 " misses REAL NOT NULL, mean INTEGER NOT NULL, jumps REAL NOT NULL,"
	                 " waiting REAL NOT NULL)",
	                 err);
	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = save_one(ledger, &list->items[i], err);
	return dbt_sql_end(ledger, r, err);
}

/* 1, 0 or a negative code. */
static int has_table(struct dbt_ledger *ledger, struct dbt_err *err)
{
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger, "SELECT 1 FROM sqlite_master WHERE type='table' AND name='observed'", err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	r = dbt_sql_step(ledger, s, err);
	(void)sqlite3_finalize(s);
	return r;
}

int dbt_ledger_load_observed(struct dbt_ledger *ledger, const char *path,
                             struct dbt_observed_list *ret, struct dbt_err *err)
{
	struct dbt_observed_list list = { 0 };
	sqlite3_stmt *s;
	bool ok = true;
	int r = has_table(ledger, err);

	*ret = list;
	if (r <= 0)
		return r;
	s = dbt_sql_prepare(ledger,
	                    "SELECT path, class, wall_ns, rate, misses, mean, jumps, waiting"
	                    " FROM observed WHERE ?1 IS NULL OR path=?1 ORDER BY path",
	                    err);
	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_bytes(s, 1, path);
	while (ok && (r = dbt_sql_step(ledger, s, err)) == 1) {
		struct dbt_observed *o = dbt_vec_push(&list);

		if (!o) {
			ok = false;
			break;
		}
		o->path = dbt_sql_copy(s, 0, &ok);
		o->class_name = dbt_sql_copy(s, 1, &ok);
		o->wall_ns = dbt_sql_u64(s, 2);
		o->rate_bytes_s = dbt_sql_u64(s, 3);
		o->misses_s = sqlite3_column_double(s, 4);
		o->mean_bytes = dbt_sql_u64(s, 5);
		o->jumps = sqlite3_column_double(s, 6);
		o->waiting = sqlite3_column_double(s, 7);
	}
	(void)sqlite3_finalize(s);
	if (!ok)
		r = dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	if (r < 0)
		dbt_observed_release(&list);
	else
		*ret = list;
	return r;
}
