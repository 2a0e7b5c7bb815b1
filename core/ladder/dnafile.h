/* A file with the text of the DNA experiment, and the ways to count it. The file has no name. */
#ifndef DBT_LADDER_DNAFILE_H
#define DBT_LADDER_DNAFILE_H

#include "base/err.h"
#include "ladder/count.h"
#include "survey/place.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_dnafile {
	int fd;
	int direct_fd; /* -1: the filesystem does not take O_DIRECT */
	struct dbt_place place;
	void *buffer; /* aligned for O_DIRECT */
};

#define DBT_DNAFILE_NONE ((struct dbt_dnafile){ .fd = -1, .direct_fd = -1 })

enum { DBT_DNAFILE_BUFFER_BYTES = 1 << 20, DBT_DNAFILE_BLOCK_BYTES = 4096 };

/* Writes n bytes to a file in dir, on the device when it returns, and takes them out of the page
 * cache. Errors with a sentence; nothing is left then. On success the caller closes. */
int dbt_dnafile_new(const struct dbt_ctx *ctx, const char *dir, const void *data, uint64_t n,
                    struct dbt_dnafile *ret, struct dbt_err *err);
void dbt_dnafile_close(struct dbt_dnafile *file);

/* Each adds to counts and returns 0 or -errno. direct: past the page cache, in aligned blocks. */
int dbt_dnafile_count_order(const struct dbt_ctx *ctx, const struct dbt_dnafile *file, bool direct,
                            uint64_t n, struct dbt_counts *counts);

/* The bytes at index[0 .. n), a read each. */
int dbt_dnafile_count_index(const struct dbt_ctx *ctx, const struct dbt_dnafile *file, bool direct,
                            const uint32_t *index, uint64_t n, struct dbt_counts *counts);

#endif
