#include "survey/probe.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "survey/probeplan.h"
#include "survey/probestat.h"
#include "survey/reader.h"
#include "survey/witness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS 1000000ULL
#define S_NS  1000000000ULL

static const uint64_t DEFAULT_MAX_NS = 3 * S_NS;
static const uint64_t STREAM_NS = 1 * S_NS;
/* A figure from less than this may be one lucky burst. */
static const uint64_t MIN_RANDOM_NS = 200 * MS_NS;
static const uint64_t IDLE_LOOK_NS = 50 * MS_NS;

enum {
	RANDOM_OPS = 2048, /* of 4 KiB: 8 MiB */
	STREAM_OPS = 8192, /* of 1 MiB, over all streams */
	ENOUGH_OPS = 96,
};

static const double ENOUGH_INTERVAL = 0.05;
static const double WIDE_INTERVAL = 0.15;
static const double BUSY = 0.25;
/* With half of the time taken by others, a figure is not the device's. */
static const double VERY_BUSY = 0.5;
/* --- other work --- */

/* The share of time in which a disk had work while we asked for none. */
static double look_if_busy(const struct dbt_ctx *ctx, const struct dbt_place *place)
{
	struct timespec pause = { .tv_nsec = (long)IDLE_LOOK_NS };
	struct dbt_witness before = dbt_witness_take(ctx, place), after;
	uint64_t start = ctx->sys->now_ns(), ns;
	double share;

	if (!before.disks_known)
		return 0;
	(void)nanosleep(&pause, NULL);
	after = dbt_witness_take(ctx, place);
	ns = ctx->sys->now_ns() - start;
	share = ns > 0 ? (double)(after.busy_ms - before.busy_ms) * (double)MS_NS / (double)ns : 0;
	return share < 1 ? share : 1;
}

/* --- one run --- */

struct goal {
	enum dbt_pattern pattern;
	unsigned jobs;
	uint64_t max_ns;
};

static const struct dbt_ramp ramps[] = {
	[DBT_PATTERN_RANDOM] = { .reads = 32, .ns = S_NS },
	[DBT_PATTERN_STREAM] = { .reads = 32, .ns = S_NS / 4 },
};

static bool enough_random(void *data, struct dbt_sample *samples, size_t n)
{
	struct dbt_probestat stat;

	(void)data;
	return n >= ENOUGH_OPS &&
	       dbt_probestat(samples, n, &ramps[DBT_PATTERN_RANDOM], &stat) == 0 &&
	       stat.elapsed_ns >= MIN_RANDOM_NS && stat.interval <= ENOUGH_INTERVAL;
}

/* A slow device gets more than its second: four reads of each stream say something. */
static bool enough_stream(void *data, struct dbt_sample *samples, size_t n)
{
	const struct goal *goal = data;
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < n; i++) {
		if (samples[i].start_ns < first)
			first = samples[i].start_ns;
		if (samples[i].end_ns > last)
			last = samples[i].end_ns;
	}
	return n >= (size_t)goal->jobs * 4 && last - first >= STREAM_NS;
}

static int prepare(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                   const struct goal *goal, struct dbt_probe_plan *plan, struct dbt_err *err)
{
	int r = dbt_probe_plan_open(ctx, target, plan, err);

	if (r < 0)
		return r;
	if (goal->pattern == DBT_PATTERN_RANDOM)
		r = dbt_probe_plan_random(ctx, plan, RANDOM_OPS, err);
	else
		r = dbt_probe_plan_stream(ctx, plan, goal->jobs, STREAM_OPS / goal->jobs, err);
	if (r < 0)
		dbt_probe_plan_release(plan);
	return r;
}

struct run_facts {
	struct dbt_witness before, after;
	struct dbt_reading reading;
	struct dbt_probestat stat;
	uint64_t span_bytes;
	double other_work;
	bool cached_used;
};

static int run_once(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                    struct goal *goal, struct run_facts *f, struct dbt_err *err)
{
	bool random = goal->pattern == DBT_PATTERN_RANDOM;
	struct dbt_probe_plan plan;
	int r = prepare(ctx, target, goal, &plan, err);

	if (r < 0)
		return r;
	f->span_bytes = plan.extents.data_bytes;
	f->cached_used = plan.cached_used;
	f->other_work = look_if_busy(ctx, target->place);
	f->before = dbt_witness_take(ctx, target->place);
	r = dbt_reader_run(ctx, &plan, goal->jobs, random, goal->max_ns,
	                   random ? enough_random : enough_stream, goal, &f->reading);
	f->after = dbt_witness_take(ctx, target->place);
	dbt_probe_plan_release(&plan);
	if (r == 0 && !f->reading.interrupted)
		f->other_work = (f->other_work + look_if_busy(ctx, target->place)) / 2;
	if (r == -ETIMEDOUT)
		return dbt_err_sys(err, r, "the device below '%s' does not answer",
		                   target->paths[0]);
	return r < 0 ? dbt_err_sys(err, r, "cannot read '%s'", target->paths[0]) : 0;
}

static int summarise(const struct dbt_probe_target *target, const struct goal *goal,
                     struct run_facts *f, struct dbt_err *err)
{
	int r;

	if (f->reading.failed < 0)
		return dbt_err_sys(err, f->reading.failed, "cannot read '%s'", target->paths[0]);
	r = dbt_probestat(f->reading.samples, f->reading.n, &ramps[goal->pattern], &f->stat);
	if (r == -ENODATA && f->reading.interrupted)
		return dbt_err_sys(err, -ECANCELED, "the probe of '%s' was stopped",
		                   target->paths[0]);
	if (r < 0)
		return dbt_err_sys(err, r, "too few reads of '%s' came back in time",
		                   target->paths[0]);
	return 0;
}

/* --- the result --- */

static int add_note(struct dbt_buf *notes, const char *text)
{
	if (*text == '\0')
		return 0;
	if (notes->len > 0 && dbt_buf_adds(notes, "; ") < 0)
		return -ENOMEM;
	return dbt_buf_adds(notes, text);
}

static int write_notes(const struct goal *goal, const struct run_facts *f, const char *unproved,
                       struct dbt_probe_result *out)
{
	struct dbt_buf notes = { 0 };
	char text[160];
	int r = add_note(&notes, unproved);

	(void)snprintf(text, sizeof(text), "the disk was %.0f %% busy with other work",
	               100 * out->other_work);
	if (r == 0 && out->other_work > BUSY)
		r = add_note(&notes, text);
	(void)snprintf(text, sizeof(text), "uneven: the mean is known to +-%.0f %% only",
	               100 * f->stat.interval);
	if (r == 0 && goal->pattern == DBT_PATTERN_RANDOM && f->stat.interval > WIDE_INTERVAL)
		r = add_note(&notes, text);
	if (r == 0 && f->cached_used)
		r = add_note(&notes, "read past the page cache");
	if (r == 0 && goal->pattern == DBT_PATTERN_RANDOM && f->span_bytes < (64U << 20))
		r = add_note(&notes, "little data: a disk's own cache may have helped");
	if (r == 0 && out->interrupted)
		r = add_note(&notes, "stopped early");
	if (r == 0 && notes.len > 0) {
		out->note = dbt_buf_take(&notes);
		r = out->note ? 0 : -ENOMEM;
	}
	dbt_buf_release(&notes);
	return r;
}

static int fill_result(const struct dbt_probe_target *target, const struct goal *goal,
                       const struct run_facts *f, struct dbt_probe_result *ret, struct dbt_err *err)
{
	char unproved[DBT_WITNESS_TEXT_BYTES];
	struct dbt_probe_result out = {
		.pattern = goal->pattern,
		.jobs = goal->jobs,
		.block_bytes = goal->pattern == DBT_PATTERN_RANDOM ? 4096 : 1 << 20,
		.iops = f->stat.iops,
		.rate_bytes_s = f->stat.rate_bytes_s,
		.lat_avg_ns = f->stat.avg_ns,
		.lat_p50_ns = f->stat.p50_ns,
		.lat_p95_ns = f->stat.p95_ns,
		.lat_p99_ns = f->stat.p99_ns,
		.reads = f->stat.n,
		.elapsed_ns = f->stat.elapsed_ns,
		.interval = f->stat.interval,
		.other_work = f->other_work,
		.busy = f->other_work > VERY_BUSY,
		.span_bytes = f->span_bytes,
		.read_bytes = f->reading.read_bytes,
		.interrupted = f->reading.interrupted,
	};

	out.proved = dbt_witness_proves(target->place, &f->before, &f->after, f->reading.read_bytes,
	                                unproved);
	if (write_notes(goal, f, unproved, &out) < 0)
		return dbt_err_sys(err, -ENOMEM, "cannot report a probe");
	*ret = out;
	return 0;
}

int dbt_probe_run(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                  enum dbt_pattern pattern, unsigned jobs, const struct dbt_probe_opts *opts,
                  struct dbt_probe_result *ret, struct dbt_err *err)
{
	struct goal goal = { .pattern = pattern,
		             .jobs = jobs,
		             .max_ns = opts && opts->max_ns ? opts->max_ns : DEFAULT_MAX_NS };
	uint64_t start = ctx->sys->now_ns(), used;
	struct run_facts f = { 0 };
	int r;

	if (target->n_paths == 0)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA, "there is nothing to probe");
	if (target->place->ram)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA,
		                   "cannot measure a device below '%s': %s is memory",
		                   target->paths[0], target->place->fstype);
	r = run_once(ctx, target, &goal, &f, err);
	used = ctx->sys->now_ns() - start;
	/* A burst of other work spoils a short run: once more in the time that is left. */
	if (r == 0 && f.reading.failed == 0 && !f.reading.interrupted && f.other_work > BUSY &&
	    used < goal.max_ns - goal.max_ns / 4) {
		free(f.reading.samples);
		f = (struct run_facts){ 0 };
		goal.max_ns -= used;
		r = run_once(ctx, target, &goal, &f, err);
	}
	if (r == 0)
		r = summarise(target, &goal, &f, err);
	if (r == 0)
		r = fill_result(target, &goal, &f, ret, err);
	free(f.reading.samples);
	return r;
}

void dbt_probe_result_release(struct dbt_probe_result *result)
{
	free(result->note);
	*result = (struct dbt_probe_result){ 0 };
}

void dbt_speeds_add(struct dbt_speeds *speeds, const struct dbt_probe_result *result)
{
	struct dbt_speed *s;

	if (result->pattern == DBT_PATTERN_RANDOM)
		s = result->jobs > 1 ? &speeds->random4 : &speeds->random1;
	else
		s = result->jobs > 1 ? &speeds->stream4 : &speeds->stream1;
	*s = (struct dbt_speed){
		.proved = result->proved,
		.iops = result->iops,
		.lat_p50_ns = result->lat_p50_ns,
		.rate_bytes_s = result->rate_bytes_s,
	};
	if (result->pattern == DBT_PATTERN_RANDOM)
		speeds->span_bytes = result->span_bytes;
	speeds->busy = speeds->busy || result->busy;
}

int dbt_probe_quick(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                    struct dbt_speeds *ret, struct dbt_err *err)
{
	static const struct {
		enum dbt_pattern pattern;
		unsigned jobs;
		uint64_t max_ns;
	} steps[] = {
		{ DBT_PATTERN_RANDOM, 1, 1000 * MS_NS },
		{ DBT_PATTERN_STREAM, 1, 450 * MS_NS },
		{ DBT_PATTERN_STREAM, 4, 450 * MS_NS },
	};
	struct dbt_speeds speeds = { 0 };
	int r = -ENODATA, step;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct dbt_probe_opts opts = { .max_ns = steps[i].max_ns };
		struct dbt_probe_result result = { 0 };

		step = dbt_probe_run(ctx, target, steps[i].pattern, steps[i].jobs, &opts, &result,
		                     r == 0 ? NULL : err);
		if (step == -ECANCELED || step == -ENOMEM)
			return step;
		if (step < 0)
			continue;
		dbt_speeds_add(&speeds, &result);
		dbt_probe_result_release(&result);
		r = 0;
	}
	if (r < 0)
		return r;
	speeds.measured_wall_ns = ctx->sys->wall_ns();
	*ret = speeds;
	return 0;
}
