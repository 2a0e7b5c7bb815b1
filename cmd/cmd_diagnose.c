/* dbtier diagnose: what do the jobs wait for, and what would help? */
#include "base/cleanup.h"
#include "base/vec.h"
#include "cmd/app.h"
#include "cmd/diagnose_screen.h"
#include "cmd/diagnose_tables.h"
#include "cmd/recording.h"
#include "cmd/runner.h"
#include "cmd/screenful.h"
#include "flow/observed.h"
#include "flow/stall.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SECONDS = 10, WATCH_SECONDS = 2, MAX_SECONDS = 86400 };

struct diagnose_args {
	uint64_t seconds;
	const char *to, *record, *replay;
	bool watch, mask, no_probe, no_trace;
};

#define AT(member) offsetof(struct diagnose_args, member)

enum { GROUP_SOURCE = 1, GROUP_WATCH = 2 };

static const struct opt_spec opts[] = {
	{ .name = "seconds",
	  .letter = 's',
	  .kind = OPT_NUMBER,
	  .at = AT(seconds),
	  .least = 1,
	  .most = MAX_SECONDS,
	  .metavar = "N",
	  .help = "observe so long (10; each screen of --watch: 2)" },
	{ .name = "to",
	  .kind = OPT_STRING,
	  .at = AT(to),
	  .metavar = "DIR",
	  .complete = COMPLETE_DIR,
	  .help = "forecast for a move to there" },
	{ .name = "watch",
	  .letter = 'w',
	  .at = AT(watch),
	  .conflicts = GROUP_SOURCE | GROUP_WATCH,
	  .help = "refresh the screen until q is pressed" },
	{ .name = "record",
	  .kind = OPT_STRING,
	  .at = AT(record),
	  .metavar = "FILE",
	  .complete = COMPLETE_FILE,
	  .conflicts = GROUP_WATCH,
	  .help = "also write what was seen to FILE" },
	{ .name = "mask", .at = AT(mask), .help = "take names out of what is recorded or shown" },
	{ .name = "replay",
	  .kind = OPT_STRING,
	  .at = AT(replay),
	  .metavar = "FILE",
	  .complete = COMPLETE_FILE,
	  .conflicts = GROUP_SOURCE,
	  .help = "answer from such a file, observe nothing" },
	{ .name = "no-probe",
	  .at = AT(no_probe),
	  .help = "measure no device; use what was measured within a day" },
	{ .name = "no-trace", .at = AT(no_trace), .help = "do not use the kernel's tracing" },
	{ 0 },
};

/* --- what the user asks about --- */

struct subject {
	struct {
		int *items;
		size_t n, cap;
	} pids;
	struct {
		char **items;
		size_t n, cap;
	} paths;
};

static void subject_release(struct subject *s)
{
	for (size_t i = 0; i < s->paths.n; i++)
		free(s->paths.items[i]);
	free(s->paths.items);
	free(s->pids.items);
}

static bool is_number(const char *text)
{
	return *text != '\0' && text[strspn(text, "0123456789")] == '\0' && strlen(text) <= 9;
}

static int add_subject(const struct app *app, struct subject *s, const char *word,
                       struct dbt_err *err)
{
	char path[32];

	if (!is_number(word)) {
		char **slot = dbt_vec_push(&s->paths);

		if (!slot)
			return dbt_err_sys(err, -ENOMEM, "cannot start");
		*slot = realpath(word, NULL);
		return *slot ? 0 : dbt_err_sys(err, -errno, "cannot look at '%s'", word);
	}
	(void)snprintf(path, sizeof(path), "proc/%s", word);
	if (!dbt_root_exists(&app->root, path))
		return dbt_err_set(err, DBT_ERR_UNKNOWN, -ESRCH, "there is no process %s", word);
	if (!dbt_vec_push(&s->pids))
		return dbt_err_sys(err, -ENOMEM, "cannot start");
	s->pids.items[s->pids.n - 1] = (int)strtol(word, NULL, 10);
	return 0;
}

/* --- the answer --- */

static int show(struct app *app, struct dbt_observation *obs, const struct screen_look *look,
                FILE *out, struct dbt_err *err)
{
	struct dbt_diagnosis d;
	json_t *json = NULL;
	int r = dbt_diagnose(obs, &d);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot diagnose");
	progress_clear(&app->progress);
	if (app->args.output || app->args.raw || app->args.pairs || app->args.all_columns) {
		struct diagnose_row *rows = diagnose_rows(obs, &d, d.files.n);

		r = rows ? table_print(&diagnose_databases, &app->args, TABLE_ROWS(rows, d.files.n),
		                       out, err)
		         : dbt_err_sys(err, -ENOMEM, "cannot print the answer");
		free(rows);
	} else if (app->args.json) {
		json = diagnose_json(obs, &d);
		if (!json || json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) < 0)
			r = dbt_err_sys(err, json ? -EIO : -ENOMEM, "cannot print the answer");
		(void)fputc('\n', out);
		json_decref(json);
	} else {
		r = diagnose_screen(app, obs, &d, look, out, err);
	}
	dbt_diagnosis_release(&d);
	return r;
}

static int show_once(struct app *app, struct dbt_observation *obs, struct dbt_err *err)
{
	const struct screen_look look = { .width = screen_width(stdout),
		                          .color = table_wants_color(&app->args, stdout) };

	return show(app, obs, &look, stdout, err);
}

static int replay(struct app *app, const struct diagnose_args *args, struct dbt_err *err)
{
	struct dbt_observation obs;
	int r = recording_read(args->replay, &obs, err);

	if (r < 0)
		return r;
	r = args->mask ? recording_mask(&obs) : 0;
	if (r < 0)
		r = dbt_err_sys(err, r, "cannot mask the recording");
	if (r == 0 && args->record)
		r = recording_write(&obs, args->record, err);
	if (r == 0)
		r = show_once(app, &obs, err);
	dbt_observation_release(&obs);
	return r;
}

/* --- observing --- */

static bool command_ended(void *data)
{
	return runner_poll(data);
}

/* For scan and its forecasts. That it is not remembered is no failure of the diagnosis. */
static void remember(struct app *app, const struct dbt_observation *obs)
{
	struct dbt_diagnosis d;
	struct dbt_err err = { 0 };

	if (dbt_diagnose(obs, &d) < 0)
		return;
	if (dbt_observed_remember(&app->ctx, app->state_dir, obs, &d, &err) < 0)
		dbt_ctx_log(&app->ctx, DBT_LOG_WARNING, "what was seen is not remembered: %s",
		            err.text);
	dbt_diagnosis_release(&d);
}

static int observe_once(struct app *app, const struct diagnose_args *args,
                        const struct dbt_stall_opts *stall, const struct runner *command,
                        struct dbt_err *err)
{
	struct dbt_observation obs;
	int r = dbt_stall_observe(&app->ctx, stall, &obs, err);

	if (r < 0)
		return r;
	if (command && command->failed) {
		dbt_observation_release(&obs);
		return dbt_err_sys(err, -command->failed, "cannot run '%s'", command->words[0]);
	}
	if (command) {
		obs.command = strdup(command->words[0]);
		obs.command_seconds = command->ended ? command->seconds : 0;
	}
	remember(app, &obs);
	if (args->mask)
		r = recording_mask(&obs);
	if (r < 0)
		r = dbt_err_sys(err, r, "cannot mask the recording");
	if (r == 0 && args->record)
		r = recording_write(&obs, args->record, err);
	if (r == 0)
		r = show_once(app, &obs, err);
	dbt_observation_release(&obs);
	return r;
}

/* The command begins when the observation has. Its own end is no failure of ours. */
static int observe_command(struct app *app, const struct diagnose_args *args,
                           const struct dbt_stall_opts *common, char **words, size_t n_words,
                           struct dbt_err *err)
{
	struct dbt_stall_opts own = *common, *stall = &own;
	struct runner command;
	int r = runner_start(&command, words, n_words, app->ctx.sys, err);

	if (r < 0)
		return r;
	stall->observe.tasks.pids = &command.pid;
	stall->observe.tasks.n_pids = 1;
	stall->observe.stop = command_ended;
	stall->observe.stop_data = &command;
	stall->observe.max_ns = args->seconds * 1000000000ULL;
	r = observe_once(app, args, stall, &command, err);
	runner_release(&command);
	if (r == 0 && command.ended && command.status != 0)
		msg_note(app, "'%s' ended with status %d", words[0], command.status);
	return r;
}

static int watch(struct app *app, const struct dbt_stall_opts *common, struct dbt_err *err)
{
	struct dbt_stall_opts own = *common, *stall = &own;
	struct screenful screen;
	int r = screenful_begin(&screen, app->args.json, err);

	if (r < 0)
		return r;
	app->ctx.progress = NULL;
	stall->observe.stop = screenful_wants_end;
	stall->observe.stop_data = &screen;
	while (r == 0 && !dbt_ctx_cancelled(&app->ctx) && !screenful_wants_end(&screen)) {
		struct dbt_observation obs;
		struct screen_look look;
		FILE *out;

		r = dbt_stall_observe(&app->ctx, stall, &obs, err);
		if (r < 0)
			break;
		/* One measurement of the target is enough. */
		stall->no_probe = true;
		out = screenful_open(&screen, err);
		look = (struct screen_look){ .width = screen.width,
			                     .color = table_wants_color(&app->args, stdout),
			                     .verdict_first = screen.terminal };
		r = out ? show(app, &obs, &look, out, err) : err->code;
		if (out)
			screenful_show(&screen);
		dbt_observation_release(&obs);
	}
	screenful_end(&screen);
	return r;
}

static int check(const struct app *app, const struct diagnose_args *args, size_t n_operands,
                 struct dbt_err *err)
{
	if (args->replay && (n_operands > 0 || args->to))
		return dbt_err_set(
			err, DBT_ERR_USAGE, -EINVAL,
			"--replay answers from a file: what to observe, and --to, have no "
			"use there");
	if (args->watch && n_operands > app->n_plain)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "--watch and a command to run exclude each other");
	return 0;
}

static int run(struct app *app, void *data, char **operands, size_t n_operands)
{
	const struct diagnose_args *args = data;
	const size_t n_plain = app->n_plain < n_operands ? app->n_plain : n_operands;
	struct subject subject = { 0 };
	struct dbt_stall_opts stall = {
		.to = args->to,
		.no_probe = args->no_probe,
		.state_dir = app->state_dir,
		.system_state_dir = app->system_state_dir,
	};
	struct dbt_err err = { 0 };
	int r = check(app, args, n_operands, &err);

	for (size_t i = 0; r == 0 && i < n_plain; i++)
		r = add_subject(app, &subject, operands[i], &err);
	stall.observe.untraced = args->no_trace;
	stall.observe.max_ns = 1000000000ULL * (args->seconds ? args->seconds
	                                        : args->watch ? (uint64_t)WATCH_SECONDS
	                                                      : (uint64_t)DEFAULT_SECONDS);
	stall.observe.tasks.pids = subject.pids.items;
	stall.observe.tasks.n_pids = subject.pids.n;
	stall.observe.tasks.paths = (const char *const *)subject.paths.items;
	stall.observe.tasks.n_paths = subject.paths.n;
	if (r == 0 && args->replay)
		r = replay(app, args, &err);
	else if (r == 0 && args->watch)
		r = watch(app, &stall, &err);
	else if (r == 0 && n_operands > n_plain)
		r = observe_command(app, args, &stall, operands + n_plain, n_operands - n_plain,
		                    &err);
	else if (r == 0)
		r = observe_once(app, args, &stall, NULL, &err);
	subject_release(&subject);
	return r < 0 ? msg_fail(&err) : EXIT_DONE;
}

const struct command cmd_diagnose = {
	.name = "diagnose",
	.operands = "[PID|PATH...] [-- COMMAND [ARG...]]",
	.summary = "tell what jobs wait for, and what would help",
	.help = "Observes the machine, or the run of COMMAND, and names the file, the process and\n"
		"the device of a stall. PID, PATH: these processes, or those that use files there.",
	.opts = opts,
	.args_bytes = sizeof(struct diagnose_args),
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_PATH,
	.table = &diagnose_databases,
	.run = run,
};
