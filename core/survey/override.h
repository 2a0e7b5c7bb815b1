/* What the administrator or the user knows better about devices: the lines "tier WHAT TIER" of the configuration
 * (sys/config.h), the user's first. WHAT is
 *
 *	/mnt/store        the filesystem mounted there
 *	uuid=UUID         the filesystem with this UUID
 *	sda               a disk by the kernel's name
 *	model=NAME        all disks of this model */
#ifndef DBT_SURVEY_OVERRIDE_H
#define DBT_SURVEY_OVERRIDE_H

#include "base/err.h"
#include "survey/tier.h"
#include "sys/config.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>

struct dbt_override {
	char *what;
	enum dbt_tier tier;
	char *where; /* "/etc/dbtier.conf, line 3" */
};

struct dbt_overrides {
	struct dbt_override *items;
	size_t n, cap;
};

/* Lines that make no sense are left out; warn: and logged as warnings. Returns 0 or -ENOMEM. */
int dbt_overrides_load(const struct dbt_ctx *ctx, bool warn, struct dbt_overrides *ret);
void dbt_overrides_release(struct dbt_overrides *overrides);

/* "WHAT TIER": what_len bytes of value are WHAT, which may hold blanks. 0 or -EINVAL. */
int dbt_override_parse(const char *value, size_t *ret_what_len, enum dbt_tier *ret_tier);

/* The first that names it; prefix "", "uuid=" or "model=". NULL: none, also for a NULL name. */
const struct dbt_override *dbt_override_find(const struct dbt_overrides *overrides,
                                             const char *prefix, const char *name);

#endif
