/* Reading a promotion's files again from their devices. */
#ifndef DBT_FLOW_PROVE_H
#define DBT_FLOW_PROVE_H

#include "base/err.h"
#include "record/promotion.h"
#include "sys/ctx.h"

#include <stdbool.h>

/* Does the copy of m hold the recorded bytes? *ret_same false with why it is not in err->text, the call still
 * returning 0. *ret_from_device: the bytes are known to have come from the device. */
int dbt_prove_copy(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                   const struct dbt_pmember *m, bool *ret_same, bool *ret_from_device,
                   struct dbt_err *err);

/* The same for the kept original; one that was reclaimed is the same by definition. */
int dbt_prove_original(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                       const struct dbt_pmember *m, bool *ret_same, struct dbt_err *err);

#endif
