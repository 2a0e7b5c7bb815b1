#include "survey/udevdata.h"

#include "base/cleanup.h"
#include "survey/sysfs.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { UDEV_MAX_BYTES = 1 << 20 };

/* dev/NAME of a capture holds properties; on a running system it is the device itself and must not
 * be read. */
static int read_dev_file(const struct dbt_ctx *ctx, const char *name, struct dbt_buf *ret)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (ctx->root->live)
		return -ENOENT;
	if (snprintf(path, sizeof(path), "dev/%s", name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = dbt_root_openfile(ctx->root, path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)close(fd);
		return -ENOENT;
	}
	(void)close(fd);
	return dbt_root_read(ctx->root, path, UDEV_MAX_BYTES, ret);
}

int dbt_udevdata_read(const struct dbt_ctx *ctx, uint64_t devno, const char *name,
                      struct dbt_buf *ret)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "run/udev/data/b%u:%u", major(devno), minor(devno));
	r = dbt_root_read(ctx->root, path, UDEV_MAX_BYTES, ret);
	return r < 0 ? read_dev_file(ctx, name, ret) : r;
}

/* The next line from *at; false at the end. */
static bool next_line(const char **at, const char **ret, size_t *ret_len)
{
	if (**at == '\0')
		return false;
	*ret = *at;
	*ret_len = strcspn(*at, "\n");
	*at += *ret_len + ((*at)[*ret_len] == '\n');
	return true;
}

int dbt_udevdata_get(const struct dbt_buf *data, const char *key, char **ret)
{
	const char *at = dbt_buf_str(data), *line;
	size_t len, key_len = strlen(key);

	while (next_line(&at, &line, &len)) {
		/* "E:KEY=VALUE" in udev's own files, "KEY=VALUE" in property files. */
		if (len > 2 && line[0] == 'E' && line[1] == ':') {
			line += 2;
			len -= 2;
		}
		if (len <= key_len + 1 || memcmp(line, key, key_len) != 0 || line[key_len] != '=')
			continue;
		*ret = strndup(line + key_len + 1, len - key_len - 1);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

static bool has_link(const struct dbt_buf *data, const char *link)
{
	const char *at = dbt_buf_str(data), *line;
	size_t len, link_len = strlen(link);

	while (next_line(&at, &line, &len))
		if (len == link_len + 2 && line[0] == 'S' && line[1] == ':' &&
		    memcmp(line + 2, link, link_len) == 0)
			return true;
	return false;
}

int dbt_udevdata_find_link(const struct dbt_ctx *ctx, const char *link, uint64_t *ret_devno)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dbt_buf data = { 0 };
	struct dirent *entry;
	const char *at;
	uint64_t devno;
	char path[NAME_MAX + 32];
	int r = dbt_root_opendir(ctx->root, "run/udev/data", &dir);

	if (r < 0)
		return r;
	r = -ENOENT;
	while (r == -ENOENT && (entry = readdir(dir))) {
		at = entry->d_name + 1;
		if (entry->d_name[0] != 'b' || !dbt_scan_devno(&at, &devno))
			continue;
		(void)snprintf(path, sizeof(path), "run/udev/data/%s", entry->d_name);
		if (dbt_root_read(ctx->root, path, UDEV_MAX_BYTES, &data) < 0 ||
		    !has_link(&data, link))
			continue;
		*ret_devno = devno;
		r = 0;
	}
	dbt_buf_release(&data);
	return r;
}
