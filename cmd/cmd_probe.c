/* probe: what the device below each path really does, measured on the bytes that are there. */
#include "base/cleanup.h"
#include "cmd/app.h"
#include "cmd/probe_verdict.h"
#include "cmd/table.h"
#include "flow/remember.h"
#include "survey/mounts.h"
#include "survey/place.h"
#include "survey/probe.h"
#include "survey/probefiles.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SECONDS = 60 };

const struct probe_pattern probe_patterns[N_PATTERNS] = {
	{ DBT_PATTERN_RANDOM, 1, "random 4k reads" },
	{ DBT_PATTERN_RANDOM, 4, "four jobs of them" },
	{ DBT_PATTERN_STREAM, 1, "one stream" },
	{ DBT_PATTERN_STREAM, 4, "four streams" },
};

struct probe_args {
	uint64_t seconds;
};

static void subject_release(struct probe_subject *s)
{
	dbt_probe_files_release(&s->files);
	dbt_place_release(&s->place);
	for (size_t i = 0; i < N_PATTERNS; i++) {
		dbt_probe_result_release(&s->results[i]);
		free(s->failures[i]);
	}
}

/* --- the table --- */

struct row {
	const struct probe_subject *subject;
	size_t pattern;
};

static const struct dbt_probe_result *result_of(const void *row)
{
	const struct row *r = row;

	return r->subject->failures[r->pattern] ? NULL : &r->subject->results[r->pattern];
}

static json_t *size_or_null(const struct dbt_probe_result *r, uint64_t value)
{
	return r ? table_json_size(value) : json_null();
}

static json_t *get_path(const void *row)
{
	return table_json_name(((const struct row *)row)->subject->path);
}

static json_t *get_device(const void *row)
{
	const struct dbt_place *p = &((const struct row *)row)->subject->place;

	return table_json_text(p->device ? p->device : p->source);
}

static json_t *get_tier(const void *row)
{
	return table_json_text(dbt_tier_name(((const struct row *)row)->subject->place.tier));
}

static json_t *get_pattern(const void *row)
{
	bool random =
		probe_patterns[((const struct row *)row)->pattern].pattern == DBT_PATTERN_RANDOM;

	return table_json_text(random ? "random" : "stream");
}

static json_t *get_jobs(const void *row)
{
	return table_json_size(probe_patterns[((const struct row *)row)->pattern].jobs);
}

static json_t *get_block(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return size_or_null(r, r ? r->block_bytes : 0);
}

static json_t *get_iops(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return r ? table_json_real(round(r->iops * 10) / 10) : json_null();
}

static json_t *get_rate(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return size_or_null(r, r ? r->rate_bytes_s : 0);
}

static json_t *get_lat_avg(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return size_or_null(r, r ? r->lat_avg_ns : 0);
}

static json_t *get_lat_p50(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return size_or_null(r, r ? r->lat_p50_ns : 0);
}

static json_t *get_lat_p99(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return size_or_null(r, r ? r->lat_p99_ns : 0);
}

static json_t *get_reads(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return size_or_null(r, r ? r->reads : 0);
}

static json_t *get_seconds(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return r ? table_json_real(round((double)r->elapsed_ns / 1e6) / 1e3) : json_null();
}

static json_t *get_proved(const void *row)
{
	const struct dbt_probe_result *r = result_of(row);

	return json_boolean(r && r->proved);
}

static json_t *get_note(const void *row)
{
	const struct row *r = row;
	const struct dbt_probe_result *result = result_of(row);

	return table_json_text(result ? result->note : r->subject->failures[r->pattern]);
}

static const struct column columns[] = {
	{ .key = "path",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = get_path,
	  .help = "what was probed" },
	{ .key = "device",
	  .shown = true,
	  .get = get_device,
	  .help = "topmost block device below it, or the source" },
	{ .key = "tier",
	  .shown = true,
	  .get = get_tier,
	  .help = "class of the device, measurement included" },
	{ .key = "pattern", .shown = true, .get = get_pattern, .help = "random or stream" },
	{ .key = "jobs",
	  .type = COLUMN_COUNT,
	  .shown = true,
	  .get = get_jobs,
	  .help = "reads in flight" },
	{ .key = "block", .type = COLUMN_SIZE, .get = get_block, .help = "size of one read" },
	{ .key = "iops",
	  .type = COLUMN_REAL,
	  .shown = true,
	  .get = get_iops,
	  .help = "reads a second" },
	{ .key = "rate",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .get = get_rate,
	  .help = "bytes a second" },
	{ .key = "lat_avg_ns",
	  .type = COLUMN_NS,
	  .get = get_lat_avg,
	  .help = "mean time of a read" },
	{ .key = "lat_p50_ns",
	  .type = COLUMN_NS,
	  .shown = true,
	  .get = get_lat_p50,
	  .help = "half of the reads took no longer" },
	{ .key = "lat_p99_ns",
	  .type = COLUMN_NS,
	  .shown = true,
	  .get = get_lat_p99,
	  .help = "99 % took no longer" },
	{ .key = "reads", .type = COLUMN_COUNT, .get = get_reads, .help = "reads that counted" },
	{ .key = "seconds",
	  .type = COLUMN_SECONDS,
	  .get = get_seconds,
	  .help = "how long they took" },
	{ .key = "proved",
	  .type = COLUMN_BOOL,
	  .shown = true,
	  .get = get_proved,
	  .help = "the disks' own counters saw the reads" },
	{ .key = "note",
	  .shown = true,
	  .wrap = true,
	  .get = get_note,
	  .help = "what to know about the figure" },
	{ 0 },
};

static const struct table_spec table = { .key = "probes", .columns = columns };

static int print_table(const struct app *app, const struct probe_subject *subjects, size_t n,
                       struct dbt_err *err)
{
	dbt_autofree struct row *rows = calloc(n * N_PATTERNS, sizeof(*rows));
	size_t used = 0;

	if (!rows)
		return dbt_err_sys(err, -ENOMEM, "cannot print the probes");
	for (size_t i = 0; i < n * N_PATTERNS; i++) {
		if (!subjects[i / N_PATTERNS].tried[i % N_PATTERNS])
			continue;
		rows[used++] = (struct row){ &subjects[i / N_PATTERNS], i % N_PATTERNS };
	}
	return table_print(&table, &app->args, TABLE_ROWS(rows, used), stdout, err);
}

static int place_of(const struct app *app, const struct dbt_mounts *mounts, struct probe_subject *s,
                    const struct dbt_speeds *speeds, struct dbt_err *err)
{
	const char *path = s->files.n > 0 ? s->files.items[0] : s->path;
	dbt_autoclose int fd = open(path, O_PATH | O_CLOEXEC);
	struct dbt_place place;
	int r;

	if (fd < 0)
		return dbt_err_sys(err, -errno, "cannot open '%s'", path);
	r = dbt_place_of_fd(&app->ctx, mounts, fd, speeds, &place, err);
	if (r < 0)
		return r;
	dbt_place_release(&s->place);
	s->place = place;
	return 0;
}

/* --- measuring --- */

static int measure_one(const struct app *app, const struct probe_args *args,
                       struct probe_subject *s, size_t i, struct dbt_err *err)
{
	struct dbt_probe_target target = { .paths = (const char *const *)s->files.items,
		                           .n_paths = s->files.n,
		                           .place = &s->place };
	struct dbt_probe_opts opts = { .max_ns = args->seconds * 1000000000ULL };
	struct dbt_progress progress = { .phase = "probe", .name = s->path };
	int r;

	if (app->ctx.progress)
		app->ctx.progress(app->ctx.progress_data, &progress);
	r = dbt_probe_run(&app->ctx, &target, probe_patterns[i].pattern, probe_patterns[i].jobs,
	                  &opts, &s->results[i], err);
	if (r == -ECANCELED)
		return r;
	s->tried[i] = true;
	if (r < 0) {
		s->failures[i] = strdup(err->text);
		return s->failures[i] ? r : -ENOMEM;
	}
	dbt_speeds_add(&s->speeds, &s->results[i]);
	return 0;
}

/* Returns the number of patterns that gave a figure, or an error that ends everything. The reason
 * of a failure is told once, however many patterns it stops. */
static int measure(const struct app *app, const struct probe_args *args, struct probe_subject *s,
                   struct dbt_err *err)
{
	char told[DBT_ERR_TEXT_BYTES] = "";
	int done = 0, r;

	for (size_t i = 0; i < N_PATTERNS; i++) {
		r = measure_one(app, args, s, i, err);
		if (r == -ECANCELED || r == -ENOMEM)
			return r;
		if (r == 0)
			done++;
		else if (strcmp(told, err->text) != 0)
			msg_error(err);
		if (r < 0)
			(void)snprintf(told, sizeof(told), "%s", err->text);
		if (dbt_ctx_cancelled(&app->ctx))
			return dbt_err_sys(err, -ECANCELED, "the probe was stopped");
	}
	return done;
}

static void remember(const struct app *app, struct probe_subject *s)
{
	struct dbt_err err;

	if (*s->place.mount == '\0')
		return; /* a bare device is not what databases lie on */
	s->speeds.measured_wall_ns = app->ctx.sys->wall_ns();
	if (dbt_remember_put_speeds(&app->ctx, app->state_dir, &s->place, &s->speeds, &err) < 0)
		dbt_ctx_log(&app->ctx, DBT_LOG_DETAIL, "the result is not remembered: %s",
		            err.text);
}

/* --- the command --- */

static int probe_one(const struct app *app, const struct probe_args *args,
                     const struct dbt_mounts *mounts, struct probe_subject *s, bool *failed,
                     struct dbt_err *err)
{
	int r = dbt_probe_files_find(s->path, &s->files, err);

	if (r == 0)
		r = place_of(app, mounts, s, NULL, err);
	if (r < 0)
		return r;
	r = measure(app, args, s, err);
	if (r == 0)
		*failed = true;
	if (r <= 0)
		return r;
	r = place_of(app, mounts, s, &s->speeds, err);
	if (r == 0)
		remember(app, s);
	return r;
}

static int probe_all(const struct app *app, const struct probe_args *args,
                     struct probe_subject *subjects, size_t n, struct dbt_err *err)
{
	struct dbt_mounts *mounts = NULL;
	bool failed = false;
	int r = dbt_mounts_new(&app->ctx, &mounts, err), stop = 0;
	struct dbt_err print_err;

	if (r < 0)
		return msg_fail(err);
	for (size_t i = 0; i < n && stop == 0; i++) {
		r = probe_one(app, args, mounts, &subjects[i], &failed, err);
		if (r == -ECANCELED)
			stop = msg_exit_status(err);
		else if (r < 0) {
			failed = true;
			msg_error(err);
		}
	}
	dbt_mounts_free(mounts);
	/* An interrupted probe tells what is known. */
	if (print_table(app, subjects, n, &print_err) < 0)
		return msg_fail(&print_err);
	if (stop) {
		msg_error(err);
		return stop;
	}
	if (!app->args.json && !app->args.raw && !app->args.pairs)
		probe_print_verdicts(subjects, n);
	return failed ? EXIT_FAILED : EXIT_DONE;
}

static int run(struct app *app, void *data, char **operands, size_t n_operands)
{
	const struct probe_args *args = data;
	dbt_autofree struct probe_subject *subjects = calloc(n_operands, sizeof(*subjects));
	struct dbt_err err;
	int status;

	if (app_settings(app, &err) < 0)
		return msg_fail(&err);
	if (!subjects) {
		(void)dbt_err_sys(&err, -ENOMEM, "cannot start");
		return msg_fail(&err);
	}
	for (size_t i = 0; i < n_operands; i++)
		subjects[i].path = operands[i];
	progress_clear(&app->progress);
	status = probe_all(app, args, subjects, n_operands, &err);
	for (size_t i = 0; i < n_operands; i++)
		subject_release(&subjects[i]);
	return status;
}

static const struct opt_spec opts[] = {
	{ .name = "seconds",
	  .kind = OPT_NUMBER,
	  .at = offsetof(struct probe_args, seconds),
	  .least = 1,
	  .most = MAX_SECONDS,
	  .metavar = "N",
	  .help = "time for each pattern at most (3)" },
	{ 0 },
};

const struct command cmd_probe = {
	.name = "probe",
	.operands = "PATH...",
	.summary = "measure the device below files or directories, or a block device",
	.help = "Reads existing bytes only, past the page cache, no holes, no compressed data;\n"
		"writes nothing. A figure is proved when the disks' own counters account for\n"
		"the bytes. With two or more paths the ratios to the first are told, and what\n"
		"encryption costs where one device lies on the other.",
	.opts = opts,
	.args_bytes = sizeof(struct probe_args),
	.min_operands = 1,
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_PATH,
	.table = &table,
	.run = run,
};
