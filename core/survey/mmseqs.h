/* The files that MMseqs2 and Foldseek databases are made of. One database in their sense is X with
 * X.index and X.dbtype (and X.lookup, X.source); what users call the database is several of them under
 * names derived from one: X, X_h (headers), X_seq ... X itself may be X.0, X.1 ... */
#ifndef DBT_SURVEY_MMSEQS_H
#define DBT_SURVEY_MMSEQS_H

#include "survey/group.h"

/* X.dbtype: exactly four bytes, a type up to 20 and flags in the upper half (MMseqs2 Parameters.h). */
enum dbt_match dbt_mmseqs_test(const struct dbt_candidate *file);

/* Adds stem, its parts and its companions. Returns how many data files there were, or -errno. */
int dbt_mmseqs_add(struct dbt_group *group, const char *stem, enum dbt_class class, bool hot);

/* Notes it when the data of stem is shorter than its index says. 0 or -errno. */
int dbt_mmseqs_check(struct dbt_group *group, const char *stem);

/* Is stem one of the names derived from another database in this directory? */
bool dbt_mmseqs_is_derived(struct dbt_group *group, const char *stem);

#endif
