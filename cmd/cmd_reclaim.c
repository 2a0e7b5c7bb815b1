/* dbtier reclaim: deletes kept originals after proving the copies again. */
#include "cmd/auto.h"
#include "cmd/rows.h"
#include "flow/choose.h"
#include "flow/reclaim.h"

#include <errno.h>
#include <limits.h>

static int reclaim(struct app *app, struct dbt_flow *flow, const struct dbt_promotions *list,
                   const char *what, struct promotion_rows *rows, struct dbt_err *err)
{
	uint64_t start_ns = app->ctx.sys->now_ns();
	struct dbt_promotion p = { 0 };
	size_t at;
	int r = dbt_choose(&app->ctx, list, what, &at, err);

	if (r == 0)
		r = dbt_flow_claim(flow, list->items[at].id, &p, err);
	if (r < 0)
		return r;
	if (p.state != DBT_STATE_PROMOTED)
		r = dbt_err_refuse(err, "'%s' is %s: only what is promoted can be reclaimed",
		                   p.path, dbt_state_name(p.state));
	else if (dbt_promotion_is_reclaimed(&p))
		r = dbt_flow_let_go(flow, &p, "reclaimed already", err);
	else
		r = dbt_reclaim(flow, &p, err);
	p.elapsed_ns = app->ctx.sys->now_ns() - start_ns;
	if (rows_add(rows, &p, r < 0 ? "failed" : "reclaimed") < 0 && r == 0)
		r = dbt_err_sys(err, -ENOMEM, "cannot print what was reclaimed");
	dbt_promotion_release(&p);
	return r;
}

static int run(struct app *app, void *args, char **operands, size_t n)
{
	struct promotion_rows rows = { 0 };
	struct dbt_promotions list = { 0 };
	struct dbt_err err = { 0 };
	struct dbt_flow flow;
	int r = auto_open(app, NULL, &flow, &err);

	(void)args;
	if (r < 0)
		return msg_fail(&err);
	r = dbt_ledger_load(flow.ledger, &list, &err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = reclaim(app, &flow, &list, operands[i], &rows, &err);
	dbt_flow_close(&flow);
	dbt_promotions_release(&list);
	return rows_end(app, &rows, r < 0 ? msg_fail(&err) : EXIT_DONE);
}

const struct command cmd_reclaim = {
	.name = "reclaim",
	.operands = "NAME|PATH|ID...",
	.summary = "delete kept originals, after proving the copies again",
	.help = "From then on the copy is the only one: back it up as such. 'dbtier rollback' "
		"copies it back.",
	.min_operands = 1,
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_ACTIVE_DB,
	.table = &moved_table,
	.run = run,
};
