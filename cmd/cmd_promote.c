/* dbtier promote: copies to a faster place, proves the copy, puts a link in the path's place. */
#include "base/cleanup.h"
#include "cmd/archives.h"
#include "cmd/auto.h"
#include "cmd/rows.h"
#include "flow/budget.h"
#include "flow/measure.h"
#include "flow/plan.h"
#include "flow/promote.h"
#include "flow/reclaim.h"
#include "flow/tell.h"
#include "flow/unpack.h"
#include "move/copy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct promote_args {
	const char *to, *cold_to;
	bool all_files, background, dry_run, force, no_probe, reclaim;
	bool plan, yes;
	struct opt_reserve reserve;
	uint64_t limit_bytes_s, budget_bytes;
	uint64_t jobs;
};

#define AT(member) offsetof(struct promote_args, member)

static const struct opt_spec promote_opts[] = {
	{ .name = "to",
	  .kind = OPT_STRING,
	  .at = AT(to),
	  .metavar = "DIR",
	  .complete = COMPLETE_TARGET,
	  .help = "directory on the fast tier, or auto: the best one" },
	{ .name = "dry-run",
	  .at = AT(dry_run),
	  .help = "check everything, print the plan, change nothing" },
	{ .name = "all-files",
	  .at = AT(all_files),
	  .help = "move every file of a set, not only the hot ones" },
	{ .name = "cold-to",
	  .kind = OPT_STRING,
	  .at = AT(cold_to),
	  .metavar = "DIR",
	  .complete = COMPLETE_DIR,
	  .help = "where the rest of an archive goes (beside the archive)" },
	{ .name = "reclaim",
	  .at = AT(reclaim),
	  .help = "delete the originals once the copies are proved" },
	{ .name = "reserve",
	  .kind = OPT_RESERVE,
	  .at = AT(reserve),
	  .metavar = "SIZE|N%",
	  .help = "space to leave free on the target (5 %, at most 10G)" },
	{ .name = "limit-rate",
	  .kind = OPT_BYTES,
	  .at = AT(limit_bytes_s),
	  .least = 1,
	  .metavar = "SIZE",
	  .help = "copy at most so many bytes a second" },
	{ .name = "jobs",
	  .letter = 'j',
	  .kind = OPT_NUMBER,
	  .at = AT(jobs),
	  .least = 1,
	  .most = 8,
	  .metavar = "N",
	  .help = "blocks or files (2), archives (1) at a time; up to 8" },
	{ .name = "background",
	  .at = AT(background),
	  .help = "copy only when disks and processors are idle otherwise" },
	{ .name = "plan",
	  .at = AT(plan),
	  .help = "choose from the last scan what brings most per byte" },
	{ .name = "budget",
	  .kind = OPT_BYTES,
	  .at = AT(budget_bytes),
	  .least = 1,
	  .metavar = "SIZE",
	  .help = "with --plan: bytes to fill at most" },
	{ .name = "yes", .at = AT(yes), .help = "with --plan: promote what was chosen" },
	{ .name = "no-probe",
	  .at = AT(no_probe),
	  .help = "measure nothing: judge devices by their kind" },
	{ .name = "force",
	  .letter = 'f',
	  .at = AT(force),
	  .help = "lift the rules that cannot lose data" },
	{ 0 },
};

static const char *target_of(const struct app *app, const struct promote_args *args)
{
	return args->to ? args->to : app->settings.target;
}

static bool is_auto(const struct app *app, const struct promote_args *args)
{
	return strcmp(target_of(app, args), "auto") == 0;
}

static struct dbt_plan_opts plan_opts(const struct app *app, const struct promote_args *args,
                                      const char *target)
{
	return (struct dbt_plan_opts){
		.target = target,
		.all_files = args->all_files,
		.reclaim = args->reclaim,
		.force = args->force,
		.no_probe = args->no_probe,
		.state_dir = app->state_dir,
		.reserve_set = args->reserve.set || app->settings.reserve_set,
		.reserve = args->reserve.set ? args->reserve.amount : app->settings.reserve,
	};
}

/* With "auto" the fastest place with room is found for each one. */
static int plan_one(struct app *app, struct dbt_ledger *ledger, const struct promote_args *args,
                    const char *what, struct dbt_promotion *ret, struct dbt_err *err)
{
	struct dbt_plan_opts opts = plan_opts(app, args, target_of(app, args));
	dbt_autofree char *target = NULL;
	int r = 0;

	if (is_auto(app, args)) {
		r = dbt_budget_target(&app->ctx, ledger, what, &opts, !args->dry_run, &target, err);
		opts.target = target;
	}
	return r < 0 ? r : dbt_plan_make(&app->ctx, ledger, what, &opts, ret, err);
}

static struct dbt_unpack_opts unpack_opts(const struct app *app, const struct promote_args *args)
{
	return (struct dbt_unpack_opts){
		.plan = plan_opts(app, args, target_of(app, args)),
		.cold_to = args->cold_to,
		.jobs = args->jobs < 16 ? (unsigned)args->jobs : 16,
		.limit_bytes_s =
			args->limit_bytes_s ? args->limit_bytes_s : app->settings.limit_bytes_s,
	};
}

/* Plans what the next operands mean: archives of one set, or one database. *ret_used: how many they are. */
static int plan_next(struct app *app, struct dbt_ledger *ledger, const struct promote_args *args,
                     char **operands, size_t n, struct dbt_promotion *ret, size_t *ret_used,
                     struct dbt_err *err)
{
	const struct dbt_unpack_opts unpack = unpack_opts(app, args);
	struct archives archives = { 0 };
	int r = archives_take(app, ledger, operands, n, &archives, err);

	if (r < 0)
		return r;
	*ret_used = archives.n > 0 ? archives.n : 1;
	if (archives.n > 0 && is_auto(app, args))
		r = dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                "'--to auto' is for databases: '%s' is an archive and wants a "
		                "directory",
		                operands[0]);
	else if (archives.n > 0)
		r = dbt_unpack_plan(&app->ctx, archives.paths, archives.n, &unpack, ret, err);
	else if (args->cold_to)
		r = dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                "--cold-to is for archives, and '%s' is none", operands[0]);
	else
		r = plan_one(app, ledger, args, operands[0], ret, err);
	archives_release(&archives);
	return r;
}

/* The ledger of a dry run: read only, and none is fine. */
static int open_to_read(struct app *app, struct dbt_ledger **ret, struct dbt_err *err)
{
	int r = dbt_ledger_open(&app->ctx, app->state_dir, DBT_LEDGER_READ, ret, err);

	if (r == -ENOENT) {
		*ret = NULL;
		dbt_err_clear(err);
		return 0;
	}
	return r;
}

static int run_dry(struct app *app, const struct promote_args *args, char **operands, size_t n)
{
	struct promotion_rows rows = { 0 };
	struct dbt_ledger *ledger = NULL;
	struct dbt_err err = { 0 };
	int r = open_to_read(app, &ledger, &err), status;
	size_t used = 1;

	for (size_t i = 0; r == 0 && i < n; i += used) {
		struct dbt_promotion p = { 0 };

		r = plan_next(app, ledger, args, operands + i, n - i, &p, &used, &err);
		if (r == 0 && rows_add(&rows, &p, NULL) < 0)
			r = dbt_err_sys(&err, -ENOMEM, "cannot plan");
		dbt_promotion_release(&p);
	}
	dbt_ledger_close(ledger);
	status = rows_print(app, &moved_table, &rows, r < 0 ? msg_fail(&err) : EXIT_DONE);
	rows_release(&rows);
	return status;
}

static int carry_out(struct app *app, struct dbt_flow *flow, const struct promote_args *args,
                     struct dbt_promotion *p, struct dbt_err *err)
{
	const struct dbt_unpack_opts unpack = unpack_opts(app, args);
	const struct dbt_promote_run run = { .limit_bytes_s = unpack.limit_bytes_s,
		                             .jobs = (unsigned)args->jobs,
		                             .allow_by_link = args->force };
	int r;

	if (p->kind == DBT_KIND_ARCHIVE)
		return dbt_unpack(flow, p, &unpack, err);
	r = dbt_promote(flow, p, &run, err);
	if (r == 0)
		dbt_tell_after_swap(&app->ctx, p);
	if (r == 0 && !args->no_probe && !args->force)
		dbt_measure_promotion(&app->ctx, app->state_dir, p);
	if (r == 0 && args->reclaim) {
		r = dbt_reclaim(flow, p, err);
		if (r < 0)
			(void)dbt_err_add(err, "'%s' is promoted and its original is kept",
			                  p->path);
	}
	return r;
}

static int promote_next(struct app *app, struct dbt_flow *flow, const struct promote_args *args,
                        char **operands, size_t n, int64_t run_number, struct promotion_rows *rows,
                        size_t *ret_used, struct dbt_err *err)
{
	struct dbt_promotion p = { 0 };
	int r = plan_next(app, flow->ledger, args, operands, n, &p, ret_used, err);

	if (r < 0)
		return r;
	p.run = run_number;
	r = carry_out(app, flow, args, &p, err);
	if (rows_add(rows, &p, NULL) < 0 && r == 0)
		r = dbt_err_sys(err, -ENOMEM, "cannot print what was promoted");
	dbt_promotion_release(&p);
	return r;
}

static int run_real(struct app *app, const struct promote_args *args, char **operands, size_t n)
{
	struct promotion_rows rows = { 0 };
	struct dbt_err err = { 0 };
	struct dbt_flow flow;
	int64_t run_number = 0;
	const struct dbt_resume_wish wish = { .names = (const char *const *)operands,
		                              .n = n,
		                              .all_files = args->all_files };
	size_t used = 1;
	int r = auto_open(app, &wish, &flow, &err);

	if (r < 0)
		return msg_fail(&err);
	r = dbt_ledger_next_run(flow.ledger, &run_number, &err);
	for (size_t i = 0; r == 0 && i < n; i += used)
		r = promote_next(app, &flow, args, operands + i, n - i, run_number, &rows, &used,
		                 &err);
	dbt_flow_close(&flow);
	return rows_end(app, &rows, r < 0 ? msg_fail(&err) : EXIT_DONE);
}

/* The idle class of I/O (linux/ioprio.h) and the lowest priority; threads to come inherit both. */
static void step_back(void)
{
	enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_CLASS_IDLE = 3, IOPRIO_CLASS_SHIFT = 13 };

	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
	              IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT);
	(void)setpriority(PRIO_PROCESS, 0, 19);
}

/* --- --plan --------------------------------------------------------------------------------------------- */

static const struct dbt_budget_item *budget_item(const void *row)
{
	return row;
}

static json_t *get_name(const void *row)
{
	return table_json_name(budget_item(row)->name);
}

static json_t *get_path(const void *row)
{
	return table_json_name(budget_item(row)->path);
}

static json_t *get_size(const void *row)
{
	return table_json_size(budget_item(row)->bytes);
}

static json_t *get_gain(const void *row)
{
	return table_json_real(budget_item(row)->gain);
}

static json_t *get_use(const void *row)
{
	const struct dbt_budget_item *item = row;

	return item->observed_bytes_s ? table_json_size(item->observed_bytes_s) : json_null();
}

static json_t *get_target(const void *row)
{
	return table_json_name(budget_item(row)->target);
}

static json_t *get_chosen(const void *row)
{
	return json_boolean(budget_item(row)->chosen);
}

static const struct column budget_columns[] = {
	{ .key = "name",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .help = "name of the database",
	  .get = get_name },
	{ .key = "path", .type = COLUMN_NAME, .help = "the database's path", .get = get_path },
	{ .key = "size",
	  .type = COLUMN_SIZE,
	  .shown = true,
	  .help = "bytes that would move",
	  .get = get_size },
	{ .key = "gain",
	  .type = COLUMN_REAL,
	  .shown = true,
	  .help = "how many times faster its reads become at least",
	  .get = get_gain },
	{ .key = "use",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .help = "what jobs were observed to read; unset: only the catalogue says that it is read",
	  .get = get_use },
	{ .key = "target",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .help = "filesystem to move it to",
	  .get = get_target },
	{ .key = "chosen",
	  .type = COLUMN_BOOL,
	  .shown = true,
	  .help = "is within the budget",
	  .get = get_chosen },
	{ 0 },
};

static const struct table_spec budget_table = { .key = "plan", .columns = budget_columns };

static bool wants_budget(const void *args)
{
	const struct promote_args *a = args;

	return a->plan && !a->yes;
}

static int check_plan(const struct app *app, const struct promote_args *args, size_t n,
                      struct dbt_err *err)
{
	const char *wrong = NULL;

	if (!args->plan && (args->yes || args->budget_bytes))
		wrong = "'--budget' and '--yes' belong to '--plan'";
	else if (args->plan && n > 0)
		wrong = "'--plan' takes no names: it chooses from the last scan";
	else if (args->plan && !args->budget_bytes)
		wrong = "'--plan' wants '--budget SIZE': how much may be filled";
	else if (args->plan && args->yes && app->args.output)
		wrong = "'--output' does not go with '--plan --yes', which has two tables";
	if (wrong)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "%s", wrong);
	if (!args->plan && n == 0)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'promote' wants NAME|PATH... [--to DIR]; see 'dbtier promote "
		                   "--help'");
	return 0;
}

/* Promotes what was chosen, in the order of the plan. */
static int promote_chosen(struct app *app, const struct promote_args *args,
                          const struct dbt_budget *budget)
{
	dbt_autofree char **chosen = calloc(budget->n ? budget->n : 1, sizeof(*chosen));
	struct dbt_err err;
	size_t n = 0;

	if (!chosen) {
		(void)dbt_err_sys(&err, -ENOMEM, "cannot start");
		return msg_fail(&err);
	}
	for (size_t i = 0; i < budget->n; i++)
		if (budget->items[i].chosen)
			chosen[n++] = budget->items[i].path;
	return n > 0 ? run_real(app, args, chosen, n) : EXIT_DONE;
}

static int check_target(const struct app *app, const struct promote_args *args, struct dbt_err *err)
{
	const char *target = target_of(app, args);
	struct stat st;
	int r = is_auto(app, args)      ? 0
	        : stat(target, &st) < 0 ? -errno
	        : !S_ISDIR(st.st_mode)  ? -ENOTDIR
	                                : 0;

	return r < 0 ? dbt_err_sys(err, r, "cannot plan for the target '%s'; nothing was planned",
	                           target)
	             : 0;
}

static int run_plan(struct app *app, const struct promote_args *args)
{
	const struct dbt_plan_opts opts = plan_opts(app, args, target_of(app, args));
	struct dbt_ledger *ledger = NULL;
	struct dbt_budget budget = { 0 };
	struct dbt_err err = { 0 };
	int r = check_target(app, args, &err), status = EXIT_DONE;

	if (r == 0)
		r = open_to_read(app, &ledger, &err);
	if (r == 0)
		r = dbt_budget_make(&app->ctx, ledger, &opts, args->budget_bytes, &budget, &err);
	dbt_ledger_close(ledger);
	/* JSON is one object: what was planned, or what was done. */
	if (r == 0 && !(args->yes && app->args.json))
		r = table_print(&budget_table, &app->args, TABLE_ROWS(budget.items, budget.n),
		                stdout, &err);
	if (r == 0 && budget.n_chosen == 0)
		msg_note(app, "no database of the last scan would gain there within the budget");
	if (r == 0 && args->yes)
		status = promote_chosen(app, args, &budget);
	else if (r == 0 && budget.n_chosen > 0)
		msg_note(app, "nothing was moved; --yes does it");
	dbt_budget_release(&budget);
	return r < 0 ? msg_fail(&err) : status;
}

/* Who names a thing twice means it once. Returns how many are left, in their order. */
static size_t drop_repeated(char **operands, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		bool repeated = false;

		for (size_t k = 0; !repeated && k < kept; k++)
			repeated = strcmp(operands[k], operands[i]) == 0;
		if (!repeated)
			operands[kept++] = operands[i];
	}
	return kept;
}

static int run(struct app *app, void *opaque, char **operands, size_t n)
{
	const struct promote_args *args = opaque;
	struct dbt_err err = { 0 };
	int r = app_settings(app, &err);

	if (r == 0 && !args->to && !app->settings.target)
		r = dbt_err_set(&err, DBT_ERR_USAGE, -EINVAL,
		                "'--to DIR' is missing, and no configuration sets a target; see "
		                "'dbtier promote --help'");
	if (r == 0)
		r = check_plan(app, args, n, &err);
	if (r < 0)
		return msg_fail(&err);
	n = drop_repeated(operands, n);
	if (args->background)
		step_back();
	if (args->plan)
		return run_plan(app, args);
	return args->dry_run ? run_dry(app, args, operands, n) : run_real(app, args, operands, n);
}

const struct command cmd_promote = {
	.name = "promote",
	.operands = "NAME|PATH... [--to DIR]",
	.summary = "copy to a faster place, prove it, link to it; the original stays",
	.help = "NAME is a database or file name from the last scan. A set moves as a whole or "
		"with its hot\n"
		"files. The path works at every moment; 'dbtier rollback' undoes it in a blink. An "
		"archive of a\n"
		"database is unpacked: its hot files to DIR, the rest beside it with links to "
		"them.",
	.opts = promote_opts,
	.args_bytes = sizeof(struct promote_args),
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_PLAIN_DB,
	.table = &moved_table,
	.other_table = &budget_table,
	.wants_other_table = wants_budget,
	.run = run,
};
