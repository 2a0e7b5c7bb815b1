#include "move/below.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static int open_child(const struct dbt_ctx *ctx, int dirfd, const char *name, bool make)
{
	int fd = ctx->sys->openat(dirfd, name, DIR_FLAGS, 0);

	if (fd != -ENOENT || !make)
		return fd;
	fd = ctx->sys->mkdirat(dirfd, name, 0700);
	/* Another thread may have been first. */
	return fd < 0 && fd != -EEXIST ? fd : ctx->sys->openat(dirfd, name, DIR_FLAGS, 0);
}

int dbt_below_open(const struct dbt_ctx *ctx, int root, const char *path, bool make)
{
	int fd = ctx->sys->openat(root, ".", DIR_FLAGS, 0);

	while (fd >= 0 && *path) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(path, "/");
		int next;

		if (len == 0 || len > NAME_MAX || (len <= 2 && strncmp(path, "..", len) == 0)) {
			(void)close(fd);
			return len > NAME_MAX ? -ENAMETOOLONG : -EINVAL;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len + (path[len] == '/');
		next = open_child(ctx, fd, name, make);
		(void)close(fd);
		fd = next;
	}
	return fd;
}

/* ---- walking ---- */

struct names {
	char **items;
	size_t n, cap;
};

static void release_names(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(int dirfd, struct names *ret)
{
	int copy = openat(dirfd, ".", DIR_FLAGS);
	dbt_autoclosedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir)
		return -errno;
	while (errno = 0, (entry = readdir(dir))) {
		char **item;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		item = dbt_vec_push(ret);
		if (!item)
			return -ENOMEM;
		*item = strdup(entry->d_name);
		if (!*item)
			return -ENOMEM;
	}
	if (errno)
		return -errno;
	if (ret->n > 1)
		qsort(ret->items, ret->n, sizeof(*ret->items), by_name);
	return 0;
}

struct walk {
	const struct dbt_ctx *ctx;
	bool after;
	uint64_t dev;
	unsigned depth;
	int (*visit)(void *data, const struct dbt_below_item *item);
	void *data;
	struct dbt_buf path;
};

static int walk_dir(struct walk *w, int dirfd);

static int walk_name(struct walk *w, int dirfd, const char *name)
{
	struct dbt_below_item item = { .dirfd = dirfd, .name = name };
	int r = dbt_ident_of(w->ctx, dirfd, name, &item.ident);

	if (r < 0)
		return r;
	item.path = dbt_buf_str(&w->path);
	if (!w->after)
		r = w->visit(w->data, &item);
	if (r >= 0 && S_ISDIR(item.ident.mode)) {
		int fd = -EXDEV;

		if (item.ident.dev == w->dev && !item.ident.mount_root)
			fd = w->ctx->sys->openat(dirfd, name, DIR_FLAGS, 0);
		r = fd;
		if (fd >= 0) {
			r = walk_dir(w, fd);
			(void)close(fd);
		}
	}
	item.path = dbt_buf_str(&w->path);
	if (r >= 0 && w->after)
		r = w->visit(w->data, &item);
	return r;
}

static int walk_dir(struct walk *w, int dirfd)
{
	struct names names = { 0 };
	size_t len = w->path.len;
	int r = w->depth++ < 2 * DBT_BELOW_MOST_DEPTH ? read_names(dirfd, &names) : -ELOOP;

	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		if (len > 0)
			r = dbt_buf_addc(&w->path, '/');
		if (r >= 0)
			r = dbt_buf_adds(&w->path, names.items[i]);
		if (r >= 0)
			r = walk_name(w, dirfd, names.items[i]);
		if (w->path.data) {
			w->path.len = len;
			w->path.data[len] = '\0';
		}
	}
	release_names(&names);
	w->depth--;
	return r < 0 ? r : 0;
}

int dbt_below_walk(const struct dbt_ctx *ctx, int root, bool after,
                   int (*visit)(void *data, const struct dbt_below_item *item), void *data)
{
	struct walk w = { .ctx = ctx, .after = after, .visit = visit, .data = data };
	struct dbt_ident ident;
	int r = dbt_ident_fd(ctx, root, &ident);

	if (r == 0) {
		w.dev = ident.dev;
		r = walk_dir(&w, root);
	}
	dbt_buf_release(&w.path);
	return r;
}

/* ---- removing ---- */

static int remove_item(void *data, const struct dbt_below_item *item)
{
	const struct dbt_ctx *ctx = data;
	int r = ctx->sys->unlinkat(item->dirfd, item->name,
	                           S_ISDIR(item->ident.mode) ? AT_REMOVEDIR : 0);

	return r == -ENOENT ? 0 : r;
}

int dbt_below_remove(const struct dbt_ctx *ctx, int dirfd, const char *name)
{
	dbt_autoclose int fd = ctx->sys->openat(dirfd, name, DIR_FLAGS, 0);
	struct dbt_ctx own = *ctx;
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = dbt_below_walk(ctx, fd, true, remove_item, &own);
	if (r == 0)
		r = ctx->sys->unlinkat(dirfd, name, AT_REMOVEDIR);
	return r == -ENOENT ? 0 : r;
}
