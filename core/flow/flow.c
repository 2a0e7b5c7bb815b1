#include "flow/flow.h"

#include <inttypes.h>
#include <stdio.h>

int dbt_flow_open(const struct dbt_ctx *ctx, const char *state_dir, struct dbt_flow *ret,
                  struct dbt_err *err)
{
	struct dbt_flow flow = { .ctx = ctx };
	int r = dbt_procs_self_start(ctx, &flow.self);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot read /proc/self/stat");
	r = dbt_ledger_open(ctx, state_dir, DBT_LEDGER_WRITE, &flow.ledger, err);
	if (r == 0)
		*ret = flow;
	return r;
}

void dbt_flow_close(struct dbt_flow *flow)
{
	dbt_ledger_close(flow->ledger);
	flow->ledger = NULL;
}

static bool is_alive(void *data, const struct dbt_run *owner)
{
	const struct dbt_flow *flow = data;

	if (owner->pid == flow->self.pid && owner->start_ticks == flow->self.start_ticks)
		return false; /* ourselves */
	return dbt_procs_is_alive(flow->ctx, owner->pid, owner->start_ticks, owner->boot_id);
}

int dbt_flow_claim(struct dbt_flow *flow, int64_t id, struct dbt_promotion *ret,
                   struct dbt_err *err)
{
	return dbt_ledger_claim(flow->ledger, id, &flow->self, is_alive, flow, ret, err);
}

int dbt_flow_enter(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_state state,
                   struct dbt_err *err)
{
	const enum dbt_state before = p->state;
	const uint64_t promoted_ns = p->promoted_ns, ended_ns = p->ended_ns;
	int r;

	p->state = state;
	if (state == DBT_STATE_PROMOTED && p->promoted_ns == 0)
		p->promoted_ns = flow->ctx->sys->wall_ns();
	if (!dbt_state_is_active(state))
		p->ended_ns = flow->ctx->sys->wall_ns();
	r = dbt_ledger_save(flow->ledger, p, dbt_state_name(state), err);
	/* Who undoes what was done goes by the state that was reached. */
	if (r < 0) {
		p->state = before;
		p->promoted_ns = promoted_ns;
		p->ended_ns = ended_ns;
	}
	return r;
}

int dbt_flow_let_go(struct dbt_flow *flow, struct dbt_promotion *p, const char *step,
                    struct dbt_err *err)
{
	p->owner = (struct dbt_run){ 0 };
	return dbt_ledger_save(flow->ledger, p, step, err);
}

int dbt_flow_token(const struct dbt_ctx *ctx, char out[17], struct dbt_err *err)
{
	uint64_t value;
	int r = ctx->sys->random(&value, sizeof(value));

	if (r < 0)
		return dbt_err_sys(err, r, "cannot get random numbers");
	(void)snprintf(out, 17, "%016" PRIx64, value);
	return 0;
}
