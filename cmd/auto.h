/* What promote, rollback and reclaim do first: open the ledger, and end what interrupted runs left. */
#ifndef DBT_CMD_AUTO_H
#define DBT_CMD_AUTO_H

#include "cmd/app.h"
#include "flow/flow.h"
#include "flow/recover.h"

/* Opens the ledger for writing and runs recover, whose doings are told on stderr. wished: what is to be promoted, whose
 * half copies stay; NULL: nothing. 0 or a negative code. */
int auto_open(struct app *app, const struct dbt_resume_wish *wished, struct dbt_flow *flow,
              struct dbt_err *err);

/* One line a recovered promotion. */
void auto_tell(const struct app *app, const struct dbt_recovery_report *report);

/* The word for what recover did. */
const char *auto_word(enum dbt_recovery what);

#endif
