/* The sequence dictionary of a FASTA file. */
#ifndef DBT_SURVEY_SEQDICT_H
#define DBT_SURVEY_SEQDICT_H

#include "survey/group.h"

/* Adds ref.dict to the group of ref.fa or ref.fa.gz: GATK and Picard name it without the endings. Returns 0 or
 * -ENOMEM. */
int dbt_seqdict_add(struct dbt_group *group);

#endif
