/* Two passes. The first walks the source, makes directories, copies and proves files, and drafts the list. The second
 * goes through the draft: directories get their owner, mode and times, which making things in them has changed, and
 * the list gets what each entry of the copy has become. One flush of the filesystem then makes all of it last. */
#include "base/cleanup.h"
#include "base/vec.h"
#include "flow/carry.h"
#include "flow/treefiles.h"
#include "move/copy.h"
#include "move/mark.h"
#include "move/meta.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A directory that is being filled. */
struct level {
	int fd; /* of the new one */
	struct dbt_ident source, made;
};

struct copier {
	const struct dbt_tree_copy *c;
	struct {
		struct level *items;
		size_t n, cap;
	} levels;
	int root; /* the new directory, open all the time: syncfs tells only of errors since its opening */
	struct dbt_tree_writer draft;
	struct dbt_digest digest;
	struct dbt_tree_batch batch;
};

/* --- directories ---------------------------------------------------------------------------------------- */

static int make_directory(struct copier *t, int dirfd, const char *name, const char *path,
                          struct dbt_err *err)
{
	const struct dbt_ctx *ctx = t->c->ctx;
	struct level *level = dbt_vec_push(&t->levels);
	int r = level ? ctx->sys->mkdirat(dirfd, name, 0700) : -ENOMEM;

	if (level)
		level->fd = -1;
	if (r == 0) {
		level->fd = ctx->sys->openat(dirfd, name,
		                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
		r = level->fd < 0 ? level->fd : dbt_ident_fd(ctx, level->fd, &level->made);
	}
	if (r < 0)
		return dbt_err_sys(err, r, "cannot make the directory '%s/%s'", t->c->shown_dst,
		                   path);
	return 0;
}

static int enter(struct copier *t, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	const bool is_root = v->dirfd < 0;
	int r = make_directory(t, is_root ? t->c->dst_dirfd : t->levels.items[t->levels.n - 1].fd,
	                       is_root ? t->c->dst_name : v->name, v->path, err);

	if (r < 0)
		return r;
	t->levels.items[t->levels.n - 1].source = v->ident;
	if (!is_root)
		return 0;
	t->root = fcntl(t->levels.items[0].fd, F_DUPFD_CLOEXEC, 3);
	if (t->root < 0)
		return dbt_err_sys(err, -errno, "cannot open '%s'", t->c->shown_dst);
	r = t->c->token ? dbt_mark_set(t->c->ctx, t->root, t->c->token) : 0;
	return r < 0 ? dbt_err_sys(err, r, "cannot mark '%s'", t->c->shown_dst) : 0;
}

static int changed(const struct copier *t, const char *path, struct dbt_err *err)
{
	return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE, "'%s/%s' changed while it was copied",
	                   t->c->shown_src, path);
}

/* Copies the files that are waiting, and drafts what is known of them then. */
static int drain(struct copier *t, struct dbt_err *err)
{
	int r;

	t->batch.root = t->root;
	r = dbt_tree_batch_copy(&t->batch, err);
	for (size_t i = 0; r == 0 && i < t->batch.items.n; i++) {
		const struct dbt_tree_entry *e = &t->batch.items.items[i].e;

		if (dbt_tree_digest_add(&t->digest, e) < 0)
			r = dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", t->c->shown_src);
		else
			r = dbt_tree_writer_add(&t->draft, e, err);
	}
	dbt_tree_batch_clear(&t->batch);
	return r;
}

static int draft_entry(struct copier *t, const struct dbt_tree_entry *e, struct dbt_err *err)
{
	int r = dbt_tree_batch_add(&t->batch, e, err);

	return r == 0 && t->batch.items.n >= DBT_TREE_BATCH_MAX ? drain(t, err) : r;
}

static int leave(struct copier *t, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	struct level *level = &t->levels.items[t->levels.n - 1];
	const struct dbt_tree_entry e = { .kind = 'd',
		                          .source = v->ident,
		                          .copied = level->made,
		                          .n_entries = v->n_entries,
		                          .path = v->path };

	if (!v->has_volatile && (level->source.mtime_ns != v->ident.mtime_ns ||
	                         level->source.ctime_ns != v->ident.ctime_ns))
		return changed(t, v->path, err);
	(void)close(level->fd);
	t->levels.n--;
	return draft_entry(t, &e, err);
}

/* --- links and files ------------------------------------------------------------------------------------ */

static int copy_link(struct copier *t, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = t->c->ctx;
	const int dst = t->levels.items[t->levels.n - 1].fd;
	struct dbt_tree_entry e = { .kind = 'l', .source = v->ident, .path = v->path };
	struct dbt_hasher *hasher;
	char text[PATH_MAX + 1];
	ssize_t len = readlinkat(v->dirfd, v->name, text, sizeof(text) - 1);
	int r = len < 0 ? -errno : 0;

	if (r < 0)
		return dbt_err_sys(err, r, "cannot read the link '%s/%s'", t->c->shown_src,
		                   v->path);
	text[len] = '\0';
	hasher = dbt_hasher_new();
	if (!hasher)
		return dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", t->c->shown_src);
	dbt_hasher_add(hasher, text, (size_t)len);
	e.digest = dbt_hasher_digest(hasher);
	dbt_hasher_free(hasher);
	r = ctx->sys->symlinkat(text, dst, v->name);
	if (r == 0)
		r = dbt_meta_apply_link(ctx, dst, v->name, &v->ident);
	if (r >= 0)
		r = dbt_ident_of(ctx, dst, v->name, &e.copied);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot make the link '%s/%s'", t->c->shown_dst,
		                   v->path);
	if (t->c->whole && (e.copied.uid != v->ident.uid || e.copied.gid != v->ident.gid))
		return dbt_err_refuse(err, "'%s/%s' cannot get the owner that '%s/%s' has",
		                      t->c->shown_dst, v->path, t->c->shown_src, v->path);
	return draft_entry(t, &e, err);
}

static int visit(void *data, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	struct copier *t = data;
	int r = v->step == DBT_TREE_LEAVE ? 0 : dbt_tree_check_entry(v, t->c->shown_src, err);

	if (r < 0)
		return r;
	switch (v->step) {
	case DBT_TREE_ENTER:
		return enter(t, v, err);
	case DBT_TREE_LEAVE:
		return leave(t, v, err);
	case DBT_TREE_ENTRY:
		break;
	}
	if (S_ISLNK(v->ident.mode))
		return copy_link(t, v, err);
	return draft_entry(
		t, &(struct dbt_tree_entry){ .kind = 'f', .source = v->ident, .path = v->path },
		err);
}

/* --- the second pass ------------------------------------------------------------------------------------ */

struct sealer {
	const struct dbt_tree_copy *c;
	struct dbt_tree_dirs src, dst;
	struct dbt_tree_writer list;
	struct dbt_ident root;
};

static int finish_directory(struct sealer *s, struct dbt_tree_entry *e, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = s->c->ctx;
	dbt_autoclose int src =
		dbt_at_open_beneath(ctx, s->src.root_fd, e->path, O_RDONLY | O_DIRECTORY);
	dbt_autoclose int dst =
		dbt_at_open_beneath(ctx, s->dst.root_fd, e->path, O_RDONLY | O_DIRECTORY);
	dbt_autofree char *shown_src = NULL, *shown_dst = NULL;
	struct dbt_carry carry = {
		.src = src, .dst = dst, .times = &e->source, .whole = s->c->whole
	};
	int r;

	if (src < 0 || dst < 0)
		return dbt_err_sys(err, src < 0 ? src : dst, "cannot open '%s/%s'",
		                   src < 0 ? s->c->shown_src : s->c->shown_dst, e->path);
	if (asprintf(&shown_src, "%s/%s", s->c->shown_src, e->path) < 0)
		shown_src = NULL;
	if (asprintf(&shown_dst, "%s/%s", s->c->shown_dst, e->path) < 0)
		shown_dst = NULL;
	if (!shown_src || !shown_dst)
		return dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", s->c->shown_src);
	carry.shown_src = shown_src;
	carry.shown_dst = shown_dst;
	r = dbt_carry_meta(ctx, &carry, err);
	if (r < 0)
		return r;
	r = dbt_ident_fd(ctx, dst, &e->copied);
	if (strcmp(e->path, ".") == 0)
		s->root = e->copied;
	return r < 0 ? dbt_err_sys(err, r, "cannot look at '%s'", shown_dst) : 0;
}

static int finish_entry(struct sealer *s, struct dbt_tree_entry *e, struct dbt_err *err)
{
	struct dbt_ident now;
	const char *name;
	int fd, r;

	if (e->kind == 'd')
		return finish_directory(s, e, err);
	fd = dbt_tree_dirs_of(&s->dst, e->path, &name);
	r = fd < 0 ? fd : dbt_ident_of(s->c->ctx, fd, name, &now);
	if (r == 0 && now.ino != e->copied.ino)
		r = -ESTALE;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s/%s'", s->c->shown_dst, e->path);
	e->copied = now;
	return 0;
}

/* The originals' times where the copy that is copied back has coarser ones. */
static int give_times(struct sealer *s, struct dbt_err *err)
{
	struct dbt_tree_reader list = { 0 };
	struct dbt_tree_entry e;
	int r = dbt_tree_reader_open(s->c->times, &list, err), got = 0;

	if (r < 0)
		return r;
	while (r == 0 && (got = dbt_tree_reader_next(&list, &e, err)) == 1) {
		const struct timespec times[2] = {
			{ .tv_nsec = UTIME_OMIT },
			{ .tv_sec = e.source.mtime_ns / 1000000000,
			  .tv_nsec = e.source.mtime_ns % 1000000000 },
		};
		const char *name;
		int fd;

		if (e.source.mtime_ns == e.copied.mtime_ns || e.source.mtime_ns < 0)
			continue;
		fd = dbt_tree_dirs_of(&s->dst, e.path, &name);
		r = fd < 0 ? fd : s->c->ctx->sys->utimensat(fd, name, times, AT_SYMLINK_NOFOLLOW);
		if (r == -ENOENT && dbt_tree_is_volatile(e.path))
			r = 0;
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot set the times of '%s/%s'",
			                  s->c->shown_dst, e.path);
	}
	dbt_tree_reader_release(&list);
	return r < 0 ? r : got;
}

static int seal_entries(struct sealer *s, struct dbt_tree_reader *draft, struct dbt_err *err)
{
	struct dbt_tree_entry e;
	int r;

	while ((r = dbt_tree_reader_next(draft, &e, err)) == 1) {
		r = finish_entry(s, &e, err);
		if (r == 0)
			r = dbt_tree_writer_add(&s->list, &e, err);
		if (r == 0 && dbt_ctx_cancelled(s->c->ctx))
			r = dbt_err_sys(err, -ECANCELED, "copying '%s'", s->c->shown_src);
		if (r < 0)
			return r;
	}
	return r;
}

static int flush_one(void *data, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	const struct sealer *s = data;
	int fd = v->fd, r = 0;

	if (v->step == DBT_TREE_ENTER || S_ISLNK(v->ident.mode))
		return 0;
	if (v->step == DBT_TREE_ENTRY)
		fd = s->c->ctx->sys->openat(v->dirfd, v->name,
		                            O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	r = fd < 0 ? fd : s->c->ctx->sys->fsync(fd);
	if (v->step == DBT_TREE_ENTRY && fd >= 0)
		(void)close(fd);
	return r < 0 ? dbt_err_sys(err, r, "cannot flush '%s/%s'", s->c->shown_dst, v->path) : 0;
}

/* One flush of the filesystem where that is known to be as good as one of each file and directory. */
static int flush_all(struct sealer *s, struct dbt_err *err)
{
	const struct dbt_tree_walk walk = {
		.ctx = s->c->ctx, .shown = s->c->shown_dst, .visit = flush_one, .data = s
	};
	int r = dbt_copy_sync_fs(s->c->ctx, s->dst.root_fd);

	if (r == 1)
		return dbt_tree_walk(&walk, s->dst.root_fd, err);
	if (r == 0)
		r = s->c->ctx->sys->fsync(s->dst.root_fd);
	return r < 0 ? dbt_err_sys(err, r, "cannot flush '%s'", s->c->shown_dst) : 0;
}

static int seal(struct copier *t, struct dbt_ident *ret_root, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = t->c->ctx;
	struct sealer s = { .c = t->c,
		            .src = { .ctx = ctx, .root_fd = t->c->src, .fd = -1 },
		            .dst = { .ctx = ctx, .root_fd = t->root, .fd = -1 } };
	struct dbt_tree_reader draft = { 0 };
	int r = dbt_tree_reader_of_draft(&t->draft, &draft, err);

	if (r == 0)
		r = dbt_tree_writer_open(t->c->list, &s.list, err);
	if (r == 0)
		r = seal_entries(&s, &draft, err);
	if (r == 0 && t->c->times)
		r = give_times(&s, err);
	if (r == 0)
		r = flush_all(&s, err);
	if (r == 0)
		r = dbt_tree_writer_commit(ctx, &s.list, err);
	if (r == 0)
		*ret_root = s.root;
	dbt_tree_writer_release(&s.list);
	dbt_tree_reader_release(&draft);
	dbt_tree_dirs_release(&s.src);
	dbt_tree_dirs_release(&s.dst);
	return r;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

enum { MAX_NOTES = 3 };

/* What a filesystem cannot hold is the same for each of ten thousand files: the first few say it. */
struct notes {
	const struct dbt_ctx *ctx;
	unsigned n;
};

static void note(void *data, enum dbt_log_level level, const char *text)
{
	struct notes *notes = data;

	if (level != DBT_LOG_NOTE || notes->n++ < MAX_NOTES)
		dbt_ctx_log(notes->ctx, level, "%s", text);
}

static int copy(const struct dbt_tree_copy *c, struct dbt_tree_copied *ret, struct dbt_err *err)
{
	struct copier t = { .c = c, .root = -1, .batch = { .c = c, .all_from_device = true } };
	const struct dbt_tree_walk walk = {
		.ctx = c->ctx, .shown = c->shown_src, .visit = visit, .data = &t
	};
	struct dbt_ident root = { 0 }, source = { 0 };
	int r = dbt_tree_draft_open(c->list, &t.draft, err);

	if (r < 0)
		return r;
	r = dbt_tree_walk(&walk, c->src, err);
	if (r == 0)
		r = drain(&t, err);
	if (r == 0)
		r = seal(&t, &root, err);
	if (r == 0) {
		r = dbt_ident_fd(c->ctx, c->src, &source);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot look at '%s'", c->shown_src);
	}
	while (t.levels.n > 0)
		if (t.levels.items[--t.levels.n].fd >= 0)
			(void)close(t.levels.items[t.levels.n].fd);
	free(t.levels.items);
	dbt_tree_writer_release(&t.draft);
	dbt_tree_batch_release(&t.batch);
	if (t.root >= 0)
		(void)close(t.root);
	if (r < 0)
		return r;
	source.size_bytes = t.batch.done_bytes;
	*ret = (struct dbt_tree_copied){ .source = source,
		                         .root = root,
		                         .digest = t.digest,
		                         .from_device = t.batch.all_from_device };
	return 0;
}

int dbt_tree_copy(const struct dbt_tree_copy *c, struct dbt_tree_copied *ret, struct dbt_err *err)
{
	struct notes notes = { .ctx = c->ctx };
	struct dbt_ctx ctx = *c->ctx;
	struct dbt_tree_copy calm = *c;
	int r;

	ctx.log = note;
	ctx.log_data = &notes;
	calm.ctx = &ctx;
	r = copy(&calm, ret, err);
	if (notes.n > MAX_NOTES)
		dbt_ctx_log(c->ctx, DBT_LOG_NOTE, "... and so %u more in '%s'", notes.n - MAX_NOTES,
		            c->shown_dst);
	return r;
}
