#include "survey/sysfs.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

int dbt_sysfs_text(const struct dbt_ctx *ctx, const char *dir, const char *name, char **ret)
{
	char path[PATH_MAX], *new;
	struct dbt_buf buf = { 0 };
	const char *text;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return 0;
	r = dbt_root_read_line(ctx->root, path, &buf);
	text = dbt_buf_str(&buf);
	while (isspace((unsigned char)*text))
		text++;
	if (r == 0 && *text) {
		new = strdup(text);
		if (new) {
			free(*ret);
			*ret = new;
		}
		r = new ? 0 : -ENOMEM;
	}
	dbt_buf_release(&buf);
	return r == -ENOMEM ? r : 0;
}

bool dbt_scan_u64(const char **at, uint64_t *ret)
{
	const char *p = *at;
	unsigned long v;
	char *end;

	while (*p == ' ' || *p == '\t')
		p++;
	if (!isdigit((unsigned char)*p))
		return false;
	errno = 0;
	v = strtoul(p, &end, 10);
	if (errno != 0)
		return false;
	*ret = v;
	*at = end;
	return true;
}

bool dbt_scan_devno(const char **at, uint64_t *ret)
{
	const char *p = *at;
	uint64_t maj, min;

	if (!dbt_scan_u64(&p, &maj) || *p++ != ':' || !dbt_scan_u64(&p, &min) || maj > UINT_MAX ||
	    min > UINT_MAX)
		return false;
	*ret = makedev((unsigned)maj, (unsigned)min);
	*at = p;
	return true;
}

int dbt_sysfs_devno(const struct dbt_ctx *ctx, const char *dir, uint64_t *ret)
{
	dbt_autofree char *text = NULL;
	const char *at;
	uint64_t devno;
	int r = dbt_sysfs_text(ctx, dir, "dev", &text);

	if (r < 0)
		return r;
	if (!text)
		return -ENOENT;
	at = text;
	if (!dbt_scan_devno(&at, &devno) || *at != '\0')
		return -EINVAL;
	*ret = devno;
	return 0;
}
