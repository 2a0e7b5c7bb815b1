/* Measurements around a promotion: taken from the ledger when they are less than a day old, else made now. */
#ifndef DBT_FLOW_MEASURE_H
#define DBT_FLOW_MEASURE_H

#include "base/err.h"
#include "record/promotion.h"
#include "survey/place.h"
#include "sys/ctx.h"

/* The speeds of the filesystem that these files share. probe false: only what is remembered. Having nothing to
 * measure is no error: *ret is then empty. */
void dbt_measure_files(const struct dbt_ctx *ctx, const char *state_dir,
                       const struct dbt_place *place, const char *const *paths, size_t n_paths,
                       bool probe, struct dbt_speeds *ret);

/* Measures the copies of a promotion and, where they are kept, its originals, and says through ctx->log what the
 * move has brought: with a warning when it is nothing. */
void dbt_measure_promotion(const struct dbt_ctx *ctx, const char *state_dir,
                           const struct dbt_promotion *p);

/* How many times faster `to` is, by the better of the patterns that both have proved; 0 when none is. */
double dbt_measured_gain(const struct dbt_speeds *from, const struct dbt_speeds *to);

#endif
