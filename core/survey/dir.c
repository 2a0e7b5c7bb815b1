#include "survey/dir.h"

#include "base/cleanup.h"
#include "survey/dbkind.h"
#include "survey/walk.h"
#include "sys/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct dbt_file_list {
	struct dbt_file file;
	struct dbt_file_list *next;
};

bool dbt_name_is_ours(const char *name)
{
	static const char original[] = ".dbtier-original", part[] = ".part";
	size_t len = strlen(name);

	if (name[0] != '.')
		return false;
	if (len > sizeof(original) - 1 &&
	    strcmp(name + len - (sizeof(original) - 1), original) == 0)
		return true;
	return len > sizeof(part) - 1 && strcmp(name + len - (sizeof(part) - 1), part) == 0 &&
	       strstr(name, ".dbtier-") != NULL;
}

static int original_name(const char *name, char out[NAME_MAX + 32])
{
	int len = snprintf(out, NAME_MAX + 32, ".%s.dbtier-original", name);

	return len > NAME_MAX ? -ENAMETOOLONG : 0;
}

static bool link_is_ours(const struct dbt_dir *dir, const char *name)
{
	dbt_autofree char *path = NULL;
	char original[NAME_MAX + 32];
	struct statx stx;

	if (dir->opts->is_ours) {
		if (asprintf(&path, "%s/%s", strcmp(dir->path, "/") == 0 ? "" : dir->path, name) <
		    0)
			path = NULL;
		if (path && dir->opts->is_ours(dir->opts->is_ours_data, path))
			return true;
	}
	return original_name(name, original) == 0 &&
	       dir->ctx->sys->statx(dir->fd, original, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx) == 0;
}

static void file_from(struct dbt_file *file, const struct dbt_stat *st)
{
	file->size_bytes = st->size_bytes;
	file->dev = st->dev;
	file->ino = st->ino;
	file->nlink = st->nlink;
}

/* A link of ours whose copy is gone: what is known of it is the kept original, if there is one. */
static void stat_dangling(const struct dbt_dir *dir, struct dbt_file *file)
{
	char original[NAME_MAX + 32];
	struct dbt_stat st = { .name = original };

	file->dangling = true;
	if (original_name(file->name, original) < 0)
		return;
	dbt_stat_one(dir->ctx, dir->fd, AT_SYMLINK_NOFOLLOW, &st);
	if (st.code == 0 && S_ISREG(st.mode))
		file_from(file, &st);
}

/* Does a link lead to another name of its own directory? That name is looked at anyway. */
static bool leads_beside(const struct dbt_dir *dir, const char *name)
{
	char text[NAME_MAX + 1];
	ssize_t len = readlinkat(dir->fd, name, text, sizeof(text));

	return len > 0 && (size_t)len < sizeof(text) && !memchr(text, '/', (size_t)len);
}

/* A link of someone else: what it leads to, if that is wanted, else the link itself. */
static enum dbt_look look_behind(const struct dbt_dir *dir, struct dbt_file *file)
{
	struct dbt_stat behind = { .name = file->name, .code = -ENOENT };

	if (dir->opts->follow && !leads_beside(dir, file->name))
		dbt_stat_one(dir->ctx, dir->fd, 0, &behind);
	if (behind.code == 0 && (S_ISDIR(behind.mode) || S_ISREG(behind.mode))) {
		file_from(file, &behind);
		file->followed = true;
		return S_ISDIR(behind.mode) ? DBT_LOOK_DIRECTORY : DBT_LOOK_FILE;
	}
	if (behind.code != 0 && behind.code != -ENOENT)
		dbt_walk_trouble(dir->walk, dir->path, file->name, behind.code);
	file->foreign_link = true;
	return DBT_LOOK_FILE;
}

enum dbt_look dbt_dir_look(const struct dbt_dir *dir, const struct dbt_stat *own,
                           struct dbt_file *file)
{
	struct dbt_stat behind = { .name = file->name };

	if (S_ISREG(own->mode)) {
		file_from(file, own);
		return DBT_LOOK_FILE;
	}
	if (S_ISDIR(own->mode))
		return DBT_LOOK_DIRECTORY;
	if (!S_ISLNK(own->mode))
		return DBT_LOOK_OTHER;
	if (!link_is_ours(dir, file->name))
		return look_behind(dir, file);
	file->promoted = true;
	dbt_stat_one(dir->ctx, dir->fd, 0, &behind);
	if (behind.code == 0 && S_ISDIR(behind.mode))
		return DBT_LOOK_DIRECTORY;
	if (behind.code == 0 && S_ISREG(behind.mode))
		file_from(file, &behind);
	else
		stat_dangling(dir, file);
	return DBT_LOOK_FILE;
}

static struct dbt_file *find_kept(const struct dbt_dir *dir, const char *name)
{
	size_t lo = 0, hi = dir->n_files;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int cmp = strcmp(name, dir->files[mid].name);

		if (cmp == 0)
			return dir->files[mid].directory ? NULL : &dir->files[mid];
		if (cmp < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

static struct dbt_file *find_later(const struct dbt_dir *dir, const char *name)
{
	for (struct dbt_file_list *item = dir->later; item; item = item->next)
		if (strcmp(item->file.name, name) == 0)
			return &item->file;
	return NULL;
}

/* NULL where the name stands for no file, or without memory. */
static struct dbt_file *add_later(struct dbt_dir *dir, const char *name)
{
	struct dbt_file_list *item = calloc(1, sizeof(*item));
	struct dbt_stat st = { 0 };

	if (!item)
		return NULL;
	item->file.name = strdup(name);
	if (item->file.name) {
		st.name = item->file.name;
		dbt_stat_one(dir->ctx, dir->fd, AT_SYMLINK_NOFOLLOW, &st);
	}
	if (!item->file.name || st.code < 0 ||
	    dbt_dir_look(dir, &st, &item->file) != DBT_LOOK_FILE) {
		free(item->file.name);
		free(item);
		return NULL;
	}
	item->file.hint = dbt_dbkind_hint(name);
	item->next = dir->later;
	dir->later = item;
	return &item->file;
}

struct dbt_file *dbt_dir_find(struct dbt_dir *dir, const char *name)
{
	struct dbt_file *file = find_kept(dir, name);

	if (!file)
		file = find_later(dir, name);
	if (file || dir->all_listed || strlen(name) > NAME_MAX || strchr(name, '/'))
		return file;
	return add_later(dir, name);
}

/* Every name not yet known becomes one. */
static int list_all(struct dbt_dir *dir)
{
	struct dbt_file_list *known = dir->later;
	int fd = dir->ctx->sys->openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (!stream) {
		int r = fd < 0 ? fd : -errno;

		if (fd >= 0)
			(void)close(fd);
		return r;
	}
	while ((d = readdir(stream)) != NULL) {
		struct dbt_file_list *item = known;

		if (d->d_type == DT_DIR || dbt_name_is_ours(d->d_name) || find_kept(dir, d->d_name))
			continue;
		while (item && strcmp(item->file.name, d->d_name) != 0)
			item = item->next;
		if (!item)
			(void)add_later(dir, d->d_name);
	}
	(void)closedir(stream);
	dir->all_listed = true;
	return 0;
}

int dbt_dir_each(struct dbt_dir *dir, bool all, int (*visit)(void *data, struct dbt_file *file),
                 void *data)
{
	int r = all && !dir->all_listed ? list_all(dir) : 0;

	for (size_t i = 0; r >= 0 && i < dir->n_files; i++)
		if (!dir->files[i].directory)
			r = visit(data, &dir->files[i]);
	for (struct dbt_file_list *item = dir->later; r >= 0 && item; item = item->next)
		r = visit(data, &item->file);
	return r < 0 ? r : 0;
}

static int open_file(const struct dbt_dir *dir, const struct dbt_file *file)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	char original[NAME_MAX + 32];

	if (file->foreign_link)
		return -ELOOP;
	if (!file->dangling)
		return dir->ctx->sys->openat(
			dir->fd, file->name,
			flags | (file->promoted || file->followed ? 0 : O_NOFOLLOW), 0);
	if (original_name(file->name, original) < 0)
		return -ENAMETOOLONG;
	return dir->ctx->sys->openat(dir->fd, original, flags | O_NOFOLLOW, 0);
}

ssize_t dbt_dir_read(const struct dbt_dir *dir, const struct dbt_file *file, void *buf, size_t len,
                     uint64_t off)
{
	dbt_autoclose int fd = open_file(dir, file);

	if (fd < 0)
		return fd;
	/* Without this the kernel reads ahead 128 KiB or more for our 4 KiB. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	return dbt_io_pread(dir->ctx, fd, buf, len, off);
}

bool dbt_dir_has_directory(const struct dbt_dir *dir, const char *name)
{
	struct statx stx;

	return dir->ctx->sys->statx(dir->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
	                            STATX_TYPE, &stx) == 0 &&
	       S_ISDIR(stx.stx_mode);
}

void dbt_dir_forget(struct dbt_dir *dir)
{
	while (dir->later) {
		struct dbt_file_list *next = dir->later->next;

		free(dir->later->file.name);
		free(dir->later);
		dir->later = next;
	}
	dir->all_listed = false;
}
