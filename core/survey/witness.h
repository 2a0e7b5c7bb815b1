/* Who saw the reads: the sector counters of the disks below a place and the kernel's account of
 * this process. Taken before and after some reading, the two together tell whether a device
 * answered for the bytes or memory did. Source: Documentation/admin-guide/iostats.rst,
 * proc_pid_io(5). */
#ifndef DBT_SURVEY_WITNESS_H
#define DBT_SURVEY_WITNESS_H

#include "survey/place.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Only differences mean anything. */
struct dbt_witness {
	bool disks_known;
	uint64_t read_bytes, written_bytes; /* summed over the disks */
	uint64_t requests;                  /* completed reads and writes */
	uint64_t busy_ms;                   /* of the busiest disk */
	bool self_known;
	uint64_t self_read_bytes; /* what this process made devices read */
	/* A loop device above the disks may answer from memory. Our bytes then count as read from a
	 * device all the same, and only the disks' counters, less what others read, can tell. */
	bool cache_between;
};

/* The counters count what was asked of the disks: a little less than ours is a rounding of ramp and
 * partial blocks, much less is memory. */
#define DBT_WITNESS_SHARE 0.98

struct dbt_witness dbt_witness_take(const struct dbt_ctx *ctx, const struct dbt_place *place);

enum { DBT_WITNESS_TEXT_BYTES = 160 };

/* Did the disks deliver at least what was read in between? If not, text says why ("not proved:
 * ..."), else it is empty. */
bool dbt_witness_proves(const struct dbt_place *place, const struct dbt_witness *before,
                        const struct dbt_witness *after, uint64_t read_bytes,
                        char text[DBT_WITNESS_TEXT_BYTES]);

#endif
