/* Inside record only: statements with their errors in the shape of the rest of core. */
#ifndef DBT_RECORD_SQL_H
#define DBT_RECORD_SQL_H

#include "base/err.h"
#include "record/ledger.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct dbt_ledger {
	sqlite3 *db;
	char *path;
	const struct dbt_ctx *ctx;
	int version; /* of the file's schema */
	int lock_fd; /* -1 for readers */
};

/* Fills err with SQLite's reason; returns -EIO, or -EBUSY, -ENOSPC, -EROFS where that is what it was. */
int dbt_sql_error(const struct dbt_ledger *ledger, const char *what, struct dbt_err *err);

/* Runs statements that return nothing. */
int dbt_sql_exec(struct dbt_ledger *ledger, const char *sql, struct dbt_err *err);

/* Prepares; NULL with err filled. sqlite3_finalize() it. */
sqlite3_stmt *dbt_sql_prepare(struct dbt_ledger *ledger, const char *sql, struct dbt_err *err);

/* 1 a row, 0 the end, negative with err filled. */
int dbt_sql_step(struct dbt_ledger *ledger, sqlite3_stmt *stmt, struct dbt_err *err);

/* Steps to the end and finalises, whatever happens. */
int dbt_sql_finish(struct dbt_ledger *ledger, sqlite3_stmt *stmt, struct dbt_err *err);

/* Between these everything is one transaction. dbt_sql_end commits when r is 0, else rolls back; returns r or the
 * commit's error. */
int dbt_sql_begin(struct dbt_ledger *ledger, struct dbt_err *err);
int dbt_sql_end(struct dbt_ledger *ledger, int r, struct dbt_err *err);

/* File names are bytes: stored as BLOBs. NULL is NULL. The values are borrowed until the statement is done. */
void dbt_sql_bind_bytes(sqlite3_stmt *stmt, int at, const char *value);
void dbt_sql_bind_text(sqlite3_stmt *stmt, int at, const char *value);
void dbt_sql_bind_u64(sqlite3_stmt *stmt, int at, uint64_t value);

/* A copy of a column, NULL for NULL; *ok becomes false when out of memory. A value with a NUL inside is cut. */
char *dbt_sql_copy(sqlite3_stmt *stmt, int column, bool *ok);
uint64_t dbt_sql_u64(sqlite3_stmt *stmt, int column);

#endif
