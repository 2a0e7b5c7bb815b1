/* Inside observe: a diagnosis while it is made, and the words that its sentences are put together from. */
#ifndef DBT_OBSERVE_JUDGE_H
#define DBT_OBSERVE_JUDGE_H

#include "base/buf.h"
#include "observe/diagnosis.h"
#include "observe/findings.h"

#include <stdbool.h>
#include <stddef.h>

struct dbt_judge {
	const struct dbt_observation *obs;
	struct dbt_diagnosis *d;
	const struct dbt_diag_group
		*g; /* what waits most, or works most; NULL: nobody does anything */
	struct dbt_buf text;
	bool failed; /* out of memory */
};

/* Adds to the sentence. What goes wrong is kept in `failed`. */
void dbt_judge_say(struct dbt_judge *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void dbt_judge_say_name(struct dbt_judge *j, const char *name); /* of any length */
void dbt_judge_say_group(struct dbt_judge *j, const struct dbt_diag_group *g);
void dbt_judge_say_file(struct dbt_judge *j, size_t at);       /* an index of d->files */
void dbt_judge_say_files(struct dbt_judge *j, size_t main);    /* ... and those read beside it */
void dbt_judge_say_device(struct dbt_judge *j, size_t device); /* an index of d->devices */

/* Ends the sentence: it is a remedy, which is never NULL, or the verdict. */
struct dbt_remedy *dbt_judge_remedy(struct dbt_judge *j, enum dbt_remedy_kind kind);
void dbt_judge_verdict(struct dbt_judge *j, enum dbt_diag_kind kind);

/* Whole jobs: a little more than one is one. */
unsigned dbt_judge_whole(double jobs);

const struct dbt_obs_process *dbt_judge_process_of(const struct dbt_judge *j,
                                                   const struct dbt_diag_group *g);

/* Of a file (an index of d->files); NULL unknown. */
const struct dbt_obs_place *dbt_judge_place_of(const struct dbt_judge *j, size_t file);

/* How many of the group read from a place at a time. */
unsigned dbt_judge_readers_of(const struct dbt_judge *j, size_t place);

#endif
