/* What a probe will read: open files, their extents, and the reads chosen from them. Only bytes
 * that a device must answer for, none twice, none cached where that can be known. */
#ifndef DBT_SURVEY_PROBEPLAN_H
#define DBT_SURVEY_PROBEPLAN_H

#include "base/err.h"
#include "survey/extents.h"
#include "survey/probe.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_probe_file {
	int fd;
	bool direct;  /* O_DIRECT is on */
	bool settled; /* not written for so long that its cached pages are on the device */
};

struct dbt_read_op {
	uint32_t file;
	uint32_t len_bytes;
	uint64_t off_bytes;
};

struct dbt_probe_plan {
	struct dbt_probe_file *files;
	size_t n_files;
	uint32_t align; /* of offsets, lengths and memory */
	uint32_t block_bytes;
	struct dbt_extents extents;
	struct dbt_read_op *ops; /* random: one list for all jobs; stream: jobs lists of `each` */
	size_t n_ops;
	size_t each;
	size_t skipped_cached; /* candidates left out because they sit in memory */
	bool cached_used;      /* ... or read past the cache, being clean (O_DIRECT) */
};

int dbt_probe_plan_open(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                        struct dbt_probe_plan *ret, struct dbt_err *err);

/* At most max_ops random blocks, spread evenly over all data. */
int dbt_probe_plan_random(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, size_t max_ops,
                          struct dbt_err *err);

/* jobs streams that begin far from each other, at most max_ops reads each. */
int dbt_probe_plan_stream(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, unsigned jobs,
                          size_t max_ops, struct dbt_err *err);

void dbt_probe_plan_release(struct dbt_probe_plan *plan);

#endif
