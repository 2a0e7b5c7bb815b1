/* A look into an archive without unpacking it: which members it has, as far as its first bytes tell, and which formats
 * of the catalogue these belong to. tar (plain or packed with gzip, bzip2, xz, zstd or lz4), zip and 7z, by libarchive.
 * The archive is foreign: whatever it says, no more is read, unpacked or waited for than the limits allow. */
#ifndef DBT_SURVEY_PEEK_H
#define DBT_SURVEY_PEEK_H

#include "survey/guess.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stdint.h>

/* Where scan stops by itself. */
enum { DBT_PEEK_BYTES = 8 << 20, DBT_PEEK_NS = 1000000000 };

struct dbt_peek_limits {
	uint64_t packed_bytes; /* read of the file, jumps not counted */
	uint64_t ns;           /* of time */
};

/* No limit but the file's end: only a request to stop ends it. */
extern const struct dbt_peek_limits dbt_peek_all;

struct dbt_peek {
	struct dbt_guess guess;
	uint64_t n_members; /* seen */
	bool whole;         /* to the end of the archive */
	bool damaged;       /* it ended before that by itself: cut short, or no archive */
};

/* Reads the file through `file`, whose head is known. Returns 0, -ENOMEM or -ECANCELED; a damaged archive is no error.
 * The caller releases peek->guess. */
int dbt_peek(const struct dbt_ctx *ctx, const struct dbt_candidate *file,
             const struct dbt_peek_limits *limits, struct dbt_peek *ret);

/* Do the first bytes look like one of these archives? Packed files that hold no archive do, too. */
bool dbt_peek_magic(const struct dbt_candidate *file);

#endif
