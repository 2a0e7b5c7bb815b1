/* What the administrator or the user knows better: /etc/dbtier.conf, and dbtier.conf in the user's
 * configuration directory, which is asked first. Lines of the form
 *
 *	tier /mnt/store hdd        the filesystem mounted there
 *	tier uuid=UUID ssd         the filesystem with this UUID
 *	tier sda ssd               a disk by the kernel's name
 *	tier model=NAME ssd        all disks of this model
 *
 * Empty lines and lines beginning with # are left out. */
#ifndef DBT_SURVEY_OVERRIDE_H
#define DBT_SURVEY_OVERRIDE_H

#include "base/err.h"
#include "survey/tier.h"
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

/* Missing files are no error; of a captured machine only its own etc/dbtier.conf counts. Lines that
 * make no sense are left out; warn: and logged as warnings. Returns 0 or -ENOMEM. */
int dbt_overrides_load(const struct dbt_ctx *ctx, bool warn, struct dbt_overrides *ret);
void dbt_overrides_release(struct dbt_overrides *overrides);

/* The first that names it; prefix "", "uuid=" or "model=". NULL: none, also for a NULL name. */
const struct dbt_override *dbt_override_find(const struct dbt_overrides *overrides,
                                             const char *prefix, const char *name);

#endif
