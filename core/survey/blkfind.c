/* Finding devices: by what a mount calls its source, the members of a btrfs, a device's counters. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/blkdev.h"
#include "survey/sysfs.h"
#include "survey/transport.h"
#include "survey/udevdata.h"
#include "sys/root.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int find_by_dm_name(const struct dbt_ctx *ctx, const char *name, uint64_t *ret_devno)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	char path[NAME_MAX + 32];

	if (dbt_root_opendir(ctx->root, "sys/class/block", &dir) < 0 &&
	    dbt_root_opendir(ctx->root, "sys/block", &dir) < 0)
		return -ENOENT;
	while ((entry = readdir(dir))) {
		dbt_autofree char *theirs = NULL;

		if (!starts(entry->d_name, "dm-"))
			continue;
		(void)snprintf(path, sizeof(path), "sys/block/%s", entry->d_name);
		if (dbt_sysfs_text(ctx, path, "dm/name", &theirs) == 0 && theirs &&
		    strcmp(theirs, name) == 0)
			return dbt_sysfs_devno(ctx, path, ret_devno);
	}
	return -ENOENT;
}

static int find_by_kernel_name(const struct dbt_ctx *ctx, const char *name, uint64_t *ret_devno)
{
	static const char *const dirs[] = { "sys/class/block", "sys/block" };
	char path[PATH_MAX];
	int r = -ENOENT;

	if (strlen(name) > NAME_MAX)
		return -ENOENT;
	for (size_t i = 0; i < 2 && r < 0; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		for (char *p = path + strlen(dirs[i]) + 1; *p; p++)
			if (*p == '/')
				*p = '!';
		r = dbt_sysfs_devno(ctx, path, ret_devno);
	}
	return r < 0 ? -ENOENT : 0;
}

int dbt_blkdev_find(const struct dbt_ctx *ctx, const char *source, uint64_t *ret_devno)
{
	const char *name = source;
	struct stat st;

	if (starts(source, "/dev/")) {
		name = source + 5;
		if (ctx->root->live && stat(source, &st) == 0 && S_ISBLK(st.st_mode)) {
			*ret_devno = st.st_rdev;
			return 0;
		}
	}
	if (*name == '\0' || *name == '/' || *name == '.')
		return -ENOENT;
	if (starts(name, "mapper/") && find_by_dm_name(ctx, name + 7, ret_devno) == 0)
		return 0;
	if (find_by_kernel_name(ctx, name, ret_devno) == 0)
		return 0;
	return dbt_udevdata_find_link(ctx, name, ret_devno) == 0 ? 0 : -ENOENT;
}

void dbt_btrfs_members_release(struct dbt_btrfs_members *members)
{
	free(members->devnos);
	free(members->uuid);
	*members = (struct dbt_btrfs_members){ 0 };
}

static unsigned count_missing(const struct dbt_ctx *ctx, const char *uuid)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	char path[NAME_MAX * 2 + 64];
	unsigned n = 0;
	uint64_t v;

	(void)snprintf(path, sizeof(path), "sys/fs/btrfs/%s/devinfo", uuid);
	if (dbt_root_opendir(ctx->root, path, &dir) < 0)
		return 0;
	while ((entry = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "sys/fs/btrfs/%s/devinfo/%s/missing", uuid,
		               entry->d_name);
		if (dbt_root_read_u64(ctx->root, path, &v) == 0 && v != 0)
			n++;
	}
	return n;
}

/* The members of one btrfs; has says whether devno is among them. */
static int read_members(const struct dbt_ctx *ctx, const char *uuid, uint64_t devno, bool *has,
                        struct dbt_btrfs_members *ret)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	char path[NAME_MAX * 2 + 64];
	size_t cap = 0;
	uint64_t *grown, found;

	(void)snprintf(path, sizeof(path), "sys/fs/btrfs/%s/devices", uuid);
	if (dbt_root_opendir(ctx->root, path, &dir) < 0)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "sys/fs/btrfs/%s/devices/%s", uuid,
		               entry->d_name);
		if (dbt_sysfs_devno(ctx, path, &found) < 0 &&
		    find_by_kernel_name(ctx, entry->d_name, &found) < 0)
			continue;
		*has = *has || found == devno;
		grown = dbt_vec_grow(ret->devnos, ret->n, &cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		ret->devnos = grown;
		ret->devnos[ret->n++] = found;
	}
	if (ret->n > 1)
		qsort(ret->devnos, ret->n, sizeof(*ret->devnos), by_number);
	return 0;
}

int dbt_blkdev_btrfs_members(const struct dbt_ctx *ctx, uint64_t devno,
                             struct dbt_btrfs_members *ret)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dirent *entry;

	if (dbt_root_opendir(ctx->root, "sys/fs/btrfs", &dir) < 0)
		return -ENOENT;
	while ((entry = readdir(dir))) {
		struct dbt_btrfs_members members = { 0 };
		bool has = false;
		int r;

		if (entry->d_name[0] == '.' || strlen(entry->d_name) < 36)
			continue;
		r = read_members(ctx, entry->d_name, devno, &has, &members);
		if (r == 0 && has) {
			members.uuid = strdup(entry->d_name);
			members.missing = count_missing(ctx, entry->d_name);
			r = members.uuid ? 0 : -ENOMEM;
		}
		if (r == 0 && has) {
			*ret = members;
			return 0;
		}
		dbt_btrfs_members_release(&members);
		if (r < 0)
			return r;
	}
	return -ENOENT;
}

/* Documentation/block/stat.rst: reads, merged, sectors, ms; the same for writes; in flight, busy ms.
 */
enum { STAT_FIELDS = 10 };

static int read_counters(const struct dbt_ctx *ctx, const char *path, struct dbt_blk_counters *ret)
{
	struct dbt_buf text = { 0 };
	uint64_t v[STAT_FIELDS];
	const char *at;
	int r = dbt_root_read_line(ctx->root, path, &text);

	at = dbt_buf_str(&text);
	for (size_t i = 0; r == 0 && i < STAT_FIELDS; i++)
		if (!dbt_scan_u64(&at, &v[i]))
			r = -EINVAL;
	dbt_buf_release(&text);
	if (r < 0)
		return r;
	*ret = (struct dbt_blk_counters){ .reads = v[0],
		                          .read_sectors512 = v[2],
		                          .writes = v[4],
		                          .written_sectors512 = v[6],
		                          .busy_ms = v[9] };
	return 0;
}

/* Before Linux 6.4 only the hidden paths of an NVMe multipath disk count, not the disk itself: then
 * their sum is taken (drivers/nvme/host/multipath.c). */
static void add_nvme_paths(const struct dbt_ctx *ctx, const char *disk,
                           struct dbt_blk_counters *ret)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dbt_blk_counters one;
	struct dirent *entry;
	char path[NAME_MAX + 32];

	if (dbt_root_opendir(ctx->root, "sys/block", &dir) < 0)
		return;
	while ((entry = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "sys/block/%s/stat", entry->d_name);
		if (!dbt_nvme_is_path(entry->d_name, disk) || read_counters(ctx, path, &one) < 0)
			continue;
		ret->reads += one.reads;
		ret->read_sectors512 += one.read_sectors512;
		ret->writes += one.writes;
		ret->written_sectors512 += one.written_sectors512;
		ret->busy_ms += one.busy_ms;
	}
}

int dbt_blkdev_counters(const struct dbt_ctx *ctx, uint64_t devno, struct dbt_blk_counters *ret)
{
	struct dbt_buf link = { 0 };
	const char *name;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "sys/dev/block/%u:%u/stat", major(devno), minor(devno));
	r = read_counters(ctx, path, ret);
	if (r < 0 || ret->reads != 0)
		return r;
	(void)snprintf(path, sizeof(path), "sys/dev/block/%u:%u", major(devno), minor(devno));
	if (dbt_root_readlink(ctx->root, path, &link) == 0 &&
	    (name = strrchr(dbt_buf_str(&link), '/')) && starts(name + 1, "nvme"))
		add_nvme_paths(ctx, name + 1, ret);
	dbt_buf_release(&link);
	return 0;
}
