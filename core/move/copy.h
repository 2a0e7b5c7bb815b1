/* Copies the bytes of files and proves the copies: while the next blocks are read, hashed and written, what was
 * written is flushed, read back from the device, hashed again, and compared. Reads each source once. Memory is
 * constant (about 40 MiB), holes stay holes, space is reserved first, and the page cache is left as it was. */
#ifndef DBT_MOVE_COPY_H
#define DBT_MOVE_COPY_H

#include "base/err.h"
#include "move/digest.h"
#include "sys/at.h"
#include "sys/ctx.h"

enum { DBT_COPY_JOBS = 2, DBT_COPY_MAX_JOBS = 8 };

struct dbt_copy_opts {
	uint64_t limit_bytes_s; /* 0: as fast as it goes */
	unsigned jobs;          /* reads, and writes, at the same time; 0: DBT_COPY_JOBS */
	const char *shown_src, *shown_dst; /* for messages and progress; borrowed */
	uint64_t done_before_bytes,
		total_bytes; /* of a set of files, for progress; total 0: this file alone */
};

struct dbt_copy_result {
	struct dbt_digest digest; /* of the source's bytes, equal to that of the bytes read back */
	uint64_t size_bytes;
	uint64_t data_bytes; /* written: without the holes, and without what was kept */
	uint64_t kept_bytes; /* of an earlier run, not read from the source again */
	bool from_device; /* every read-back is known to have come from the device, not from memory */
};

/* --- one file ------------------------------------------------------------------------------------------- */

/* src_fd is open for reading, src its identity now; dst_fd is an empty regular file open for reading and
 * writing. On success dst's data is on stable storage (its metadata and name not yet). Errors: NOSPACE, VERIFY
 * (with the range), CHANGED (the source got shorter), INTERRUPTED, SYSTEM; dst is then of no use. */
int dbt_copy_file(const struct dbt_ctx *ctx, int src_fd, const struct dbt_ident *src, int dst_fd,
                  const struct dbt_copy_opts *opts, struct dbt_copy_result *ret,
                  struct dbt_err *err);

/* --- many files ----------------------------------------------------------------------------------------- */

/* A file while it is being copied. */
struct dbt_copy_item {
	int src; /* open for reading */
	int dst; /* open for reading and writing; empty unless kept_bytes says otherwise */
	const char *shown_src, *shown_dst; /* valid until dbt_copy_many returns */
	/* dst begins with so many of src's bytes, which a run that was interrupted flushed (whole blocks, or all of
	 * src), and this is their digest. They are read from dst's device and hashed: when the digest is another one,
	 * the file is copied from its beginning. 0: nothing is kept. */
	uint64_t kept_bytes;
	struct dbt_digest kept_digest;
};

/* Files 0 to n - 1, copied in this order. The calls get the same data and a ctx of their own, whose messages reach the
 * caller's log from the caller's thread. They come from several threads: those about one file one after the other,
 * those about different files at the same time, except that `flushed` and `proved` are never called twice at once and
 * come in the order of the files. All but open may be NULL. A negative code with err filled stops everything.
 *
 *	size      how long the file is. No system calls here.
 *	open      fills ret. The copy is made here, and the source's identity checked.
 *	written   all bytes are read and written, not flushed yet: the place to compare the source's identity again and
 *	          to give the copy its metadata (the times last), which is flushed together with the data. digest is
 *	          that of all bytes of the source. May close item->src and set it to -1, so that not too many files
 *	          stay open.
 *	flushed   so many first bytes of a file that goes on are flushed and proved; digest is theirs.
 *	proved    all of it is on stable storage, data and metadata, and was read back. What is changed now is not
 *	          flushed any more. May close item->dst and set it to -1, for whoever wants to see close(2) fail.
 *	close     the last call for a file that was opened; failed when it was not proved. Closes both. */
struct dbt_copy_many {
	size_t n;
	void *data;
	uint64_t (*size)(void *data, size_t i);
	int (*open)(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *ret,
	            struct dbt_err *err);
	int (*written)(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *item,
	               const struct dbt_digest *digest, struct dbt_err *err);
	int (*flushed)(void *data, const struct dbt_ctx *ctx, size_t i,
	               const struct dbt_copy_item *item, uint64_t bytes,
	               const struct dbt_digest *digest, struct dbt_err *err);
	int (*proved)(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *item,
	              const struct dbt_copy_result *result, struct dbt_err *err);
	void (*close)(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *item,
	              bool failed);
};

/* Copies them all through one pipeline, so that the next files are read while the last ones are flushed and proved.
 * Small files share a flush: one syncfs(2) for up to 128 of them where the filesystem is known to make it as good as
 * an fsync of each, else an fsync of each. Names and directories are the caller's to flush. Of opts the rate, jobs
 * and totals count. On an error some files may be proved already; the others are of no use. */
int dbt_copy_many(const struct dbt_ctx *ctx, const struct dbt_copy_many *many,
                  const struct dbt_copy_opts *opts, struct dbt_err *err);

/* Flushes everything of the filesystem that fd lies on, names and directories included. 0, -errno, or 1 where
 * syncfs(2) is not known to do that: then fsync each file and directory. */
int dbt_copy_sync_fs(const struct dbt_ctx *ctx, int fd);

/* --- reading only --------------------------------------------------------------------------------------- */

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
