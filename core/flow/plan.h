/* From a name on the command line to a promotion that can be carried out, or a refusal that says what would lift
 * it. Reads only. */
#ifndef DBT_FLOW_PLAN_H
#define DBT_FLOW_PLAN_H

#include "base/units.h"
#include "flow/flow.h"
#include "record/promotion.h"
#include "survey/place.h"

struct dbt_plan_opts {
	const char *target; /* --to; borrowed */
	bool all_files;     /* not only the hot ones */
	bool reclaim;
	bool force;            /* lifts the rules that cannot lose data */
	bool no_probe;         /* judge devices by class and what is remembered only */
	const char *state_dir; /* of the ledger: where measurements are remembered; borrowed */
	bool reserve_set;
	struct dbt_amount reserve; /* to leave free on the target */
};

/* ledger may be NULL when there is none (a dry run of a user without one): then only paths are names.
 * Warnings go to ctx->log. Refusals are errors of kind REFUSED. */
int dbt_plan_make(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
                  const struct dbt_plan_opts *opts, struct dbt_promotion *ret, struct dbt_err *err);

/* What is to stay free on a target there. */
uint64_t dbt_plan_reserve(const struct dbt_plan_opts *opts, const struct dbt_place *place);

#endif
