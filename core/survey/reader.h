/* Reads a plan with a number of threads and notes when each read began and ended. Threads and
 * pread(2): works in every container. Each thread has the idle I/O class. */
#ifndef DBT_SURVEY_READER_H
#define DBT_SURVEY_READER_H

#include "survey/probeplan.h"
#include "survey/probestat.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_reading {
	struct dbt_sample *samples; /* completed reads; owned */
	size_t n;
	uint64_t read_bytes; /* issued, whether or not they completed in time */
	uint64_t elapsed_ns; /* until the end was called */
	uint64_t waited_ns;  /* how long a thread was ready but had no processor, on the average */
	bool interrupted;
	int failed; /* the first error of a read, or 0 */
};

/* Asked some fifty times a second with what has completed: true ends the run. */
typedef bool dbt_enough(void *data, struct dbt_sample *samples, size_t n);

/* shared: all threads take from one list (random), else thread k reads list k. The plan's files
 * become the reader's (they stay open as long as a read hangs) and are gone from the plan. Returns
 * 0, or -ETIMEDOUT when a read does not come back for some seconds after the end. */
int dbt_reader_run(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, unsigned jobs,
                   bool shared, uint64_t max_ns, dbt_enough *enough, void *data,
                   struct dbt_reading *ret);

#endif
