/* The key index that HMMER and Infernal share: Easel's SSI 3.0 (esl_ssi.c), big-endian. */
#ifndef DBT_SURVEY_SSI_H
#define DBT_SURVEY_SSI_H

#include "survey/group.h"

/* Notes on the group when this member is no such index, or is cut short. NULL passes: a missing one is
 * left to the rules. Returns 0 or -ENOMEM. */
int dbt_ssi_check(struct dbt_group *group, const struct dbt_file *file);

#endif
