/* Checksums that were published with an archive: NAME.md5, NAME.sha256, or the same with "sum" at the end, beside it. */
#ifndef DBT_FLOW_UNPACK_SUMS_H
#define DBT_FLOW_UNPACK_SUMS_H

#include "base/err.h"
#include "move/packed.h"
#include "sys/at.h"
#include "sys/ctx.h"

struct dbt_unpack_sums {
	char md5[DBT_SUM_HEX_BYTES], sha256[DBT_SUM_HEX_BYTES]; /* "": none is known */
};

/* Reads what lies beside the archive. A file that names other files only, or holds no checksum, is a refusal. */
int dbt_unpack_sums_find(const struct dbt_ctx *ctx, const struct dbt_at *archive,
                         struct dbt_unpack_sums *ret, struct dbt_err *err);

unsigned dbt_unpack_sums_wanted(const struct dbt_unpack_sums *sums); /* enum dbt_sum_kind */

/* Is the archive what was published? */
int dbt_unpack_sums_check(const struct dbt_unpack_sums *wanted, const struct dbt_packed_sums *found,
                          const char *archive, struct dbt_err *err);

#endif
