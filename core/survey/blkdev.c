#include "survey/blkdev.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/sysfs.h"
#include "survey/transport.h"
#include "survey/udevdata.h"
#include "sys/root.h"

#include <blkid.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && strcmp(s + n - m, suffix) == 0;
}

void dbt_blkdev_release(struct dbt_blkdev *dev)
{
	free(dev->name);
	free(dev->dm_name);
	free(dev->dm_uuid);
	free(dev->md_level);
	free(dev->loop_file);
	free(dev->tran);
	free(dev->driver);
	free(dev->model);
	free(dev->vendor);
	free(dev->zoned);
	free(dev->content);
	free(dev->content_uuid);
	free(dev->below);
	free(dev->trouble);
	*dev = (struct dbt_blkdev){ 0 };
}

static int note_trouble(struct dbt_blkdev *dev, const char *text, const char *name)
{
	struct dbt_buf buf = { 0 };

	if (dev->trouble)
		return 0;
	if (dbt_buf_addf(&buf, "%s: %s", name, text) < 0)
		return -ENOMEM;
	dev->trouble = dbt_buf_take(&buf);
	return dev->trouble ? 0 : -ENOMEM;
}

static int push_below(struct dbt_blkdev *dev, uint64_t devno)
{
	uint64_t *new = dbt_vec_grow(dev->below, dev->n_below, &dev->cap_below, sizeof(*new));

	if (!new)
		return -ENOMEM;
	dev->below = new;
	dev->below[dev->n_below++] = devno;
	return 0;
}

/* The device's directory below the root without links, "sys/devices/.../block/sda": its components
 * tell the transport. From the links in sys/dev/block, else by its number in sys/class/block and
 * sys/block (old and partial captures). */
static int link_target(const struct dbt_ctx *ctx, const char *link, char *out, size_t out_size)
{
	struct dbt_buf text = { 0 };
	const char *p;
	int r = dbt_root_readlink(ctx->root, link, &text);

	if (r == 0) {
		p = dbt_buf_str(&text);
		while (starts(p, "../"))
			p += 3;
		if (starts(p, "/sys/"))
			p += 5;
		r = snprintf(out, out_size, "sys/%s", p) < (int)out_size ? 0 : -ENAMETOOLONG;
		if (r == 0 && !dbt_root_exists(ctx->root, out))
			r = -ENOENT;
	} else if (r == -EINVAL) { /* a plain directory: its own name must do */
		r = snprintf(out, out_size, "%s", link) < (int)out_size ? 0 : -ENAMETOOLONG;
	}
	dbt_buf_release(&text);
	return r;
}

static int search_dir(const struct dbt_ctx *ctx, const char *in, uint64_t devno, char *out,
                      size_t out_size)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	char path[PATH_MAX];
	uint64_t found;

	if (dbt_root_opendir(ctx->root, in, &dir) < 0)
		return -ENOENT;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", in, entry->d_name);
		if (dbt_sysfs_devno(ctx, path, &found) == 0 && found == devno)
			return link_target(ctx, path, out, out_size);
	}
	return -ENOENT;
}

static int find_dir(const struct dbt_ctx *ctx, uint64_t devno, char *out, size_t out_size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "sys/dev/block/%u:%u", major(devno), minor(devno));
	if (link_target(ctx, path, out, out_size) == 0)
		return 0;
	if (search_dir(ctx, "sys/class/block", devno, out, out_size) == 0)
		return 0;
	return search_dir(ctx, "sys/block", devno, out, out_size);
}

/* sysfs writes '/' in device names as '!'. */
static char *name_of(const char *dir)
{
	const char *base = strrchr(dir, '/');
	char *name = strdup(base ? base + 1 : dir);

	for (char *p = name; p && *p; p++)
		if (*p == '!')
			*p = '/';
	return name;
}

static enum dbt_blk_kind dm_kind(const char *uuid)
{
	if (!uuid)
		return DBT_BLK_DM;
	if (starts(uuid, "CRYPT-VERITY") || starts(uuid, "CRYPT-INTEGRITY"))
		return DBT_BLK_DM;
	if (starts(uuid, "CRYPT-"))
		return DBT_BLK_CRYPT;
	if (starts(uuid, "LVM-"))
		return DBT_BLK_LVM;
	if (starts(uuid, "mpath-"))
		return DBT_BLK_MPATH;
	/* kpartx: "part1-mpath-..." */
	if (starts(uuid, "part") && isdigit((unsigned char)uuid[4]))
		return DBT_BLK_PART;
	return DBT_BLK_DM;
}

/* LVM names its hidden volumes by suffix (lvm2, lib/metadata/lv_manip.c); the ones that hold no
 * data must not decide how fast the data is. */
static bool is_metadata_volume(const struct dbt_blkdev *dev)
{
	if (dev->kind != DBT_BLK_LVM || !dev->dm_name)
		return false;
	return ends(dev->dm_name, "_tmeta") || ends(dev->dm_name, "_cmeta") ||
	       strstr(dev->dm_name, "_rmeta_");
}

static int read_identity(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	char path[PATH_MAX];
	int r = dbt_sysfs_text(ctx, dir, "dm/name", &dev->dm_name);

	if (r == 0)
		r = dbt_sysfs_text(ctx, dir, "dm/uuid", &dev->dm_uuid);
	if (r == 0)
		r = dbt_sysfs_text(ctx, dir, "md/level", &dev->md_level);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%.4000s/partition", dir);
	if (dbt_root_exists(ctx->root, path))
		dev->kind = DBT_BLK_PART;
	else if (starts(dev->name, "dm-"))
		dev->kind = dm_kind(dev->dm_uuid);
	else if (starts(dev->name, "md"))
		dev->kind = DBT_BLK_MD;
	else if (starts(dev->name, "loop"))
		dev->kind = DBT_BLK_LOOP;
	else if (starts(dev->name, "bcache"))
		dev->kind = DBT_BLK_BCACHE;
	else if (starts(dev->name, "drbd"))
		dev->kind = DBT_BLK_DRBD;
	else if (starts(dev->name, "zram"))
		dev->kind = DBT_BLK_ZRAM;
	else if (starts(dev->name, "ram") && isdigit((unsigned char)dev->name[3]))
		dev->kind = DBT_BLK_RAMDISK;
	dev->metadata_only = is_metadata_volume(dev);
	return 0;
}

static int read_queue(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	char path[PATH_MAX];
	uint64_t v;
	int r;

	(void)snprintf(path, sizeof(path), "%.4000s/queue/rotational", dir);
	if (dbt_root_read_u64(ctx->root, path, &v) == 0 && v <= 1)
		dev->rota = (int)v;
	(void)snprintf(path, sizeof(path), "%.4000s/size", dir);
	if (dbt_root_read_u64(ctx->root, path, &v) == 0 && v <= UINT64_MAX / 512)
		dev->size_bytes = v * 512;
	r = dbt_sysfs_text(ctx, dir, "queue/zoned", &dev->zoned);
	if (r == 0 && dev->zoned && strcmp(dev->zoned, "none") == 0) {
		free(dev->zoned);
		dev->zoned = NULL;
	}
	return r;
}

/* A RAID member that holds no data the array reads (Documentation/admin-guide/md.rst). */
static bool is_idle_member(const struct dbt_ctx *ctx, const char *dir, const char *name)
{
	char member[PATH_MAX];
	dbt_autofree char *state = NULL;

	(void)snprintf(member, sizeof(member), "%.3800s/md/dev-%.255s", dir, name);
	if (dbt_sysfs_text(ctx, member, "state", &state) < 0 || !state)
		return false;
	return strstr(state, "spare") || strstr(state, "faulty") || strstr(state, "journal");
}

static int read_slaves(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	dbt_autoclosedir DIR *d = NULL;
	struct dirent *entry;
	char path[PATH_MAX + NAME_MAX + 2], slaves[PATH_MAX];
	uint64_t devno;
	int r;

	(void)snprintf(slaves, sizeof(slaves), "%.4000s/slaves", dir);
	if (dbt_root_opendir(ctx->root, slaves, &d) < 0)
		return 0;
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		if (dev->kind == DBT_BLK_MD && is_idle_member(ctx, dir, entry->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", slaves, entry->d_name);
		r = dbt_sysfs_devno(ctx, path, &devno);
		if (r < 0 && r != -ENOMEM) {
			(void)snprintf(path, sizeof(path), "sys/class/block/%s", entry->d_name);
			r = dbt_sysfs_devno(ctx, path, &devno);
		}
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			r = note_trouble(dev, "this member has no device number in sysfs",
			                 entry->d_name);
		else
			r = push_below(dev, devno);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int read_below(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	char parent[PATH_MAX], *slash;
	uint64_t devno;
	int r = read_slaves(ctx, dir, dev);

	/* Directory order is chance; output is not. */
	if (dev->n_below > 1)
		qsort(dev->below, dev->n_below, sizeof(*dev->below), by_number);
	if (r < 0 || dev->kind != DBT_BLK_PART || dev->n_below > 0)
		return r;
	(void)snprintf(parent, sizeof(parent), "%s", dir);
	slash = strrchr(parent, '/');
	if (slash)
		*slash = '\0';
	r = slash ? dbt_sysfs_devno(ctx, parent, &devno) : -ENOENT;
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return note_trouble(dev, "the disk of this partition is not in sysfs", dev->name);
	return push_below(dev, devno);
}

/* An open descriptor of the device itself, or -errno. */
static int open_device(const struct dbt_blkdev *dev)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	(void)snprintf(path, sizeof(path), "/dev/%s", dev->name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode) || st.st_rdev != dev->devno) {
		(void)close(fd);
		return -ENXIO;
	}
	return fd;
}

/* The kernel shows the path as it looked from the mount namespace of whoever set the device up, so
 * the filesystem's number is asked too where the device may be opened. */
static int read_loop(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	static const char deleted[] = " (deleted)";
	struct loop_info64 info;
	int r = dbt_sysfs_text(ctx, dir, "loop/backing_file", &dev->loop_file);
	int fd;

	if (r < 0)
		return r;
	if (!dev->loop_file)
		return note_trouble(dev, "no file lies beneath it", dev->name);
	if (ends(dev->loop_file, deleted)) {
		dev->loop_deleted = true;
		dev->loop_file[strlen(dev->loop_file) - strlen(deleted)] = '\0';
	}
	if (!ctx->root->live)
		return 0;
	fd = open_device(dev);
	if (fd < 0)
		return 0;
	if (ioctl(fd, LOOP_GET_STATUS64, &info) == 0)
		dev->loop_devno = info.lo_device;
	(void)close(fd);
	return 0;
}

static int take(char **at, const char *value)
{
	free(*at);
	*at = strdup(value);
	return *at ? 0 : -ENOMEM;
}

/* The superblock by libblkid. A suspended device would block the read until someone resumes it. */
static int content_by_blkid(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	dbt_autofree char *suspended = NULL;
	blkid_probe probe;
	const char *value;
	int fd, r = dbt_sysfs_text(ctx, dir, "dm/suspended", &suspended);

	if (r < 0)
		return r;
	if (suspended && strcmp(suspended, "1") == 0)
		return -EBUSY;
	fd = open_device(dev);
	if (fd < 0)
		return fd;
	probe = blkid_new_probe();
	r = -EIO;
	if (probe && blkid_probe_set_device(probe, fd, 0, 0) == 0 &&
	    blkid_probe_enable_superblocks(probe, 1) == 0 &&
	    blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_UUID) == 0 &&
	    blkid_do_safeprobe(probe) == 0) {
		r = 0;
		dev->said = DBT_SAID_BLKID;
		if (blkid_probe_lookup_value(probe, "TYPE", &value, NULL) == 0)
			r = take(&dev->content, value);
		if (r == 0 && blkid_probe_lookup_value(probe, "UUID", &value, NULL) == 0)
			r = take(&dev->content_uuid, value);
	}
	blkid_free_probe(probe);
	(void)close(fd);
	return r;
}

/* udev asked the drive itself (ATA IDENTIFY) where sysfs has no SCSI page. */
static int rpm_by_udev(const struct dbt_buf *data, struct dbt_blkdev *dev)
{
	dbt_autofree char *text = NULL;
	char *end;
	long v;
	int r = dbt_udevdata_get(data, "ID_ATA_ROTATION_RATE_RPM", &text);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	errno = 0;
	v = strtol(text, &end, 10);
	/* ata_id prints 0 for a drive that says it does not rotate. */
	if (errno == 0 && *end == '\0' && end != text && v >= 0 && v < 65535)
		dev->rpm = v == 0 ? 1 : (int)v;
	return 0;
}

static int read_udev(const struct dbt_ctx *ctx, struct dbt_blkdev *dev, bool with_content)
{
	struct dbt_buf data = { 0 };
	int r = dbt_udevdata_read(ctx, dev->devno, dev->name, &data);

	if (r == 0 && dev->rpm < 0 && dev->kind == DBT_BLK_DISK)
		r = rpm_by_udev(&data, dev);
	if (r == 0 && with_content && dev->said == DBT_SAID_NOBODY) {
		r = dbt_udevdata_get(&data, "ID_FS_TYPE", &dev->content);
		if (r == 0) {
			dev->said = DBT_SAID_UDEV;
			r = dbt_udevdata_get(&data, "ID_FS_UUID", &dev->content_uuid);
		}
	}
	dbt_buf_release(&data);
	return r == -ENOMEM ? r : 0;
}

static int read_all(const struct dbt_ctx *ctx, const char *dir, bool with_content,
                    struct dbt_blkdev *dev)
{
	int r = read_identity(ctx, dir, dev);

	if (r == 0)
		r = read_queue(ctx, dir, dev);
	if (r == 0)
		r = read_below(ctx, dir, dev);
	if (r == 0 && dev->kind == DBT_BLK_LOOP)
		r = read_loop(ctx, dir, dev);
	if (r == 0)
		r = dbt_transport_read(ctx, dir, dev);
	if (r == 0 && with_content && ctx->root->live && content_by_blkid(ctx, dir, dev) == -ENOMEM)
		r = -ENOMEM;
	return r == 0 ? read_udev(ctx, dev, with_content) : r;
}

int dbt_blkdev_read(const struct dbt_ctx *ctx, uint64_t devno, bool with_content,
                    struct dbt_blkdev *ret, struct dbt_err *err)
{
	struct dbt_blkdev dev = { .devno = devno, .rota = -1, .rpm = -1 };
	char dir[PATH_MAX];
	int r = find_dir(ctx, devno, dir, sizeof(dir));

	if (r < 0)
		return dbt_err_sys(err, r, "cannot find block device %u:%u in sysfs", major(devno),
		                   minor(devno));
	dev.name = name_of(dir);
	r = dev.name ? read_all(ctx, dir, with_content, &dev) : -ENOMEM;
	if (r < 0) {
		r = dbt_err_sys(err, r, "cannot read block device '%s'", dev.name ? dev.name : dir);
		dbt_blkdev_release(&dev);
		return r;
	}
	*ret = dev;
	return 0;
}
