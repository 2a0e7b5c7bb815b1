/* What is left of a set or directory that has lost the file it is recognised by: most of the members that it
 * cannot do without stand beside each other, but the lead is missing, empty or unreadable, or another core
 * member is. Only names speak for it, so such a database is never complete. */
#ifndef DBT_SURVEY_REMAINS_H
#define DBT_SURVEY_REMAINS_H

#include "survey/group.h"

/* Looks among the files that no database took, once the others are formed. Returns 0 or -errno. */
int dbt_remains_form(struct dbt_dir *dir, struct dbt_found_vec *found);

#endif
