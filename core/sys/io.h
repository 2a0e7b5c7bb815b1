/* Whole reads and writes, aligned memory, and what O_DIRECT asks for. */
#ifndef DBT_SYS_IO_H
#define DBT_SYS_IO_H

#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads until len bytes or the end of the file; EINTR and short reads are handled. Returns the
 * number of bytes read (less than len only at the end of the file) or -errno. */
ssize_t dbt_io_pread(const struct dbt_ctx *ctx, int fd, void *buf, size_t len, uint64_t off);

/* Writes all of len. Returns 0 or -errno. */
int dbt_io_pwrite(const struct dbt_ctx *ctx, int fd, const void *buf, size_t len, uint64_t off);

/* Alignments for O_DIRECT on an open file. From STATX_DIOALIGN (Linux 6.1) where the filesystem
 * answers it, else 4096 for all with known false: try it, and fall back on EINVAL (traps T10). */
struct dbt_dio {
	bool known;     /* statx answered */
	bool supported; /* statx said yes, or did not say */
	uint32_t mem_align;
	uint32_t off_align;
};
void dbt_io_dio_limits(const struct dbt_ctx *ctx, int fd, struct dbt_dio *ret);

/* Pages of the file's range [off, off+len) that sit in the page cache: cachestat(2), else
 * mincore(2). Returns 0 or -errno; -ENOTSUP where neither tells the truth (overlayfs, FUSE). */
int dbt_io_cached(const struct dbt_ctx *ctx, int fd, uint64_t off, uint64_t len,
                  uint64_t *ret_bytes);

#endif
