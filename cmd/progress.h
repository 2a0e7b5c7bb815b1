/* The progress of a long operation: a line that rewrites itself on a terminal, or one JSON object a
 * second for programs, on stderr. Rate and time left come from the last ten seconds. */
#ifndef DBT_CMD_PROGRESS_H
#define DBT_CMD_PROGRESS_H

#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum progress_mode { PROGRESS_OFF = 0, PROGRESS_LINE, PROGRESS_JSON };

enum { PROGRESS_SAMPLES = 21, PROGRESS_PHASE_BYTES = 32 };

struct progress {
	enum progress_mode mode;
	FILE *out;
	const struct dbt_sys *sys; /* for the clock */
	bool line_shown;
	uint64_t shown_ns; /* when it was last printed; 0: never in this phase */
	char phase[PROGRESS_PHASE_BYTES];
	struct progress_sample {
		uint64_t at_ns, done_bytes;
	} samples[PROGRESS_SAMPLES]; /* a ring, one each half second: ten seconds */
	size_t n_samples, newest;
};

/* A dbt_ctx.progress; data is the struct progress. */
void progress_report(void *data, const struct dbt_progress *now);

/* Takes the line away, at the end. */
void progress_clear(struct progress *progress);

/* The same for whichever progress shows a line at the moment, before something else is written to
 * the terminal. */
void progress_hide(void);

/* Bytes a second over the samples; 0 while unknown. */
uint64_t progress_rate(const struct progress *progress);

#endif
