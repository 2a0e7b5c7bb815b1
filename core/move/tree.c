#include "move/tree.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One descriptor is open for each. */
enum { MAX_DEPTH = 200 };

/* The names of one directory, one after the other, and where each begins. */
struct names {
	struct dbt_buf text;
	struct {
		struct name_at {
			uint64_t ino;
			size_t off;
		} * items;
		size_t n, cap;
	} at;
	uint64_t n_counted;
	bool has_volatile;
};

struct walk {
	const struct dbt_tree_walk *what;
	struct dbt_buf path; /* of the directory that is being walked, relative; "" the root */
	struct dbt_ident root;
};

bool dbt_tree_is_volatile(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, "lock.mdb") == 0;
}

static void names_release(struct names *names)
{
	dbt_buf_release(&names->text);
	free(names->at.items);
}

/* A stream with a position of its own, whatever that of fd is. NULL with errno. */
static DIR *open_stream(const struct dbt_ctx *ctx, int fd)
{
	int own = ctx->sys->openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *stream = own < 0 ? NULL : fdopendir(own);

	if (own < 0)
		errno = -own;
	else if (!stream)
		(void)close(own);
	return stream;
}

static const struct dirent *next_name(DIR *stream)
{
	const struct dirent *d;

	do {
		errno = 0;
		d = readdir(stream);
	} while (d && (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0));
	return d;
}

static int by_inode(const void *a, const void *b)
{
	const struct name_at *x = a, *y = b;

	return (x->ino > y->ino) - (x->ino < y->ino);
}

static int list(const struct dbt_ctx *ctx, int fd, struct names *names)
{
	dbt_autoclosedir DIR *stream = open_stream(ctx, fd);
	const struct dirent *d;

	if (!stream)
		return -errno;
	while ((d = next_name(stream))) {
		struct name_at *at = dbt_vec_push(&names->at);

		if (!at)
			return -ENOMEM;
		*at = (struct name_at){ .ino = d->d_ino, .off = names->text.len };
		if (dbt_buf_add(&names->text, d->d_name, strlen(d->d_name) + 1) < 0)
			return -ENOMEM;
		if (dbt_tree_is_volatile(d->d_name))
			names->has_volatile = true;
		else
			names->n_counted++;
	}
	if (errno != 0)
		return -errno;
	if (names->at.n > 1)
		qsort(names->at.items, names->at.n, sizeof(names->at.items[0]), by_inode);
	return 0;
}

int dbt_tree_count(const struct dbt_ctx *ctx, int fd, uint64_t *ret, bool *ret_has_volatile)
{
	dbt_autoclosedir DIR *stream = open_stream(ctx, fd);
	const struct dirent *d;

	if (!stream)
		return -errno;
	*ret = 0;
	*ret_has_volatile = false;
	while ((d = next_name(stream)))
		if (dbt_tree_is_volatile(d->d_name))
			*ret_has_volatile = true;
		else
			++*ret;
	return errno == 0 ? 0 : -errno;
}

/* --- the walk ------------------------------------------------------------------------------------------- */

static int trouble(const struct walk *w, const char *path, int code, const char *what,
                   struct dbt_err *err)
{
	if (code == -ENOENT || code == -ENOTDIR || code == -ELOOP)
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                   "'%s/%s' vanished or changed meanwhile", w->what->shown, path);
	return dbt_err_sys(err, code, "cannot %s '%s/%s'", what, w->what->shown, path);
}

static int check_place(const struct walk *w, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	if (v->ident.dev == w->root.dev && v->ident.mnt_id == w->root.mnt_id &&
	    !v->ident.mount_root)
		return 0;
	return dbt_err_refuse(err,
	                      "'%s/%s' is another filesystem, mount or subvolume: a directory that "
	                      "is to be moved must be one tree",
	                      w->what->shown, v->path);
}

static int walk_directory(struct walk *w, struct dbt_tree_visit *v, struct dbt_err *err);

static int enter(struct walk *w, struct dbt_tree_visit *v, struct dbt_err *err)
{
	struct dbt_ident now;
	int r;

	if (v->depth >= MAX_DEPTH)
		return dbt_err_refuse(err, "'%s/%s' lies deeper than %d directories",
		                      w->what->shown, v->path, MAX_DEPTH);
	v->fd = w->what->ctx->sys->openat(
		v->dirfd, v->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	if (v->fd < 0)
		return trouble(w, v->path, v->fd, "open", err);
	r = dbt_ident_fd(w->what->ctx, v->fd, &now);
	if (r == 0 && !dbt_ident_same_inode(&now, &v->ident, false))
		r = -ENOENT;
	if (r < 0)
		(void)trouble(w, v->path, r, "look at", err);
	else
		r = walk_directory(w, v, err);
	(void)w->what->ctx->sys->close(v->fd);
	return r;
}

/* One name of a directory. */
static int step(struct walk *w, int fd, const char *name, unsigned depth, struct dbt_err *err)
{
	const size_t len = w->path.len;
	struct dbt_tree_visit v = { .dirfd = fd, .fd = -1, .name = name, .depth = depth };
	int r = len > 0 ? dbt_buf_addc(&w->path, '/') : 0;

	if (r == 0)
		r = dbt_buf_adds(&w->path, name);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot walk '%s'", w->what->shown);
	v.path = w->path.data;
	r = dbt_ident_of(w->what->ctx, fd, name, &v.ident);
	if (r < 0)
		(void)trouble(w, v.path, r, "look at", err);
	else
		r = check_place(w, &v, err);
	if (r == 0)
		r = S_ISDIR(v.ident.mode) ? enter(w, &v, err)
		                          : w->what->visit(w->what->data, &v, err);
	if (r == 0 && dbt_ctx_cancelled(w->what->ctx))
		r = dbt_err_sys(err, -ECANCELED, "walking '%s'", w->what->shown);
	w->path.len = len;
	w->path.data[len] = '\0';
	return r;
}

static int walk_directory(struct walk *w, struct dbt_tree_visit *v, struct dbt_err *err)
{
	/* The path grows and moves below; the visit's own stays valid through this copy. */
	dbt_autofree char *path = strdup(v->path);
	const unsigned below = v->dirfd < 0 ? 0 : v->depth + 1;
	struct names names = { 0 };
	int r = path ? list(w->what->ctx, v->fd, &names) : -ENOMEM;

	if (r < 0) {
		names_release(&names);
		return trouble(w, v->path, r, "list", err);
	}
	v->path = path;
	v->n_entries = names.n_counted;
	v->has_volatile = names.has_volatile;
	v->step = DBT_TREE_ENTER;
	r = w->what->visit(w->what->data, v, err);
	for (size_t i = 0; r == 0 && i < names.at.n; i++)
		r = step(w, v->fd, names.text.data + names.at.items[i].off, below, err);
	names_release(&names);
	if (r < 0)
		return r;
	r = dbt_ident_fd(w->what->ctx, v->fd, &v->ident);
	if (r < 0)
		return trouble(w, path, r, "look at", err);
	v->step = DBT_TREE_LEAVE;
	return w->what->visit(w->what->data, v, err);
}

int dbt_tree_walk(const struct dbt_tree_walk *walk, int fd, struct dbt_err *err)
{
	struct walk w = { .what = walk };
	struct dbt_tree_visit v = { .path = ".", .name = ".", .dirfd = -1, .fd = fd };
	int r = dbt_ident_fd(walk->ctx, fd, &w.root);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", walk->shown);
	v.ident = w.root;
	r = walk_directory(&w, &v, err);
	dbt_buf_release(&w.path);
	return r;
}

/* --- directories of listed paths ------------------------------------------------------------------------ */

int dbt_tree_dirs_of(struct dbt_tree_dirs *dirs, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	*ret_name = slash ? slash + 1 : path;
	if (len == 0)
		return dirs->root_fd;
	if (dirs->fd >= 0 && dirs->path && strncmp(dirs->path, path, len) == 0 &&
	    dirs->path[len] == '\0')
		return dirs->fd;
	dbt_tree_dirs_release(dirs);
	dirs->path = strndup(path, len);
	if (!dirs->path)
		return -ENOMEM;
	dirs->fd =
		dbt_at_open_beneath(dirs->ctx, dirs->root_fd, dirs->path, O_RDONLY | O_DIRECTORY);
	return dirs->fd;
}

void dbt_tree_dirs_release(struct dbt_tree_dirs *dirs)
{
	if (dirs->fd >= 0)
		(void)close(dirs->fd);
	dirs->fd = -1;
	free(dirs->path);
	dirs->path = NULL;
}
