/* SQLite databases in WAL mode: who reads one writes beside it. */
#ifndef DBT_FLOW_WAL_H
#define DBT_FLOW_WAL_H

#include "base/err.h"
#include "sys/ctx.h"

#include <stdbool.h>

/* A reader of a database in WAL mode makes -shm and -wal beside the real file, or fails with "attempt to write a
 * readonly database" (sqlite.org/wal.html, "Read-Only Databases"). Refuses when those who may write in the directory
 * of the source may not in that of the copy; with force it warns. Another file passes. */
int dbt_wal_check_readers(const struct dbt_ctx *ctx, const char *source, const char *target,
                          bool force, struct dbt_err *err);

#endif
