/* Files to measure a filesystem by, where no database of the scan lies on it: large ones that happen to
 * be there. */
#ifndef DBT_SURVEY_MATERIAL_H
#define DBT_SURVEY_MATERIAL_H

#include "sys/ctx.h"

#include <stddef.h>

struct dbt_material {
	char **paths; /* owned */
	size_t n;
};

/* Looks below dir on its own filesystem, for a fraction of a second. Finding nothing is no error.
 * Returns 0 or -errno. */
int dbt_material_find(const struct dbt_ctx *ctx, const char *dir, struct dbt_material *ret);
void dbt_material_release(struct dbt_material *material);

#endif
