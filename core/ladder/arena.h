/* Memory of a chosen page size, all of it present before anything is timed. */
#ifndef DBT_LADDER_ARENA_H
#define DBT_LADDER_ARENA_H

#include "sys/ctx.h"

#include <stddef.h>
#include <stdint.h>

enum dbt_pages {
	DBT_PAGES_SMALL = 0, /* 4 KiB (the base page of the machine), whatever the kernel prefers */
	DBT_PAGES_HUGE,      /* transparent huge pages, where the kernel gives them */
};

struct dbt_arena {
	void *data;        /* aligned to 2 MiB, zeroed */
	size_t bytes;      /* usable */
	size_t huge_bytes; /* of them on huge pages, as /proc/self/smaps tells */
	void *map;         /* the mapping itself */
	size_t map_bytes;
};

/* Returns 0 or -ENOMEM. */
int dbt_arena_new(const struct dbt_ctx *ctx, size_t bytes, enum dbt_pages pages,
                  struct dbt_arena *ret);
void dbt_arena_free(struct dbt_arena *arena); /* zero-initialised and freed are fine */

/* A quarter of the memory that is free for programs, the control groups' limits (v1 and v2)
 * included: more than that no measurement asks for. 0 where the kernel does not say. */
uint64_t dbt_arena_limit(const struct dbt_ctx *ctx);

#endif
