/* Giving the space of kept originals back. From then on the copy is the only one: rollback copies it back. */
#ifndef DBT_FLOW_RECLAIM_H
#define DBT_FLOW_RECLAIM_H

#include "flow/flow.h"
#include "record/promotion.h"

/* p is claimed, in state promoted. Reads the copies from their device again, compares with the recorded hash, and
 * deletes the originals. Refuses targets that are cleaned, in RAM or not mounted, and originals that were changed
 * or are open for writing. Nothing lifts these rules. */
int dbt_reclaim(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err);

/* Ends an interrupted one: what is deleted is noted, what is not stays. The copies may have changed since they were
 * proved, so nothing more is deleted. */
int dbt_reclaim_give_up(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err);

#endif
