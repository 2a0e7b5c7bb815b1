#include "flow/reclaim.h"

#include "base/cleanup.h"
#include "flow/carry.h"
#include "flow/checks.h"
#include "flow/dirs.h"
#include "flow/look.h"
#include "flow/prove.h"
#include "flow/remove.h"
#include "flow/tree.h"
#include "move/copy.h"
#include "move/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* The copy carries everything that a rollback has to bring back: owner, mode, extended attributes, ACLs. */
static int check_meta(struct dbt_flow *flow, const struct dbt_promotion *p,
                      const struct dbt_pmember *m, const struct dbt_look *look,
                      const struct dbt_at *kept, struct dbt_err *err)
{
	dbt_autoclose int original = dbt_at_open(flow->ctx, kept, O_RDONLY | O_NONBLOCK, 0);
	dbt_autoclose int copy = dbt_at_open(flow->ctx, &look->copy, O_RDONLY | O_NONBLOCK, 0);
	struct dbt_meta_report report = { 0 };
	const struct dbt_meta_item *loss;
	int r;

	if (original < 0)
		return dbt_err_sys(err, original, "cannot open '%s'", kept->shown);
	if (copy < 0)
		return dbt_err_sys(err, copy, "cannot open '%s'", m->copy);
	if (dbt_promotion_is_tree(p)) {
		dbt_autofree char *list = dbt_tree_list_path(p, ".tree");

		return list ? dbt_tree_compare_meta(flow->ctx, original, copy, list, m->copy, err)
		            : dbt_err_sys(err, -ENOMEM, "cannot compare '%s'", m->copy);
	}
	r = dbt_meta_compare(flow->ctx, original, copy, &report, err);
	if (r < 0)
		return dbt_err_wrap(err, "'%s'", m->copy);
	loss = dbt_carry_loss(&report);
	if (loss)
		r = dbt_err_refuse(err,
		                   "the copy '%s' lacks what the original has: %s (%s); "
		                   "the original stays",
		                   m->copy, loss->what, loss->why);
	dbt_meta_report_release(&report);
	return r;
}

/* Nobody writes to the original, or to anything in it. */
static int check_no_writer(struct dbt_flow *flow, const struct dbt_promotion *p,
                           const struct dbt_at *kept, struct dbt_err *err)
{
	dbt_autoclose int fd = -1;
	struct dbt_tree_guard guard = { 0 };
	int r;

	if (!dbt_promotion_is_tree(p))
		return dbt_check_no_writer(flow->ctx, kept, err);
	fd = dbt_at_open(flow->ctx, kept, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", kept->shown);
	r = dbt_tree_guard_take(flow->ctx, fd, kept->shown, NULL, &guard, err);
	dbt_tree_guard_release(&guard);
	return r;
}

/* Only the original's ctime differs: its bytes decide whether they are those of the copy. */
static int check_touched(struct dbt_flow *flow, const struct dbt_promotion *p,
                         const struct dbt_pmember *m, struct dbt_err *err)
{
	bool same = false;
	int r = dbt_prove_original(flow->ctx, p, m, &same, err);

	if (r == 0 && !same)
		r = dbt_err_refuse(err, "the original '%s' beside '%s' was changed: it stays",
		                   m->kept, m->path);
	return r;
}

static int check_member(struct dbt_flow *flow, const struct dbt_promotion *p,
                        const struct dbt_pmember *m, struct dbt_err *err)
{
	struct dbt_look look;
	struct dbt_at kept = { .dirfd = -1 };
	int r = dbt_look_through(flow->ctx, p, m, &look, err);

	if (r < 0)
		return r;
	if (look.path_is != DBT_PATH_LINK)
		r = dbt_err_refuse(err, "'%s' is not the link to its copy any more", m->path);
	else if (look.copy_is == DBT_COPY_UNMOUNTED)
		r = dbt_err_refuse(err, "the filesystem of '%s' is not mounted", m->copy);
	else if (look.kept_is != DBT_KEPT_ORIGINAL)
		r = dbt_err_refuse(err, "the original '%s' beside '%s' %s", m->kept, m->path,
		                   look.kept_is == DBT_KEPT_MISSING ? "is missing" : "was changed");
	else if (m->taken_over)
		r = dbt_err_refuse(err,
		                   "the copy '%s' stood there before and is not dbtier's: whoever "
		                   "put it there may "
		                   "remove it, so the original stays",
		                   m->copy);
	else if (look.copy_journal)
		r = dbt_err_refuse(
			err,
			"SQLite left changes beside the copy '%s' (-wal or -journal): run "
			"'PRAGMA wal_checkpoint(TRUNCATE)' in sqlite3 first",
			m->copy);
	else if ((r = dbt_at_sibling(&look.path, m->kept, &kept)) < 0)
		r = dbt_err_sys(err, r, "cannot look at '%s'", m->kept);
	else
		r = check_no_writer(flow, p, &kept, err);
	if (r == 0)
		r = check_meta(flow, p, m, &look, &kept, err);
	if (r == 0 && look.kept_touched)
		r = check_touched(flow, p, m, err);
	dbt_at_release(&kept);
	dbt_look_release(&look);
	return r;
}

static int prove_all(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_err *err)
{
	bool same, from_device;

	for (size_t i = 0; i < p->n_members; i++) {
		int r = dbt_prove_copy(flow->ctx, p, &p->members[i], &same, &from_device, err);

		if (r < 0)
			return r;
		if (!same)
			return err ? dbt_err_add(err, "the original stays") : -EIO;
		if (!from_device)
			dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
			            "'%s' was read and is right, but its filesystem does not show "
			            "that the bytes "
			            "came from the device rather than from memory",
			            p->members[i].copy);
	}
	return 0;
}

/* The copy is about to be the only one: everything that leads to it must be on stable storage. */
static int settle_copies(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_err *err)
{
	struct dbt_dirs dirs = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++) {
		const struct dbt_pmember *m = &p->members[i];
		struct dbt_at at;
		int fd;

		r = dbt_at_resolve_strict(flow->ctx, m->copy, &at, err);
		if (r < 0)
			return r;
		fd = dbt_at_open(flow->ctx, &at, O_RDONLY | O_NONBLOCK, 0);
		/* What is in a directory was flushed when it was copied; once more where that is one call. */
		r = fd < 0 ? fd : dbt_promotion_is_tree(p) ? dbt_copy_sync_fs(flow->ctx, fd) : 0;
		if (r >= 0)
			r = flow->ctx->sys->fsync(fd);
		if (fd >= 0)
			(void)flow->ctx->sys->close(fd);
		dbt_at_release(&at);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot flush '%s'", m->copy);
	}
	if (r == 0)
		r = dbt_dirs_of(flow->ctx, p, true, &dirs, err);
	if (r == 0)
		r = dbt_dirs_sync(flow->ctx, &dirs, err);
	dbt_dirs_release(&dirs);
	return r;
}

static int delete_original(struct dbt_flow *flow, const struct dbt_promotion *p,
                           struct dbt_pmember *m, struct dbt_err *err)
{
	const struct dbt_expect original = { .ident = &m->source, .any_dev = true };
	struct dbt_look look;
	int r = dbt_look_through(flow->ctx, p, m, &look, err);

	if (r < 0)
		return r;
	if (look.path_is != DBT_PATH_LINK ||
	    (look.copy_is != DBT_COPY_INTACT && look.copy_is != DBT_COPY_TOUCHED))
		r = dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                "'%s' or its copy changed meanwhile: its original "
		                "stays",
		                m->path);
	else if (!dbt_promotion_is_tree(p))
		r = dbt_swap_unlink(flow->ctx, look.path.dirfd, m->kept, &original);
	else if (look.kept_is == DBT_KEPT_ORIGINAL && (r = dbt_remove_kept_tree(flow, p, err)) == 0)
		r = 1;
	if (r >= 0)
		m->reclaimed = r == 1 || look.kept_is == DBT_KEPT_MISSING;
	if (r == 0 && !m->reclaimed)
		r = dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                "the original '%s' changed meanwhile: it stays", m->kept);
	else if (r < 0 && err && err->kind == DBT_ERR_NONE)
		r = dbt_err_sys(err, r, "cannot delete '%s'", m->kept);
	dbt_look_release(&look);
	return r < 0 ? r : 0;
}

/* Has the original of a directory left its kept name? Then what is left of it is only to be deleted. */
static bool is_half_deleted(struct dbt_flow *flow, const struct dbt_promotion *p)
{
	struct dbt_look look;
	bool half;

	if (!dbt_promotion_is_tree(p) || dbt_look_at(flow->ctx, p, &p->members[0], &look, NULL) < 0)
		return false;
	half = look.path_is == DBT_PATH_LINK && look.kept_is == DBT_KEPT_MISSING;
	dbt_look_release(&look);
	return half;
}

static int delete_all(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	struct dbt_dirs dirs = { 0 };
	struct dbt_err later;
	int r = dbt_dirs_of(flow->ctx, p, false, &dirs, err);

	if (r == 0)
		r = dbt_dirs_lock(flow->ctx, &dirs, err);
	dbt_err_clear(r == 0 ? err : NULL);
	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		if (!p->members[i].reclaimed)
			r = delete_original(flow, p, &p->members[i], err);
	if (r == 0)
		r = dbt_dirs_sync(flow->ctx, &dirs, err);
	dbt_dirs_release(&dirs);
	if (r < 0 && is_half_deleted(flow, p)) {
		(void)dbt_flow_let_go(flow, p, "reclaim interrupted", &later);
		return dbt_err_add(err, "'dbtier recover' deletes the rest");
	}
	p->state = DBT_STATE_PROMOTED;
	p->reclaim = r == 0;
	if (dbt_flow_let_go(flow, p, r == 0 ? "reclaimed" : "reclaim given up", &later) < 0) {
		if (r == 0 && err)
			*err = later;
		return r == 0 ? later.code : r;
	}
	return r;
}

int dbt_reclaim_give_up(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	for (size_t i = 0; i < p->n_members; i++) {
		struct dbt_pmember *m = &p->members[i];
		struct dbt_look look;
		int r = dbt_look_at(flow->ctx, p, m, &look, err);

		if (r < 0)
			return r;
		if (look.path_is == DBT_PATH_LINK && look.kept_is == DBT_KEPT_MISSING) {
			if (dbt_promotion_is_tree(p))
				r = dbt_remove_kept_tree(flow, p, err);
			m->reclaimed = true;
		}
		dbt_look_release(&look);
		if (r < 0)
			return r;
	}
	p->state = DBT_STATE_PROMOTED;
	p->reclaim = dbt_promotion_is_reclaimed(p);
	return dbt_flow_let_go(flow, p, "reclaim given up", err);
}

int dbt_reclaim(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	struct dbt_err later;
	int r = p->kind == DBT_KIND_ARCHIVE
	                ? dbt_err_refuse(err,
	                                 "'%s' was unpacked from '%s', which dbtier never deletes: "
	                                 "nothing was changed",
	                                 p->path, p->members[0].path)
	                : dbt_check_durable_target(flow->ctx, p->target, err);

	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		if (!p->members[i].reclaimed)
			r = check_member(flow, p, &p->members[i], err);
	if (r == 0)
		r = prove_all(flow, p, err);
	if (r == 0)
		r = settle_copies(flow, p, err);
	if (r == 0)
		r = dbt_flow_enter(flow, p, DBT_STATE_RECLAIMING, err);
	if (r == 0)
		return delete_all(flow, p, err);
	p->state = DBT_STATE_PROMOTED;
	(void)dbt_flow_let_go(flow, p, "reclaim refused", &later);
	return r;
}
