/* From the packed bytes to those of the tar archive inside.
 *
 * gzip and xz are unpacked here, the others (zstd, lz4, bzip2) by libarchive's filters. libarchive 3.6 does not compare
 * the CRC at the end of a gzip member, so a damaged archive would give other bytes without a word: zlib does. And it
 * decodes xz with one thread: liblzma 5.4 decodes the blocks of a file that `xz -T` wrote on several. (libzstd has no
 * decoder with threads.) */
#ifndef DBT_MOVE_UNPACKER_H
#define DBT_MOVE_UNPACKER_H

#include "base/err.h"
#include "move/packed.h"

struct dbt_unpacker;

struct dbt_unpacker_opts {
	unsigned threads;      /* at most, 1 at least */
	uint64_t memory_bytes; /* that threads may use besides one dictionary */
};

/* Borrows packed. What is not packed at all passes as it is. */
int dbt_unpacker_new(struct dbt_packed *packed, const struct dbt_unpacker_opts *opts,
                     const char *shown, struct dbt_unpacker **ret, struct dbt_err *err);
void dbt_unpacker_free(struct dbt_unpacker *unpacker);

/* The next bytes: how many, 0 at the end, -errno with the reason kept for dbt_unpacker_error. *ret is good until the
 * next call. */
ssize_t dbt_unpacker_read(struct dbt_unpacker *unpacker, const void **ret);

/* The reason of the failure; NULL when there was none. */
const struct dbt_err *dbt_unpacker_error(const struct dbt_unpacker *unpacker);

/* How many zero bytes in a row were the last. */
uint64_t dbt_unpacker_zeros(const struct dbt_unpacker *unpacker);

#endif
