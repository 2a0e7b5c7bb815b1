/* The rungs of the storage hierarchy, fastest first, as measured on this machine. */
#ifndef DBT_LADDER_RUNGS_H
#define DBT_LADDER_RUNGS_H

#include "base/err.h"
#include "survey/tier.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dbt_rung_kind { DBT_RUNG_CACHE = 0, DBT_RUNG_MEMORY, DBT_RUNG_DEVICE };

/* Figures of 0 are unknown. */
struct dbt_rung {
	enum dbt_rung_kind kind;
	char *name;          /* "L1 cache", "memory", or the directory as it was given */
	char *device;        /* below the directory; NULL */
	enum dbt_tier tier;  /* of a directory, the measurement included; ram for caches, memory */
	uint64_t size_bytes; /* of the cache, of the memory, of the filesystem */
	uint64_t set_bytes;  /* what was read: the working set, or the data of the files */
	double lat_ns;       /* one read that waits: a load, or 4 KiB of a device (median) */
	double lat_small_ns; /* memory: the same with 4 KiB pages, address translation included */
	double iops1, iops4; /* devices: random 4 KiB, one and four jobs */
	uint64_t stream1, stream4; /* bytes a second: one stream and four; of memory by one thread
	                              and by all processors */
	double book_lat_ns;        /* what textbooks say, see dbt_rungs_book */
	uint64_t book_stream;      /* bytes a second */
	bool proved;               /* devices: their counters saw all the reads */
	bool failed;               /* a device that could not be measured; note says why */
	char *note;                /* NULL none */
};

struct dbt_rungs {
	struct dbt_rung *items;
	size_t n, cap;
};

/* Where the textbook values come from. */
extern const char dbt_rungs_book[];

struct dbt_rungs_opts {
	const char *const *dirs;
	size_t n_dirs;
	uint64_t pattern_ns; /* time of each pattern on a device, at most; 0: the probe's default */
};

/* Devices are measured by the probe, on the files below the directory, or on a temporary file
 * without a name where there is too little. A directory that cannot be measured stays in the list,
 * failed, with a note. Errors: -ECANCELED, -ENOMEM, a directory that is none. */
int dbt_rungs_measure(const struct dbt_ctx *ctx, const struct dbt_rungs_opts *opts,
                      struct dbt_rungs *ret, struct dbt_err *err);
void dbt_rungs_release(struct dbt_rungs *rungs);

#endif
