/* The bytes of an archive file as they lie on its disk, read once and hashed on the way: the slow disk sees one
 * sequential stream, and a checksum that was published with the archive is known at its end. Formats that jump about
 * (zip and 7z keep their directory at the end) may seek; what they passed over is read for the hashes at the end. */
#ifndef DBT_MOVE_PACKED_H
#define DBT_MOVE_PACKED_H

#include "base/err.h"
#include "move/digest.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum dbt_sum_kind {
	DBT_SUM_MD5 = 1U << 0,
	DBT_SUM_SHA256 = 1U << 1,
};

enum { DBT_SUM_HEX_BYTES = 65 };

struct dbt_packed;

struct dbt_packed_opts {
	const char *shown;      /* for messages; borrowed */
	unsigned sums;          /* enum dbt_sum_kind: what to compute besides XXH3 */
	uint64_t limit_bytes_s; /* 0: as fast as it goes */
	atomic_bool *stop; /* somebody else gave up: reading ends with -ECANCELED; may be NULL */
	_Atomic uint64_t *progress; /* counts the bytes read for the first time; may be NULL */
};

/* fd stays the caller's, and open as long; ident is its identity now. */
int dbt_packed_new(const struct dbt_ctx *ctx, int fd, const struct dbt_ident *ident,
                   const struct dbt_packed_opts *opts, struct dbt_packed **ret,
                   struct dbt_err *err);
void dbt_packed_free(struct dbt_packed *packed);

/* The next bytes: how many, 0 at the end, -errno. *ret is good until the next call. */
ssize_t dbt_packed_read(struct dbt_packed *packed, const void **ret);

/* From where to read next. */
uint64_t dbt_packed_at(const struct dbt_packed *packed);
void dbt_packed_seek(struct dbt_packed *packed, uint64_t off);
uint64_t dbt_packed_size(const struct dbt_packed *packed);

/* The first bytes without moving on: at most len. */
ssize_t dbt_packed_peek(struct dbt_packed *packed, void *buf, size_t len);

/* Reads what is not hashed yet and ends the hashes: XXH3 of the whole file, and the others where they were asked for
 * ("" where not). */
struct dbt_packed_sums {
	struct dbt_digest digest;
	char md5[DBT_SUM_HEX_BYTES], sha256[DBT_SUM_HEX_BYTES];
};
int dbt_packed_finish(struct dbt_packed *packed, struct dbt_packed_sums *ret, struct dbt_err *err);

#endif
