/* What the numbers of the DNA experiment say, in sentences. Pure. */
#ifndef DBT_LADDER_CONCLUDE_H
#define DBT_LADDER_CONCLUDE_H

#include "ladder/dna.h"

#include <stdbool.h>
#include <stddef.h>

/* The length, as a power of two, from which a is at no length slower than b. False: at the longest
 * it still is, or one of the two is not known there. Lengths at which one is unknown are skipped. */
struct dbt_dna_series {
	enum dbt_dna_mode mode;
	size_t dir;
};
bool dbt_dna_crossing(const struct dbt_dna *dna, struct dbt_dna_series a, struct dbt_dna_series b,
                      unsigned *ret_bits);

struct dbt_sentences {
	char **items;
	size_t n, cap;
};

/* dirs: the names that dbt_dna_run was given. Returns 0 or -ENOMEM. On success the caller releases.
 */
int dbt_dna_conclude(const struct dbt_dna *dna, const char *const *dirs, size_t n_dirs,
                     struct dbt_sentences *ret);
void dbt_sentences_release(struct dbt_sentences *sentences);

#endif
