/* Giving a finished copy what its source has besides the bytes: owner, mode, attributes, times. */
#ifndef DBT_FLOW_CARRY_H
#define DBT_FLOW_CARRY_H

#include "base/err.h"
#include "move/meta.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdbool.h>

struct dbt_carry {
	int src, dst; /* open */
	const char *shown_src, *shown_dst;
	const struct dbt_ident *times; /* whose times dst gets */
	bool whole;                    /* src is to be deleted: what dst cannot hold is a refusal */
};

/* Owner, mode, attributes and ACLs from src to dst, the times last. When not the same users could read dst, that is
 * a refusal; what else it cannot hold is said through ctx->log. */
int dbt_carry_meta(const struct dbt_ctx *ctx, const struct dbt_carry *c, struct dbt_err *err);

/* The first difference that would be a loss if the first of the two files were deleted; NULL: none. */
const struct dbt_meta_item *dbt_carry_loss(const struct dbt_meta_report *report);

#endif
