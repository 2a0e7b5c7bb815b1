/* How a disk is attached, from the path of its device in sysfs, the controllers above it and their
 * drivers. Part of blkdev.c's reading. */
#ifndef DBT_SURVEY_TRANSPORT_H
#define DBT_SURVEY_TRANSPORT_H

#include "survey/blkdev.h"

/* dir: the device's real directory below the root, "sys/devices/...". Fills tran, driver, model,
 * vendor, rpm of dev; what cannot be read stays unknown. Returns 0 or -ENOMEM. */
int dbt_transport_read(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev);

/* Is name a hidden path of this NVMe multipath disk? "nvme1c0n2" is one of "nvme1n2". */
bool dbt_nvme_is_path(const char *name, const char *disk);

#endif
