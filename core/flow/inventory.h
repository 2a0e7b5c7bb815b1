/* What `scan` tells: the databases below some directories, where each one's bytes lie, how fast that is,
 * and whether a move would pay. Remembers names and measurements in the ledger. */
#ifndef DBT_FLOW_INVENTORY_H
#define DBT_FLOW_INVENTORY_H

#include "base/err.h"
#include "survey/advice.h"
#include "survey/place.h"
#include "survey/scan.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>

struct dbt_inventory_opts {
	struct dbt_scan_opts scan; /* is_ours is filled in here */
	bool no_probe; /* measure nothing; what was measured within a day still counts */
	bool fresh;    /* measure again, even if that was done within a day */
	const char *state_dir;
	const char *system_state_dir; /* NULL: none */
};

/* One filesystem that databases lie on, or could. */
struct dbt_inventory_place {
	bool cleaned; /* systemd-tmpfiles empties its mount point: a last resort as a target */
	struct dbt_place place;
	struct dbt_speeds speeds; /* zero where nothing was measured */
	bool measured;            /* tried, with whatever result */
	struct dbt_inventory_place *next;
};

struct dbt_inventory_item {
	const struct dbt_database *db; /* of scans */
	const struct dbt_inventory_place
		*place; /* of the slowest hot member; NULL: cannot be told */
	const struct dbt_inventory_place
		*to;              /* the best place to move it to; NULL: none is faster */
	struct dbt_advice advice; /* text NULL where place is */
	double cached;            /* share in the page cache, 0 to 1; below 0 unknown */
};

struct dbt_inventory {
	struct dbt_inventory_item *items; /* sorted by path, each database once */
	size_t n_items;
	struct dbt_scan_result *scans; /* one for each path */
	size_t n_scans;
	struct dbt_inventory_place *places; /* a list */
	bool partial;                       /* cancelled */
};

/* Paths that cannot be opened are an error, after everything else was done: *ret is then filled all the
 * same. Otherwise an error leaves *ret empty. In both cases the caller releases. */
int dbt_inventory_make(const struct dbt_ctx *ctx, const char *const *paths, size_t n_paths,
                       const struct dbt_inventory_opts *opts, struct dbt_inventory *ret,
                       struct dbt_err *err);

void dbt_inventory_release(struct dbt_inventory *inventory);

#endif
