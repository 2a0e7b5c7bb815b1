#include "survey/capture.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/anonymous.h"
#include "survey/sysfs.h"
#include "survey/udevdata.h"
#include "sys/root.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_BYTES = 16 << 20, MAX_ANCESTORS = 32 };

/* How a file's text is changed on its way into the archive. */
enum how { AS_TEXT, AS_MOUNTINFO, AS_DM_UUID, AS_SUBSYSTEM, AS_BYTES };

struct capture {
	const struct dbt_ctx *ctx;
	struct archive *archive;
	struct dbt_anonymous anonymous;
	void *seen; /* a tsearch tree of paths that are in the archive; owned */
	int failed; /* the first -errno */
};

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* False when it is in the archive already (or memory is short). */
static bool is_new(struct capture *c, const char *path)
{
	char *key;
	void *found;

	if (c->failed < 0 || tfind(path, &c->seen, compare))
		return false;
	key = strdup(path);
	found = key ? tsearch(key, &c->seen, compare) : NULL;
	if (!found) {
		free(key);
		c->failed = -ENOMEM;
	}
	return found != NULL;
}

static void put(struct capture *c, const char *path, mode_t type, const void *data, size_t len)
{
	struct archive_entry *entry = archive_entry_new();
	la_ssize_t written = 0;

	if (!entry) {
		c->failed = -ENOMEM;
		return;
	}
	archive_entry_set_pathname(entry, path);
	archive_entry_set_filetype(entry, type);
	archive_entry_set_perm(entry, type == AE_IFDIR ? 0755 : 0644);
	archive_entry_set_mtime(entry, 0, 0);
	if (type == AE_IFREG)
		archive_entry_set_size(entry, (la_int64_t)len);
	if (type == AE_IFLNK)
		archive_entry_set_symlink(entry, data);
	if (archive_write_header(c->archive, entry) != ARCHIVE_OK)
		c->failed = -EIO;
	else if (type == AE_IFREG && len > 0)
		written = archive_write_data(c->archive, data, len);
	if (written < 0)
		c->failed = -EIO;
	archive_entry_free(entry);
}

static void add_parents(struct capture *c, const char *path)
{
	char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	for (char *p = dir; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		if (is_new(c, dir))
			put(c, dir, AE_IFDIR, NULL, 0);
	}
}

static int change(struct capture *c, const char *text, enum how how, struct dbt_buf *out)
{
	switch (how) {
	case AS_MOUNTINFO:
		return dbt_anonymous_mountinfo(&c->anonymous, text, out);
	case AS_DM_UUID:
		return dbt_anonymous_dm_uuid(text, out);
	case AS_SUBSYSTEM:
		return dbt_anonymous_subsystem(&c->anonymous, text, out);
	case AS_TEXT:
	case AS_BYTES:
	default:
		return dbt_anonymous_text(&c->anonymous, text, out);
	}
}

/* What cannot be read is left out: a capture is made by those who may read little, too. */
static void add_file(struct capture *c, const char *path, enum how how)
{
	struct dbt_buf data = { 0 }, changed = { 0 };

	if (dbt_root_read(c->ctx->root, path, FILE_MAX_BYTES, &data) == 0 && is_new(c, path)) {
		add_parents(c, path);
		if (how == AS_BYTES)
			put(c, path, AE_IFREG, data.data, data.len);
		else if (change(c, dbt_buf_str(&data), how, &changed) < 0)
			c->failed = -ENOMEM;
		else
			put(c, path, AE_IFREG, dbt_buf_str(&changed), changed.len);
	}
	dbt_buf_release(&data);
	dbt_buf_release(&changed);
}

static void add_link(struct capture *c, const char *path)
{
	struct dbt_buf text = { 0 };

	if (dbt_root_readlink(c->ctx->root, path, &text) == 0 && is_new(c, path)) {
		add_parents(c, path);
		put(c, path, AE_IFLNK, dbt_buf_str(&text), 0);
	}
	dbt_buf_release(&text);
}

static void add_in(struct capture *c, const char *dir, const char *name, enum how how)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		add_file(c, path, how);
}

static void add_link_in(struct capture *c, const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		add_link(c, path);
}

/* The names in a directory, sorted, so that two captures of one machine are alike. */
struct names {
	char **items;
	size_t n, cap;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
}

static struct names list_names(struct capture *c, const char *path)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct names names = { 0 };
	struct dirent *entry;
	char **slot;

	if (dbt_root_opendir(c->ctx->root, path, &dir) < 0)
		return names;
	while (c->failed == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		slot = dbt_vec_push(&names);
		if (slot)
			*slot = strdup(entry->d_name);
		if (!slot || !*slot)
			c->failed = -ENOMEM;
	}
	if (c->failed == 0 && names.n > 1)
		qsort(names.items, names.n, sizeof(*names.items), by_name);
	return names;
}

/* Calls visit for each "dir/NAME". */
static void for_each(struct capture *c, const char *dir,
                     void (*visit)(struct capture *c, const char *path))
{
	struct names names = list_names(c, dir);
	char path[PATH_MAX];

	for (size_t i = 0; i < names.n && c->failed == 0; i++)
		if (snprintf(path, sizeof(path), "%s/%s", dir, names.items[i]) < (int)sizeof(path))
			visit(c, path);
	names_release(&names);
}

/* --- block devices --- */

static const struct {
	const char *name;
	enum how how;
} attributes[] = {
	{ "dev", AS_TEXT },
	{ "size", AS_TEXT },
	{ "partition", AS_TEXT },
	{ "queue/rotational", AS_TEXT },
	{ "queue/zoned", AS_TEXT },
	{ "dm/name", AS_TEXT },
	{ "dm/uuid", AS_DM_UUID },
	{ "md/level", AS_TEXT },
	{ "loop/backing_file", AS_TEXT },
};

/* Of the disk's parent devices, up to the bus. */
static const struct {
	const char *name;
	enum how how;
} parent_attributes[] = {
	{ "model", AS_TEXT },
	{ "vendor", AS_TEXT },
	{ "name", AS_TEXT },
	{ "transport", AS_TEXT },
	{ "subsysnqn", AS_SUBSYSTEM },
	{ "vpd_pgb1", AS_BYTES }, /* rotation rate; the serial number is on page 80 */
};

static void add_member_state(struct capture *c, const char *path)
{
	const char *base = strrchr(path, '/');

	if (base && strncmp(base + 1, "dev-", 4) == 0)
		add_in(c, path, "state", AS_TEXT);
}

/* Controllers of an NVMe subsystem are links in its directory. */
static void add_controller_link(struct capture *c, const char *path)
{
	const char *base = strrchr(path, '/') + 1;

	if (strncmp(base, "nvme", 4) == 0 && base[4 + strspn(base + 4, "0123456789")] == '\0')
		add_link(c, path);
}

static void add_parent_attributes(struct capture *c, const char *dir)
{
	add_link_in(c, dir, "driver");
	for (size_t i = 0; i < sizeof(parent_attributes) / sizeof(parent_attributes[0]); i++)
		add_in(c, dir, parent_attributes[i].name, parent_attributes[i].how);
}

static void add_parent_devices(struct capture *c, const char *dir)
{
	char at[PATH_MAX], *slash;

	(void)snprintf(at, sizeof(at), "%s", dir);
	for (int i = 0; i < MAX_ANCESTORS && (slash = strrchr(at, '/')); i++) {
		*slash = '\0';
		if (strcmp(at, "sys/devices") == 0 || strcmp(at, "sys/devices/virtual") == 0)
			break;
		add_parent_attributes(c, at);
		if (strstr(at, "/nvme-subsys"))
			for_each(c, at, add_controller_link);
	}
}

/* "sys/devices/..." from a link "../../devices/..." in sys/dev/block. */
static bool real_dir(struct capture *c, const char *link, char *out, size_t out_size)
{
	struct dbt_buf text = { 0 };
	const char *p;
	bool ok;

	ok = dbt_root_readlink(c->ctx->root, link, &text) == 0;
	p = dbt_buf_str(&text);
	while (strncmp(p, "../", 3) == 0)
		p += 3;
	ok = ok && strncmp(p, "devices/", 8) == 0 &&
	     snprintf(out, out_size, "sys/%s", p) < (int)out_size;
	dbt_buf_release(&text);
	return ok;
}

/* The few properties that blkdev.h reads. */
static const char *const properties[] = { "E:ID_FS_TYPE=", "E:ID_FS_USAGE=", "E:ID_BUS=",
	                                  "E:ID_ATA_ROTATION_RATE_RPM=", "S:mapper/" };

/* "E:KEY=" with the value that data has for KEY, if any. */
static int add_property(const struct dbt_buf *data, const char *property, struct dbt_buf *out)
{
	dbt_autofree char *key = strndup(property + 2, strcspn(property, "=") - 2);
	dbt_autofree char *value = NULL;

	if (!key)
		return -ENOMEM;
	if (property[0] != 'E' || dbt_udevdata_get(data, key, &value) < 0)
		return 0;
	return dbt_buf_addf(out, "E:%s=%s\n", key, value);
}

/* In the layout of lsblk's dumps a file dev/NAME has the properties: they go where udev has them. */
static void add_dev_properties(struct capture *c, const char *link, const char *dir)
{
	const char *number = strrchr(link, '/') + 1, *name = strrchr(dir, '/') + 1;
	struct dbt_buf data = { 0 }, kept = { 0 };
	char path[64];
	uint64_t devno;
	int r = 0;

	(void)snprintf(path, sizeof(path), "run/udev/data/b%.32s", number);
	if (!c->ctx->root->live && dbt_scan_devno(&number, &devno) &&
	    dbt_root_read(c->ctx->root, path, FILE_MAX_BYTES, &data) < 0 &&
	    dbt_udevdata_read(c->ctx, devno, name, &data) == 0) {
		for (size_t i = 0; r == 0 && i < sizeof(properties) / sizeof(properties[0]); i++)
			r = add_property(&data, properties[i], &kept);
		if (r == 0 && kept.len > 0 && is_new(c, path)) {
			add_parents(c, path);
			put(c, path, AE_IFREG, dbt_buf_str(&kept), kept.len);
		}
	}
	c->failed = r < 0 ? r : c->failed;
	dbt_buf_release(&data);
	dbt_buf_release(&kept);
}

static void add_device(struct capture *c, const char *link)
{
	char dir[PATH_MAX], sub[PATH_MAX + 16];

	add_link(c, link);
	if (!real_dir(c, link, dir, sizeof(dir)))
		return;
	add_link_in(c, dir, "device");
	add_dev_properties(c, link, dir);
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		add_in(c, dir, attributes[i].name, attributes[i].how);
	(void)snprintf(sub, sizeof(sub), "%s/slaves", dir);
	for_each(c, sub, add_link);
	(void)snprintf(sub, sizeof(sub), "%s/md", dir);
	for_each(c, sub, add_member_state);
	add_parent_devices(c, dir);
}

static void add_class_link(struct capture *c, const char *path)
{
	add_link(c, path);
}

/* With multipath the disk's parents lead to the subsystem; only its controllers know the transport. */
static void add_controller(struct capture *c, const char *link)
{
	char dir[PATH_MAX];

	add_link(c, link);
	if (real_dir(c, link, dir, sizeof(dir)))
		add_parent_attributes(c, dir);
}

static void add_host(struct capture *c, const char *path)
{
	add_in(c, path, "proc_name", AS_TEXT);
}

/* --- filesystems and udev --- */

static void add_missing(struct capture *c, const char *path)
{
	add_in(c, path, "missing", AS_TEXT);
}

static void add_btrfs(struct capture *c, const char *path)
{
	char sub[PATH_MAX];

	(void)snprintf(sub, sizeof(sub), "%.4000s/devices", path);
	for_each(c, sub, add_link);
	(void)snprintf(sub, sizeof(sub), "%.4000s/devinfo", path);
	for_each(c, sub, add_missing);
}

static void add_udev(struct capture *c, const char *path)
{
	struct dbt_buf data = { 0 }, kept = { 0 };
	const char *base = strrchr(path, '/') + 1;
	int r = 0;

	if (*base == 'b' && dbt_root_read(c->ctx->root, path, FILE_MAX_BYTES, &data) < 0)
		dbt_buf_clear(&data);
	for (const char *line = dbt_buf_str(&data); r == 0 && *line;) {
		size_t len = strcspn(line, "\n"), next = len + (line[len] == '\n');

		for (size_t i = 0; r == 0 && i < sizeof(properties) / sizeof(properties[0]); i++)
			if (strncmp(line, properties[i], strlen(properties[i])) == 0)
				r = dbt_buf_add(&kept, line, next);
		line += next;
	}
	if (r < 0) {
		c->failed = r;
	} else if (kept.len > 0 && is_new(c, path)) {
		dbt_buf_clear(&data);
		r = dbt_anonymous_text(&c->anonymous, dbt_buf_str(&kept), &data);
		add_parents(c, path);
		put(c, path, AE_IFREG, dbt_buf_str(&data), data.len);
		c->failed = r < 0 ? r : c->failed;
	}
	dbt_buf_release(&data);
	dbt_buf_release(&kept);
}

/* Without its domain; a name that is part of every path would take them apart. */
static int learn_host(struct capture *c)
{
	struct dbt_buf name = { 0 };
	int r = dbt_root_read_line(c->ctx->root, "proc/sys/kernel/hostname", &name);

	if (r == 0 && name.len > 1 && strncmp(dbt_buf_str(&name), "localhost", 9) != 0) {
		c->anonymous.host = strndup(name.data, strcspn(name.data, "."));
		r = c->anonymous.host ? 0 : -ENOMEM;
	}
	dbt_buf_release(&name);
	return r == -ENOMEM ? r : 0;
}

static void add_everything(struct capture *c)
{
	add_file(c, "proc/self/mountinfo", AS_MOUNTINFO);
	add_file(c, "proc/sys/kernel/osrelease", AS_TEXT);
	for_each(c, "sys/dev/block", add_device);
	for_each(c, "sys/class/block", add_class_link);
	for_each(c, "sys/block", add_class_link);
	for_each(c, "sys/class/nvme", add_controller);
	for_each(c, "sys/class/scsi_host", add_host);
	for_each(c, "sys/fs/btrfs", add_btrfs);
	for_each(c, "run/udev/data", add_udev);
}

int dbt_capture_write(const struct dbt_ctx *ctx, int fd, const char *shown, struct dbt_err *err)
{
	struct capture c = { .ctx = ctx, .archive = archive_write_new() };

	if (!c.archive)
		return dbt_err_sys(err, -ENOMEM, "cannot write '%s'", shown);
	if (archive_write_set_format_pax_restricted(c.archive) != ARCHIVE_OK ||
	    archive_write_open_fd(c.archive, fd) != ARCHIVE_OK)
		c.failed = -EIO;
	if (c.failed == 0)
		c.failed = learn_host(&c);
	if (c.failed == 0)
		add_everything(&c);
	if (archive_write_close(c.archive) != ARCHIVE_OK && c.failed == 0)
		c.failed = -EIO;
	if (c.failed == -EIO && archive_errno(c.archive) > 0)
		c.failed = -archive_errno(c.archive);
	(void)archive_write_free(c.archive);
	tdestroy(c.seen, free);
	dbt_anonymous_release(&c.anonymous);
	return c.failed < 0 ? dbt_err_sys(err, c.failed, "cannot write '%s'", shown) : 0;
}
