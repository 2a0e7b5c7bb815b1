/* What udev knew about a block device: /run/udev/data/bMAJOR:MINOR, or, in trees captured in
 * util-linux's layout, the property file dev/NAME. */
#ifndef DBT_SURVEY_UDEVDATA_H
#define DBT_SURVEY_UDEVDATA_H

#include "base/buf.h"
#include "sys/ctx.h"

#include <stdint.h>

/* The file's text in buf; -ENOENT when udev knows nothing. name is the kernel's ("sda"). */
int dbt_udevdata_read(const struct dbt_ctx *ctx, uint64_t devno, const char *name,
                      struct dbt_buf *ret);

/* The value of a property; free() it. -ENOENT when absent or empty. */
int dbt_udevdata_get(const struct dbt_buf *data, const char *key, char **ret);

/* The device with this link below /dev ("disk/by-uuid/..."). -ENOENT when there is none. */
int dbt_udevdata_find_link(const struct dbt_ctx *ctx, const char *link, uint64_t *ret_devno);

#endif
