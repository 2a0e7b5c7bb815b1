#include "base/cleanup.h"
#include "flow/carry.h"
#include "flow/tree.h"
#include "move/copy.h"
#include "move/meta.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- by names, inodes, sizes and times ------------------------------------------------------------------ */

struct comparer {
	const struct dbt_ctx *ctx;
	enum dbt_tree_side side;
	const char *shown;
	struct dbt_tree_dirs dirs;
	struct dbt_ident root;
	struct dbt_err *why;
};

static bool is_absence(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EXDEV;
}

static enum dbt_tree_is differs(const struct comparer *c, const char *path, const char *how)
{
	(void)dbt_err_set(c->why, DBT_ERR_CHANGED, -ESTALE, "'%s/%s' %s", c->shown, path, how);
	return DBT_TREE_CHANGED;
}

/* Of a directory neither size nor mtime count, which a lock file that comes and goes changes too: what is in it is
 * compared entry by entry, and their number. */
static int compare_directory(const struct comparer *c, const struct dbt_tree_entry *e,
                             const struct dbt_ident *now, enum dbt_tree_is *ret)
{
	dbt_autoclose int fd =
		dbt_at_open_beneath(c->ctx, c->dirs.root_fd, e->path, O_RDONLY | O_DIRECTORY);
	const struct dbt_ident *was = c->side == DBT_TREE_COPY ? &e->copied : &e->source;
	uint64_t n = 0;
	bool has_volatile = false;
	int r = fd < 0 ? fd : dbt_tree_count(c->ctx, fd, &n, &has_volatile);

	if (r < 0)
		return r;
	if (n != e->n_entries) {
		*ret = differs(c, e->path,
		               n > e->n_entries ? "holds new names" : "holds fewer names");
		return 0;
	}
	if (c->side == DBT_TREE_SOURCE &&
	    (now->mode != e->source.mode || now->uid != e->source.uid || now->gid != e->source.gid))
		*ret = DBT_TREE_TOUCHED;
	/* Exchanging the root's name changes its ctime on some filesystems. */
	if (!has_volatile && strcmp(e->path, ".") != 0 && now->ctime_ns != was->ctime_ns)
		*ret = DBT_TREE_TOUCHED;
	return 0;
}

static int compare_entry(struct comparer *c, const struct dbt_tree_entry *e, enum dbt_tree_is *ret)
{
	const struct dbt_ident *was = c->side == DBT_TREE_COPY ? &e->copied : &e->source;
	struct dbt_ident now;
	const char *name;
	int fd, r;

	*ret = DBT_TREE_SAME;
	if (dbt_tree_is_volatile(e->path))
		return 0;
	fd = dbt_tree_dirs_of(&c->dirs, e->path, &name);
	r = fd < 0 ? fd : dbt_ident_of(c->ctx, fd, name, &now);
	if (is_absence(r)) {
		*ret = differs(c, e->path, "is missing");
		return 0;
	}
	if (r < 0)
		return r;
	if (now.dev != c->root.dev || now.mnt_id != c->root.mnt_id ||
	    !dbt_ident_same_inode(&now, was, true)) {
		*ret = differs(c, e->path, "was replaced");
		return 0;
	}
	if (e->kind == 'd')
		return compare_directory(c, e, &now, ret);
	if (!dbt_ident_same_content(&now, was, false, true)) {
		*ret = differs(c, e->path, "was modified");
	} else if (now.ctime_ns != was->ctime_ns) {
		(void)differs(c, e->path, "was touched (its ctime differs, size and mtime do not)");
		*ret = DBT_TREE_TOUCHED;
	}
	return 0;
}

int dbt_tree_compare(const struct dbt_ctx *ctx, int fd, const char *list, enum dbt_tree_side side,
                     const char *shown, enum dbt_tree_is *ret, struct dbt_err *why,
                     struct dbt_err *err)
{
	struct comparer c = { .ctx = ctx,
		              .side = side,
		              .shown = shown,
		              .dirs = { .ctx = ctx, .root_fd = fd, .fd = -1 },
		              .why = why };
	struct dbt_tree_reader reader = { 0 };
	enum dbt_tree_is worst = DBT_TREE_SAME, one;
	struct dbt_tree_entry e;
	int r = dbt_tree_reader_open(list, &reader, err);

	if (r == 0) {
		r = dbt_ident_fd(ctx, fd, &c.root);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot look at '%s'", shown);
	}
	while (r == 0 && worst != DBT_TREE_CHANGED &&
	       (r = dbt_tree_reader_next(&reader, &e, err)) == 1) {
		r = compare_entry(&c, &e, &one);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot look at '%s/%s'", shown, e.path);
		else if (one > worst)
			worst = one;
		if (r == 0 && dbt_ctx_cancelled(ctx))
			r = dbt_err_sys(err, -ECANCELED, "looking at '%s'", shown);
	}
	dbt_tree_dirs_release(&c.dirs);
	dbt_tree_reader_release(&reader);
	if (r < 0)
		return r;
	*ret = worst;
	return 0;
}

/* --- by reading ----------------------------------------------------------------------------------------- */

struct prover {
	const struct dbt_ctx *ctx;
	const char *shown;
	struct dbt_tree_dirs dirs;
	uint64_t done_bytes, total_bytes;
	bool same, from_device;
	struct dbt_err *why;
};

static int say(struct prover *p, const char *path, const char *how)
{
	p->same = false;
	return dbt_err_set(p->why, DBT_ERR_VERIFY, -EIO, "'%s/%s' %s", p->shown, path, how);
}

static int prove_link(struct prover *p, const struct dbt_tree_entry *e, int dirfd, const char *name)
{
	struct dbt_hasher *hasher;
	struct dbt_digest now;
	char text[PATH_MAX + 1];
	ssize_t len = readlinkat(dirfd, name, text, sizeof(text));

	if (len < 0 || (size_t)len >= sizeof(text)) {
		(void)say(p, e->path, "is no link any more");
		return 0;
	}
	hasher = dbt_hasher_new();
	if (!hasher)
		return -ENOMEM;
	dbt_hasher_add(hasher, text, (size_t)len);
	now = dbt_hasher_digest(hasher);
	dbt_hasher_free(hasher);
	if (!dbt_digest_equal(&now, &e->digest))
		(void)say(p, e->path, "leads elsewhere");
	return 0;
}

static int prove_file(struct prover *p, const struct dbt_tree_entry *e, int dirfd, const char *name,
                      struct dbt_err *err)
{
	dbt_autoclose int fd = p->ctx->sys->openat(
		dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	dbt_autofree char *shown = NULL;
	struct dbt_copy_opts opts = { .done_before_bytes = p->done_bytes,
		                      .total_bytes = p->total_bytes };
	struct dbt_digest now = { 0 };
	bool from_device = false;
	int r;

	if (is_absence(fd)) {
		(void)say(p, e->path, "is missing");
		return 0;
	}
	if (asprintf(&shown, "%s/%s", p->shown, e->path) < 0)
		shown = NULL;
	if (!shown || fd < 0)
		return dbt_err_sys(err, fd < 0 ? fd : -ENOMEM, "cannot open '%s/%s'", p->shown,
		                   e->path);
	opts.shown_src = opts.shown_dst = shown;
	r = dbt_copy_digest(p->ctx, fd, e->source.size_bytes, &opts, &now, &from_device, err);
	if (r < 0 && !(err && err->kind == DBT_ERR_CHANGED))
		return r;
	p->done_bytes += e->source.size_bytes;
	p->from_device = p->from_device && (from_device || e->source.size_bytes == 0);
	if (r < 0 || !dbt_digest_equal(&now, &e->digest))
		(void)say(p, e->path, "holds other bytes than were promoted");
	return 0;
}

static int prove_directory(struct prover *p, const struct dbt_tree_entry *e)
{
	dbt_autoclose int fd =
		dbt_at_open_beneath(p->ctx, p->dirs.root_fd, e->path, O_RDONLY | O_DIRECTORY);
	uint64_t n = 0;
	bool has_volatile;
	int r = fd < 0 ? fd : dbt_tree_count(p->ctx, fd, &n, &has_volatile);

	if (is_absence(r) || (r == 0 && n != e->n_entries)) {
		(void)say(p, e->path, r < 0 ? "is missing" : "holds other names");
		return 0;
	}
	return r;
}

static int prove_entry(struct prover *p, const struct dbt_tree_entry *e, struct dbt_err *err)
{
	const char *name;
	int fd, r;

	if (dbt_tree_is_volatile(e->path))
		return 0;
	fd = dbt_tree_dirs_of(&p->dirs, e->path, &name);
	if (is_absence(fd)) {
		(void)say(p, e->path, "is missing");
		return 0;
	}
	if (fd >= 0 && e->kind == 'f')
		return prove_file(p, e, fd, name, err);
	r = fd < 0 ? fd : e->kind == 'l' ? prove_link(p, e, fd, name) : prove_directory(p, e);
	return r < 0 ? dbt_err_sys(err, r, "cannot look at '%s/%s'", p->shown, e->path) : 0;
}

int dbt_tree_prove(const struct dbt_ctx *ctx, int fd, const char *list, const char *shown,
                   uint64_t total_bytes, bool *ret_same, bool *ret_from_device, struct dbt_err *why,
                   struct dbt_err *err)
{
	struct prover p = { .ctx = ctx,
		            .shown = shown,
		            .dirs = { .ctx = ctx, .root_fd = fd, .fd = -1 },
		            .total_bytes = total_bytes,
		            .same = true,
		            .from_device = true,
		            .why = why };
	struct dbt_tree_reader reader = { 0 };
	struct dbt_tree_entry e;
	int r = dbt_tree_reader_open(list, &reader, err);

	while (r == 0 && p.same && (r = dbt_tree_reader_next(&reader, &e, err)) == 1)
		r = prove_entry(&p, &e, err);
	dbt_tree_dirs_release(&p.dirs);
	dbt_tree_reader_release(&reader);
	if (r < 0)
		return r;
	*ret_same = p.same;
	*ret_from_device = p.from_device;
	return 0;
}

/* --- metadata ------------------------------------------------------------------------------------------- */

static int compare_meta(const struct dbt_ctx *ctx, int a, int b, const char *shown,
                        const char *path, struct dbt_err *err)
{
	struct dbt_meta_report report = { 0 };
	const struct dbt_meta_item *loss;
	int r = dbt_meta_compare(ctx, a, b, &report, err);

	if (r < 0)
		return dbt_err_wrap(err, "'%s/%s'", shown, path);
	loss = dbt_carry_loss(&report);
	if (loss)
		r = dbt_err_refuse(err,
		                   "the copy '%s/%s' lacks what the original has: %s (%s); the "
		                   "original stays",
		                   shown, path, loss->what, loss->why);
	dbt_meta_report_release(&report);
	return r;
}

int dbt_tree_compare_meta(const struct dbt_ctx *ctx, int original, int copy, const char *list,
                          const char *shown, struct dbt_err *err)
{
	struct dbt_tree_reader reader = { 0 };
	struct dbt_tree_entry e;
	int r = dbt_tree_reader_open(list, &reader, err);

	while (r == 0 && (r = dbt_tree_reader_next(&reader, &e, err)) == 1) {
		const int flags = O_RDONLY | O_NONBLOCK | (e.kind == 'd' ? O_DIRECTORY : 0);
		dbt_autoclose int a = -1;
		dbt_autoclose int b = -1;

		r = 0;
		if (e.kind == 'l' || dbt_tree_is_volatile(e.path))
			continue;
		a = dbt_at_open_beneath(ctx, original, e.path, flags);
		b = dbt_at_open_beneath(ctx, copy, e.path, flags);
		if (a < 0 || b < 0)
			r = dbt_err_sys(err, a < 0 ? a : b, "cannot compare '%s/%s'", shown,
			                e.path);
		else
			r = compare_meta(ctx, a, b, shown, e.path, err);
	}
	dbt_tree_reader_release(&reader);
	return r;
}

/* --- without a list ------------------------------------------------------------------------------------- */

struct equal {
	const struct dbt_ctx *ctx;
	int b;
	const char *shown_a, *shown_b;
	bool same;
};

static int equal_links(const struct dbt_tree_visit *v, int dirfd, const char *name)
{
	char a[PATH_MAX + 1], b[PATH_MAX + 1];
	ssize_t len_a = readlinkat(v->dirfd, v->name, a, sizeof(a)),
		len_b = readlinkat(dirfd, name, b, sizeof(b));

	return len_a >= 0 && len_a == len_b && memcmp(a, b, (size_t)len_a) == 0;
}

static int equal_files(struct equal *q, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	const struct dbt_copy_opts opts = { .shown_src = q->shown_a, .shown_dst = q->shown_b };
	dbt_autoclose int a = q->ctx->sys->openat(
		v->dirfd, v->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	dbt_autoclose int b = dbt_at_open_beneath(q->ctx, q->b, v->path, O_RDONLY | O_NONBLOCK);
	struct dbt_ident ident = { 0 };

	if (a < 0)
		return dbt_err_sys(err, a, "cannot open '%s/%s'", q->shown_a, v->path);
	if (b < 0 && !is_absence(b))
		return dbt_err_sys(err, b, "cannot open '%s/%s'", q->shown_b, v->path);
	if (b < 0 || dbt_ident_fd(q->ctx, b, &ident) < 0 || !S_ISREG(ident.mode)) {
		q->same = false;
		return 0;
	}
	return dbt_copy_compare(q->ctx, a, b, &opts, &q->same, NULL, err);
}

static int equal_visit(void *data, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	struct equal *q = data;
	struct dbt_tree_dirs dirs = { .ctx = q->ctx, .root_fd = q->b, .fd = -1 };
	const char *name;
	uint64_t n = 0;
	bool has_volatile;
	int fd;

	if (!q->same || v->step == DBT_TREE_LEAVE || dbt_tree_is_volatile(v->path))
		return 0;
	if (S_ISREG(v->ident.mode))
		return equal_files(q, v, err);
	if (S_ISLNK(v->ident.mode)) {
		fd = dbt_tree_dirs_of(&dirs, v->path, &name);
		q->same = fd >= 0 && equal_links(v, fd, name);
		dbt_tree_dirs_release(&dirs);
		return 0;
	}
	fd = S_ISDIR(v->ident.mode)
	             ? dbt_at_open_beneath(q->ctx, q->b, v->path, O_RDONLY | O_DIRECTORY)
	             : -ENOENT;
	q->same =
		fd >= 0 && dbt_tree_count(q->ctx, fd, &n, &has_volatile) == 0 && n == v->n_entries;
	if (fd >= 0)
		(void)close(fd);
	return 0;
}

int dbt_tree_equal(const struct dbt_ctx *ctx, int a, int b, const char *shown_a,
                   const char *shown_b, bool *ret_same, struct dbt_err *err)
{
	struct equal q = {
		.ctx = ctx, .b = b, .shown_a = shown_a, .shown_b = shown_b, .same = true
	};
	const struct dbt_tree_walk walk = {
		.ctx = ctx, .shown = shown_a, .visit = equal_visit, .data = &q
	};
	int r = dbt_tree_walk(&walk, a, err);

	if (r == 0)
		*ret_same = q.same;
	return r;
}
