#include "flow/promote.h"

#include "base/cleanup.h"
#include "flow/copies.h"
#include "flow/dirs.h"
#include "flow/exchange.h"
#include "flow/look.h"
#include "flow/remove.h"
#include "flow/resume.h"
#include "flow/tree.h"
#include "move/copy.h"
#include "move/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The ctime that the rename gave is on record. btrfs does not keep it with the directory alone, and after a power cut
 * the copy would look touched: so the inode is flushed as well. */
static int flush_copy(struct dbt_flow *flow, const struct dbt_pmember *m, struct dbt_err *err)
{
	struct dbt_at at;
	int r = dbt_at_resolve_strict(flow->ctx, m->copy, &at, err), fd;

	if (r < 0)
		return r;
	fd = dbt_at_open(flow->ctx, &at, O_RDONLY | O_NONBLOCK, 0);
	r = fd < 0 ? fd : flow->ctx->sys->fsync(fd);
	if (fd >= 0)
		(void)flow->ctx->sys->close(fd);
	dbt_at_release(&at);
	return r < 0 ? dbt_err_sys(err, r, "cannot flush '%s'", m->copy) : 0;
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
	if (r == 0 && p->n_members == 1 && !stood_there[0]) {
		r = flush_copy(flow, &p->members[0], err);
	} else if (r == 0 && dirs.n > 0) { /* for many at once what flush_copy does for one */
		r = dbt_copy_sync_fs(flow->ctx, dirs.items[0].fd);
		r = r < 0 ? dbt_err_sys(err, r, "cannot flush '%s'", dirs.items[0].shown) : 0;
	}
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
		else if (works == 0 && dbt_promotion_is_tree(p))
			r = dbt_err_refuse(err,
			                   "the filesystem of '%s' cannot exchange two names in "
			                   "one step, without which a directory cannot be replaced "
			                   "by a link safely",
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
	r = dbt_flow_enter(flow, p, DBT_STATE_FAILED, err);
	if (r == 0 && dbt_promotion_is_tree(p) && !dbt_promotion_waits(p))
		dbt_tree_remove_lists(p);
	return r;
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
	r = dbt_promotion_is_tree(p) ? dbt_tree_promote(flow, p, run->limit_bytes_s, run->jobs, err)
	                             : dbt_copies_make(flow, p, run, err);
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

/* A new promotion in the ledger, or the one that an interrupted run had begun. */
static int begin(struct dbt_flow *flow, struct dbt_promotion *p, bool *ret_resumed,
                 struct dbt_err *err)
{
	int r = dbt_resume_find(flow, p, ret_resumed, err);

	if (r < 0 || *ret_resumed)
		return r;
	p->state = DBT_STATE_COPYING;
	p->owner = flow->self;
	p->created_ns = flow->ctx->sys->wall_ns();
	return dbt_ledger_add(flow->ledger, p, err);
}

int dbt_promote(struct dbt_flow *flow, struct dbt_promotion *p, const struct dbt_promote_run *run,
                struct dbt_err *err)
{
	uint64_t start_ns = flow->ctx->sys->now_ns();
	struct dbt_promote_run steps = *run;
	struct dbt_err undo;
	int r = begin(flow, p, &steps.resume, err);

	if (r < 0 && !steps.resume) {
		p->state = DBT_STATE_FAILED;
		return r;
	}
	if (r == 0)
		r = run_steps(flow, p, &steps, err);
	p->elapsed_ns = flow->ctx->sys->now_ns() - start_ns;
	if (r == 0)
		return dbt_flow_let_go(flow, p, "done", err);
	if (dbt_promote_undo(flow, p, err ? err->text : "failed", &undo) < 0)
		return dbt_err_add(err, "undoing it failed too: %s; run 'dbtier recover'",
		                   undo.text);
	return dbt_err_add(err, "nothing was changed");
}
