/* Observes the machine for some seconds. Reads /proc, and with root an own instance of tracefs; never a file of
 * anybody. Works as an ordinary user with less to see: the observation says what could not be had. */
#ifndef DBT_OBSERVE_OBSERVE_H
#define DBT_OBSERVE_OBSERVE_H

#include "base/err.h"
#include "observe/observation.h"
#include "observe/tasks.h"

struct dbt_observe_opts {
	struct dbt_tasks_opts tasks;
	uint64_t max_ns;          /* 0: until `stop` says so */
	bool untraced;            /* no tracefs, also as root */
	bool (*stop)(void *data); /* asked twenty times a second and more; may be NULL */
	void *stop_data;
};

/* Places, names of databases and measurements are not filled in: flow/diagnose.h does that. An observation that was
 * cancelled is complete as far as it goes. On success the caller releases. */
int dbt_observe(const struct dbt_ctx *ctx, const struct dbt_observe_opts *opts,
                struct dbt_observation *ret, struct dbt_err *err);

#endif
