#include "survey/mounts.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/sysfs.h"
#include "sys/root.h"

#include <errno.h>
#include <libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Far more than a machine with ten thousand containers has; keeps a damaged capture from eating
 * memory. */
enum { MOUNTINFO_MAX_BYTES = 64 << 20 };

struct dbt_mounts {
	struct dbt_mount *items;
	size_t n, cap;
	size_t garbled;
};

static void mount_release(struct dbt_mount *m)
{
	free(m->target);
	free(m->root);
	free(m->source);
	free(m->fstype);
	free(m->vfs_options);
	free(m->fs_options);
}

void dbt_mounts_free(struct dbt_mounts *mounts)
{
	if (!mounts)
		return;
	for (size_t i = 0; i < mounts->n; i++)
		mount_release(&mounts->items[i]);
	free(mounts->items);
	free(mounts);
}

static bool has_word(const char *options, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = options; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == '\0'))
			return true;
	return false;
}

static char *copy(const char *text)
{
	return strdup(text ? text : "");
}

static int add_mount(struct dbt_mounts *mounts, struct libmnt_fs *fs)
{
	struct dbt_mount *m;

	if (mnt_fs_get_id(fs) <= 0 || !mnt_fs_get_target(fs) || !mnt_fs_get_fstype(fs)) {
		mounts->garbled++;
		return 0;
	}
	m = dbt_vec_push(mounts);
	if (!m)
		return -ENOMEM;
	m->id = (uint64_t)mnt_fs_get_id(fs);
	m->parent_id = (uint64_t)mnt_fs_get_parent_id(fs);
	m->devno = mnt_fs_get_devno(fs);
	m->target = copy(mnt_fs_get_target(fs));
	m->root = copy(mnt_fs_get_root(fs));
	m->source = copy(mnt_fs_get_source(fs));
	m->fstype = copy(mnt_fs_get_fstype(fs));
	m->vfs_options = copy(mnt_fs_get_vfs_options(fs));
	m->fs_options = copy(mnt_fs_get_fs_options(fs));
	if (!m->target || !m->root || !m->source || !m->fstype || !m->vfs_options || !m->fs_options)
		return -ENOMEM;
	m->read_only = has_word(m->vfs_options, "ro") || has_word(m->fs_options, "ro");
	return 0;
}

static int collect(struct dbt_mounts *mounts, struct libmnt_table *table)
{
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *fs;
	int r = iter ? 0 : -ENOMEM;

	while (r == 0 && mnt_table_next_fs(table, iter, &fs) == 0)
		r = add_mount(mounts, fs);
	mnt_free_iter(iter);
	return r;
}

/* libmount's answer for a line it cannot read: above 0 skips the line. The count goes by the
 * table's user data. */
static int skip_line(struct libmnt_table *table, const char *file, int line)
{
	struct dbt_mounts *mounts = mnt_table_get_userdata(table);

	(void)file;
	(void)line;
	mounts->garbled++;
	return 1;
}

/* "36 35 98:0 ..." */
static bool looks_like_mount(const char *line)
{
	uint64_t number;

	return dbt_scan_u64(&line, &number) && dbt_scan_u64(&line, &number) && *line == ' ' &&
	       dbt_scan_devno(&line, &number) && *line == ' ';
}

/* libmount takes the table's format from its first line: garbage there would make all the rest look
 * like fstab. */
static const char *first_mount(struct dbt_mounts *mounts, const struct dbt_buf *text)
{
	const char *line = dbt_buf_str(text);

	while (*line && !looks_like_mount(line)) {
		mounts->garbled++;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return line;
}

static int parse(struct dbt_mounts *mounts, struct dbt_buf *text)
{
	const char *start = first_mount(mounts, text);
	size_t skipped = (size_t)(start - dbt_buf_str(text));
	dbt_autofclose FILE *file =
		skipped < text->len ? fmemopen(text->data + skipped, text->len - skipped, "r")
				    : NULL;
	struct libmnt_table *table = mnt_new_table();
	int r = skipped < text->len ? -ENOMEM : 0;

	if (file && table) {
		(void)mnt_table_set_userdata(table, mounts);
		(void)mnt_table_set_parser_errcb(table, skip_line);
		r = mnt_table_parse_stream(table, file, "mountinfo");
		/* What was read before a fatal line is still true. */
		if (r != -ENOMEM)
			r = collect(mounts, table);
	}
	mnt_unref_table(table);
	return r;
}

int dbt_mounts_new(const struct dbt_ctx *ctx, struct dbt_mounts **ret, struct dbt_err *err)
{
	struct dbt_mounts *mounts = calloc(1, sizeof(*mounts));
	struct dbt_buf text = { 0 };
	int r;

	if (!mounts)
		return dbt_err_sys(err, -ENOMEM, "cannot read the mount table");
	r = dbt_root_read(ctx->root, "proc/self/mountinfo", MOUNTINFO_MAX_BYTES, &text);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot read the mount table 'proc/self/mountinfo'");
	else if (text.len > 0 && (r = parse(mounts, &text)) < 0)
		(void)dbt_err_sys(err, r, "cannot read the mount table");
	else if (mounts->n == 0)
		r = dbt_err_set(err, DBT_ERR_SYSTEM, -EBADMSG,
		                "the mount table 'proc/self/mountinfo' holds no mount (%zu lines "
		                "could not be understood)",
		                mounts->garbled);
	dbt_buf_release(&text);
	if (r < 0) {
		dbt_mounts_free(mounts);
		return r;
	}
	*ret = mounts;
	return 0;
}

size_t dbt_mounts_count(const struct dbt_mounts *mounts)
{
	return mounts->n;
}

size_t dbt_mounts_garbled(const struct dbt_mounts *mounts)
{
	return mounts->garbled;
}

const struct dbt_mount *dbt_mounts_at(const struct dbt_mounts *mounts, size_t i)
{
	return i < mounts->n ? &mounts->items[i] : NULL;
}

const struct dbt_mount *dbt_mounts_by_id(const struct dbt_mounts *mounts, uint64_t id)
{
	for (size_t i = 0; i < mounts->n; i++)
		if (mounts->items[i].id == id)
			return &mounts->items[i];
	return NULL;
}

/* Length of target as a prefix of path on a component boundary, or -1. */
static ssize_t covers(const char *target, const char *path)
{
	size_t len = strlen(target);

	while (len > 1 && target[len - 1] == '/')
		len--;
	if (len == 1 && target[0] == '/')
		return 0;
	if (strncmp(target, path, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return -1;
	return (ssize_t)len;
}

/* The kernel walks down from the root: at each directory a mount of the mount it is in counts, not
 * what once was mounted there and is hidden now. So: of the mounts on `in`, the one highest up. */
static const struct dbt_mount *next_down(const struct dbt_mounts *mounts,
                                         const struct dbt_mount *in, const char *path)
{
	const struct dbt_mount *best = NULL;
	ssize_t best_len = 0, in_len = covers(in->target, path);

	for (size_t i = 0; i < mounts->n; i++) {
		const struct dbt_mount *m = &mounts->items[i];
		ssize_t len = covers(m->target, path);

		if (m == in || m->parent_id != in->id || len < in_len)
			continue;
		if (!best || len < best_len) {
			best = m;
			best_len = len;
		}
	}
	return best;
}

/* Where a walk can begin: a mount whose parent is not in the table (in a container, the parents of
 * several are not), the deepest that covers the path, of equals the last. */
static const struct dbt_mount *start_of(const struct dbt_mounts *mounts, const char *path)
{
	const struct dbt_mount *best = NULL;
	ssize_t best_len = 0;

	for (size_t i = 0; i < mounts->n; i++) {
		const struct dbt_mount *m = &mounts->items[i];
		ssize_t len = covers(m->target, path);

		if (len < 0 || len < best_len)
			continue;
		if (m->parent_id != m->id && dbt_mounts_by_id(mounts, m->parent_id))
			continue;
		best = m;
		best_len = len;
	}
	return best;
}

const struct dbt_mount *dbt_mounts_by_path(const struct dbt_mounts *mounts, const char *path)
{
	const struct dbt_mount *at = start_of(mounts, path), *next;

	/* A damaged table may send us in circles. */
	for (size_t steps = 0; at && steps < mounts->n; steps++) {
		next = next_down(mounts, at, path);
		if (!next)
			break;
		at = next;
	}
	return at;
}

int dbt_mount_option(const char *options, const char *key, size_t nth, char **ret)
{
	char *name = NULL, *value = NULL, *rest, *end;
	dbt_autofree char *copied = strdup(options ? options : "");
	size_t name_len = 0, value_len = 0, key_len = strlen(key);

	if (!copied)
		return -ENOMEM;
	rest = copied;
	end = copied + strlen(copied);
	while (rest < end &&
	       mnt_optstr_next_option(&rest, &name, &name_len, &value, &value_len) == 0) {
		if (name_len != key_len || memcmp(name, key, key_len) != 0 || !value)
			continue;
		if (nth-- > 0)
			continue;
		*ret = strndup(value, value_len);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}
