/* What the flows share: the ledger with this run as owner. */
#ifndef DBT_FLOW_FLOW_H
#define DBT_FLOW_FLOW_H

#include "base/err.h"
#include "record/ledger.h"
#include "sys/ctx.h"

struct dbt_flow {
	const struct dbt_ctx *ctx;
	struct dbt_ledger *ledger;
	struct dbt_run self;
};

/* Opens the ledger of state_dir for writing. */
int dbt_flow_open(const struct dbt_ctx *ctx, const char *state_dir, struct dbt_flow *ret,
                  struct dbt_err *err);
void dbt_flow_close(struct dbt_flow *flow);

/* Takes a promotion for this run: an error of kind BUSY while another live run has it. */
int dbt_flow_claim(struct dbt_flow *flow, int64_t id, struct dbt_promotion *ret,
                   struct dbt_err *err);

/* Records the promotion in a new state. On an error p is in its old one; the ledger may hold either. */
int dbt_flow_enter(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_state state,
                   struct dbt_err *err);

/* Records it as it is, with a line in the list of steps, and gives it back to whoever comes next. */
int dbt_flow_let_go(struct dbt_flow *flow, struct dbt_promotion *p, const char *step,
                    struct dbt_err *err);

/* 16 hex digits from the kernel's random numbers, for temporary names. */
int dbt_flow_token(const struct dbt_ctx *ctx, char out[17], struct dbt_err *err);

#endif
