/* Events of the kernel about reads that reach a device, from a tracefs instance of our own: pages that come into the
 * page cache with device, inode and offset (so a read through a mapping or under LUKS shows the process and the file),
 * faults, block requests. Root only. The instance is removed at the end; what a killed run left is removed by the next
 * one. Stays within a budget of CPU time: when there is too much, tracing pauses. */
#ifndef DBT_OBSERVE_TRACE_H
#define DBT_OBSERVE_TRACE_H

#include "base/err.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dbt_trace_kind {
	DBT_TRACE_READ,  /* pages were added to the page cache */
	DBT_TRACE_FAULT, /* a mapping was touched where the page had to be looked up */
	DBT_TRACE_BLOCK, /* a read request went to a block device */
};

struct dbt_trace_event {
	enum dbt_trace_kind kind;
	int tid;
	uint64_t time_ns;
	uint64_t devno, ino; /* of the superblock and inode; of the block device and 0 */
	uint64_t off_bytes, len_bytes;
};

struct dbt_trace;

/* devnos: the superblocks whose files matter; none: all. -EACCES and -EPERM without the rights, -ENOENT where the kernel
 * has no such events; err says it as a clause. */
int dbt_trace_new(const struct dbt_ctx *ctx, const uint64_t *devnos, size_t n_devnos,
                  struct dbt_trace **ret, struct dbt_err *err);
void dbt_trace_free(struct dbt_trace *trace); /* NULL is fine */

/* Reads what has come since the last time and gives it to `take` in the order of time. Returns 0 or the negative code of
 * the first `take` that failed. */
int dbt_trace_poll(struct dbt_trace *trace,
                   int (*take)(void *data, const struct dbt_trace_event *event), void *data);

/* Between these no events are recorded. */
void dbt_trace_pause(struct dbt_trace *trace);
void dbt_trace_resume(struct dbt_trace *trace);

uint64_t dbt_trace_lost(const struct dbt_trace *trace);
bool dbt_trace_has_faults(const struct dbt_trace *trace);

#endif
