/* Which promotions the words of rollback, reclaim, status and verify mean. */
#ifndef DBT_FLOW_CHOOSE_H
#define DBT_FLOW_CHOOSE_H

#include "base/err.h"
#include "record/promotion.h"
#include "sys/ctx.h"

/* The active promotion with this id, path (of it, of a member or of a copy), name, or file name. Returns its index
 * in list; an error of kind UNKNOWN lists the candidates when none or several fit. */
int dbt_choose(const struct dbt_ctx *ctx, const struct dbt_promotions *list, const char *what,
               size_t *ret, struct dbt_err *err);

/* The run number of the last promote command of which something is still promoted; 0: none. */
int64_t dbt_choose_last_run(const struct dbt_promotions *list);

#endif
