/* Choosing for the user: where a database goes, and which of the last scan's databases are worth the room. */
#ifndef DBT_FLOW_BUDGET_H
#define DBT_FLOW_BUDGET_H

#include "flow/plan.h"

struct dbt_budget_item {
	char *name, *path;
	char *target; /* mount point of the place to move it to, or the directory that was given */
	uint64_t bytes;            /* of the files that move */
	double gain;               /* how many times faster its reads become at least */
	uint64_t observed_bytes_s; /* what jobs were seen to read of it; 0: nobody was */
	bool chosen;
};

struct dbt_budget {
	struct dbt_budget_item *items; /* what brings most per byte first */
	size_t n, cap;
	size_t n_chosen;
};

/* Looks anew at the databases that the last scan remembered in the ledger (NULL: an error), with the measurements of a
 * day at most, and chooses until budget_bytes are full: first what was observed to be read, by gain times rate per byte,
 * then the rest by gain per byte. Only databases with a measured gain that pays come into it. opts.target "auto": each
 * to its best place. */
int dbt_budget_make(const struct dbt_ctx *ctx, struct dbt_ledger *ledger,
                    const struct dbt_plan_opts *opts, uint64_t budget_bytes, struct dbt_budget *ret,
                    struct dbt_err *err);
void dbt_budget_release(struct dbt_budget *budget);

/* The directory on the fastest place with room for what `what` means; make: it is made where it does not exist. free()
 * it. A refusal when no faster place with room is known. */
int dbt_budget_target(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
                      const struct dbt_plan_opts *opts, bool make, char **ret, struct dbt_err *err);

#endif
