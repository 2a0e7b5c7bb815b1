/* dbtier rollback: the path is the plain file again. */
#include "base/cleanup.h"
#include "cmd/auto.h"
#include "cmd/rows.h"
#include "flow/choose.h"
#include "flow/lone.h"
#include "flow/rollback.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct rollback_args {
	bool all, keep_copy, keep_changes, discard_changes;
	uint64_t limit_bytes_s;
};

enum { GROUP_CHANGES = 1 };

#define AT(member) offsetof(struct rollback_args, member)

static const struct opt_spec rollback_opts[] = {
	{ .name = "all", .letter = 'a', .at = AT(all), .help = "undo every promotion" },
	{ .name = "keep-copy", .at = AT(keep_copy), .help = "leave the copy where it is" },
	{ .name = "keep-changes",
	  .at = AT(keep_changes),
	  .conflicts = GROUP_CHANGES,
	  .help = "the copy was modified: copy it back" },
	{ .name = "discard-changes",
	  .at = AT(discard_changes),
	  .conflicts = GROUP_CHANGES,
	  .help = "the copy was modified: return to the original" },
	{ .name = "limit-rate",
	  .kind = OPT_BYTES,
	  .at = AT(limit_bytes_s),
	  .least = 1,
	  .metavar = "SIZE",
	  .help = "copy back at most so many bytes a second" },
	{ 0 },
};

static struct dbt_rollback_opts options(const struct rollback_args *args)
{
	return (struct dbt_rollback_opts){
		.keep_copy = args->keep_copy,
		.mode = args->keep_changes      ? DBT_ROLLBACK_KEEP_CHANGES
		        : args->discard_changes ? DBT_ROLLBACK_DISCARD_CHANGES
		                                : DBT_ROLLBACK_PLAIN,
		.limit_bytes_s = args->limit_bytes_s,
	};
}

static int roll_back(struct dbt_flow *flow, int64_t id, const struct rollback_args *args,
                     struct promotion_rows *rows, struct dbt_err *err)
{
	const struct dbt_rollback_opts opts = options(args);
	uint64_t start_ns = flow->ctx->sys->now_ns();
	struct dbt_promotion p = { 0 };
	int r = dbt_flow_claim(flow, id, &p, err);

	if (r < 0)
		return r;
	r = dbt_rollback(flow, &p, &opts, err);
	p.elapsed_ns = flow->ctx->sys->now_ns() - start_ns;
	if (rows_add(rows, &p, r < 0 ? "failed" : NULL) < 0 && r == 0)
		r = dbt_err_sys(err, -ENOMEM, "cannot print what was rolled back");
	dbt_promotion_release(&p);
	return r;
}

/* All of the last promote command, or everything: the newest first. */
static int roll_back_many(struct dbt_flow *flow, const struct dbt_promotions *list,
                          const struct rollback_args *args, struct promotion_rows *rows,
                          struct dbt_err *err)
{
	int64_t last = dbt_choose_last_run(list);
	struct dbt_err one;
	int r = 0;

	if (last == 0)
		return dbt_err_set(err, DBT_ERR_UNKNOWN, -ENOENT,
		                   "nothing is promoted: nothing to roll back");
	for (size_t i = list->n; i-- > 0;) {
		const struct dbt_promotion *p = &list->items[i];

		if (!dbt_state_is_active(p->state) || (!args->all && p->run != last))
			continue;
		if (roll_back(flow, p->id, args, rows, &one) >= 0)
			continue;
		/* One that cannot be undone does not keep the others from it. */
		if (r == 0)
			*err = one;
		else
			msg_error(&one);
		r = one.code;
		if (one.kind == DBT_ERR_INTERRUPTED)
			break;
	}
	return r;
}

/* No promotion of that path is on record: what stands beside the link may still tell. */
static int roll_back_lone(struct app *app, const char *path, const struct rollback_args *args,
                          struct dbt_err *err)
{
	dbt_autofree char *copy = NULL;
	struct dbt_err lone;
	int r = dbt_rollback_without_ledger(&app->ctx, path, args->discard_changes, &copy, &lone);

	if (r < 0) {
		/* What may be a name is better answered with the names there are. */
		if (lone.kind != DBT_ERR_UNKNOWN || strchr(path, '/'))
			*err = lone;
		return r;
	}
	msg_note(app,
	         "'%s' is the original again, found beside its link without a record; '%s' stays, "
	         "since nothing "
	         "proves that dbtier made it",
	         path, copy);
	return 0;
}

static int roll_back_named(struct app *app, struct dbt_flow *flow,
                           const struct dbt_promotions *list, const char *what,
                           const struct rollback_args *args, struct promotion_rows *rows,
                           struct dbt_err *err)
{
	size_t at;
	int r = dbt_choose(&app->ctx, list, what, &at, err);

	if (r == -ENOENT)
		return roll_back_lone(app, what, args, err);
	return r < 0 ? r : roll_back(flow, list->items[at].id, args, rows, err);
}

/* The ledger cannot be used: paths still tell by what stands beside them. */
static int run_without_ledger(struct app *app, const struct rollback_args *args, char **operands,
                              size_t n, const struct dbt_err *ledger)
{
	struct dbt_err err = *ledger;
	int r = 0;

	msg_error(ledger);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = roll_back_lone(app, operands[i], args, &err);
	return r < 0 ? msg_fail(&err) : EXIT_DONE;
}

static int run(struct app *app, void *opaque, char **operands, size_t n)
{
	const struct rollback_args *args = opaque;
	struct promotion_rows rows = { 0 };
	struct dbt_promotions list = { 0 };
	struct dbt_err err = { 0 };
	struct dbt_flow flow;
	int r;

	if (args->all && n > 0) {
		(void)dbt_err_set(&err, DBT_ERR_USAGE, -EINVAL,
		                  "--all and names exclude each other");
		return msg_fail(&err);
	}
	r = auto_open(app, NULL, &flow, &err);
	if (r < 0 && err.kind == DBT_ERR_LEDGER && n > 0)
		return run_without_ledger(app, args, operands, n, &err);
	if (r < 0)
		return msg_fail(&err);
	r = dbt_ledger_load(flow.ledger, &list, &err);
	if (r == 0 && n == 0)
		r = roll_back_many(&flow, &list, args, &rows, &err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = roll_back_named(app, &flow, &list, operands[i], args, &rows, &err);
	dbt_flow_close(&flow);
	dbt_promotions_release(&list);
	return rows_end(app, &rows, r < 0 ? msg_fail(&err) : EXIT_DONE);
}

const struct command cmd_rollback = {
	.name = "rollback",
	.operands = "[NAME|PATH|ID...]",
	.summary = "undo the last promote command, or the named promotions",
	.help = "With the original kept it comes back as the same file, at once. After 'reclaim' "
		"the copy is\n"
		"copied back and proved. A path that somebody replaced meanwhile is never "
		"overwritten.",
	.opts = rollback_opts,
	.args_bytes = sizeof(struct rollback_args),
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_ACTIVE_DB,
	.table = &moved_table,
	.run = run,
};
