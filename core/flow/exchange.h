/* Putting the links of a promotion in place of the originals, and the originals back. Both are idempotent: they
 * look at each file first and do only what is still to do. */
#ifndef DBT_FLOW_EXCHANGE_H
#define DBT_FLOW_EXCHANGE_H

#include "flow/flow.h"
#include "record/promotion.h"

/* Swaps every file of p for its link, in order, and syncs the directories. Copies must be proved and recorded.
 * On an error some files may be swapped: call dbt_exchange_out. */
int dbt_exchange_in(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err);

/* Puts every original (or copied-back file) to its path again and syncs the directories. A path that holds
 * something else by now, or is gone with its directory, is left alone: an error of kind CHANGED names it, after all
 * others were put back. Any other error: something is not back, or not on stable storage. Copies must not be removed
 * then. */
int dbt_exchange_out(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err);

/* How many paths still are links to their copies. */
int dbt_exchange_count_links(struct dbt_flow *flow, const struct dbt_promotion *p, size_t *ret,
                             struct dbt_err *err);

#endif
