/* The header that bowtie, bowtie2 and Centrifuge share. */
#ifndef DBT_SURVEY_EBWT_H
#define DBT_SURVEY_EBWT_H

#include "survey/formats/format.h"

/* The .1 file of an index: u32 1 (the byte order; 01 00 00 00 for little-endian, and the reverse), the
 * length of the genome in 4 or 8 bytes, then small numbers that have few values, and a table of
 * 4^ftabChars numbers that must fit. wide: 8 bytes. From bowtie2's bt2_io.cpp. The reverse index has the
 * same header under the name X.rev.1: it is no lead. */
enum dbt_match dbt_ebwt_test(const struct dbt_candidate *file, bool wide);

#endif
