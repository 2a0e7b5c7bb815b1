/* What `diagnose` does around an observation: names for files and devices, the measurements that a forecast needs, and
 * what is remembered of it. */
#ifndef DBT_FLOW_STALL_H
#define DBT_FLOW_STALL_H

#include "base/err.h"
#include "observe/diagnosis.h"
#include "observe/observe.h"
#include "sys/ctx.h"

struct dbt_stall_opts {
	struct dbt_observe_opts observe;
	const char *to; /* the faster side; NULL: the best that there is */
	bool no_probe;  /* measure nothing there; what was measured within a day still counts */
	const char *state_dir;
	const char *system_state_dir; /* NULL: none */
};

/* Observes, and completes the observation so that dbt_diagnose needs nothing else. Of the slow side nothing is read: its
 * figures are those of a probe within a day, if any. On success the caller releases. */
int dbt_stall_observe(const struct dbt_ctx *ctx, const struct dbt_stall_opts *opts,
                      struct dbt_observation *ret, struct dbt_err *err);

#endif
