/* The arithmetic of a probe: from timed reads to figures. Pure. */
#ifndef DBT_SURVEY_PROBESTAT_H
#define DBT_SURVEY_PROBESTAT_H

#include <stddef.h>
#include <stdint.h>

struct dbt_sample {
	uint64_t start_ns, end_ns;
	uint32_t len_bytes;
};

/* The first reads of a run do not count: a disk may have to wake up, and a throttle lets a burst
 * pass at once. The ramp ends after `reads` of them or after `ns`, whichever comes first, but never
 * takes more than a third of what there is. */
struct dbt_ramp {
	size_t reads;
	uint64_t ns;
};

struct dbt_probestat {
	size_t n;
	uint64_t bytes;
	uint64_t elapsed_ns;
	double iops;
	uint64_t rate_bytes_s;
	uint64_t avg_ns, p50_ns, p95_ns, p99_ns;
	/* Half of the 95 % confidence interval, relative to the mean: of the throughput, from equal
	 * slices of the time (with few reads the same as the next), and of the latencies as if they did
	 * not depend on each other. 1 when unknown. */
	double interval, lat_interval;
};

/* Sorts samples by their end. Returns 0, -ENODATA (fewer than 2 samples, or no time passed) or
 * -ENOMEM. */
int dbt_probestat(struct dbt_sample *samples, size_t n, const struct dbt_ramp *ramp,
                  struct dbt_probestat *ret);

#endif
