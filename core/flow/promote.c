#include "flow/promote.h"

#include "base/cleanup.h"
#include "flow/carry.h"
#include "flow/checks.h"
#include "flow/dirs.h"
#include "flow/exchange.h"
#include "flow/look.h"
#include "flow/remove.h"
#include "move/copy.h"
#include "move/mark.h"
#include "move/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

/* --- one copy ------------------------------------------------------------------------------------------- */

struct pass {
	struct dbt_flow *flow;
	struct dbt_promotion *p;
	struct dbt_pmember *m;
	const struct dbt_promote_run *run;
	uint64_t done_before, total;
	struct dbt_at src_at, dst_at;
	int src, dst;
};

static struct dbt_copy_opts copy_opts(const struct pass *pass)
{
	return (struct dbt_copy_opts){ .limit_bytes_s = pass->run->limit_bytes_s,
		                       .shown_src = pass->m->path,
		                       .shown_dst = pass->m->copy,
		                       .done_before_bytes = pass->done_before,
		                       .total_bytes = pass->total };
}

/* The open source is still the file that was planned: same inode, size, times, nobody touched its metadata. */
static int check_source(const struct pass *pass, struct dbt_err *err)
{
	struct dbt_ident now;
	int r = dbt_ident_fd(pass->flow->ctx, pass->src, &now);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", pass->m->path);
	if (!dbt_ident_same_content(&now, &pass->m->source, true, false))
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                   "'%s' changed while it was being promoted", pass->m->path);
	return 0;
}

static int copy_bytes(struct pass *pass, struct dbt_err *err)
{
	const struct dbt_copy_opts opts = copy_opts(pass);
	const struct dbt_ctx *ctx = pass->flow->ctx;
	struct dbt_copy_result result;
	struct dbt_digest digest;
	int r = dbt_copy_file(ctx, pass->src, &pass->m->source, pass->dst, &opts, &result, err);

	if (r == 0)
		r = check_source(pass, err);
	if (r == 0)
		r = dbt_carry_meta(ctx,
		                   &(struct dbt_carry){ .src = pass->src,
		                                        .dst = pass->dst,
		                                        .shown_src = pass->m->path,
		                                        .shown_dst = pass->m->copy,
		                                        .times = &pass->m->source },
		                   err);
	if (r < 0)
		return r;
	r = ctx->sys->fsync(pass->dst);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot flush '%s'", pass->m->copy);
	r = dbt_ident_fd(ctx, pass->dst, &pass->m->copied);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at the copy '%s'", pass->m->copy);
	digest = result.digest;
	(void)dbt_digest_hex(&digest, pass->m->xxh128);
	pass->m->from_device = result.from_device;
	if (!result.from_device)
		dbt_ctx_log(ctx, DBT_LOG_NOTE,
		            "the copy '%s' was compared, but its filesystem does not show that the "
		            "bytes came "
		            "from the device rather than from memory",
		            pass->m->copy);
	return 0;
}

static int make_copy(struct pass *pass, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = pass->flow->ctx;
	int r;

	pass->dst = ctx->sys->openat(pass->dst_at.dirfd, pass->m->part,
	                             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (pass->dst < 0)
		return dbt_err_sys(err, pass->dst, "cannot create a file in the directory of '%s'",
		                   pass->m->copy);
	r = dbt_mark_set(ctx, pass->dst, pass->p->token);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot mark '%s'", pass->m->copy);
	else
		r = copy_bytes(pass, err);
	if (r < 0) {
		(void)ctx->sys->close(pass->dst);
		/* Here, through the open directory: its name may lead elsewhere by now. */
		(void)ctx->sys->unlinkat(pass->dst_at.dirfd, pass->m->part, 0);
		return r;
	}
	r = ctx->sys->close(pass->dst);
	return r < 0 ? dbt_err_sys(err, r, "cannot close '%s'", pass->m->copy) : 0;
}

/* A file that already stands under the copy's name: taken when it holds the same bytes. */
static int take_over(struct pass *pass, struct dbt_err *err)
{
	const struct dbt_copy_opts opts = copy_opts(pass);
	const struct dbt_ctx *ctx = pass->flow->ctx;
	struct dbt_digest digest;
	struct dbt_ident now;
	bool is_same = false;
	int r;

	pass->dst = dbt_at_open(ctx, &pass->dst_at, O_RDONLY | O_NONBLOCK, 0);
	if (pass->dst < 0)
		return dbt_err_sys(err, pass->dst, "cannot open '%s'", pass->m->copy);
	r = dbt_ident_fd(ctx, pass->dst, &now);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot look at '%s'", pass->m->copy);
	else if (!dbt_ident_same_content(&now, &pass->m->copied, true, false))
		r = dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE, "'%s' changed meanwhile",
		                pass->m->copy);
	else
		r = dbt_copy_compare(ctx, pass->src, pass->dst, &opts, &is_same, &digest, err);
	(void)ctx->sys->close(pass->dst);
	if (r < 0)
		return r;
	if (!is_same)
		return dbt_err_refuse(
			err,
			"'%s' exists and holds other bytes: move it away, or choose another "
			"directory",
			pass->m->copy);
	(void)dbt_digest_hex(&digest, pass->m->xxh128);
	return check_source(pass, err);
}

static int copy_member(struct pass *pass, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = pass->flow->ctx;
	int r = dbt_at_resolve_strict(ctx, pass->m->path, &pass->src_at, err);

	if (r < 0)
		return r;
	r = dbt_at_resolve_strict(ctx, pass->m->copy, &pass->dst_at, err);
	if (r < 0) {
		dbt_at_release(&pass->src_at);
		return r;
	}
	pass->src = dbt_at_open(ctx, &pass->src_at, O_RDONLY | O_NONBLOCK, 0);
	if (pass->src < 0) {
		r = dbt_err_sys(err, pass->src, "cannot open '%s'", pass->m->path);
	} else {
		r = check_source(pass, err);
		if (r == 0)
			r = pass->m->copied.ino != 0 ? take_over(pass, err) : make_copy(pass, err);
		(void)ctx->sys->close(pass->src);
	}
	dbt_at_release(&pass->src_at);
	dbt_at_release(&pass->dst_at);
	return r;
}

static int copy_all(struct dbt_flow *flow, struct dbt_promotion *p,
                    const struct dbt_promote_run *run, struct dbt_err *err)
{
	struct pass pass = { .flow = flow, .p = p, .run = run, .total = dbt_promotion_size(p) };
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++) {
		pass.m = &p->members[i];
		r = p->is_set ? make_set_dirs(flow, p, pass.m, err) : 0;
		if (r == 0)
			r = copy_member(&pass, err);
		pass.done_before += pass.m->source.size_bytes;
	}
	return r;
}

/* --- final names ---------------------------------------------------------------------------------------- */

static int rename_no_replace(const struct dbt_ctx *ctx, const struct dbt_at *at, const char *part)
{
	int r = ctx->sys->renameat2(at->dirfd, part, at->dirfd, at->name, RENAME_NOREPLACE);

	if (r != -EINVAL && r != -ENOSYS)
		return r;
	r = ctx->sys->linkat(at->dirfd, part, at->dirfd, at->name, 0);
	return r == 0 ? ctx->sys->unlinkat(at->dirfd, part, 0) : r;
}

static int give_name(struct dbt_flow *flow, struct dbt_pmember *m, struct dbt_err *err)
{
	struct dbt_at at;
	struct dbt_ident now;
	int r = dbt_at_resolve_strict(flow->ctx, m->copy, &at, err);

	if (r < 0)
		return r;
	r = rename_no_replace(flow->ctx, &at, m->part);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot give the copy its name '%s'", m->copy);
	if (r == 0) {
		r = dbt_at_ident(flow->ctx, &at, &now);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot look at the copy '%s'", m->copy);
	}
	if (r == 0 && !dbt_ident_same_content(&now, &m->copied, false, false))
		r = dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE, "'%s' is not the copy that was made",
		                m->copy);
	if (r == 0)
		m->copied = now; /* the rename may have changed ctime */
	dbt_at_release(&at);
	return r;
}

/* True for the files that this run made, as against those that stood there already. */
static bool was_made(const struct dbt_pmember *m, const bool *stood_there,
                     const struct dbt_promotion *p)
{
	return !stood_there[m - p->members];
}

static int give_names(struct dbt_flow *flow, struct dbt_promotion *p, const bool *stood_there,
                      struct dbt_err *err)
{
	struct dbt_dirs dirs = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		if (was_made(&p->members[i], stood_there, p))
			r = give_name(flow, &p->members[i], err);
	if (r == 0)
		r = dbt_dirs_of(flow->ctx, p, true, &dirs, err);
	if (r == 0)
		r = dbt_dirs_sync(flow->ctx, &dirs, err);
	dbt_dirs_release(&dirs);
	return r;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* Proves, in each directory, that exchange does what it says, before it touches data. */
static int prove_exchange(struct dbt_flow *flow, struct dbt_promotion *p, bool allow_by_link,
                          struct dbt_err *err)
{
	struct dbt_dirs dirs = { 0 };
	int r = dbt_dirs_of(flow->ctx, p, false, &dirs, err);

	for (size_t i = 0; r == 0 && i < dirs.n; i++) {
		int works = dbt_swap_prove_exchange(flow->ctx, dirs.items[i].fd, p->token);

		if (works < 0)
			r = dbt_err_sys(err, works, "cannot make files in '%s'",
			                dirs.items[i].shown);
		else if (works == 0 && allow_by_link)
			p->by_link = true;
		else if (works == 0)
			r = dbt_err_refuse(err,
			                   "the filesystem of '%s' cannot exchange two names in "
			                   "one step; --force swaps by "
			                   "hard link and rename, which loses the new file of an "
			                   "updater that replaces the "
			                   "database in that very instant",
			                   dirs.items[i].shown);
	}
	dbt_dirs_release(&dirs);
	return r;
}

int dbt_promote_finish(struct dbt_flow *flow, struct dbt_promotion *p, bool allow_by_link,
                       struct dbt_err *err)
{
	int r = 0;

	if (p->state != DBT_STATE_SWAPPING) {
		r = prove_exchange(flow, p, allow_by_link, err);
		if (r == 0)
			r = dbt_flow_enter(flow, p, DBT_STATE_SWAPPING, err);
	}
	if (r == 0)
		r = dbt_exchange_in(flow, p, err);
	if (r == 0)
		r = dbt_flow_enter(flow, p, DBT_STATE_PROMOTED, err);
	return r;
}

static int undo(struct dbt_flow *flow, struct dbt_promotion *p, const char *why,
                struct dbt_err *err)
{
	struct dbt_err paths;
	size_t links = 0;
	int paths_r, r;

	/* Before the state swapping no path was exchanged: a link there is that of another run. */
	for (size_t i = 0; p->state != DBT_STATE_SWAPPING && i < p->n_members; i++)
		p->members[i].never_swapped = true;
	/* A path that somebody replaced meanwhile is not ours any more: the rest is undone all the same. */
	paths_r = dbt_exchange_out(flow, p, &paths);
	r = dbt_exchange_count_links(flow, p, &links, err);
	if (r == 0 && (links > 0 || (paths_r < 0 && paths.kind != DBT_ERR_CHANGED))) {
		if (err)
			*err = paths;
		return paths_r < 0 ? paths_r : -EIO;
	}
	/* Copies first: a link under a kept name shows that its path is not exchanged. */
	if (r == 0)
		r = dbt_remove_copies(flow, p, err);
	if (r == 0)
		r = dbt_remove_temporaries(flow, p, err);
	if (r < 0)
		return r;
	dbt_remove_set_dirs(flow, p);
	free(p->error);
	p->error = strdup(why);
	p->owner = (struct dbt_run){ 0 };
	return dbt_flow_enter(flow, p, DBT_STATE_FAILED, err);
}

int dbt_promote_undo(struct dbt_flow *flow, struct dbt_promotion *p, const char *why,
                     struct dbt_err *err)
{
	struct dbt_ctx ctx = *flow->ctx;
	struct dbt_flow calm = *flow;

	/* The signal that asks to stop asks for just this: it must not stop the undoing as well. */
	ctx.cancel = NULL;
	calm.ctx = &ctx;
	return undo(&calm, p, why, err);
}

static int run_steps(struct dbt_flow *flow, struct dbt_promotion *p,
                     const struct dbt_promote_run *run, struct dbt_err *err)
{
	dbt_autofree bool *stood_there = calloc(p->n_members, sizeof(*stood_there));
	int r;

	if (!stood_there)
		return dbt_err_sys(err, -ENOMEM, "cannot promote '%s'", p->path);
	for (size_t i = 0; i < p->n_members; i++)
		stood_there[i] = p->members[i].copied.ino != 0;
	r = copy_all(flow, p, run, err);
	/* The inodes of the copies are on record before they get their names: so recover knows them. */
	if (r == 0)
		r = dbt_ledger_save(flow->ledger, p, "copied", err);
	if (r == 0)
		r = give_names(flow, p, stood_there, err);
	if (r == 0)
		r = dbt_flow_enter(flow, p, DBT_STATE_VERIFIED, err);
	if (r == 0)
		r = dbt_promote_finish(flow, p, run->allow_by_link, err);
	return r;
}

int dbt_promote(struct dbt_flow *flow, struct dbt_promotion *p, const struct dbt_promote_run *run,
                struct dbt_err *err)
{
	uint64_t start_ns = flow->ctx->sys->now_ns();
	struct dbt_err undo;
	int r;

	p->state = DBT_STATE_COPYING;
	p->owner = flow->self;
	p->created_ns = flow->ctx->sys->wall_ns();
	r = dbt_ledger_add(flow->ledger, p, err);
	if (r < 0) {
		p->state = DBT_STATE_FAILED;
		return r;
	}
	r = run_steps(flow, p, run, err);
	p->elapsed_ns = flow->ctx->sys->now_ns() - start_ns;
	if (r == 0)
		return dbt_flow_let_go(flow, p, "done", err);
	if (dbt_promote_undo(flow, p, err ? err->text : "failed", &undo) < 0)
		return dbt_err_add(err, "undoing it failed too: %s; run 'dbtier recover'",
		                   undo.text);
	return dbt_err_add(err, "nothing was changed");
}
