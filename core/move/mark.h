/* A mark on every copy that dbtier makes: the extended attribute user.dbtier.copy holds the token of its promotion. So
 * a copy is never taken over by, or deleted for, a promotion of another ledger. While the copy is being made the mark
 * also says how many of its first bytes are on stable storage and what their digest is, so that an interrupted copy can
 * be continued. Filesystems without user attributes have no marks. */
#ifndef DBT_MOVE_MARK_H
#define DBT_MOVE_MARK_H

#include "move/digest.h"
#include "sys/ctx.h"

#include <stdbool.h>

#define DBT_MARK_NAME "user.dbtier.copy"

enum { DBT_MARK_BYTES = 17 };

/* Marks an open file. 0, or 1 where there can be no mark; -errno otherwise. */
int dbt_mark_set(const struct dbt_ctx *ctx, int fd, const char *token);

/* The same, with what the first bytes are. Only of a source that was read does one know that, so this says nothing of
 * what lies on the disk: whoever goes by it reads the copy. */
int dbt_mark_set_part(const struct dbt_ctx *ctx, int fd, const char *token, uint64_t bytes,
                      const struct dbt_digest *digest);

/* The file becomes an ordinary one again. */
void dbt_mark_remove(int fd);

/* True and the token when the file has a mark. */
bool dbt_mark_get(int fd, char ret[DBT_MARK_BYTES]);

/* True when the mark is this token's and says what the first bytes are. */
bool dbt_mark_get_part(int fd, const char *token, uint64_t *ret_bytes,
                       struct dbt_digest *ret_digest);

#endif
