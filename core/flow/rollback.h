/* Undoing a promotion: the path is again the plain file it was; with the original kept the same inode. */
#ifndef DBT_FLOW_ROLLBACK_H
#define DBT_FLOW_ROLLBACK_H

#include "flow/flow.h"
#include "record/promotion.h"

struct dbt_rollback_opts {
	bool keep_copy;
	enum dbt_rollback_mode mode;
	uint64_t limit_bytes_s;
};

/* p is claimed, in state promoted. Refuses (and leaves everything) when a path holds something else, when the copy
 * was modified and no mode says what to do, or when the original was. Copies that are in use stay, to be removed
 * later; that is said through ctx->log and is no error. */
int dbt_rollback(struct dbt_flow *flow, struct dbt_promotion *p,
                 const struct dbt_rollback_opts *opts, struct dbt_err *err);

/* Ends an interrupted rollback in the way it was asked for. One that was still copying back is given up: the
 * database stays promoted, and *ret_given_up says so. */
int dbt_rollback_finish(struct dbt_flow *flow, struct dbt_promotion *p, bool *ret_given_up,
                        struct dbt_err *err);

#endif
