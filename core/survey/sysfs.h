/* Attributes of a directory in sysfs. */
#ifndef DBT_SURVEY_SYSFS_H
#define DBT_SURVEY_SYSFS_H

#include "sys/ctx.h"

#include <stdbool.h>
#include <stdint.h>

/* Replaces *ret (freed) by the attribute without white space at either end. A missing or empty one
 * leaves *ret and is no error. Returns 0 or -ENOMEM. */
int dbt_sysfs_text(const struct dbt_ctx *ctx, const char *dir, const char *name, char **ret);

/* The number in "dir/dev". -ENOENT when missing, -EINVAL when garbled. */
int dbt_sysfs_devno(const struct dbt_ctx *ctx, const char *dir, uint64_t *ret);

/* Reads a decimal number, blanks before it skipped, and moves *at behind it. False when there is
 * none or it is too large; *at is then where it was. */
bool dbt_scan_u64(const char **at, uint64_t *ret);

/* "MAJOR:MINOR" in the same way. */
bool dbt_scan_devno(const char **at, uint64_t *ret);

#endif
