#include "move/mark.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

/* The token (16 characters), the digest (32) and the length, all in hex digits and without anything between them: as
 * short as that it fits into an inode of ext4 with 256 bytes. */
enum { TOKEN_LEN = DBT_MARK_BYTES - 1, DIGEST_LEN = DBT_DIGEST_HEX_BYTES - 1, MAX_LEN = 64 };

static int set(const struct dbt_ctx *ctx, int fd, const char *text)
{
	int r = ctx->sys->fsetxattr(fd, DBT_MARK_NAME, text, strlen(text), 0);

	/* ENOSPC: the few bytes that a filesystem has for attributes may be used up. */
	return r == -EOPNOTSUPP || r == -EPERM || r == -EACCES || r == -ENOSPC ? 1 : r;
}

int dbt_mark_set(const struct dbt_ctx *ctx, int fd, const char *token)
{
	return set(ctx, fd, token);
}

int dbt_mark_set_part(const struct dbt_ctx *ctx, int fd, const char *token, uint64_t bytes,
                      const struct dbt_digest *digest)
{
	char text[MAX_LEN + 1], hex[DBT_DIGEST_HEX_BYTES];

	(void)snprintf(text, sizeof(text), "%s%s%" PRIx64, token, dbt_digest_hex(digest, hex),
	               bytes);
	return set(ctx, fd, text);
}

void dbt_mark_remove(int fd)
{
	(void)fremovexattr(fd, DBT_MARK_NAME);
}

/* The whole mark; its length, 0 when there is none. */
static size_t get(int fd, char ret[MAX_LEN + 1])
{
	ssize_t len = fgetxattr(fd, DBT_MARK_NAME, ret, MAX_LEN);

	ret[len > 0 ? len : 0] = '\0';
	return strlen(ret);
}

bool dbt_mark_get(int fd, char ret[DBT_MARK_BYTES])
{
	char text[MAX_LEN + 1];
	size_t len = get(fd, text);

	(void)snprintf(ret, DBT_MARK_BYTES, "%.*s", TOKEN_LEN, text);
	return len > 0;
}

bool dbt_mark_get_part(int fd, const char *token, uint64_t *ret_bytes,
                       struct dbt_digest *ret_digest)
{
	char text[MAX_LEN + 1], hex[DBT_DIGEST_HEX_BYTES];
	size_t len = get(fd, text);
	const char *bytes = text + TOKEN_LEN + DIGEST_LEN;

	if (len <= TOKEN_LEN + DIGEST_LEN || len > TOKEN_LEN + DIGEST_LEN + 16 ||
	    strncmp(text, token, TOKEN_LEN) != 0 ||
	    strspn(bytes, "0123456789abcdef") != strlen(bytes))
		return false;
	(void)snprintf(hex, sizeof(hex), "%.*s", DIGEST_LEN, text + TOKEN_LEN);
	if (dbt_digest_parse(hex, ret_digest) < 0)
		return false;
	*ret_bytes = strtoull(bytes, NULL, 16);
	return true;
}
