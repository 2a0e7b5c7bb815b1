/* A machine's storage as a tar archive for a bug report: what mounts.h and blkdev.h read, and
 * nothing else. Unpacked, it is a system root for dbt_root_open. The only user of libarchive.
 *
 * Left out or replaced: serial numbers, world-wide names and UUIDs of devices, file system labels,
 * the names of this host and of servers, addresses, and the users' names in paths. */
#ifndef DBT_SURVEY_CAPTURE_H
#define DBT_SURVEY_CAPTURE_H

#include "base/err.h"
#include "sys/ctx.h"

/* fd: where the archive goes; shown: its name for messages. */
int dbt_capture_write(const struct dbt_ctx *ctx, int fd, const char *shown, struct dbt_err *err);

#endif
