#include "survey/probe.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "survey/probeplan.h"
#include "survey/probestat.h"
#include "survey/reader.h"
#include "survey/witness.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS 1000000ULL
#define S_NS  1000000000ULL

static const uint64_t DEFAULT_MAX_NS = 3 * S_NS;
/* The two stream patterns take a second together. */
static const uint64_t STREAM_NS = S_NS / 2;
/* A figure from less than this may be one lucky burst. */
static const uint64_t MIN_RANDOM_NS = 200 * MS_NS;
static const uint64_t IDLE_LOOK_NS = 50 * MS_NS;

enum {
	RANDOM_OPS = 1024,   /* of 4 KiB for a pattern, repetition included: 8 MiB for the two */
	FIRST_TRY_OPS = 768, /* so that something is left for the repetition */
	STREAM_OPS = 8192,   /* of 1 MiB, over all streams */
	ENOUGH_OPS = 96,
	FEWEST_OPS = 128, /* for which a repetition is worth it */
};

static const double ENOUGH_INTERVAL = 0.05;
static const double WIDE_INTERVAL = 0.15;

/* --- other work --- */

/* What others asked of the disks between two looks: while we asked for nothing (requests and bytes of ours
 * are 0), or besides ours. */
struct others {
	double busy; /* share of the time; at most, where we had work ourselves */
	double read_bytes_ns;
};

static double share_of_others(double all, double ours)
{
	return all > ours ? (all - ours) / all : 0;
}

/* The disks cannot have worked for others longer than they worked, nor for a larger part of that than
 * others' part of the work: of the requests, or of the bytes where one read becomes many requests. */
static struct others others_between(const struct dbt_witness *before,
                                    const struct dbt_witness *after, uint64_t ns,
                                    uint64_t our_requests, uint64_t our_bytes)
{
	double busy_ns = (double)(after->busy_ms - before->busy_ms) * (double)MS_NS,
	       read = (double)(after->read_bytes - before->read_bytes),
	       written = (double)(after->written_bytes - before->written_bytes),
	       requests = (double)(after->requests - before->requests), part;

	if (ns == 0 || !before->disks_known || !after->disks_known)
		return (struct others){ 0 };
	part = our_requests > 0 ? share_of_others(requests, (double)our_requests)
	                        : share_of_others(read + written, (double)our_bytes);
	return (struct others){ .busy = fmin(part, fmin(1, busy_ns / (double)ns)),
		                .read_bytes_ns = read / (double)ns };
}

static struct others look_at_others(const struct dbt_ctx *ctx, const struct dbt_place *place)
{
	struct timespec pause = { .tv_nsec = (long)IDLE_LOOK_NS };
	struct dbt_witness before = dbt_witness_take(ctx, place), after;
	uint64_t start = ctx->sys->now_ns();

	(void)nanosleep(&pause, NULL);
	after = dbt_witness_take(ctx, place);
	return others_between(&before, &after, ctx->sys->now_ns() - start, 0, 0);
}

/* --- one run --- */

struct goal {
	enum dbt_pattern pattern;
	unsigned jobs;
	uint64_t max_ns;
	size_t max_ops;
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
	       stat.elapsed_ns >= MIN_RANDOM_NS &&
	       fmax(stat.interval, stat.lat_interval) <= ENOUGH_INTERVAL;
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
		r = dbt_probe_plan_random(ctx, plan, goal->max_ops, err);
	else
		r = dbt_probe_plan_stream(ctx, plan, goal->jobs, goal->max_ops / goal->jobs, err);
	if (r < 0)
		dbt_probe_plan_release(plan);
	return r;
}

struct run_facts {
	struct dbt_witness before, after;
	struct dbt_reading reading;
	struct dbt_probestat stat;
	uint64_t span_bytes;
	struct others others; /* the work before, while and after; the reading before and after */
	bool cached_used;
};

static double cpu_wait(const struct run_facts *f)
{
	uint64_t ns = f->reading.elapsed_ns;

	return ns > 0 ? fmin(1, (double)f->reading.waited_ns / (double)ns) : 0;
}

static double load_of(const struct run_facts *f)
{
	return fmax(f->others.busy, cpu_wait(f));
}

/* Ours is what we asked for and what the filesystem had to look up for it (checksums, extents), which
 * the kernel counts as read by us. */
static struct others others_besides(const struct run_facts *f, bool random, uint64_t ns)
{
	const uint64_t asked = f->reading.read_bytes,
		       self = f->after.self_read_bytes - f->before.self_read_bytes,
		       looked_up = self > asked ? self - asked : 0;

	return others_between(&f->before, &f->after, ns, random ? (asked + looked_up) / 4096 : 0,
	                      asked + looked_up);
}

static int run_once(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                    struct goal *goal, struct run_facts *f, struct dbt_err *err)
{
	bool random = goal->pattern == DBT_PATTERN_RANDOM;
	struct others before, after;
	struct dbt_probe_plan plan;
	uint64_t start;
	int r = prepare(ctx, target, goal, &plan, err);

	if (r < 0)
		return r;
	f->span_bytes = plan.extents.data_bytes;
	f->cached_used = plan.cached_used;
	before = look_at_others(ctx, target->place);
	f->before = dbt_witness_take(ctx, target->place);
	start = ctx->sys->now_ns();
	r = dbt_reader_run(ctx, &plan, goal->jobs, random, goal->max_ns,
	                   random ? enough_random : enough_stream, goal, &f->reading);
	f->after = dbt_witness_take(ctx, target->place);
	dbt_probe_plan_release(&plan);
	if (r == 0) {
		f->others = others_besides(f, random, ctx->sys->now_ns() - start);
		after = f->reading.interrupted ? before : look_at_others(ctx, target->place);
		f->others.busy = fmax(f->others.busy, (before.busy + after.busy) / 2);
		f->others.read_bytes_ns = fmax(before.read_bytes_ns, after.read_bytes_ns);
	}
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

/* Like dbt_witness_proves, but a loop device that may answer from memory needs more: others' reads from
 * the same disks are no witness for ours. */
static bool is_proved(const struct dbt_place *place, const struct run_facts *f,
                      char text[DBT_WITNESS_TEXT_BYTES])
{
	double disks = (double)(f->after.read_bytes - f->before.read_bytes),
	       others = f->others.read_bytes_ns * (double)f->reading.elapsed_ns;

	if (!dbt_witness_proves(place, &f->before, &f->after, f->reading.read_bytes, text))
		return false;
	if (!f->before.cache_between ||
	    disks - others >= DBT_WITNESS_SHARE * (double)f->reading.read_bytes)
		return true;
	(void)snprintf(text, DBT_WITNESS_TEXT_BYTES,
	               "not proved: a loop device may have answered from memory, and others read "
	               "from the disk below meanwhile");
	return false;
}

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
	               100 * f->others.busy);
	if (r == 0 && f->others.busy > DBT_LOADED)
		r = add_note(&notes, text);
	(void)snprintf(text, sizeof(text), "%.0f %% of the time was spent waiting for a processor",
	               100 * cpu_wait(f));
	if (r == 0 && cpu_wait(f) > DBT_LOADED)
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
		.load = load_of(f),
		.span_bytes = f->span_bytes,
		.read_bytes = f->reading.read_bytes,
		.interrupted = f->reading.interrupted,
	};

	out.proved = is_proved(target->place, f, unproved);
	if (write_notes(goal, f, unproved, &out) < 0)
		return dbt_err_sys(err, -ENOMEM, "cannot report a probe");
	*ret = out;
	return 0;
}

/* A burst of other work spoils a short run: once more, with the time and the reads that are left. */
static int run_tries(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                     struct goal *goal, struct run_facts *f, struct dbt_err *err)
{
	uint64_t start = ctx->sys->now_ns(), used;
	int r = run_once(ctx, target, goal, f, err);

	used = ctx->sys->now_ns() - start;
	if (r < 0 || f->reading.failed < 0 || f->reading.interrupted || load_of(f) <= DBT_LOADED ||
	    used > goal->max_ns - goal->max_ns / 4)
		return r;
	if (goal->pattern == DBT_PATTERN_RANDOM)
		goal->max_ops = RANDOM_OPS - f->reading.n;
	if (goal->max_ops < FEWEST_OPS)
		return r;
	free(f->reading.samples);
	*f = (struct run_facts){ 0 };
	goal->max_ns -= used;
	return run_once(ctx, target, goal, f, err);
}

int dbt_probe_run(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                  enum dbt_pattern pattern, unsigned jobs, const struct dbt_probe_opts *opts,
                  struct dbt_probe_result *ret, struct dbt_err *err)
{
	bool random = pattern == DBT_PATTERN_RANDOM;
	struct goal goal = { .pattern = pattern,
		             .jobs = jobs,
		             .max_ns = opts && opts->max_ns ? opts->max_ns : DEFAULT_MAX_NS,
		             .max_ops = random ? FIRST_TRY_OPS : STREAM_OPS };
	struct run_facts f = { 0 };
	int r;

	if (target->n_paths == 0)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA, "there is nothing to probe");
	if (target->place->ram)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA,
		                   "cannot measure a device below '%s': %s is memory",
		                   target->paths[0], target->place->fstype);
	r = run_tries(ctx, target, &goal, &f, err);
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
	/* The verdict hangs on this one; the others can be as loaded as they like. */
	if (result->pattern == DBT_PATTERN_RANDOM && result->jobs == 1)
		speeds->load = result->load;
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
