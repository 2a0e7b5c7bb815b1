#include "move/mark.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

int dbt_mark_set(const struct dbt_ctx *ctx, int fd, const char *token)
{
	int r = ctx->sys->fsetxattr(fd, DBT_MARK_NAME, token, strlen(token), 0);

	/* ENOSPC: the few bytes that a filesystem has for attributes may be used up. */
	return r == -EOPNOTSUPP || r == -EPERM || r == -EACCES || r == -ENOSPC ? 1 : r;
}

void dbt_mark_remove(int fd)
{
	(void)fremovexattr(fd, DBT_MARK_NAME);
}

bool dbt_mark_get(int fd, char ret[DBT_MARK_BYTES])
{
	ssize_t len = fgetxattr(fd, DBT_MARK_NAME, ret, DBT_MARK_BYTES - 1);

	ret[len > 0 ? len : 0] = '\0';
	return len > 0;
}
