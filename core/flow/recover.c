#include "flow/recover.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "flow/look.h"
#include "flow/promote.h"
#include "flow/prove.h"
#include "flow/reclaim.h"
#include "flow/remove.h"
#include "flow/rollback.h"
#include "flow/tree.h"
#include "flow/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is to do -------------------------------------------------------------------------------------- */

/* After a power cut the ctime of a copy may be another than the one on record: its bytes decide, and the new ctime is
 * what tells from now on. */
static bool is_proved(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_pmember *m,
                      const struct dbt_look *look)
{
	bool same = false, from_device;
	struct dbt_err err;

	if (look->copy_is != DBT_COPY_TOUCHED)
		return look->copy_is == DBT_COPY_INTACT;
	if (dbt_prove_copy(flow->ctx, p, m, &same, &from_device, &err) < 0 || !same)
		return false;
	m->copied.ctime_ns = look->copy_ident.ctime_ns;
	return true;
}

/* All copies stand proved under their names, and each path is still the original, or its link already. */
static int can_roll_forward(struct dbt_flow *flow, struct dbt_promotion *p, bool *ret,
                            struct dbt_err *err)
{
	*ret = p->state == DBT_STATE_VERIFIED || p->state == DBT_STATE_SWAPPING;
	for (size_t i = 0; *ret && i < p->n_members; i++) {
		struct dbt_look l;
		int r = dbt_look_through(flow->ctx, p, &p->members[i], &l, err);

		/* Without its list a directory is not known to be whole. */
		if (r < 0 && err->kind == DBT_ERR_LEDGER) {
			*ret = false;
			return 0;
		}
		if (r < 0)
			return r;
		*ret = is_proved(flow, p, &p->members[i], &l) &&
		       ((l.path_is == DBT_PATH_LINK && l.kept_is == DBT_KEPT_ORIGINAL) ||
		        (l.path_is == DBT_PATH_ORIGINAL &&
		         (l.kept_is == DBT_KEPT_MISSING || l.kept_is == DBT_KEPT_LINK)));
		dbt_look_release(&l);
	}
	return 0;
}

/* What happened to a complete promotion that can be put in order without a doubt. */
enum drift {
	DRIFT_NONE = 0, /* nothing, or nothing that can */
	DRIFT_LOST, /* the originals are there, and some path leads nowhere: the copy was deleted or cleaned */
	DRIFT_AWAY, /* ... or its filesystem is not mounted: it may come back */
	DRIFT_RETURN, /* ... or is its original again: put back by hand, or by an undo that ended after the ledger's
	                 "promoted" had reached the disk, although that was reported as failed */
	DRIFT_END, /* no link, no original, no copy is left: only the ledger knows of it */
};

/* Is the filesystem there that a file lay on? Told by the directory that is left above it. Where it cannot be told,
 * device numbers having changed, it counts as away: what is not mounted is not lost. */
static bool filesystem_is_there(const struct dbt_ctx *ctx, const struct dbt_pmember *m)
{
	dbt_autofree char *path = strdup(m->path);
	struct dbt_ident dir;
	int r = -ENOENT;

	for (char *slash; path && r == -ENOENT && (slash = strrchr(path, '/'));) {
		slash[slash == path] = '\0';
		r = dbt_ident_of(ctx, AT_FDCWD, path, &dir);
		if (slash == path)
			break;
	}
	return r == 0 && dir.dev == m->source.dev;
}

/* Is nothing left of a member: no link, no original, no copy that dbtier made? */
static bool is_nothing_left(struct dbt_flow *flow, const struct dbt_pmember *m,
                            const struct dbt_look *l)
{
	if ((l->path_is != DBT_PATH_OTHER && l->path_is != DBT_PATH_MISSING) ||
	    l->kept_is == DBT_KEPT_ORIGINAL || l->kept_is == DBT_KEPT_CHANGED)
		return false;
	if (!m->taken_over && l->copy_is != DBT_COPY_MISSING && l->copy_is != DBT_COPY_OTHER)
		return false;
	return l->path_is != DBT_PATH_MISSING || filesystem_is_there(flow->ctx, m);
}

static int find_drift(struct dbt_flow *flow, const struct dbt_promotion *p, enum drift *ret,
                      struct dbt_err *err)
{
	bool wanted = false, lost = false, away = false, possible = true, nothing_left = true;

	for (size_t i = 0; i < p->n_members; i++) {
		const struct dbt_pmember *m = &p->members[i];
		struct dbt_look l;
		int r = dbt_look_at(flow->ctx, p, m, &l, err);

		if (r < 0)
			return r;
		if (l.path_is == DBT_PATH_LINK) {
			lost = lost || l.copy_is == DBT_COPY_MISSING;
			away = away || l.copy_is == DBT_COPY_UNMOUNTED;
		}
		if (l.path_is == DBT_PATH_ORIGINAL)
			wanted = true;
		else if (l.path_is != DBT_PATH_LINK || l.kept_is != DBT_KEPT_ORIGINAL)
			possible = false;
		nothing_left = nothing_left && is_nothing_left(flow, m, &l);
		dbt_look_release(&l);
	}
	if (possible && (away || lost || wanted))
		*ret = away ? DRIFT_AWAY : lost ? DRIFT_LOST : DRIFT_RETURN;
	else
		*ret = nothing_left ? DRIFT_END : DRIFT_NONE;
	return 0;
}

/* --- one promotion -------------------------------------------------------------------------------------- */

static int forward_or_back(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_recovery *ret,
                           struct dbt_err *err)
{
	struct dbt_err first;
	bool forward = false;
	int r = can_roll_forward(flow, p, &forward, err);

	if (r == 0 && forward) {
		r = dbt_promote_finish(flow, p, false, &first);
		if (r == 0) {
			*ret = DBT_RECOVERY_FINISHED;
			return dbt_flow_let_go(flow, p, "recovered", err);
		}
	}
	if (r < 0 && !forward)
		return r;
	*ret = DBT_RECOVERY_UNDONE;
	return dbt_promote_undo(flow, p, forward ? first.text : "the run was interrupted", err);
}

static int repair_drift(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_recovery *ret,
                        struct dbt_err *err)
{
	const struct dbt_rollback_opts opts = { .mode = DBT_ROLLBACK_PLAIN };
	enum drift drift;
	int r = find_drift(flow, p, &drift, err);

	if (r < 0)
		return r;
	switch (drift) {
	case DRIFT_LOST:
	case DRIFT_AWAY:
		free(p->error);
		p->error = strdup(drift == DRIFT_LOST ? DBT_PROMOTION_COPY_LOST
		                                      : DBT_PROMOTION_COPY_UNMOUNTED);
		*ret = DBT_RECOVERY_RETURNED;
		return p->error ? dbt_rollback(flow, p, &opts, err)
		                : dbt_err_sys(err, -ENOMEM, "cannot recover");
	case DRIFT_RETURN:
		*ret = DBT_RECOVERY_RETURNED;
		return dbt_rollback(flow, p, &opts, err);
	case DRIFT_END:
		*ret = DBT_RECOVERY_ENDED;
		p->owner = (struct dbt_run){ 0 };
		return dbt_flow_enter(flow, p, DBT_STATE_ROLLED_BACK, err);
	case DRIFT_NONE:
		break; /* only a dead run's name is to be taken off */
	}
	return dbt_flow_let_go(flow, p, "released", err);
}

static int end_rollback(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_recovery *ret,
                        struct dbt_err *err)
{
	bool given_up = false;
	int r = dbt_rollback_finish(flow, p, &given_up, err);

	*ret = given_up ? DBT_RECOVERY_UNDONE : DBT_RECOVERY_FINISHED;
	return r;
}

/* Why the path is its original again, and what to do. */
static const char *reason_of(enum dbt_recovery what, const struct dbt_promotion *p)
{
	if (what != DBT_RECOVERY_RETURNED)
		return NULL;
	if (dbt_promotion_keeps_copies(p))
		return DBT_PROMOTION_COPY_UNMOUNTED "; the copy stays for 'dbtier recover "
						    "--repromote' once the filesystem is there";
	return dbt_promotion_lost_copies(p) ? "the copy is gone" : "its link is gone";
}

/* What is to be said of copies that a promotion left because they were out of reach. */
enum awaited {
	AWAITED_NONE = 0, /* there are none, or they are not wanted any more */
	AWAITED_BACK,     /* all can be seen again */
	AWAITED_UNMOUNTED,
	AWAITED_UNSEEN, /* one cannot be looked at: err of look_for_copies says why */
};

static enum awaited look_for_copies(struct dbt_flow *flow, const struct dbt_promotion *p,
                                    const struct dbt_promotions *all, struct dbt_err *err)
{
	bool awaits = false, unmounted = false;

	if (p->state != DBT_STATE_ROLLED_BACK || !dbt_promotion_keeps_copies(p) ||
	    dbt_promotion_is_superseded(p, all))
		return AWAITED_NONE;
	for (size_t i = 0; i < p->n_members; i++) {
		struct dbt_look l;

		if (!p->members[i].copy_left)
			continue;
		if (dbt_look_at(flow->ctx, p, &p->members[i], &l, err) < 0)
			return AWAITED_UNSEEN;
		awaits = awaits || l.copy_is != DBT_COPY_MISSING;
		unmounted = unmounted || l.copy_is == DBT_COPY_UNMOUNTED;
		dbt_look_release(&l);
	}
	if (!awaits)
		return AWAITED_NONE;
	return unmounted ? AWAITED_UNMOUNTED : AWAITED_BACK;
}

/* Does an active promotion use a copy that this one has left? Then it is not left any more. */
static bool give_up_reused(struct dbt_promotion *p, const struct dbt_promotions *all)
{
	bool changed = false;

	for (size_t i = 0; i < p->n_members; i++)
		for (size_t j = 0; p->members[i].copy_left && j < all->n; j++)
			for (size_t k = 0; dbt_state_is_active(all->items[j].state) &&
			                   k < all->items[j].n_members;
			     k++)
				if (strcmp(all->items[j].members[k].copy, p->members[i].copy) ==
				    0) {
					p->members[i].copy_left = false;
					changed = true;
				}
	return changed;
}

static int remove_leftovers(struct dbt_flow *flow, struct dbt_promotion *p,
                            const struct dbt_promotions *all, enum dbt_recovery *ret,
                            struct dbt_err *err)
{
	int r = dbt_remove_temporaries(flow, p, err);

	if (r == 0 && !(give_up_reused(p, all) && !dbt_promotion_waits(p)))
		r = dbt_remove_copies(flow, p, err);
	if (r == 0)
		dbt_remove_set_dirs(flow, p);
	if (r == 0 && !dbt_promotion_waits(p))
		*ret = DBT_RECOVERY_CLEANED;
	if (r == 0)
		r = dbt_flow_let_go(flow, p, "cleaned up", err);
	if (r == 0 && dbt_promotion_is_tree(p) && !dbt_promotion_waits(p))
		dbt_tree_remove_lists(p);
	return r;
}

static int recover_claimed(struct dbt_flow *flow, struct dbt_promotion *p,
                           const struct dbt_promotions *all, enum dbt_recovery *ret,
                           struct dbt_err *err)
{
	if (p->kind == DBT_KIND_ARCHIVE)
		return dbt_unpack_recover(flow, p, ret, err);
	switch (p->state) {
	case DBT_STATE_PLANNED:
	case DBT_STATE_COPYING:
	case DBT_STATE_VERIFIED:
	case DBT_STATE_SWAPPING:
		return forward_or_back(flow, p, ret, err);
	case DBT_STATE_PROMOTED:
		return repair_drift(flow, p, ret, err);
	case DBT_STATE_RECLAIMING:
		*ret = DBT_RECOVERY_UNDONE;
		return dbt_reclaim_give_up(flow, p, err);
	case DBT_STATE_ROLLING_BACK:
		return end_rollback(flow, p, ret, err);
	case DBT_STATE_ROLLED_BACK:
	case DBT_STATE_FAILED:
		return remove_leftovers(flow, p, all, ret, err);
	}
	return 0;
}

/* Is there anything to do? A promotion that is well, or that ended long ago and left nothing, is not
 * written to. What cannot be looked at is looked at again, with its error, by recover_one. */
static bool is_of_interest(struct dbt_flow *flow, const struct dbt_promotion *p)
{
	enum drift drift;

	if (p->kind == DBT_KIND_ARCHIVE)
		return dbt_unpack_is_of_interest(flow, p);
	if (p->owner.pid != 0 || dbt_promotion_waits(p))
		return true;
	if (!dbt_state_is_active(p->state))
		return p->made_dir && !p->keep_copy;
	if (p->state != DBT_STATE_PROMOTED)
		return true;
	return find_drift(flow, p, &drift, NULL) < 0 || drift != DRIFT_NONE;
}

int dbt_recovery_report_add(struct dbt_recovery_report *list, const struct dbt_promotion *p,
                            enum dbt_recovery what, const char *text)
{
	struct dbt_recovered *item;

	if (what == DBT_RECOVERY_NONE)
		return 0;
	item = dbt_vec_push(list);
	if (!item)
		return -ENOMEM;
	*item = (struct dbt_recovered){ .id = p->id,
		                        .path = strdup(p->path),
		                        .what = what,
		                        .text = text ? strdup(text) : NULL };
	list->n_failed += what == DBT_RECOVERY_FAILED;
	return item->path && (!text || item->text) ? 0 : -ENOMEM;
}

static int recover_one(struct dbt_flow *flow, const struct dbt_promotion *seen,
                       const struct dbt_promotions *all, struct dbt_recovery_report *list)
{
	enum dbt_recovery what = DBT_RECOVERY_NONE;
	struct dbt_promotion p = { 0 };
	struct dbt_err err = { 0 };
	int r = dbt_flow_claim(flow, seen->id, &p, &err);

	if (r < 0)
		return dbt_recovery_report_add(list, seen,
		                               err.kind == DBT_ERR_BUSY ? DBT_RECOVERY_BUSY
		                                                        : DBT_RECOVERY_FAILED,
		                               err.text);
	r = recover_claimed(flow, &p, all, &what, &err);
	r = r < 0 ? dbt_recovery_report_add(list, &p, DBT_RECOVERY_FAILED, err.text)
	          : dbt_recovery_report_add(list, &p, what, reason_of(what, &p));
	dbt_promotion_release(&p);
	return r;
}

/* Does it have a file of which neither the path nor the original is there? */
static bool is_away(struct dbt_flow *flow, const struct dbt_promotion *p)
{
	bool away = false;

	for (size_t i = 0; !away && dbt_state_is_active(p->state) && i < p->n_members; i++) {
		struct dbt_look l;

		if (dbt_look_at(flow->ctx, p, &p->members[i], &l, NULL) < 0)
			return false;
		away = l.path_is == DBT_PATH_MISSING && l.kept_is == DBT_KEPT_MISSING;
		dbt_look_release(&l);
	}
	return away;
}

/* Tells of copies that are left alone; not before each other command. 1: it is such a promotion. */
static int leave_waiting(struct dbt_flow *flow, const struct dbt_promotion *p,
                         const struct dbt_promotions *all, bool tell,
                         struct dbt_recovery_report *list)
{
	static const char *const texts[] = {
		[AWAITED_BACK] = "its copy is there again: 'dbtier recover --repromote' promotes "
				 "again; deleted by hand it is forgotten",
		[AWAITED_UNMOUNTED] =
			"the path is its original; the copy's filesystem is not mounted",
	};
	struct dbt_err err = { 0 };
	enum awaited awaited = look_for_copies(flow, p, all, &err);
	dbt_autofree char *unseen = NULL;

	if (awaited == AWAITED_NONE)
		return 0;
	if (awaited == AWAITED_UNSEEN &&
	    asprintf(&unseen,
	             "the path is its original; whether the copy is left cannot be seen: %s",
	             err.text) < 0)
		unseen = NULL;
	if (tell && dbt_recovery_report_add(list, p, DBT_RECOVERY_WAITING,
	                                    unseen ? unseen : texts[awaited]) < 0)
		return -ENOMEM;
	return 1;
}

static int recover_all(struct dbt_flow *flow, bool boot, const struct dbt_resume_wish *wished,
                       struct dbt_recovery_report *ret, struct dbt_err *err)
{
	struct dbt_promotions all = { 0 };
	int r = dbt_ledger_load(flow->ledger, &all, err);

	for (size_t i = 0; r == 0 && i < all.n; i++) {
		int waits = leave_waiting(flow, &all.items[i], &all, !wished, ret);

		if (waits < 0)
			r = dbt_err_sys(err, waits, "cannot recover");
		if (waits != 0)
			continue;
		if (!(boot && is_away(flow, &all.items[i])) &&
		    !is_of_interest(flow, &all.items[i])) {
			/* A run may have ended between its last step and these. */
			if (!dbt_state_is_active(all.items[i].state) &&
			    dbt_promotion_is_tree(&all.items[i]))
				dbt_tree_remove_lists(&all.items[i]);
			continue;
		}
		if (wished && dbt_resume_is_wanted(flow, &all.items[i], wished))
			continue;
		r = boot && is_away(flow, &all.items[i])
		            ? dbt_recovery_report_add(ret, &all.items[i], DBT_RECOVERY_WAITING,
		                                      "for its filesystem: it is not there, and "
		                                      "may be mounted later")
		            : recover_one(flow, &all.items[i], &all, ret);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot recover");
		else if (dbt_ctx_cancelled(flow->ctx))
			r = dbt_err_sys(err, -ECANCELED, "recovering");
	}
	dbt_promotions_release(&all);
	return r;
}

int dbt_recover(struct dbt_flow *flow, const struct dbt_resume_wish *wished,
                struct dbt_recovery_report *ret, struct dbt_err *err)
{
	return recover_all(flow, false, wished, ret, err);
}

int dbt_recover_boot(struct dbt_flow *flow, struct dbt_recovery_report *ret, struct dbt_err *err)
{
	return recover_all(flow, true, NULL, ret, err);
}

void dbt_recovery_report_release(struct dbt_recovery_report *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].path);
		free(list->items[i].text);
	}
	free(list->items);
	*list = (struct dbt_recovery_report){ 0 };
}
