/* Looks up the sizes of many names of one directory, on all cores: with warm caches that is the whole
 * cost of a scan. Small directories are done by the caller alone. */
#ifndef DBT_SURVEY_STATS_H
#define DBT_SURVEY_STATS_H

#include "sys/ctx.h"

#include <stddef.h>
#include <stdint.h>

struct dbt_stat {
	char *name;    /* borrowed */
	unsigned hint; /* for the caller */
	unsigned char type;
	int code; /* 0 or -errno; the rest is valid with 0 */
	uint32_t mode, nlink;
	uint64_t size_bytes, dev, ino;
};

struct dbt_stats; /* the helpers */

/* NULL when there is one core only, or no thread can be had: run works all the same. */
struct dbt_stats *dbt_stats_new(const struct dbt_ctx *ctx);
void dbt_stats_free(struct dbt_stats *stats);

/* Fills items from their names below dirfd; links are not followed. */
void dbt_stats_run(struct dbt_stats *stats, const struct dbt_ctx *ctx, int dirfd,
                   struct dbt_stat *items, size_t n);

/* One name, by the caller. flags: of statx. */
void dbt_stat_one(const struct dbt_ctx *ctx, int dirfd, int flags, struct dbt_stat *item);

#endif
