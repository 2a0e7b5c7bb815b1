/* From single reads that went to the device to how a file is read: requests, jumps, what is read again. Pure. */
#ifndef DBT_OBSERVE_ACCESS_H
#define DBT_OBSERVE_ACCESS_H

#include "observe/observation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_access; /* what is remembered of every reader */

/* NULL: out of memory. */
struct dbt_access *dbt_access_new(void);
void dbt_access_free(struct dbt_access *access); /* NULL is fine */

/* Pages of a file that were read: neighbours, at one moment. */
struct dbt_access_read {
	size_t file;   /* any number below 2^20 that stands for it */
	size_t reader; /* ... for the process */
	uint64_t time_ns;
	uint64_t off_bytes, len_bytes;
};

/* Counts a read into both sums (of the file and of the reader's use of it); uses may be NULL. Reads come in the
 * order of time. Returns 0 or -ENOMEM. */
int dbt_access_add(struct dbt_access *access, const struct dbt_access_read *read,
                   struct dbt_obs_reads *file, struct dbt_obs_reads *use);

/* Some reads were not seen: what comes next is no jump, wherever it is. */
void dbt_access_gap(struct dbt_access *access);

#endif
