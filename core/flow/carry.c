#include "flow/carry.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

/* mtime is in the ledger; attributes of the filesystem (nodatacow, project id) are how a file is kept, not what it
 * holds. */
static bool is_loss(const struct dbt_meta_item *item)
{
	return strcmp(item->what, "mtime") != 0 && strcmp(item->what, "project id") != 0 &&
	       strncmp(item->what, "attribute ", strlen("attribute ")) != 0;
}

const struct dbt_meta_item *dbt_carry_loss(const struct dbt_meta_report *report)
{
	for (size_t i = 0; i < report->n; i++)
		if (is_loss(&report->items[i]))
			return &report->items[i];
	return NULL;
}

static int judge(const struct dbt_ctx *ctx, const struct dbt_carry *c,
                 const struct dbt_meta_report *report, struct dbt_err *err)
{
	const struct dbt_meta_item *loss = c->whole ? dbt_carry_loss(report) : NULL;
	dbt_autofree char *text = NULL;

	if (report->readability)
		return dbt_err_refuse(
			err,
			"the copy of '%s' could not be read by the same users: %s; run it as "
			"root, or choose another target",
			c->shown_src, report->readability);
	if (loss)
		return dbt_err_refuse(err, "'%s' cannot get what '%s' has: %s (%s)", c->shown_dst,
		                      c->shown_src, loss->what, loss->why);
	if (dbt_meta_report_text(report, &text) < 0)
		return dbt_err_sys(err, -ENOMEM, "cannot compare '%s' with its copy", c->shown_src);
	if (*text != '\0')
		dbt_ctx_log(ctx, DBT_LOG_NOTE, "the copy of '%s' differs in: %s", c->shown_src,
		            text);
	return 0;
}

int dbt_carry_meta(const struct dbt_ctx *ctx, const struct dbt_carry *c, struct dbt_err *err)
{
	struct dbt_meta_report report = { 0 };
	int r = dbt_meta_apply(ctx, c->src, c->dst, &report, err);

	if (r < 0)
		(void)dbt_err_wrap(err, "'%s'", c->shown_dst);
	else
		r = judge(ctx, c, &report, err);
	dbt_meta_report_release(&report);
	if (r < 0)
		return r;
	r = dbt_meta_apply_times(ctx, c->times, c->dst, err);
	if (r < 0)
		return dbt_err_wrap(err, "'%s'", c->shown_dst);
	if (r > 0)
		dbt_ctx_log(ctx, DBT_LOG_NOTE,
		            "the filesystem of '%s' keeps times more coarsely: its mtime is not "
		            "exactly the original's",
		            c->shown_dst);
	return 0;
}
