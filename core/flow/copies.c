#include "flow/copies.h"

#include "base/cleanup.h"
#include "base/units.h"
#include "flow/carry.h"
#include "flow/checks.h"
#include "move/copy.h"
#include "move/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- directories of a set ------------------------------------------------------------------------------- */

/* A new directory gets the owner and permissions of the one it mirrors. */
static int adorn_dir(const struct dbt_ctx *ctx, const struct dbt_at *at,
                     const struct dbt_ident *like)
{
	int fd = dbt_at_open(ctx, at, O_RDONLY | O_DIRECTORY, 0), r;

	if (fd < 0)
		return fd;
	/* Another owner needs root; then the mode must do. */
	(void)ctx->sys->fchownat(fd, "", like->uid, like->gid, AT_EMPTY_PATH);
	r = ctx->sys->fchmod(fd, like->mode & 0777);
	(void)ctx->sys->close(fd);
	return r == 0 ? dbt_at_sync_dir(ctx, at) : r;
}

/* Makes one directory. One that is there already must be in trusted hands. */
static int make_dir(struct dbt_flow *flow, const char *path, const struct dbt_ident *like,
                    struct dbt_err *err)
{
	const struct dbt_ctx *ctx = flow->ctx;
	struct dbt_at at;
	int r = dbt_at_resolve_strict(ctx, path, &at, err);

	if (r < 0)
		return r;
	r = ctx->sys->mkdirat(at.dirfd, at.name, 0700);
	if (r == -EEXIST) {
		r = dbt_check_set_dir(ctx, &at, like, err);
	} else {
		if (r == 0)
			r = adorn_dir(ctx, &at, like);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot make the directory '%s'", path);
	}
	dbt_at_release(&at);
	return r;
}

static bool same_dir(const char *a, const char *b)
{
	size_t len = (size_t)(strrchr(a, '/') - a);

	return (size_t)(strrchr(b, '/') - b) == len && strncmp(a, b, len) == 0;
}

/* The directories above a copy, from the set's own downwards. */
static int make_set_dirs(struct dbt_flow *flow, const struct dbt_promotion *p,
                         const struct dbt_pmember *m, struct dbt_err *err)
{
	dbt_autofree char *path = strdup(m->copy);
	struct dbt_at source;
	struct dbt_ident like;
	int r;

	if (!path)
		return dbt_err_sys(err, -ENOMEM, "cannot make directories");
	r = dbt_at_resolve_strict(flow->ctx, m->path, &source, err);
	if (r < 0)
		return r;
	r = dbt_ident_fd(flow->ctx, source.dirfd, &like);
	dbt_at_release(&source);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at the directory of '%s'", m->path);
	for (char *slash = strchr(path + strlen(p->target) + 1, '/'); slash && r == 0;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_dir(flow, path, &like, err);
		*slash = '/';
	}
	return r;
}

/* --- what is copied ------------------------------------------------------------------------------------- */

/* One of the files that are copied, as the engine sees it. */
struct job {
	struct dbt_pmember *m;
	int dst_dir;     /* where the unfinished copy lies; -1: not open */
	bool whole_mark; /* small: marked once, at its end */
};

struct pass {
	struct dbt_flow *flow;
	struct dbt_promotion *p;
	const struct dbt_promote_run *run;
	struct job *jobs;
	size_t n_jobs;
	uint64_t done_before;
};

/* The open source is still the file that was planned: same inode, size, times, nobody touched its metadata. */
static int check_source(const struct dbt_ctx *ctx, const struct dbt_pmember *m, int fd,
                        struct dbt_err *err)
{
	struct dbt_ident now;
	int r = dbt_ident_fd(ctx, fd, &now);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", m->path);
	if (!dbt_ident_same_content(&now, &m->source, true, false))
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                   "'%s' changed while it was being promoted", m->path);
	return 0;
}

/* --- one copy ------------------------------------------------------------------------------------------- */

/* Up to here the mark is set once, with the whole file's digest: before the flush that it shares with others. */
enum { SMALL_BYTES = 1 << 20 };

static uint64_t job_size(void *data, size_t i)
{
	const struct pass *pass = data;

	return pass->jobs[i].m->source.size_bytes;
}

static int open_source(const struct dbt_ctx *ctx, const struct dbt_pmember *m, struct dbt_err *err)
{
	struct dbt_at at;
	int r = dbt_at_resolve_strict(ctx, m->path, &at, err), fd;

	if (r < 0)
		return r;
	fd = dbt_at_open(ctx, &at, O_RDONLY | O_NONBLOCK, 0);
	dbt_at_release(&at);
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", m->path);
	r = check_source(ctx, m, fd, err);
	if (r < 0) {
		(void)ctx->sys->close(fd);
		return r;
	}
	return fd;
}

/* A finished copy has its original's mode, which may not let even its owner write. */
static int open_part(const struct dbt_ctx *ctx, const struct job *job)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = ctx->sys->openat(job->dst_dir, job->m->part, O_RDWR | flags, 0), again;

	if (fd != -EACCES)
		return fd;
	fd = ctx->sys->openat(job->dst_dir, job->m->part, O_RDONLY | flags, 0);
	if (fd < 0)
		return fd;
	again = ctx->sys->fchmod(fd, 0600);
	if (again == 0)
		again = ctx->sys->openat(job->dst_dir, job->m->part, O_RDWR | flags, 0);
	(void)ctx->sys->close(fd);
	return again;
}

/* Can this file be continued: is it as our run left it, and could nobody else write to it since? */
static bool is_ours(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                    const struct dbt_pmember *m, int fd, struct dbt_copy_item *ret)
{
	struct dbt_ident now;

	return dbt_ident_fd(ctx, fd, &now) == 0 && S_ISREG(now.mode) && now.nlink == 1 &&
	       (now.uid == geteuid() || now.uid == m->source.uid) && !(now.mode & 022) &&
	       now.size_bytes == m->source.size_bytes &&
	       dbt_mark_get_part(fd, p->token, &ret->kept_bytes, &ret->kept_digest);
}

/* What an interrupted run left of the copy, when its mark says so: open, for us alone. -1: nothing of use, and nothing
 * in the way. */
static int open_half_copy(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                          const struct job *job, struct dbt_copy_item *ret)
{
	int fd = open_part(ctx, job);

	if (fd == -ENOENT)
		return -1;
	if (fd >= 0 && is_ours(ctx, p, job->m, fd, ret) && ctx->sys->fchmod(fd, 0600) == 0)
		return fd;
	if (fd >= 0)
		(void)ctx->sys->close(fd);
	ret->kept_bytes = 0;
	/* Under a random name that only the ledger knows. */
	(void)ctx->sys->unlinkat(job->dst_dir, job->m->part, 0);
	return -1;
}

static int make_part(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                     const struct job *job, struct dbt_err *err)
{
	int fd = ctx->sys->openat(job->dst_dir, job->m->part,
	                          O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot create a file in the directory of '%s'",
		                   job->m->copy);
	r = job->whole_mark ? 0 : dbt_mark_set(ctx, fd, p->token);
	if (r >= 0)
		return fd;
	(void)ctx->sys->close(fd);
	(void)ctx->sys->unlinkat(job->dst_dir, job->m->part, 0);
	return dbt_err_sys(err, r, "cannot mark '%s'", job->m->copy);
}

static int open_copy(const struct pass *pass, const struct dbt_ctx *ctx, struct job *job,
                     struct dbt_copy_item *ret, struct dbt_err *err)
{
	struct dbt_at at;
	int r = dbt_at_resolve_strict(ctx, job->m->copy, &at, err), fd = -1;

	if (r < 0)
		return r;
	job->dst_dir = at.dirfd;
	at.dirfd = -1;
	dbt_at_release(&at);
	if (pass->run->resume)
		fd = open_half_copy(ctx, pass->p, job, ret);
	return fd >= 0 ? fd : make_part(ctx, pass->p, job, err);
}

static void release_job(struct job *job)
{
	if (job->dst_dir >= 0)
		(void)close(job->dst_dir);
	job->dst_dir = -1;
}

static int job_open(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *ret,
                    struct dbt_err *err)
{
	const struct pass *pass = data;
	struct job *job = &pass->jobs[i];

	ret->shown_src = job->m->path;
	ret->shown_dst = job->m->copy;
	job->whole_mark = job->m->source.size_bytes <= SMALL_BYTES;
	ret->src = open_source(ctx, job->m, err);
	if (ret->src < 0)
		return ret->src;
	ret->dst = open_copy(pass, ctx, job, ret, err);
	if (ret->dst >= 0)
		return 0;
	(void)ctx->sys->close(ret->src);
	release_job(job);
	return ret->dst;
}

/* Everything that the copy gets besides its bytes, so that the flush takes it along. */
static int job_written(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *item,
                       const struct dbt_digest *digest, struct dbt_err *err)
{
	const struct pass *pass = data;
	struct dbt_pmember *m = pass->jobs[i].m;
	int r = check_source(ctx, m, item->src, err);

	if (r == 0)
		r = dbt_carry_meta(ctx,
		                   &(struct dbt_carry){ .src = item->src,
		                                        .dst = item->dst,
		                                        .shown_src = m->path,
		                                        .shown_dst = m->copy,
		                                        .times = &m->source },
		                   err);
	if (r < 0)
		return r;
	if (pass->jobs[i].whole_mark)
		r = dbt_mark_set_part(ctx, item->dst, pass->p->token, m->source.size_bytes, digest);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot mark '%s'", m->copy);
	(void)ctx->sys->close(item->src);
	item->src = -1;
	return 0;
}

/* Where there are no marks, or just now not, an interrupted copy starts over. */
static int job_flushed(void *data, const struct dbt_ctx *ctx, size_t i,
                       const struct dbt_copy_item *item, uint64_t bytes,
                       const struct dbt_digest *digest, struct dbt_err *err)
{
	const struct pass *pass = data;

	(void)i;
	(void)err;
	(void)dbt_mark_set_part(ctx, item->dst, pass->p->token, bytes, digest);
	return 0;
}

static int job_proved(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *item,
                      const struct dbt_copy_result *result, struct dbt_err *err)
{
	const struct pass *pass = data;
	struct dbt_pmember *m = pass->jobs[i].m;
	int r;

	if (!pass->jobs[i].whole_mark)
		(void)dbt_mark_set_part(ctx, item->dst, pass->p->token, m->source.size_bytes,
		                        &result->digest);
	r = dbt_ident_fd(ctx, item->dst, &m->copied);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at the copy '%s'", m->copy);
	r = ctx->sys->close(item->dst);
	item->dst = -1;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot close '%s'", m->copy);
	(void)dbt_digest_hex(&result->digest, m->xxh128);
	m->from_device = result->from_device;
	if (!result->from_device)
		dbt_ctx_log(ctx, DBT_LOG_NOTE,
		            "the copy '%s' was compared, but its filesystem does not show that the "
		            "bytes came from the device rather than from memory",
		            m->copy);
	if (result->kept_bytes > 0) {
		char size[DBT_UNITS_TEXT_BYTES];

		dbt_ctx_log(ctx, DBT_LOG_NOTE,
		            "%s of '%s' were there already from an interrupted run, and proved",
		            dbt_units_size(result->kept_bytes, size), m->copy);
	}
	return 0;
}

static void job_close(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *item,
                      bool failed)
{
	const struct pass *pass = data;
	struct job *job = &pass->jobs[i];

	if (item->src >= 0)
		(void)ctx->sys->close(item->src);
	if (item->dst >= 0)
		(void)ctx->sys->close(item->dst);
	/* Here, through the open directory: its name may lead elsewhere by now. */
	if (failed)
		(void)ctx->sys->unlinkat(job->dst_dir, job->m->part, 0);
	release_job(job);
}

static int by_inode(const void *a, const void *b)
{
	const struct job *x = a, *y = b;

	return (x->m->source.ino > y->m->source.ino) - (x->m->source.ino < y->m->source.ino);
}

/* In the order of their inodes: on a disk that is, roughly, the order in which the files lie. */
static int copy_the_rest(struct pass *pass, struct dbt_err *err)
{
	const struct dbt_copy_many many = { .n = pass->n_jobs,
		                            .data = pass,
		                            .size = job_size,
		                            .open = job_open,
		                            .written = job_written,
		                            .flushed = job_flushed,
		                            .proved = job_proved,
		                            .close = job_close };
	const struct dbt_copy_opts opts = { .limit_bytes_s = pass->run->limit_bytes_s,
		                            .jobs = pass->run->jobs,
		                            .shown_src = pass->p->path,
		                            .done_before_bytes = pass->done_before,
		                            .total_bytes = dbt_promotion_size(pass->p) };

	if (pass->n_jobs > 1)
		qsort(pass->jobs, pass->n_jobs, sizeof(*pass->jobs), by_inode);
	return dbt_copy_many(pass->flow->ctx, &many, &opts, err);
}

/* --- what stood there before ---------------------------------------------------------------------------- */

static int compare(const struct pass *pass, struct dbt_pmember *m, int src, int dst,
                   struct dbt_err *err)
{
	const struct dbt_copy_opts opts = { .shown_src = m->path,
		                            .shown_dst = m->copy,
		                            .done_before_bytes = pass->done_before,
		                            .total_bytes = dbt_promotion_size(pass->p) };
	const struct dbt_ctx *ctx = pass->flow->ctx;
	struct dbt_digest digest;
	struct dbt_ident now;
	bool is_same = false;
	int r = dbt_ident_fd(ctx, dst, &now);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", m->copy);
	if (!dbt_ident_same_content(&now, &m->copied, true, false))
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE, "'%s' changed meanwhile",
		                   m->copy);
	r = dbt_copy_compare(ctx, src, dst, &opts, &is_same, &digest, err);
	if (r < 0)
		return r;
	if (!is_same)
		return dbt_err_refuse(
			err,
			"'%s' exists and holds other bytes: move it away, or choose another "
			"directory",
			m->copy);
	(void)dbt_digest_hex(&digest, m->xxh128);
	return check_source(ctx, m, src, err);
}

/* A file that already stands under the copy's name: taken when it holds the same bytes. */
static int take_over(const struct pass *pass, struct dbt_pmember *m, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = pass->flow->ctx;
	int src = open_source(ctx, m, err), dst, r;
	struct dbt_at at;

	if (src < 0)
		return src;
	r = dbt_at_resolve_strict(ctx, m->copy, &at, err);
	if (r == 0) {
		dst = dbt_at_open(ctx, &at, O_RDONLY | O_NONBLOCK, 0);
		dbt_at_release(&at);
		if (dst < 0) {
			r = dbt_err_sys(err, dst, "cannot open '%s'", m->copy);
		} else {
			r = compare(pass, m, src, dst, err);
			(void)ctx->sys->close(dst);
		}
	}
	(void)ctx->sys->close(src);
	return r;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static int make_all_dirs(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && p->is_set && i < p->n_members; i++)
		if (i == 0 || !same_dir(p->members[i].copy, p->members[i - 1].copy))
			r = make_set_dirs(flow, p, &p->members[i], err);
	return r;
}

int dbt_copies_make(struct dbt_flow *flow, struct dbt_promotion *p,
                    const struct dbt_promote_run *run, struct dbt_err *err)
{
	struct pass pass = { .flow = flow, .p = p, .run = run };
	int r = make_all_dirs(flow, p, err);

	if (r < 0)
		return r;
	pass.jobs = calloc(p->n_members, sizeof(*pass.jobs));
	if (!pass.jobs)
		return dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", p->path);
	for (size_t i = 0; r == 0 && i < p->n_members; i++) {
		struct dbt_pmember *m = &p->members[i];

		if (m->copied.ino == 0) {
			pass.jobs[pass.n_jobs++] = (struct job){ .m = m, .dst_dir = -1 };
			continue;
		}
		r = take_over(&pass, m, err);
		pass.done_before += m->source.size_bytes;
	}
	if (r == 0)
		r = copy_the_rest(&pass, err);
	free(pass.jobs);
	return r;
}
