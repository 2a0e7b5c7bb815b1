/* A mark on every copy that dbtier makes: the extended attribute user.dbtier.copy holds the token of its promotion. So
 * a copy is never taken over by, or deleted for, a promotion of another ledger. Filesystems without user attributes
 * have no marks. */
#ifndef DBT_MOVE_MARK_H
#define DBT_MOVE_MARK_H

#include "sys/ctx.h"

#include <stdbool.h>

#define DBT_MARK_NAME "user.dbtier.copy"

enum { DBT_MARK_BYTES = 17 };

/* Marks an open file. 0, or 1 where there can be no mark; -errno otherwise. */
int dbt_mark_set(const struct dbt_ctx *ctx, int fd, const char *token);

/* The file becomes an ordinary one again. */
void dbt_mark_remove(int fd);

/* True and the token when the file has a mark. */
bool dbt_mark_get(int fd, char ret[DBT_MARK_BYTES]);

#endif
