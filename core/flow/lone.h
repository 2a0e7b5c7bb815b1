/* Rolling back what no ledger knows of. */
#ifndef DBT_FLOW_LONE_H
#define DBT_FLOW_LONE_H

#include "base/err.h"
#include "sys/ctx.h"

#include <stdbool.h>

/* Without a ledger: path is a link, the original stands beside it under the kept name. Both are compared byte by
 * byte; when they differ it is refused, unless discard is true. The copy stays where it is: nothing proves that
 * dbtier made it. *ret_copy is where that is; free() it. */
int dbt_rollback_without_ledger(const struct dbt_ctx *ctx, const char *path, bool discard,
                                char **ret_copy, struct dbt_err *err);

#endif
