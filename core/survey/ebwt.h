/* The header that bowtie, bowtie2 and Centrifuge share. */
#ifndef DBT_SURVEY_EBWT_H
#define DBT_SURVEY_EBWT_H

#include "survey/formats/format.h"
#include "survey/group.h"

/* The .1 file of an index: u32 1 (the byte order; 01 00 00 00 for little-endian, and the reverse), the
 * length of the genome in 4 or 8 bytes, then small numbers that have few values, and a table of
 * 4^ftabChars numbers that must fit. wide: 8 bytes. From bowtie2's bt2_io.cpp. The reverse index has the
 * same header under the name X.rev.1: it is no lead. */
enum dbt_match dbt_ebwt_test(const struct dbt_candidate *file, bool wide, struct dbt_buf *why);

/* Compares the other files of an index (ending: "bt2") with the numbers of its .1: .2 samples the suffix array, .3 lists
 * the stretches without gaps, .4 has the genome at four bases a byte, and .rev.1 and .rev.2 are as long as .1 and .2
 * at least must be. Returns 0 or -ENOMEM. */
int dbt_ebwt_check(struct dbt_group *group, const char *ending, bool wide);

#endif
