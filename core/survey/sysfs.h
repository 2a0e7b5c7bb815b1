/* Attributes of a directory in sysfs. */
#ifndef DBT_SURVEY_SYSFS_H
#define DBT_SURVEY_SYSFS_H

#include "sys/ctx.h"

#include <stdint.h>

/* Replaces *ret (freed) by the attribute without white space at either end. A missing or empty one
 * leaves *ret and is no error. Returns 0 or -ENOMEM. */
int dbt_sysfs_text(const struct dbt_ctx *ctx, const char *dir, const char *name, char **ret);

/* The number in "dir/dev". -ENOENT when missing, -EINVAL when garbled. */
int dbt_sysfs_devno(const struct dbt_ctx *ctx, const char *dir, uint64_t *ret);

#endif
