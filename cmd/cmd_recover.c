/* dbtier recover: ends what interrupted runs left, repairs drift that can be repaired without a doubt; at boot, and by
 * promoting again what lost its copy. */
#include "base/cleanup.h"
#include "cmd/auto.h"
#include "cmd/table.h"
#include "flow/repromote.h"

#include <errno.h>
#include <stdlib.h>

static json_t *get_id(const void *row)
{
	return json_integer(((const struct dbt_recovered *)row)->id);
}

static json_t *get_path(const void *row)
{
	return table_json_name(((const struct dbt_recovered *)row)->path);
}

static json_t *get_action(const void *row)
{
	return json_string(auto_word(((const struct dbt_recovered *)row)->what));
}

static json_t *get_detail(const void *row)
{
	return table_json_text(((const struct dbt_recovered *)row)->text);
}

static const struct column recover_columns[] = {
	{ .key = "id",
	  .type = COLUMN_COUNT,
	  .shown = true,
	  .help = "number of the promotion",
	  .get = get_id },
	{ .key = "path",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .help = "the database's path",
	  .get = get_path },
	{ .key = "action", .shown = true, .help = "what was done", .get = get_action },
	{ .key = "detail",
	  .shown = true,
	  .wrap = true,
	  .help = "why it could not be",
	  .get = get_detail },
	{ 0 },
};

static const struct table_spec recover_table = { .key = "recovered", .columns = recover_columns };

struct recover_args {
	bool boot, repromote;
};

#define AT(member) offsetof(struct recover_args, member)

static const struct opt_spec recover_opts[] = {
	{ .name = "boot",
	  .at = AT(boot),
	  .help = "while the system comes up: wait for nothing, print no table" },
	{ .name = "repromote",
	  .at = AT(repromote),
	  .help = "promote again what lost its copy, once its target is there" },
	{ 0 },
};

static int print(struct app *app, const struct recover_args *args,
                 const struct dbt_recovery_report *report)
{
	struct dbt_err err = { 0 };

	progress_clear(&app->progress);
	if (args->boot && !app->args.json) {
		auto_tell(app, report); /* for the journal: a line each, with its priority */
	} else if (report->n == 0 && !app->args.json) {
		msg_note(app, "nothing to recover");
	} else if (table_print(&recover_table, &app->args, TABLE_ROWS(report->items, report->n),
	                       stdout, &err) < 0) {
		return msg_fail(&err);
	}
	return report->n_failed > 0 ? EXIT_UNHEALTHY : EXIT_DONE;
}

/* 1: there is a ledger. At boot none is made. */
static int has_ledger(struct app *app, struct dbt_err *err)
{
	struct dbt_ledger *ledger = NULL;
	int r = dbt_ledger_open(&app->ctx, app->state_dir, DBT_LEDGER_READ, &ledger, err);

	dbt_ledger_close(ledger);
	if (r == -ENOENT) {
		dbt_err_clear(err);
		return 0;
	}
	return r < 0 ? r : 1;
}

static bool lost_a_copy(const struct dbt_recovery_report *report)
{
	for (size_t i = 0; i < report->n; i++)
		if (report->items[i].what == DBT_RECOVERY_RETURNED)
			return true;
	return false;
}

/* What was lost before and can be promoted again comes first: recover would remove copies that have come back. */
static int recover(struct app *app, const struct recover_args *args,
                   struct dbt_recovery_report *report, struct dbt_err *err)
{
	struct dbt_flow flow;
	int r = args->repromote ? app_settings(app, err) : 0;

	if (r == 0)
		r = dbt_flow_open(&app->ctx, app->state_dir, &flow, err);
	if (r < 0)
		return r;
	if (args->repromote)
		r = dbt_repromote(&flow, app->state_dir, app->settings.limit_bytes_s, report, err);
	if (r == 0)
		r = args->boot ? dbt_recover_boot(&flow, report, err)
		               : dbt_recover(&flow, NULL, report, err);
	if (r == 0 && args->repromote && lost_a_copy(report))
		r = dbt_repromote(&flow, app->state_dir, app->settings.limit_bytes_s, report, err);
	dbt_flow_close(&flow);
	return r;
}

static int run(struct app *app, void *opaque, char **operands, size_t n)
{
	const struct recover_args *args = opaque;
	struct dbt_recovery_report report = { 0 };
	struct dbt_err err = { 0 };
	int r = args->boot ? has_ledger(app, &err) : 1, status;

	(void)operands;
	(void)n;
	if (r > 0)
		r = recover(app, args, &report, &err);
	status = r < 0 ? msg_fail(&err) : print(app, args, &report);
	dbt_recovery_report_release(&report);
	return status;
}

const struct command cmd_recover = {
	.name = "recover",
	.summary = "finish or undo what an interrupted run left",
	.help = "Runs by itself before promote, rollback and reclaim. Where a copy is gone, the "
		"path becomes\n"
		"the kept original again. Exit status 4 when something could not be recovered.",
	.opts = recover_opts,
	.args_bytes = sizeof(struct recover_args),
	.table = &recover_table,
	.run = run,
};
