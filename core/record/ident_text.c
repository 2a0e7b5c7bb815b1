#include "record/ident_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dbt_ident_text(const struct dbt_ident *i, char out[DBT_IDENT_TEXT_BYTES])
{
	(void)snprintf(out, DBT_IDENT_TEXT_BYTES,
	               "dev=%" PRIu64 " ino=%" PRIu64 " size=%" PRIu64 " mtime=%" PRId64
	               " ctime=%" PRId64 " btime=%" PRId64 " mode=%" PRIo32 " uid=%" PRIu32
	               " gid=%" PRIu32 " nlink=%" PRIu32,
	               i->dev, i->ino, i->size_bytes, i->mtime_ns, i->ctime_ns, i->btime_ns,
	               i->mode, i->uid, i->gid, i->nlink);
}

/* "key=number" and the blank behind it. */
static bool take_unsigned(const char **at, const char *key, int base, uint64_t max, uint64_t *ret)
{
	size_t len = strlen(key);
	char *end;

	if (strncmp(*at, key, len) != 0 || !isdigit((unsigned char)(*at)[len]))
		return false;
	errno = 0;
	*ret = strtoull(*at + len, &end, base);
	if (errno != 0 || *ret > max)
		return false;
	*at = *end == ' ' ? end + 1 : end;
	return true;
}

static bool take_signed(const char **at, const char *key, int64_t *ret)
{
	size_t len = strlen(key);
	char *end;

	if (strncmp(*at, key, len) != 0 ||
	    !isdigit((unsigned char)(*at)[len + ((*at)[len] == '-')]))
		return false;
	errno = 0;
	*ret = strtoll(*at + len, &end, 10);
	if (errno != 0)
		return false;
	*at = *end == ' ' ? end + 1 : end;
	return true;
}

int dbt_ident_parse(const char *text, struct dbt_ident *ret)
{
	const char *at = text;
	struct dbt_ident i = { 0 };
	uint64_t mode, uid, gid, nlink;

	if (!take_unsigned(&at, "dev=", 10, UINT64_MAX, &i.dev) ||
	    !take_unsigned(&at, "ino=", 10, UINT64_MAX, &i.ino) ||
	    !take_unsigned(&at, "size=", 10, UINT64_MAX, &i.size_bytes) ||
	    !take_signed(&at, "mtime=", &i.mtime_ns) || !take_signed(&at, "ctime=", &i.ctime_ns) ||
	    !take_signed(&at, "btime=", &i.btime_ns) ||
	    !take_unsigned(&at, "mode=", 8, UINT32_MAX, &mode) ||
	    !take_unsigned(&at, "uid=", 10, UINT32_MAX, &uid) ||
	    !take_unsigned(&at, "gid=", 10, UINT32_MAX, &gid) ||
	    !take_unsigned(&at, "nlink=", 10, UINT32_MAX, &nlink) || *at != '\0')
		return -EINVAL;
	i.mode = (uint32_t)mode;
	i.uid = (uint32_t)uid;
	i.gid = (uint32_t)gid;
	i.nlink = (uint32_t)nlink;
	*ret = i;
	return 0;
}
