#include "base/cleanup.h"
#include "flow/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- all of it ------------------------------------------------------------------------------------------ */

struct remover {
	const struct dbt_ctx *ctx;
	const char *shown;
};

static int remove_visited(void *data, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	const struct remover *rm = data;
	int r;

	if (v->step == DBT_TREE_ENTER || v->dirfd < 0)
		return 0;
	r = rm->ctx->sys->unlinkat(v->dirfd, v->name, v->step == DBT_TREE_LEAVE ? AT_REMOVEDIR : 0);
	return r < 0 && r != -ENOENT
	               ? dbt_err_sys(err, r, "cannot remove '%s/%s'", rm->shown, v->path)
	               : 0;
}

int dbt_tree_remove_all(const struct dbt_ctx *ctx, int dirfd, const char *name, const char *shown,
                        struct dbt_err *err)
{
	dbt_autoclose int fd =
		ctx->sys->openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct remover rm = { .ctx = ctx, .shown = shown };
	const struct dbt_tree_walk walk = {
		.ctx = ctx, .shown = shown, .visit = remove_visited, .data = &rm
	};
	int r;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", shown);
	r = dbt_tree_walk(&walk, fd, err);
	if (r < 0)
		return r;
	r = ctx->sys->unlinkat(dirfd, name, AT_REMOVEDIR);
	return r < 0 && r != -ENOENT ? dbt_err_sys(err, r, "cannot remove '%s'", shown) : 0;
}

/* --- what is listed ------------------------------------------------------------------------------------- */

struct listed {
	const struct dbt_ctx *ctx;
	enum dbt_tree_side side;
	const char *shown;
	struct dbt_tree_dirs dirs;
	uint64_t left;
};

/* A lock file holds nothing: it goes with its directory, listed or not. */
static void remove_volatile(const struct listed *l, const char *path)
{
	dbt_autoclose int fd =
		dbt_at_open_beneath(l->ctx, l->dirs.root_fd, path, O_RDONLY | O_DIRECTORY);
	struct dbt_ident i;

	if (fd >= 0 && dbt_tree_is_volatile("lock.mdb") &&
	    dbt_ident_of(l->ctx, fd, "lock.mdb", &i) == 0 && S_ISREG(i.mode))
		(void)l->ctx->sys->unlinkat(fd, "lock.mdb", 0);
}

static int remove_directory(struct listed *l, int dirfd, const char *name, const char *path)
{
	int r = l->ctx->sys->unlinkat(dirfd, name, AT_REMOVEDIR);

	if (r == -ENOTEMPTY || r == -EEXIST) {
		remove_volatile(l, path);
		r = l->ctx->sys->unlinkat(dirfd, name, AT_REMOVEDIR);
	}
	if (r == -ENOTEMPTY || r == -EEXIST) {
		l->left++;
		r = 0;
	}
	return r == -ENOENT ? 0 : r;
}

static int remove_entry(struct listed *l, const struct dbt_tree_entry *e)
{
	const struct dbt_ident *was = l->side == DBT_TREE_COPY ? &e->copied : &e->source;
	struct dbt_ident now;
	const char *name;
	int fd = dbt_tree_dirs_of(&l->dirs, e->path, &name), r;

	if (fd == -ENOENT)
		return 0; /* went with an earlier run */
	r = fd < 0 ? fd : dbt_ident_of(l->ctx, fd, name, &now);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (dbt_tree_is_volatile(e->path))
		return S_ISREG(now.mode) ? l->ctx->sys->unlinkat(fd, name, 0) : 0;
	if (!dbt_ident_same_content(&now, was, false, true)) {
		l->left++;
		return 0;
	}
	if (e->kind == 'd')
		return remove_directory(l, fd, name, e->path);
	r = l->ctx->sys->unlinkat(fd, name, 0);
	return r == -ENOENT ? 0 : r;
}

static int remove_listed(struct listed *l, const char *list, struct dbt_err *err)
{
	struct dbt_tree_reader reader = { 0 };
	struct dbt_tree_entry e;
	int r = dbt_tree_reader_open(list, &reader, err);

	while (r == 0 && (r = dbt_tree_reader_next(&reader, &e, err)) == 1) {
		/* The root goes last, by its own name. */
		r = strcmp(e.path, ".") == 0 ? 0 : remove_entry(l, &e);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot remove '%s/%s'", l->shown, e.path);
	}
	dbt_tree_dirs_release(&l->dirs);
	dbt_tree_reader_release(&reader);
	return r;
}

int dbt_tree_remove_listed(const struct dbt_ctx *ctx, int dirfd, const char *name, const char *list,
                           enum dbt_tree_side side, const char *shown, uint64_t *ret_left,
                           struct dbt_err *err)
{
	dbt_autoclose int fd =
		ctx->sys->openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct listed l = { .ctx = ctx,
		            .side = side,
		            .shown = shown,
		            .dirs = { .ctx = ctx, .root_fd = fd, .fd = -1 } };
	int r;

	*ret_left = 0;
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", shown);
	r = remove_listed(&l, list, err);
	if (r < 0)
		return r;
	remove_volatile(&l, ".");
	r = ctx->sys->unlinkat(dirfd, name, AT_REMOVEDIR);
	if (r == -ENOTEMPTY || r == -EEXIST) {
		*ret_left = l.left ? l.left : 1;
		return 0;
	}
	return r < 0 && r != -ENOENT ? dbt_err_sys(err, r, "cannot remove '%s'", shown) : 0;
}
