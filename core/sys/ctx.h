/* What every call of core needs from its caller: the table of system calls, where /proc and /sys
 * are, where remarks go, and whether to stop. Held by the caller, borrowed by everyone else, the
 * same for all threads. */
#ifndef DBT_SYS_CTX_H
#define DBT_SYS_CTX_H

#include "sys/sys.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum dbt_log_level {
	DBT_LOG_WARNING, /* the user should know: shown unless -q */
	DBT_LOG_NOTE,    /* worth a line: shown unless -q */
	DBT_LOG_DETAIL,  /* shown with -v */
};

/* A step in a long operation. phase: "copy", "prove", "scan" ...; total_bytes 0 when unknown. */
struct dbt_progress {
	const char *phase;
	const char *name; /* what is being worked on; borrowed for the call */
	uint64_t done_bytes;
	uint64_t total_bytes;
};

struct dbt_ctx {
	const struct dbt_sys *sys;
	const struct dbt_root *root; /* of /proc, /sys, /run, /etc; live or captured */
	void (*log)(void *data, enum dbt_log_level level, const char *text); /* may be NULL */
	void *log_data;
	/* Called at least ten times a second during long work, from the calling thread only; may be
	 * NULL. */
	void (*progress)(void *data, const struct dbt_progress *progress);
	void *progress_data;
	atomic_int *cancel; /* non-zero: the signal that asks to stop; may be NULL */
};

/* The real system with nothing attached. */
void dbt_ctx_init(struct dbt_ctx *ctx, const struct dbt_root *root);

void dbt_ctx_log(const struct dbt_ctx *ctx, enum dbt_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

bool dbt_ctx_cancelled(const struct dbt_ctx *ctx);

#endif
