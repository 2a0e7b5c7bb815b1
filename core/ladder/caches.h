/* The caches of a processor as the kernel describes them. Source: sysfs,
 * Documentation/ABI/testing/sysfs-devices-system-cpu, cache/indexN. */
#ifndef DBT_LADDER_CACHES_H
#define DBT_LADDER_CACHES_H

#include "sys/ctx.h"

#include <stdint.h>

enum { DBT_CACHE_LEVELS = 4 };

struct dbt_caches {
	/* Data or unified, of the processor that asks, by level - 1; 0: there is none, or the
	 * kernel does not say. */
	uint64_t bytes[DBT_CACHE_LEVELS];
};

void dbt_caches_read(const struct dbt_ctx *ctx, struct dbt_caches *ret);

#endif
