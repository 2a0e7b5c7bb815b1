/* dbtier recover: ends what interrupted runs left, repairs drift that can be repaired without a doubt. */
#include "base/cleanup.h"
#include "cmd/auto.h"
#include "cmd/table.h"

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

static int print(struct app *app, const struct dbt_recovery_report *report)
{
	struct dbt_err err = { 0 };

	progress_clear(&app->progress);
	if (report->n == 0 && !app->args.json) {
		msg_note(app, "nothing to recover");
		return EXIT_DONE;
	}
	if (table_print(&recover_table, &app->args, TABLE_ROWS(report->items, report->n), stdout,
	                &err) < 0)
		return msg_fail(&err);
	return report->n_failed > 0 ? EXIT_UNHEALTHY : EXIT_DONE;
}

static int run(struct app *app, void *args, char **operands, size_t n)
{
	struct dbt_recovery_report report = { 0 };
	struct dbt_err err = { 0 };
	struct dbt_flow flow;
	int r = dbt_flow_open(&app->ctx, app->state_dir, &flow, &err), status;

	(void)args;
	(void)operands;
	(void)n;
	if (r < 0)
		return msg_fail(&err);
	r = dbt_recover(&flow, &report, &err);
	dbt_flow_close(&flow);
	status = r < 0 ? msg_fail(&err) : print(app, &report);
	dbt_recovery_report_release(&report);
	return status;
}

const struct command cmd_recover = {
	.name = "recover",
	.summary = "finish or undo what an interrupted run left",
	.help = "Runs by itself before promote, rollback and reclaim. Where a copy is gone, the "
		"path becomes\n"
		"the kept original again. Exit status 4 when something could not be recovered.",
	.table = &recover_table,
	.run = run,
};
