/* Inside of unpacking only: the directories of a promotion, and what is in them against what the ledger says. */
#ifndef DBT_FLOW_UNPACK_ROOTS_H
#define DBT_FLOW_UNPACK_ROOTS_H

#include "flow/flow.h"
#include "record/promotion.h"

#include <stdbool.h>
#include <stddef.h>

/* The roots among the members, the hot one first: at most two. Returns how many. */
size_t dbt_unpack_roots(const struct dbt_promotion *p, const struct dbt_pmember *ret[2]);

enum dbt_root_is {
	DBT_ROOT_MISSING = 0,
	DBT_ROOT_VISIBLE,   /* under its final name */
	DBT_ROOT_TEMPORARY, /* under its temporary one */
	DBT_ROOT_OTHER,     /* something else has the final name, and nothing the temporary one */
};

/* Where is a root now? By the recorded inode; one that is not recorded yet may be TEMPORARY only. */
int dbt_unpack_root_is(const struct dbt_ctx *ctx, const struct dbt_pmember *root,
                       enum dbt_root_is *ret, struct dbt_err *err);

/* Gives it its final name (visible) or its temporary one again, where it is not so yet, and flushes the directory.
 * Never replaces anything. */
int dbt_unpack_rename(struct dbt_flow *flow, const struct dbt_pmember *root, bool visible,
                      struct dbt_err *err);

/* What differs from the record in one root. */
enum dbt_diff_is {
	DBT_DIFF_AS_RECORDED = 0,
	DBT_DIFF_MISSING, /* something is not there any more */
	DBT_DIFF_TOUCHED, /* only the ctime of a file differs: its bytes may, with the times put back */
	DBT_DIFF_EXTRA,   /* something else is there as well */
	DBT_DIFF_CHANGED, /* something is another thing now */
};

struct dbt_unpack_diff {
	enum dbt_diff_is is; /* the gravest */
	char *path;     /* of the first that is so, its final name; NULL where nothing differs */
	size_t n_there; /* recorded things that are there */
};
void dbt_unpack_diff_release(struct dbt_unpack_diff *diff);

/* Compares a root that is VISIBLE or TEMPORARY. read: what is only touched is read, and its record renewed where the
 * bytes are right. Of files that are reached by links of ours, these are looked at in the cold root, and the files in
 * the hot one. */
int dbt_unpack_compare(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                       const struct dbt_pmember *root, bool read, struct dbt_unpack_diff *ret,
                       struct dbt_err *err);

/* Removes what lies in a root under its temporary name. all: everything, for nobody else has seen it yet; else what is
 * recorded and still as recorded. *ret_gone: the root is removed too. */
int dbt_unpack_remove_root(struct dbt_flow *flow, const struct dbt_promotion *p,
                           const struct dbt_pmember *root, bool all, bool *ret_gone,
                           struct dbt_err *err);

#endif
