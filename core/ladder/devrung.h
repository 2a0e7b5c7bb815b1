/* The rung of a directory: what the probe measures on the device below it. */
#ifndef DBT_LADDER_DEVRUNG_H
#define DBT_LADDER_DEVRUNG_H

#include "base/err.h"
#include "ladder/rungs.h"
#include "sys/ctx.h"

/* rung->name is the directory. Errors as of dbt_rungs_measure. */
int dbt_devrung_measure(const struct dbt_ctx *ctx, uint64_t pattern_ns, struct dbt_rung *rung,
                        struct dbt_err *err);

#endif
