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

int dbt_sysfs_devno(const struct dbt_ctx *ctx, const char *dir, uint64_t *ret)
{
	dbt_autofree char *text = NULL;
	unsigned maj, min;
	char more;
	int r = dbt_sysfs_text(ctx, dir, "dev", &text);

	if (r < 0)
		return r;
	if (!text)
		return -ENOENT;
	if (sscanf(text, "%u:%u%c", &maj, &min, &more) != 2)
		return -EINVAL;
	*ret = makedev(maj, min);
	return 0;
}
