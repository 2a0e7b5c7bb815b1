/* Read leases: the kernel's own word that nobody has a file open for writing, and a notice before
 * anybody gets to (fcntl(2), F_SETLEASE). Unlike a look through /proc it has no gap: while the
 * lease is held, whoever opens the file for writing or truncates it waits, and the holder can tell.
 *
 * Whoever waits does so until the lease is dropped, at most /proc/sys/fs/lease-break-time seconds:
 * hold one for moments, never for the length of a copy.
 *
 * The notice is SIGIO, which would end the process. Here it is sent to the thread that took the
 * lease and to no other, stays blocked in it as long as it holds any lease, and is thrown away
 * before that thread's signal mask is put back. So: drop in the thread that took, and do not use
 * SIGIO for anything else there. */
#ifndef DBT_SYS_LEASE_H
#define DBT_SYS_LEASE_H

#include "sys/ctx.h"

#include <stdbool.h>

/* fd: opened O_RDONLY (an own descriptor for writing counts as a writer). Returns
 *   1        held;
 *   0        there is no such thing for this file, and *ret_why says why as a part of a sentence
 *            ("the filesystem grants no leases"; static): look through /proc instead;
 *   -EAGAIN  somebody has the file open or mapped for writing, on overlayfs too;
 *   -errno   otherwise.
 * An overlay grants leases in spite of writers that have the file only mapped, and a network or
 * FUSE filesystem knows only its own clients here: such a lease is not kept, the answer is 0. */
int dbt_lease_take(const struct dbt_ctx *ctx, int fd, const char **ret_why);

/* Somebody wants to write (and waits), or already does, since the time ran out. */
bool dbt_lease_broken(const struct dbt_ctx *ctx, int fd);

/* Gives it back; nothing happens when it was lost before. Closing fd without this leaves SIGIO
 * blocked in the thread. */
void dbt_lease_drop(const struct dbt_ctx *ctx, int fd);

#endif
