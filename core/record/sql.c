#include "record/sql.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int errno_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_NOMEM:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

int dbt_sql_error(const struct dbt_ledger *ledger, const char *what, struct dbt_err *err)
{
	int rc = sqlite3_extended_errcode(ledger->db);

	return dbt_err_set(err, (rc & 0xff) == SQLITE_BUSY ? DBT_ERR_BUSY : DBT_ERR_LEDGER,
	                   errno_of(rc), "cannot %s the ledger '%s': %s", what, ledger->path,
	                   sqlite3_errmsg(ledger->db));
}

int dbt_sql_exec(struct dbt_ledger *ledger, const char *sql, struct dbt_err *err)
{
	if (sqlite3_exec(ledger->db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	return dbt_sql_error(ledger, "write", err);
}

sqlite3_stmt *dbt_sql_prepare(struct dbt_ledger *ledger, const char *sql, struct dbt_err *err)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(ledger->db, sql, -1, &stmt, NULL) == SQLITE_OK)
		return stmt;
	(void)dbt_sql_error(ledger, "read", err);
	return NULL;
}

int dbt_sql_step(struct dbt_ledger *ledger, sqlite3_stmt *stmt, struct dbt_err *err)
{
	switch (sqlite3_step(stmt)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return dbt_sql_error(ledger, sqlite3_stmt_readonly(stmt) ? "read" : "write", err);
	}
}

int dbt_sql_finish(struct dbt_ledger *ledger, sqlite3_stmt *stmt, struct dbt_err *err)
{
	int r;

	if (!stmt)
		return err && err->code < 0 ? err->code : -EIO;
	do
		r = dbt_sql_step(ledger, stmt, err);
	while (r > 0);
	(void)sqlite3_finalize(stmt);
	return r;
}

int dbt_sql_begin(struct dbt_ledger *ledger, struct dbt_err *err)
{
	return dbt_sql_exec(ledger, "BEGIN IMMEDIATE", err);
}

int dbt_sql_end(struct dbt_ledger *ledger, int r, struct dbt_err *err)
{
	if (r == 0)
		r = dbt_sql_exec(ledger, "COMMIT", err);
	if (r < 0)
		(void)sqlite3_exec(ledger->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

void dbt_sql_bind_bytes(sqlite3_stmt *stmt, int at, const char *value)
{
	if (value)
		(void)sqlite3_bind_blob64(stmt, at, value, strlen(value), SQLITE_TRANSIENT);
	else
		(void)sqlite3_bind_null(stmt, at);
}

void dbt_sql_bind_text(sqlite3_stmt *stmt, int at, const char *value)
{
	if (value)
		(void)sqlite3_bind_text(stmt, at, value, -1, SQLITE_TRANSIENT);
	else
		(void)sqlite3_bind_null(stmt, at);
}

void dbt_sql_bind_u64(sqlite3_stmt *stmt, int at, uint64_t value)
{
	(void)sqlite3_bind_int64(stmt, at, (sqlite3_int64)value);
}

char *dbt_sql_copy(sqlite3_stmt *stmt, int column, bool *ok)
{
	const void *data;
	char *copy;

	if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
		return NULL;
	data = sqlite3_column_blob(stmt, column);
	copy = data ? strndup(data, (size_t)sqlite3_column_bytes(stmt, column)) : strdup("");
	if (!copy)
		*ok = false;
	return copy;
}

uint64_t dbt_sql_u64(sqlite3_stmt *stmt, int column)
{
	return (uint64_t)sqlite3_column_int64(stmt, column);
}
