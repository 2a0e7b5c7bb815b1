/* One point of the DNA experiment: some rounds of one way to count, timed and checked. */
#ifndef DBT_LADDER_DNARUN_H
#define DBT_LADDER_DNARUN_H

#include "base/err.h"
#include "ladder/dna.h"
#include "ladder/dnafile.h"
#include "ladder/dnatext.h"
#include "ladder/events.h"

struct dbt_dnarun {
	const struct dbt_ctx *ctx;
	const struct dbt_dnatext *text;
	const struct dbt_dnafile *file; /* NULL for memory */
	const struct dbt_events *events;
};

/* Measures ret->mode, which with ret->bits and ret->dir is set by the caller, and fills the rest.
 * What cannot be measured or proved is not known, with a note; errors are -ECANCELED, -ENOMEM, a
 * file that cannot be read, and -EIO when the count is wrong. */
int dbt_dnarun(const struct dbt_dnarun *run, struct dbt_dna_point *ret, struct dbt_err *err);

#endif
