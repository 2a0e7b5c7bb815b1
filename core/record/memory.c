/* What the ledger remembers besides promotions: the names of the last scan, and measurements. */
#include "base/vec.h"
#include "record/ledger.h"
#include "record/sql.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void dbt_scan_names_release(struct dbt_scan_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		free(names->items[i].name);
		free(names->items[i].path);
		free(names->items[i].dir);
		free(names->items[i].database);
		free(names->items[i].format);
		free(names->items[i].tier);
	}
	free(names->items);
	*names = (struct dbt_scan_names){ 0 };
}

void dbt_measurements_release(struct dbt_measurements *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].key);
		free(list->items[i].pattern);
	}
	free(list->items);
	*list = (struct dbt_measurements){ 0 };
}

static int save_name(struct dbt_ledger *ledger, const char *root, const struct dbt_scan_name *n,
                     struct dbt_err *err)
{
	sqlite3_stmt *s =
		dbt_sql_prepare(ledger, "INSERT INTO scan_name VALUES(?,?,?,?,?,?,?,?,?,?)", err);

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_bytes(s, 1, root);
	dbt_sql_bind_bytes(s, 2, n->name);
	dbt_sql_bind_bytes(s, 3, n->path);
	dbt_sql_bind_bytes(s, 4, n->dir);
	dbt_sql_bind_bytes(s, 5, n->database);
	dbt_sql_bind_text(s, 6, n->format);
	dbt_sql_bind_text(s, 7, n->tier);
	dbt_sql_bind_u64(s, 8, n->size_bytes);
	(void)sqlite3_bind_int(s, 9, n->is_member);
	(void)sqlite3_bind_int(s, 10, n->promoted);
	return dbt_sql_finish(ledger, s, err);
}

/* Forgets what lies at or below root: the same prefix, ended by nothing or a slash. */
static int forget_below(struct dbt_ledger *ledger, const char *root, struct dbt_err *err)
{
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger,
		"DELETE FROM scan_name WHERE root=?1 OR path=?1 OR"
		" substr(path,1,length(?1)+1)=CAST(?1||x'2f' AS BLOB) OR ?1=CAST('/' AS BLOB)",
		err);

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_bytes(s, 1, root);
	return dbt_sql_finish(ledger, s, err);
}

int dbt_ledger_save_scan(struct dbt_ledger *ledger, const char *root,
                         const struct dbt_scan_names *names, struct dbt_err *err)
{
	int r = dbt_sql_begin(ledger, err);

	if (r < 0)
		return r;
	r = forget_below(ledger, root, err);
	for (size_t i = 0; r == 0 && i < names->n; i++)
		r = save_name(ledger, root, &names->items[i], err);
	return dbt_sql_end(ledger, r, err);
}

int dbt_ledger_find_names(struct dbt_ledger *ledger, const char *name, struct dbt_scan_names *ret,
                          struct dbt_err *err)
{
	struct dbt_scan_names list = { 0 };
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger,
		"SELECT name, path, dir, database, format, tier, size, is_member, promoted"
		" FROM scan_name WHERE ?1 IS NULL OR name=?1 ORDER BY is_member, path",
		err);
	bool ok = true;
	int r = 0;

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_bytes(s, 1, name);
	while (ok && (r = dbt_sql_step(ledger, s, err)) == 1) {
		struct dbt_scan_name *n = dbt_vec_push(&list);

		if (!n) {
			ok = false;
			break;
		}
		n->name = dbt_sql_copy(s, 0, &ok);
		n->path = dbt_sql_copy(s, 1, &ok);
		n->dir = dbt_sql_copy(s, 2, &ok);
		n->database = dbt_sql_copy(s, 3, &ok);
		n->format = dbt_sql_copy(s, 4, &ok);
		n->tier = dbt_sql_copy(s, 5, &ok);
		n->size_bytes = dbt_sql_u64(s, 6);
		n->is_member = sqlite3_column_int(s, 7) != 0;
		n->promoted = sqlite3_column_int(s, 8) != 0;
	}
	(void)sqlite3_finalize(s);
	if (!ok)
		r = dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	if (r < 0)
		dbt_scan_names_release(&list);
	else
		*ret = list;
	return r;
}

static int save_measurement(struct dbt_ledger *ledger, const struct dbt_measurement *m,
                            struct dbt_err *err)
{
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger, "INSERT OR REPLACE INTO measurement VALUES(?,?,?,?,?,?,?,?,?)", err);

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_text(s, 1, m->key);
	dbt_sql_bind_text(s, 2, m->pattern);
	(void)sqlite3_bind_int64(s, 3, m->jobs);
	dbt_sql_bind_u64(s, 4, m->wall_ns);
	(void)sqlite3_bind_double(s, 5, m->iops);
	dbt_sql_bind_u64(s, 6, m->rate_bytes_s);
	dbt_sql_bind_u64(s, 7, m->lat_p50_ns);
	dbt_sql_bind_u64(s, 8, m->span_bytes);
	(void)sqlite3_bind_int(s, 9, m->proved);
	return dbt_sql_finish(ledger, s, err);
}

int dbt_ledger_save_measurements(struct dbt_ledger *ledger, const struct dbt_measurements *list,
                                 struct dbt_err *err)
{
	int r = dbt_sql_begin(ledger, err);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = save_measurement(ledger, &list->items[i], err);
	return dbt_sql_end(ledger, r, err);
}

int dbt_ledger_load_measurements(struct dbt_ledger *ledger, const char *key,
                                 struct dbt_measurements *ret, struct dbt_err *err)
{
	struct dbt_measurements list = { 0 };
	sqlite3_stmt *s = dbt_sql_prepare(ledger,
	                                  "SELECT key, pattern, jobs, wall_ns, iops, rate, "
	                                  "lat_p50_ns, span, proved FROM measurement"
	                                  " WHERE key=?",
	                                  err);
	bool ok = true;
	int r = 0;

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_text(s, 1, key);
	while (ok && (r = dbt_sql_step(ledger, s, err)) == 1) {
		struct dbt_measurement *m = dbt_vec_push(&list);

		if (!m) {
			ok = false;
			break;
		}
		m->key = dbt_sql_copy(s, 0, &ok);
		m->pattern = dbt_sql_copy(s, 1, &ok);
		m->jobs = (unsigned)sqlite3_column_int64(s, 2);
		m->wall_ns = dbt_sql_u64(s, 3);
		m->iops = sqlite3_column_double(s, 4);
		m->rate_bytes_s = dbt_sql_u64(s, 5);
		m->lat_p50_ns = dbt_sql_u64(s, 6);
		m->span_bytes = dbt_sql_u64(s, 7);
		m->proved = sqlite3_column_int(s, 8) != 0;
	}
	(void)sqlite3_finalize(s);
	if (!ok)
		r = dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	if (r < 0)
		dbt_measurements_release(&list);
	else
		*ret = list;
	return r;
}
