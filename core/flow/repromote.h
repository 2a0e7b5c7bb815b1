/* Promoting again what lost its copy: a target that was emptied at boot, or was not mounted then. */
#ifndef DBT_FLOW_REPROMOTE_H
#define DBT_FLOW_REPROMOTE_H

#include "flow/flow.h"
#include "flow/recover.h"

/* Every promotion that recover returned for want of its copy, and whose path nobody promoted since, is promoted to the
 * same directory again, once the filesystem it was on is mounted. Files that came back with that filesystem are used
 * again after a comparison, directories are copied anew. What cannot be promoted is reported as failed and stays a candidate. Adds to report;
 * returns an error only when the ledger itself cannot be used. */
int dbt_repromote(struct dbt_flow *flow, const char *state_dir, uint64_t limit_bytes_s,
                  struct dbt_recovery_report *report, struct dbt_err *err);

#endif
