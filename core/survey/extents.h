/* Where a file has bytes that a device must answer for: no holes, no preallocated, compressed or
 * inline extents, nothing that is still only in memory. Asks FIEMAP, else SEEK_DATA. */
#ifndef DBT_SURVEY_EXTENTS_H
#define DBT_SURVEY_EXTENTS_H

#include "sys/ctx.h"

#include <stddef.h>
#include <stdint.h>

struct dbt_extent {
	uint32_t file; /* index in the caller's list */
	uint64_t off_bytes, len_bytes;
};

struct dbt_extents {
	struct dbt_extent *items;
	size_t n, cap;
	uint64_t data_bytes;       /* sum of the items */
	uint64_t compressed_bytes; /* left out, by reason */
	uint64_t unwritten_bytes;
	uint64_t other_bytes; /* inline, delayed, of unknown place */
};

/* Adds the extents of an open regular file or block device of size_bytes. Extents are cut to whole
 * multiples of align. Returns 0 or -errno. */
int dbt_extents_add(const struct dbt_ctx *ctx, int fd, uint32_t file, uint64_t size_bytes,
                    uint32_t align, struct dbt_extents *extents);

#endif
