#include "flow/unpack.h"

#include "base/cleanup.h"
#include "flow/checks.h"
#include "flow/look.h"
#include "flow/unpack_roots.h"
#include "flow/unpack_work.h"
#include "survey/mounts.h"
#include "survey/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the roots ------------------------------------------------------------------------------------------ */

static int make_root(struct dbt_unpack_work *w, struct dbt_unpack_root *root,
                     struct dbt_pmember *member, bool is_hot, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = w->flow->ctx;
	struct dbt_mounts *mounts = NULL;
	struct dbt_place place = { 0 };
	int r = dbt_at_resolve_strict(ctx, member->path, &root->at, err);

	if (r < 0)
		return r;
	root->member = member;
	r = ctx->sys->mkdirat(root->at.dirfd, member->part, 0700);
	if (r == 0)
		root->fd = ctx->sys->openat(root->at.dirfd, member->part,
		                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (r < 0 || root->fd < 0)
		return dbt_err_sys(err, r < 0 ? r : root->fd, "cannot make a directory for '%s'",
		                   member->path);
	r = dbt_mounts_new(ctx, &mounts, err);
	if (r == 0)
		r = dbt_place_of_fd(ctx, mounts, root->fd, NULL, &place, err);
	if (r == 0)
		root->space = (struct dbt_sink_space){
			.fd = root->fd,
			.shown = root->at.shown,
			.reserve_bytes = is_hot ? dbt_plan_reserve(&w->opts->plan, &place)
			                        : dbt_default_reserve(&place),
		};
	dbt_place_release(&place);
	dbt_mounts_free(mounts);
	return r;
}

static int make_roots(struct dbt_unpack_work *w, struct dbt_err *err)
{
	size_t n = w->n_archives;
	int r = make_root(w, &w->hot, &w->p->members[n], true, err);

	if (r == 0 && n + 1 < w->p->n_members)
		r = make_root(w, &w->cold, &w->p->members[n + 1], false, err);
	return r;
}

static void close_root(struct dbt_unpack_root *root)
{
	if (root->fd >= 0)
		(void)close(root->fd);
	dbt_at_release(&root->at);
}

/* What the archives let others do, their contents let them do: of several the least. Given away, they are their owner's;
 * where that is not possible only this user is left. */
static void note_readers(struct dbt_unpack_work *w)
{
	const struct dbt_ident *first = &w->p->members[0].source;

	w->mode_mask = 0777;
	w->uid = first->uid;
	w->gid = first->gid;
	for (size_t i = 0; i < w->n_archives; i++) {
		const struct dbt_ident *a = &w->p->members[i].source;

		w->mode_mask &= a->mode & S_IROTH ? 0777U : a->mode & S_IRGRP ? 0770U : 0700U;
		if (a->uid != w->uid || a->gid != w->gid)
			w->mode_mask &= 0707U;
	}
	if (geteuid() != 0 && w->gid != getegid())
		w->mode_mask &= w->mode_mask & S_IROTH ? 0777U : 0700U;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static int fill(struct dbt_unpack_work *w, struct dbt_err *err)
{
	int r = make_roots(w, err);

	if (r == 0)
		r = dbt_sink_new(w->flow->ctx, &w->sink, err);
	if (r == 0)
		r = dbt_unpack_read(w, err);
	dbt_sink_free(w->sink);
	w->sink = NULL;
	return r == 0 ? dbt_unpack_build(w, err) : r;
}

/* Everything is on the devices and on record. The visible root is the last to get its name. */
static int show(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	int r = 0;

	if (p->state != DBT_STATE_SWAPPING)
		r = dbt_flow_enter(flow, p, DBT_STATE_SWAPPING, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = dbt_unpack_rename(flow, roots[i], true, err);
	return r == 0 ? dbt_flow_enter(flow, p, DBT_STATE_PROMOTED, err) : r;
}

/* Where the visible root has its name the database is there, and nothing is taken back. */
static int is_shown(struct dbt_flow *flow, const struct dbt_promotion *p, bool *ret,
                    struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	enum dbt_root_is is = DBT_ROOT_MISSING;
	int r = n > 0 ? dbt_unpack_root_is(flow->ctx, roots[n - 1], &is, err) : 0;

	*ret = is == DBT_ROOT_VISIBLE;
	return r;
}

static int undo(struct dbt_flow *flow, struct dbt_promotion *p, const char *why,
                struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	bool shown = false, gone = true;
	int r = is_shown(flow, p, &shown, err);

	if (r == 0 && shown)
		return dbt_err_set(err, DBT_ERR_CHANGED, -EBUSY,
		                   "'%s' is complete and in its place: it stays", p->path);
	for (size_t i = n; r == 0 && i-- > 0;) {
		enum dbt_root_is is = DBT_ROOT_MISSING;
		bool was_seen, this_gone = true;

		r = dbt_unpack_root_is(flow->ctx, roots[i], &is, err);
		was_seen = is == DBT_ROOT_VISIBLE;
		if (r == 0 && was_seen)
			r = dbt_unpack_rename(flow, roots[i], false, err);
		if (r == 0)
			r = dbt_unpack_remove_root(flow, p, roots[i], !was_seen, &this_gone, err);
		gone = gone && this_gone;
	}
	if (r < 0)
		return r;
	if (!gone)
		dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
		            "a directory '.dbtier-%s-0.part' stays in '%s': somebody else put "
		            "files into it",
		            p->token, p->target);
	free(p->error);
	p->error = strdup(why);
	p->owner = (struct dbt_run){ 0 };
	return dbt_flow_enter(flow, p, DBT_STATE_FAILED, err);
}

/* The signal that asks to stop asks for just this: it must not stop the undoing as well. */
static int undo_calmly(struct dbt_flow *flow, struct dbt_promotion *p, const char *why,
                       struct dbt_err *err)
{
	struct dbt_ctx ctx = *flow->ctx;
	struct dbt_flow calm = *flow;

	ctx.cancel = NULL;
	calm.ctx = &ctx;
	return undo(&calm, p, why, err);
}

static int run_steps(struct dbt_flow *flow, struct dbt_promotion *p,
                     const struct dbt_unpack_opts *opts, struct dbt_err *err)
{
	struct dbt_unpack_work w = {
		.flow = flow, .p = p, .opts = opts, .hot.fd = -1, .cold.fd = -1
	};
	int r;

	while (w.n_archives < p->n_members && p->members[w.n_archives].role == DBT_ROLE_ARCHIVE)
		w.n_archives++;
	w.hot.at.dirfd = w.cold.at.dirfd = -1;
	dbt_unpack_entries_init(&w.entries);
	note_readers(&w);
	r = fill(&w, err);
	close_root(&w.hot);
	close_root(&w.cold);
	dbt_unpack_entries_release(&w.entries);
	if (r == 0)
		r = dbt_flow_enter(flow, p, DBT_STATE_VERIFIED, err);
	if (r == 0 && dbt_ctx_cancelled(flow->ctx))
		r = dbt_err_sys(err, -ECANCELED, "unpacking '%s'", p->path);
	return r == 0 ? show(flow, p, err) : r;
}

int dbt_unpack(struct dbt_flow *flow, struct dbt_promotion *p, const struct dbt_unpack_opts *opts,
               struct dbt_err *err)
{
	uint64_t start_ns = flow->ctx->sys->now_ns();
	struct dbt_err undone;
	int r;

	p->state = DBT_STATE_COPYING;
	p->owner = flow->self;
	p->created_ns = flow->ctx->sys->wall_ns();
	r = dbt_ledger_add(flow->ledger, p, err);
	if (r < 0) {
		p->state = DBT_STATE_FAILED;
		return r;
	}
	r = run_steps(flow, p, opts, err);
	p->elapsed_ns = flow->ctx->sys->now_ns() - start_ns;
	if (r == 0)
		return dbt_flow_let_go(flow, p, "done", err);
	if (undo_calmly(flow, p, err ? err->text : "failed", &undone) < 0)
		return dbt_err_add(err, "undoing it failed too: %s; run 'dbtier recover'",
		                   undone.text);
	return dbt_err_add(err, "nothing was changed");
}

/* --- recover -------------------------------------------------------------------------------------------- */

/* Complete and as recorded, under whichever names. */
static int is_intact(struct dbt_flow *flow, const struct dbt_promotion *p, bool *ret,
                     struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	int r = 0;

	*ret = p->state == DBT_STATE_VERIFIED || p->state == DBT_STATE_SWAPPING;
	for (size_t i = 0; *ret && i < n; i++) {
		struct dbt_unpack_diff diff = { 0 };
		enum dbt_root_is is;

		r = dbt_unpack_root_is(flow->ctx, roots[i], &is, err);
		*ret = r == 0 && (is == DBT_ROOT_VISIBLE || is == DBT_ROOT_TEMPORARY);
		if (*ret)
			r = dbt_unpack_compare(flow->ctx, p, roots[i], true, &diff, err);
		*ret = *ret && r == 0 && diff.is == DBT_DIFF_AS_RECORDED;
		dbt_unpack_diff_release(&diff);
	}
	return r;
}

static int forward_or_back(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_recovery *ret,
                           struct dbt_err *err)
{
	struct dbt_err first = { 0 };
	bool intact = false, shown = false;
	int r = is_intact(flow, p, &intact, err);

	if (r == 0)
		r = is_shown(flow, p, &shown, err);
	if (r < 0)
		return r;
	/* Once it is visible it is the user's: what he did with it since is no reason to take it away. */
	if (intact || (shown && p->state == DBT_STATE_SWAPPING)) {
		if (show(flow, p, &first) == 0) {
			*ret = DBT_RECOVERY_FINISHED;
			return dbt_flow_let_go(flow, p, "recovered", err);
		}
	}
	*ret = DBT_RECOVERY_UNDONE;
	return undo_calmly(flow, p, first.kind ? first.text : "the run was interrupted", err);
}

/* No root is left under any name, and the target is there to be sure of it. */
static int is_gone(struct dbt_flow *flow, const struct dbt_promotion *p, bool *ret,
                   struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	int r = 0;

	*ret = dbt_look_target_is_mounted(flow->ctx, p);
	for (size_t i = 0; *ret && i < n; i++) {
		enum dbt_root_is is = DBT_ROOT_VISIBLE;

		r = dbt_unpack_root_is(flow->ctx, roots[i], &is, err);
		*ret = r == 0 && (is == DBT_ROOT_MISSING || is == DBT_ROOT_OTHER);
	}
	return r;
}

bool dbt_unpack_is_of_interest(struct dbt_flow *flow, const struct dbt_promotion *p)
{
	bool gone = false;

	if (!dbt_state_is_active(p->state))
		return p->owner.pid != 0;
	if (p->owner.pid != 0 || p->state != DBT_STATE_PROMOTED)
		return true;
	return is_gone(flow, p, &gone, NULL) < 0 || gone;
}

static int end_if_gone(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_recovery *ret,
                       struct dbt_err *err)
{
	bool gone = false;
	int r = is_gone(flow, p, &gone, err);

	if (r < 0)
		return r;
	if (!gone)
		return dbt_flow_let_go(flow, p, "released", err);
	*ret = DBT_RECOVERY_ENDED;
	p->owner = (struct dbt_run){ 0 };
	return dbt_flow_enter(flow, p, DBT_STATE_ROLLED_BACK, err);
}

int dbt_unpack_recover(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_recovery *ret,
                       struct dbt_err *err)
{
	switch (p->state) {
	case DBT_STATE_PLANNED:
	case DBT_STATE_COPYING:
	case DBT_STATE_VERIFIED:
	case DBT_STATE_SWAPPING:
		return forward_or_back(flow, p, ret, err);
	case DBT_STATE_ROLLING_BACK:
		*ret = DBT_RECOVERY_FINISHED;
		return dbt_unpack_rollback(
			flow, p, &(struct dbt_rollback_opts){ .mode = p->rollback_mode }, err);
	case DBT_STATE_PROMOTED:
	case DBT_STATE_RECLAIMING: /* never entered */
		return end_if_gone(flow, p, ret, err);
	case DBT_STATE_ROLLED_BACK:
	case DBT_STATE_FAILED:
		break;
	}
	return dbt_flow_let_go(flow, p, "released", err);
}
