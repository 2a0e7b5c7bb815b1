/* Directories to promote to, for whoever is about to type one: from the configuration, the ledger and the mount table
 * alone. No device is opened and no mount asked but local ones of a fast tier, so that nothing can hang. */
#ifndef DBT_FLOW_TARGETS_H
#define DBT_FLOW_TARGETS_H

#include "base/err.h"
#include "sys/ctx.h"

#include <stddef.h>

struct dbt_target {
	char *dir;
	char *note; /* "nvme, 1.2T free"; for people */
};

struct dbt_targets {
	struct dbt_target *
		items; /* the likeliest first: configured, used before, fast mounts with the most room */
	size_t n, cap;
};

/* What cannot be found out is left out. Returns 0 or -ENOMEM. */
int dbt_targets_find(const struct dbt_ctx *ctx, const char *state_dir, struct dbt_targets *ret);
void dbt_targets_release(struct dbt_targets *targets);

#endif
