/* Making the copies of a promotion: proved, flushed, with the originals' metadata, under their temporary names. */
#ifndef DBT_FLOW_COPIES_H
#define DBT_FLOW_COPIES_H

#include "flow/flow.h"
#include "flow/promote.h"
#include "record/promotion.h"

/* Makes the directories of a set, compares what stood at the target already, copies the rest in one pass. Fills what
 * the members record of their copies. run->resume: goes on with what an interrupted run left under the same names,
 * as far as it can be proved by reading it. On an error the files that were not proved are gone; the others go with
 * dbt_remove_temporaries. */
int dbt_copies_make(struct dbt_flow *flow, struct dbt_promotion *p,
                    const struct dbt_promote_run *run, struct dbt_err *err);

#endif
