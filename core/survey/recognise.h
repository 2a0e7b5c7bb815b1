/* Which files of a directory are databases: candidates are opened and tested, groups formed around those
 * that pass. */
#ifndef DBT_SURVEY_RECOGNISE_H
#define DBT_SURVEY_RECOGNISE_H

#include "survey/group.h"

/* Finds the databases of one directory and appends them. Returns 0, -ECANCELED or -ENOMEM. */
int dbt_recognise(struct dbt_dir *dir, struct dbt_found_vec *found);

#endif
