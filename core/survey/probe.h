/* Timed reads on bytes that exist: never holes, never unwritten or cached ranges. Read-only, idle
 * I/O class, bounded: at most 3 s a pattern, 8 MiB of random blocks and one second of stream for all
 * patterns together (a slow disk gets longer for its stream). A result is proved only if the disks'
 * own sector counters and /proc/self/io account for the bytes. */
#ifndef DBT_SURVEY_PROBE_H
#define DBT_SURVEY_PROBE_H

#include "base/err.h"
#include "survey/place.h"
#include "sys/ctx.h"

enum dbt_pattern {
	DBT_PATTERN_RANDOM = 0,
	DBT_PATTERN_STREAM,
};

struct dbt_probe_opts {
	uint64_t max_ns; /* a pattern; 0: 3 s */
};

struct dbt_probe_result {
	enum dbt_pattern pattern;
	unsigned jobs;
	uint32_t block_bytes;
	double iops;
	uint64_t rate_bytes_s;
	uint64_t lat_avg_ns, lat_p50_ns, lat_p95_ns, lat_p99_ns;
	uint64_t reads;      /* those that counted; the first ones of a run do not */
	uint64_t elapsed_ns; /* while they ran */
	double interval; /* half the 95 % confidence interval of the throughput, relative to it */
	double load;     /* see struct dbt_speeds */
	uint64_t span_bytes; /* how much data the reads were spread over */
	uint64_t read_bytes; /* everything that was read, ramp included */
	bool proved;
	bool interrupted; /* the cancel flag ended it */
	char *note;       /* "device 87 % busy with other work", "not proved: ..."; NULL */
};

/* A set of files (or block devices) that share one place; the reads are spread over all of them. */
struct dbt_probe_target {
	const char *const *paths;
	size_t n_paths;
	const struct dbt_place *place;
};

/* Runs one pattern. -ENODATA with a sentence when there is nothing to measure (too small, all
 * cached, holes, memory); -ETIMEDOUT when the device does not answer. A cancelled run that has
 * something to tell returns 0 with interrupted set, else -ECANCELED. */
int dbt_probe_run(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                  enum dbt_pattern pattern, unsigned jobs, const struct dbt_probe_opts *opts,
                  struct dbt_probe_result *ret, struct dbt_err *err);

/* The measurements a verdict needs (random with one job, one stream, four streams) in about two
 * seconds. What could not be measured stays zero; -ENODATA when nothing could. */
int dbt_probe_quick(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                    struct dbt_speeds *ret, struct dbt_err *err);

/* Puts one result where it belongs in speeds. */
void dbt_speeds_add(struct dbt_speeds *speeds, const struct dbt_probe_result *result);

void dbt_probe_result_release(struct dbt_probe_result *result);

#endif
