/* What one command leaves for the next in the ledger: names of the last scan, links that are ours, measurements.
 * Survey and record do not know each other; this is where their shapes meet. A ledger that cannot be read or
 * written is never a reason for scan or devices to fail: callers show the error as a warning. */
#ifndef DBT_FLOW_REMEMBER_H
#define DBT_FLOW_REMEMBER_H

#include "base/err.h"
#include "survey/place.h"
#include "survey/scan.h"
#include "sys/ctx.h"

#include <stdbool.h>

/* Replaces the names remembered below root (absolute, without links) by what was found there. tiers[i] is the
 * tier of databases[i]; may be NULL. */
int dbt_remember_scan(const struct dbt_ctx *ctx, const char *state_dir, const char *root,
                      const struct dbt_scan_result *found, const enum dbt_tier *tiers,
                      struct dbt_err *err);

/* The paths of all active promotions in one or two ledgers, for dbt_scan_opts.is_ours. */
struct dbt_links;

/* system_state_dir may be NULL. A missing ledger is no error. On other errors *ret still holds what could be read
 * (maybe nothing). Free with dbt_links_free. */
int dbt_links_load(const struct dbt_ctx *ctx, const char *state_dir, const char *system_state_dir,
                   struct dbt_links **ret, struct dbt_err *err);
void dbt_links_free(struct dbt_links *links);

/* data is a struct dbt_links. */
bool dbt_links_is_ours(void *data, const char *path);

/* Measurements of this filesystem on these devices under this kernel, at most max_age_ns old. Returns 1 when
 * there are some, 0 when not, or -errno. */
int dbt_remember_get_speeds(const struct dbt_ctx *ctx, const char *state_dir,
                            const struct dbt_place *place, uint64_t max_age_ns,
                            struct dbt_speeds *ret, struct dbt_err *err);
int dbt_remember_put_speeds(const struct dbt_ctx *ctx, const char *state_dir,
                            const struct dbt_place *place, const struct dbt_speeds *speeds,
                            struct dbt_err *err);

#define DBT_REMEMBER_DAY_NS (24ULL * 3600 * 1000000000)

#endif
