/* dbtier status and dbtier verify: is everything that was promoted still right? */
#include "base/cleanup.h"
#include "cmd/app.h"
#include "cmd/metrics.h"
#include "cmd/rows.h"
#include "flow/choose.h"
#include "flow/health.h"
#include "record/ledger.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

struct status_args {
	bool all, prometheus;
};

static const struct opt_spec status_opts[] = {
	{ .name = "all",
	  .letter = 'a',
	  .at = offsetof(struct status_args, all),
	  .help = "show what was rolled back or failed as well" },
	{ .name = "prometheus",
	  .at = offsetof(struct status_args, prometheus),
	  .help = "print metrics for node_exporter's textfile collector" },
	{ 0 },
};

typedef int (*judge_fn)(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                        enum dbt_health *ret, char **ret_detail, struct dbt_err *err);

/* Reads one ledger; a missing one is empty, if it is not strict: a monitor that looks into a directory named by
 * mistake must not find that all is well. */
static int load(struct app *app, const char *state_dir, bool strict, struct dbt_promotions *ret,
                struct dbt_err *err)
{
	struct dbt_ledger *ledger = NULL;
	int r = dbt_ledger_open(&app->ctx, state_dir, DBT_LEDGER_READ, &ledger, err);

	if (r == 0)
		r = dbt_ledger_load(ledger, ret, err);
	dbt_ledger_close(ledger);
	if (r == -ENOENT && strict && access(state_dir, F_OK) < 0)
		return dbt_err_set(err, DBT_ERR_LEDGER, -ENOTDIR,
		                   "the state directory '%s' does not exist: nothing was ever "
		                   "promoted with it",
		                   state_dir);
	return r == -ENOENT ? 0 : r;
}

static int add_row(struct promotion_rows *rows, const struct dbt_promotion *p, struct dbt_err *err)
{
	struct dbt_promotion copy = { 0 };
	int r = dbt_promotion_clone(p, &copy);

	if (r == 0)
		r = rows_add(rows, &copy, NULL);
	dbt_promotion_release(&copy);
	return r < 0 ? dbt_err_sys(err, r, "cannot list the promotions") : 0;
}

static int pick(struct app *app, const struct dbt_promotions *list, bool all, char **names,
                size_t n, struct promotion_rows *rows, struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && n == 0 && i < list->n; i++)
		if (all || dbt_state_is_active(list->items[i].state))
			r = add_row(rows, &list->items[i], err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		size_t at;

		r = dbt_choose(&app->ctx, list, names[i], &at, err);
		if (r == 0)
			r = add_row(rows, &list->items[at], err);
	}
	return r;
}

static int judge_all(struct app *app, struct promotion_rows *rows, judge_fn judge, int *status,
                     struct dbt_err *err)
{
	for (size_t i = 0; i < rows->n; i++) {
		struct promotion_row *row = &rows->items[i];
		int r;

		if (!dbt_state_is_active(row->p.state))
			continue;
		r = judge(&app->ctx, &row->p, &row->health, &row->detail, err);
		if (r < 0 && err->kind == DBT_ERR_INTERRUPTED)
			return r;
		row->judged = r == 0;
		if (r < 0)
			msg_error(err);
		if (r == 0 && row->detail)
			msg_tell(app, MSG_WARNING, "promotion %lld: %s", (long long)row->p.id,
			         row->detail);
		if (r < 0 || row->health != DBT_HEALTH_OK)
			*status = EXIT_UNHEALTHY;
	}
	return 0;
}

enum format { FORMAT_TABLE, FORMAT_METRICS };

static int print(struct app *app, enum format format, const struct promotion_rows *rows, int status)
{
	if (format == FORMAT_TABLE)
		return rows_print(app, &status_table, rows, status);
	metrics_print(rows, stdout);
	return status;
}

static int show(struct app *app, judge_fn judge, bool all, enum format format, char **operands,
                size_t n)
{
	struct promotion_rows rows = { 0 };
	struct dbt_promotions own = { 0 }, others = { 0 };
	struct dbt_err err = { 0 };
	int status = EXIT_DONE,
	    r = load(app, app->state_dir, format == FORMAT_METRICS && app->args.state_dir, &own,
	             &err);

	/* What root promoted concerns everybody. */
	if (r == 0 && app->system_state_dir)
		r = load(app, app->system_state_dir, false, &others, &err);
	if (r == 0 && (n == 0 || own.n > 0 || others.n == 0))
		r = pick(app, &own, all, operands, n, &rows, &err);
	if (r == 0 && n == 0)
		r = pick(app, &others, all, operands, 0, &rows, &err);
	else if (others.n > 0 && (r == -ENOENT || own.n == 0))
		r = pick(app, &others, all, operands, n, &rows, &err);
	if (r == 0)
		r = judge_all(app, &rows, judge, &status, &err);
	status = r < 0 ? msg_fail(&err) : print(app, format, &rows, status);
	rows_release(&rows);
	dbt_promotions_release(&own);
	dbt_promotions_release(&others);
	return status;
}

static int run_status(struct app *app, void *opaque, char **operands, size_t n)
{
	const struct status_args *args = opaque;

	struct dbt_err err = { 0 };

	if (args->prometheus && (app->args.json || app->args.raw || app->args.pairs ||
	                         app->args.output || app->args.all_columns)) {
		(void)dbt_err_set(&err, DBT_ERR_USAGE, -EINVAL,
		                  "'--prometheus' and the options of tables exclude each other");
		return msg_fail(&err);
	}
	return show(app, dbt_health_of, args->all, args->prometheus ? FORMAT_METRICS : FORMAT_TABLE,
	            operands, n);
}

static int run_verify(struct app *app, void *args, char **operands, size_t n)
{
	(void)args;
	return show(app, dbt_health_verify, false, FORMAT_TABLE, operands, n);
}

const struct command cmd_status = {
	.name = "status",
	.operands = "[NAME|PATH|ID...]",
	.summary = "show what is promoted, and whether it is still right",
	.help = "Looks at names, inodes, sizes and times and reads no data: 'dbtier verify' does "
		"that.\n"
		"Exit status 4 when anything is not healthy.",
	.opts = status_opts,
	.args_bytes = sizeof(struct status_args),
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_ACTIVE_DB,
	.table = &status_table,
	.run = run_status,
};

const struct command cmd_verify = {
	.name = "verify",
	.operands = "[NAME|PATH|ID...]",
	.summary = "read copies and originals from the device, compare the hashes",
	.help = "Exit status 4 when a file does not hold the bytes that were promoted.",
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_ACTIVE_DB,
	.table = &status_table,
	.run = run_verify,
};
