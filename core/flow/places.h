/* The filesystems that matter for an inventory, each looked at and measured once. */
#ifndef DBT_FLOW_PLACES_H
#define DBT_FLOW_PLACES_H

#include "flow/inventory.h"
#include "survey/mounts.h"

struct dbt_places {
	const struct dbt_ctx *ctx;
	const struct dbt_inventory_opts *opts;
	struct dbt_mounts *mounts;
	struct dbt_inventory_place *known; /* a list; the inventory takes it in the end */
	uint64_t *failed;                  /* mount ids that cannot be judged */
	size_t n_failed, cap_failed;
};

int dbt_places_init(struct dbt_places *places, const struct dbt_ctx *ctx,
                    const struct dbt_inventory_opts *opts, struct dbt_err *err);
void dbt_places_release(struct dbt_places *places); /* not what known points to */

/* The place of the slowest hot member (of any member, where none is hot), unmeasured so far. NULL when
 * it cannot be told; the log says why. */
struct dbt_inventory_place *dbt_places_of(struct dbt_places *places, const struct dbt_database *db);

/* Measures a place by the members that lie on it, or takes the measurement of a day ago at most from
 * the ledger. paths may be NULL: then by whatever large files are there. Failing is no error. */
void dbt_places_measure(struct dbt_places *places, struct dbt_inventory_place *place,
                        const char *const *paths, size_t n_paths);

/* The best place to move hot_bytes to from there; NULL when there is none that is faster. */
struct dbt_inventory_place *dbt_places_better(struct dbt_places *places,
                                              const struct dbt_inventory_place *from,
                                              uint64_t hot_bytes);

#endif
