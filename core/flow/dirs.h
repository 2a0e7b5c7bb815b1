/* The directories that the files of a promotion lie in, each once: locked while names in them are exchanged,
 * synced afterwards. */
#ifndef DBT_FLOW_DIRS_H
#define DBT_FLOW_DIRS_H

#include "base/err.h"
#include "record/promotion.h"
#include "sys/ctx.h"

#include <stddef.h>

struct dbt_dir {
	int fd;
	uint64_t dev, ino;
	char *shown;
};

struct dbt_dirs {
	struct dbt_dir *items;
	size_t n, cap;
};

/* The directories of the paths (copies false) or of the copies. One that is gone is left out. */
int dbt_dirs_of(const struct dbt_ctx *ctx, const struct dbt_promotion *p, bool copies,
                struct dbt_dirs *ret, struct dbt_err *err);

/* Takes flock on each, so that no other dbtier exchanges names there, whatever its ledger. An error of kind BUSY
 * after ten seconds. Filesystems without locks are passed over. */
int dbt_dirs_lock(const struct dbt_ctx *ctx, const struct dbt_dirs *dirs, struct dbt_err *err);

int dbt_dirs_sync(const struct dbt_ctx *ctx, const struct dbt_dirs *dirs, struct dbt_err *err);

void dbt_dirs_release(struct dbt_dirs *dirs); /* unlocks too */

#endif
