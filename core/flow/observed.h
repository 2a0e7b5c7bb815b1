/* What `diagnose` has seen of how databases are read, for whoever forecasts: scan, advice, promote --plan. A ledger that
 * cannot be read or written is never a reason to fail: callers show the error as a warning. */
#ifndef DBT_FLOW_OBSERVED_H
#define DBT_FLOW_OBSERVED_H

#include "base/err.h"
#include "observe/diagnosis.h"
#include "record/ledger.h"
#include "survey/database.h"
#include "sys/ctx.h"

/* Remembers the databases of which a diagnosis could tell how they are read. */
int dbt_observed_remember(const struct dbt_ctx *ctx, const char *state_dir,
                          const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                          struct dbt_err *err);

/* Everything that is remembered in one or two ledgers; of a path in both, the later one. system_state_dir may be NULL. A
 * missing ledger is an empty list. Release with dbt_observed_release. */
int dbt_observed_load(const struct dbt_ctx *ctx, const char *state_dir,
                      const char *system_state_dir, struct dbt_observed_list *ret,
                      struct dbt_err *err);

/* Puts what was observed in the place of what is declared, for the members that it is known of. */
void dbt_observed_apply(const struct dbt_observed_list *list, struct dbt_database *db);

#endif
