#include "cmd/auto.h"

const char *auto_word(enum dbt_recovery what)
{
	switch (what) {
	case DBT_RECOVERY_NONE:
		return "nothing to do";
	case DBT_RECOVERY_FINISHED:
		return "finished what an interrupted run had begun";
	case DBT_RECOVERY_UNDONE:
		return "undid what an interrupted run had begun";
	case DBT_RECOVERY_RETURNED:
		return "returned to the original";
	case DBT_RECOVERY_ENDED:
		return "ended, because nothing of it is left";
	case DBT_RECOVERY_REPROMOTED:
		return "promoted again";
	case DBT_RECOVERY_CLEANED:
		return "removed what was left";
	case DBT_RECOVERY_BUSY:
		return "another run works on it";
	case DBT_RECOVERY_WAITING:
		return "waits";
	case DBT_RECOVERY_FAILED:
		return "could not be recovered";
	}
	return "";
}

static enum msg_level level_of(enum dbt_recovery what)
{
	switch (what) {
	case DBT_RECOVERY_FAILED:
		return MSG_ERROR;
	case DBT_RECOVERY_RETURNED:
	case DBT_RECOVERY_ENDED:
		return MSG_WARNING;
	case DBT_RECOVERY_UNDONE:
	case DBT_RECOVERY_WAITING:
		return MSG_NOTICE;
	case DBT_RECOVERY_NONE:
	case DBT_RECOVERY_FINISHED:
	case DBT_RECOVERY_REPROMOTED:
	case DBT_RECOVERY_CLEANED:
	case DBT_RECOVERY_BUSY:
		break;
	}
	return MSG_INFO;
}

void auto_tell(const struct app *app, const struct dbt_recovery_report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		const struct dbt_recovered *r = &report->items[i];

		msg_tell(app, level_of(r->what), "promotion %lld ('%s'): %s%s%s", (long long)r->id,
		         r->path, auto_word(r->what), r->text ? ": " : "", r->text ? r->text : "");
	}
}

int auto_open(struct app *app, const struct dbt_resume_wish *wished, struct dbt_flow *flow,
              struct dbt_err *err)
{
	struct dbt_recovery_report report = { 0 };
	int r = dbt_flow_open(&app->ctx, app->state_dir, flow, err);

	if (r < 0)
		return r;
	r = dbt_recover(flow, wished, &report, err);
	if (r == 0)
		auto_tell(app, &report);
	else
		dbt_flow_close(flow);
	dbt_recovery_report_release(&report);
	return r;
}
