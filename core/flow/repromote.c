#include "flow/repromote.h"

#include "flow/look.h"
#include "flow/plan.h"
#include "flow/promote.h"
#include "flow/remove.h"
#include "flow/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_candidate(const struct dbt_promotions *all, const struct dbt_promotion *p)
{
	return p->state == DBT_STATE_ROLLED_BACK &&
	       (dbt_promotion_lost_copies(p) || dbt_promotion_keeps_copies(p)) &&
	       !dbt_promotion_is_superseded(p, all);
}

/* The rules that --force lifts cannot lose data, and whoever promoted it to this place has answered them. */
static int plan(struct dbt_flow *flow, const char *state_dir, const struct dbt_promotion *was,
                struct dbt_promotion *ret, struct dbt_err *err)
{
	struct dbt_plan_opts opts = { .target = was->target,
		                      .state_dir = state_dir,
		                      .force = true };
	int r = dbt_plan_make(flow->ctx, flow->ledger, was->path, &opts, ret, err);

	if (r < 0 || ret->n_members >= was->n_members)
		return r;
	dbt_promotion_release(ret);
	opts.all_files = true;
	return dbt_plan_make(flow->ctx, flow->ledger, was->path, &opts, ret, err);
}

/* A directory is copied anew: what came back of the old copy makes room. */
static int clear_tree(struct dbt_flow *flow, const struct dbt_promotion *was, struct dbt_err *err)
{
	struct dbt_promotion p = { 0 };
	int r = dbt_flow_claim(flow, was->id, &p, err);

	if (r == 0)
		r = dbt_remove_copies(flow, &p, err);
	if (r == 0)
		r = dbt_flow_let_go(flow, &p, "cleaned up", err);
	if (r == 0 && !dbt_promotion_waits(&p))
		dbt_tree_remove_lists(&p);
	dbt_promotion_release(&p);
	return r;
}

static int again(struct dbt_flow *flow, const char *state_dir, uint64_t limit_bytes_s,
                 const struct dbt_promotion *was, struct dbt_err *err)
{
	const struct dbt_promote_run run = { .limit_bytes_s = limit_bytes_s,
		                             .allow_by_link = was->by_link };
	struct dbt_promotion p = { 0 };
	int r;

	if (!dbt_look_target_is_mounted(flow->ctx, was))
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODEV,
		                   "the filesystem of '%s' is not mounted", was->target);
	r = dbt_promotion_is_tree(was) && dbt_promotion_waits(was) ? clear_tree(flow, was, err) : 0;
	if (r == 0)
		r = plan(flow, state_dir, was, &p, err);
	if (r == 0)
		r = dbt_ledger_next_run(flow->ledger, &p.run, err);
	if (r == 0)
		r = dbt_promote(flow, &p, &run, err);
	dbt_promotion_release(&p);
	return r;
}

int dbt_repromote(struct dbt_flow *flow, const char *state_dir, uint64_t limit_bytes_s,
                  struct dbt_recovery_report *report, struct dbt_err *err)
{
	struct dbt_promotions all = { 0 };
	int r = dbt_ledger_load(flow->ledger, &all, err);

	for (size_t i = 0; r == 0 && i < all.n; i++) {
		struct dbt_err why = { 0 };

		if (!is_candidate(&all, &all.items[i]))
			continue;
		r = again(flow, state_dir, limit_bytes_s, &all.items[i], &why);
		if (r < 0 && why.kind == DBT_ERR_INTERRUPTED) {
			*err = why;
			break;
		}
		r = dbt_recovery_report_add(report, &all.items[i],
		                            r < 0 ? DBT_RECOVERY_FAILED : DBT_RECOVERY_REPROMOTED,
		                            r < 0 ? why.text : NULL);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot promote again");
	}
	dbt_promotions_release(&all);
	return r;
}
