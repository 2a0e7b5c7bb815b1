/* Is a promotion still what the ledger says? */
#ifndef DBT_FLOW_HEALTH_H
#define DBT_FLOW_HEALTH_H

#include "base/err.h"
#include "record/promotion.h"
#include "sys/ctx.h"

#include <stdbool.h>

enum dbt_health {
	DBT_HEALTH_OK = 0,
	DBT_HEALTH_INTERRUPTED, /* a run ended half-way: recover finishes or undoes it */
	DBT_HEALTH_NOT_MOUNTED, /* the target's filesystem */
	DBT_HEALTH_ORPHAN,      /* the path is gone, the copy is there */
	DBT_HEALTH_LINK_REPLACED,
	DBT_HEALTH_COPY_MISSING,
	DBT_HEALTH_COPY_MODIFIED,
	DBT_HEALTH_ORIGINAL_MISSING,
	DBT_HEALTH_ORIGINAL_CHANGED,
};

const char *dbt_health_name(enum dbt_health health); /* "copy-missing"; static */

/* From names, inodes, sizes and times only; reads no data. The worst of the members, in the order above. With
 * *ret_detail (may be NULL; free()) a sentence that names the file and what to do, NULL when ok. A copy of which
 * only ctime differs counts as modified only after `verify` read it: detail then says that it was touched. */
int dbt_health_of(const struct dbt_ctx *ctx, const struct dbt_promotion *p, enum dbt_health *ret,
                  char **ret_detail, struct dbt_err *err);

/* The same with the bytes read from the devices. */
int dbt_health_verify(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                      enum dbt_health *ret, char **ret_detail, struct dbt_err *err);

#endif
