/* The configuration, understood: what a command does when its command line does not say otherwise. */
#ifndef DBT_FLOW_SETTINGS_H
#define DBT_FLOW_SETTINGS_H

#include "base/err.h"
#include "base/units.h"
#include "sys/config.h"
#include "sys/ctx.h"

struct dbt_settings {
	const char *target; /* absolute, or "auto"; NULL: not configured; borrowed from config */
	bool reserve_set;
	struct dbt_amount reserve;
	uint64_t limit_bytes_s; /* 0: none */
	const char **exclude;   /* patterns, absolute or names; strings borrowed from config */
	size_t n_exclude;
	struct dbt_config config; /* every line, with its place */
};

/* A line that is not understood, a value that is none, or a file that cannot be read is an error of kind USAGE that
 * names file and line. On success the caller releases. */
int dbt_settings_load(const struct dbt_ctx *ctx, struct dbt_settings *ret, struct dbt_err *err);
void dbt_settings_release(struct dbt_settings *settings);

#endif
