/* Copies a file's bytes into an open, empty file and proves the copy: while the next blocks are read, hashed
 * and written, each finished window is flushed, read back from the device, hashed again, and compared. Reads
 * the source once. Memory is constant (about 40 MiB), holes stay holes, space is reserved first, and the page
 * cache is left as it was. */
#ifndef DBT_MOVE_COPY_H
#define DBT_MOVE_COPY_H

#include "base/err.h"
#include "move/digest.h"
#include "sys/at.h"
#include "sys/ctx.h"

struct dbt_copy_opts {
	uint64_t limit_bytes_s;            /* 0: as fast as it goes */
	const char *shown_src, *shown_dst; /* for messages and progress; borrowed */
	uint64_t done_before_bytes,
		total_bytes; /* of a set of files, for progress; total 0: this file alone */
};

struct dbt_copy_result {
	struct dbt_digest digest; /* of the source's bytes, equal to that of the bytes read back */
	uint64_t size_bytes;
	uint64_t data_bytes; /* without the holes */
	bool from_device; /* every read-back is known to have come from the device, not from memory */
};

/* src_fd is open for reading, src its identity now; dst_fd is an empty regular file open for reading and
 * writing. On success dst's data is on stable storage (its metadata and name not yet). Errors: NOSPACE, VERIFY
 * (with the range), CHANGED (the source got shorter), INTERRUPTED, SYSTEM; dst is then of no use. */
int dbt_copy_file(const struct dbt_ctx *ctx, int src_fd, const struct dbt_ident *src, int dst_fd,
                  const struct dbt_copy_opts *opts, struct dbt_copy_result *ret,
                  struct dbt_err *err);

/* Reads size_bytes of an open file from its device and hashes them. phase and the shown name are for progress;
 * from_device may be NULL. A file of another length is an error of kind CHANGED. */
int dbt_copy_digest(const struct dbt_ctx *ctx, int fd, uint64_t size_bytes,
                    const struct dbt_copy_opts *opts, struct dbt_digest *ret, bool *ret_from_device,
                    struct dbt_err *err);

/* Byte by byte: *ret_same tells whether two open files hold the same bytes; *ret_digest (of a) is set when
 * they do. */
int dbt_copy_compare(const struct dbt_ctx *ctx, int fd_a, int fd_b,
                     const struct dbt_copy_opts *opts, bool *ret_same,
                     struct dbt_digest *ret_digest, struct dbt_err *err);

#endif
