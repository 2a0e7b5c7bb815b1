/* What a user should know once the links are in place. */
#ifndef DBT_FLOW_TELL_H
#define DBT_FLOW_TELL_H

#include "record/promotion.h"
#include "sys/ctx.h"

/* Through ctx->log: processes that opened a file before the swap and read the slow one until they end, and whether
 * containers would not see the target. Failing to find out is no error: the promotion stands. */
void dbt_tell_after_swap(const struct dbt_ctx *ctx, const struct dbt_promotion *p);

#endif
