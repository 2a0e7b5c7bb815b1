/* One dbtier at a time in a directory: flock on the directory itself. It works between users and
 * state directories, vanishes with the process, and leaves nothing behind. */
#ifndef DBT_SYS_LOCK_H
#define DBT_SYS_LOCK_H

#include "sys/ctx.h"

/* Waits up to wait_ns for the lock on an open directory. Returns 0, -EAGAIN (still held by
 * another), -ECANCELED, -ENOTSUP (a filesystem without locks) or -errno. The lock goes with the
 * descriptor. */
int dbt_lock_dir(const struct dbt_ctx *ctx, int dirfd, uint64_t wait_ns);
void dbt_unlock_dir(int dirfd);

#endif
