#include "flow/unpack_roots.h"

#include "base/cleanup.h"
#include "flow/unpack_work.h"
#include "move/below.h"
#include "move/copy.h"
#include "move/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

size_t dbt_unpack_roots(const struct dbt_promotion *p, const struct dbt_pmember *ret[2])
{
	size_t n = 0;

	for (size_t i = 0; n < 2 && i < p->n_members; i++)
		if (p->members[i].role == DBT_ROLE_ROOT)
			ret[n++] = &p->members[i];
	return n;
}

/* The directory that holds a root is gone, or a link by now: so is the root. */
static bool is_absence(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static bool is_it(const struct dbt_ctx *ctx, int dirfd, const char *name,
                  const struct dbt_pmember *root)
{
	struct dbt_ident now;

	return dbt_ident_of(ctx, dirfd, name, &now) == 0 && S_ISDIR(now.mode) &&
	       (root->source.ino == 0 || dbt_ident_same_inode(&now, &root->source, true));
}

static int look(const struct dbt_ctx *ctx, const struct dbt_at *at, const struct dbt_pmember *root,
                enum dbt_root_is *ret, struct dbt_err *err)
{
	struct dbt_ident now;
	int r = dbt_at_ident(ctx, at, &now);

	if (is_it(ctx, at->dirfd, root->part, root))
		*ret = DBT_ROOT_TEMPORARY;
	else if (r == 0 && root->source.ino != 0 && is_it(ctx, at->dirfd, at->name, root))
		*ret = DBT_ROOT_VISIBLE;
	else
		*ret = r == 0 ? DBT_ROOT_OTHER : DBT_ROOT_MISSING;
	return r == 0 || is_absence(r) ? 0 : dbt_err_sys(err, r, "cannot look at '%s'", at->shown);
}

int dbt_unpack_root_is(const struct dbt_ctx *ctx, const struct dbt_pmember *root,
                       enum dbt_root_is *ret, struct dbt_err *err)
{
	struct dbt_at at;
	int r = dbt_at_resolve_strict(ctx, root->path, &at, err);

	if (is_absence(r)) {
		dbt_err_clear(err);
		*ret = DBT_ROOT_MISSING;
		return 0;
	}
	if (r < 0)
		return r;
	r = look(ctx, &at, root, ret, err);
	dbt_at_release(&at);
	return r;
}

int dbt_unpack_rename(struct dbt_flow *flow, const struct dbt_pmember *root, bool visible,
                      struct dbt_err *err)
{
	const struct dbt_ctx *ctx = flow->ctx;
	enum dbt_root_is is;
	struct dbt_at at;
	int r = dbt_at_resolve_strict(ctx, root->path, &at, err);

	if (r < 0)
		return r;
	r = look(ctx, &at, root, &is, err);
	if (r == 0 && is == (visible ? DBT_ROOT_TEMPORARY : DBT_ROOT_VISIBLE)) {
		r = ctx->sys->renameat2(at.dirfd, visible ? root->part : at.name, at.dirfd,
		                        visible ? at.name : root->part, RENAME_NOREPLACE);
		if (r == -EEXIST)
			r = dbt_err_set(err, DBT_ERR_CHANGED, r,
			                "'%s' was made by somebody else meanwhile", root->path);
		else if (r < 0)
			(void)dbt_err_sys(err, r, "cannot rename the directory for '%s'",
			                  root->path);
	} else if (r == 0 && is != (visible ? DBT_ROOT_VISIBLE : DBT_ROOT_TEMPORARY)) {
		r = dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                "'%s' is not what was unpacked any more", root->path);
	}
	if (r == 0 && (r = dbt_at_sync_dir(ctx, &at)) < 0)
		(void)dbt_err_sys(err, r, "cannot flush the directory of '%s'", root->path);
	dbt_at_release(&at);
	return r;
}

/* --- comparing ------------------------------------------------------------------------------------------ */

/* A recorded thing by the final name that it has in this root. */
struct known {
	const char *path;
	const struct dbt_ident *ident;
	const struct dbt_pmember *member;
	bool seen;
};

struct compare {
	const struct dbt_ctx *ctx;
	const struct dbt_pmember *root;
	struct known *items; /* sorted */
	size_t n;
	bool read;
	struct dbt_unpack_diff diff;
	struct dbt_err *err;
};

void dbt_unpack_diff_release(struct dbt_unpack_diff *diff)
{
	free(diff->path);
	*diff = (struct dbt_unpack_diff){ 0 };
}

static bool is_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	return strncmp(path, root, len) == 0 && path[len] == '/';
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->path, ((const struct known *)b)->path);
}

/* The things of one root. What a link of ours leads to is one of the hot root. */
static int list_known(struct compare *c, const struct dbt_promotion *p)
{
	c->items = calloc(2 * p->n_members, sizeof(*c->items));
	if (!c->items)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_members; i++) {
		const struct dbt_pmember *m = &p->members[i];

		if (m->role != DBT_ROLE_FILE)
			continue;
		if (is_below(m->path, c->root->path))
			c->items[c->n++] =
				(struct known){ .path = m->path, .ident = &m->source, .member = m };
		if (m->copied.ino != 0 && is_below(m->copy, c->root->path))
			c->items[c->n++] =
				(struct known){ .path = m->copy, .ident = &m->copied, .member = m };
	}
	if (c->n > 1)
		qsort(c->items, c->n, sizeof(*c->items), by_path);
	return 0;
}

static int note(struct compare *c, enum dbt_diff_is is, const char *path)
{
	if (is <= c->diff.is)
		return 0;
	free(c->diff.path);
	c->diff.is = is;
	c->diff.path = strdup(path);
	return c->diff.path ? 0 : -ENOMEM;
}

/* Only its ctime tells that something happened to a file: the bytes decide. */
static int read_touched(struct compare *c, const struct dbt_below_item *item, struct known *k)
{
	const struct dbt_copy_opts opts = { .shown_src = k->path, .shown_dst = k->path };
	dbt_autoclose int fd =
		c->ctx->sys->openat(item->dirfd, item->name,
	                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	struct dbt_digest recorded, now;
	int r;

	if (fd < 0)
		return fd;
	r = dbt_copy_digest(c->ctx, fd, k->ident->size_bytes, &opts, &now, NULL, c->err);
	if (r < 0)
		return r;
	if (dbt_digest_parse(k->member->xxh128, &recorded) < 0 ||
	    !dbt_digest_equal(&recorded, &now))
		return note(c, DBT_DIFF_CHANGED, k->path);
	return 0;
}

static int compare_known(struct compare *c, const struct dbt_below_item *item, struct known *k)
{
	const struct dbt_ident *now = &item->ident;

	k->seen = true;
	c->diff.n_there++;
	if (S_ISDIR(now->mode)) /* its times and size change with what comes and goes below */
		return dbt_ident_same_inode(now, k->ident, true)
		               ? 0
		               : note(c, DBT_DIFF_CHANGED, k->path);
	if (!dbt_ident_same_content(now, k->ident, false, true))
		return note(c, DBT_DIFF_CHANGED, k->path);
	if (!S_ISREG(now->mode) || now->ctime_ns == k->ident->ctime_ns)
		return 0;
	return c->read ? read_touched(c, item, k) : note(c, DBT_DIFF_TOUCHED, k->path);
}

static int compare_item(void *data, const struct dbt_below_item *item)
{
	struct compare *c = data;
	dbt_autofree char *path = NULL;
	struct known want, *k;

	if (asprintf(&path, "%s/%s", c->root->path, item->path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	want.path = path;
	k = bsearch(&want, c->items, c->n, sizeof(*c->items), by_path);
	return k ? compare_known(c, item, k) : note(c, DBT_DIFF_EXTRA, path);
}

/* The root's directory, under whichever name it has. */
static int open_root(const struct dbt_ctx *ctx, const struct dbt_pmember *root, struct dbt_err *err)
{
	struct dbt_at at;
	int r = dbt_at_resolve_strict(ctx, root->path, &at, err), fd;

	if (r < 0)
		return r;
	fd = ctx->sys->openat(at.dirfd,
	                      is_it(ctx, at.dirfd, root->part, root) ? root->part : at.name,
	                      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	dbt_at_release(&at);
	return fd < 0 ? dbt_err_sys(err, fd, "cannot open '%s'", root->path) : fd;
}

int dbt_unpack_compare(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                       const struct dbt_pmember *root, bool read, struct dbt_unpack_diff *ret,
                       struct dbt_err *err)
{
	struct dbt_err why = { 0 };
	struct compare c = { .ctx = ctx, .root = root, .read = read, .err = &why };
	dbt_autoclose int fd = open_root(ctx, root, err);
	int r;

	if (fd < 0)
		return fd;
	r = list_known(&c, p);
	if (r == 0)
		r = dbt_below_walk(ctx, fd, false, compare_item, &c);
	for (size_t i = 0; r == 0 && i < c.n; i++)
		if (!c.items[i].seen)
			r = note(&c, DBT_DIFF_MISSING, c.items[i].path);
	free(c.items);
	if (r < 0) {
		dbt_unpack_diff_release(&c.diff);
		if (why.kind == DBT_ERR_NONE)
			return dbt_err_sys(err, r, "cannot look at what is in '%s'", root->path);
		if (err)
			*err = why;
		return r;
	}
	*ret = c.diff;
	return 0;
}

/* --- removing ------------------------------------------------------------------------------------------- */

static int remove_one(struct dbt_flow *flow, int rootfd, const struct dbt_pmember *root,
                      const char *path, const struct dbt_ident *ident)
{
	const char *rel = path + strlen(root->path) + 1, *slash = strrchr(rel, '/');
	const struct dbt_expect expect = { .ident = ident, .any_dev = true };
	dbt_autofree char *dir = strndup(rel, slash ? (size_t)(slash - rel) : 0);
	dbt_autoclose int fd = dir ? dbt_below_open(flow->ctx, rootfd, dir, false) : -ENOMEM;
	const char *name = slash ? slash + 1 : rel;
	struct dbt_ident now;
	int r;

	if (fd < 0)
		return is_absence(fd) ? 0 : fd;
	if (!S_ISDIR(ident->mode)) {
		r = dbt_swap_unlink(flow->ctx, fd, name, &expect);
		return r < 0 ? r : 0;
	}
	if (dbt_ident_of(flow->ctx, fd, name, &now) < 0 || !dbt_ident_same_inode(&now, ident, true))
		return 0;
	r = flow->ctx->sys->unlinkat(fd, name, AT_REMOVEDIR);
	return r == -ENOTEMPTY || r == -EEXIST || r == -ENOENT ? 0 : r;
}

/* In the order of the list a directory follows what is in it. */
static int remove_recorded(struct dbt_flow *flow, const struct dbt_promotion *p,
                           const struct dbt_pmember *root, int rootfd)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		if (p->members[i].copied.ino != 0 && is_below(p->members[i].copy, root->path))
			r = remove_one(flow, rootfd, root, p->members[i].copy,
			               &p->members[i].copied);
	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		if (p->members[i].role == DBT_ROLE_FILE && is_below(p->members[i].path, root->path))
			r = remove_one(flow, rootfd, root, p->members[i].path,
			               &p->members[i].source);
	return r;
}

static int remove_at(struct dbt_flow *flow, const struct dbt_promotion *p,
                     const struct dbt_pmember *root, const struct dbt_at *at, bool all)
{
	dbt_autoclose int fd = -1;
	int r;

	if (all)
		return dbt_below_remove(flow->ctx, at->dirfd, root->part);
	fd = flow->ctx->sys->openat(at->dirfd, root->part,
	                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = remove_recorded(flow, p, root, fd);
	if (r == 0)
		r = flow->ctx->sys->unlinkat(at->dirfd, root->part, AT_REMOVEDIR);
	return r == -ENOTEMPTY || r == -EEXIST || r == -ENOENT ? 0 : r;
}

int dbt_unpack_remove_root(struct dbt_flow *flow, const struct dbt_promotion *p,
                           const struct dbt_pmember *root, bool all, bool *ret_gone,
                           struct dbt_err *err)
{
	struct dbt_ident now;
	struct dbt_at at;
	int r = dbt_at_resolve_strict(flow->ctx, root->path, &at, err);

	if (is_absence(r)) {
		dbt_err_clear(err);
		*ret_gone = true;
		return 0;
	}
	if (r < 0)
		return r;
	r = remove_at(flow, p, root, &at, all);
	/* Where a directory of everything steps aside for its only child: flow/unpack_build.c. */
	if (r == 0 && all) {
		const struct dbt_pmember *roots[2];
		char aside[DBT_UNPACK_PART_BYTES];

		(void)dbt_unpack_roots(p, roots);
		dbt_unpack_part(p, root == roots[0] ? 1 : 3, aside);
		r = dbt_below_remove(flow->ctx, at.dirfd, aside);
	}
	if (r == 0)
		r = dbt_at_sync_dir(flow->ctx, &at);
	*ret_gone = dbt_ident_of(flow->ctx, at.dirfd, root->part, &now) == -ENOENT;
	dbt_at_release(&at);
	return r < 0 ? dbt_err_sys(err, r, "cannot remove what was unpacked for '%s'", root->path)
	             : 0;
}
