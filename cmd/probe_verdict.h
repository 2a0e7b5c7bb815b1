/* What came out of the probes of one command line, and what it means for people: ratios, and the cost
 * of the layers between two devices. */
#ifndef DBT_CMD_PROBE_VERDICT_H
#define DBT_CMD_PROBE_VERDICT_H

#include "survey/place.h"
#include "survey/probe.h"
#include "survey/probefiles.h"

#include <stdbool.h>
#include <stddef.h>

enum { N_PATTERNS = 4 };

struct probe_pattern {
	enum dbt_pattern pattern;
	unsigned jobs;
	const char *words;
};
extern const struct probe_pattern probe_patterns[N_PATTERNS];

/* One path of the command line: the files behind it, where they lie, what was measured. */
struct probe_subject {
	const char *path;
	struct dbt_probe_files files;
	struct dbt_place place;
	struct dbt_speeds speeds;
	struct dbt_probe_result results[N_PATTERNS];
	char *failures[N_PATTERNS]; /* why there is no result; NULL where there is one */
	bool tried[N_PATTERNS];
};

/* Lines on stdout: each path against the first, each device against those it lies on. */
void probe_print_verdicts(const struct probe_subject *subjects, size_t n);

#endif
