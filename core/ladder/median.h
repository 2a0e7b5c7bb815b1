#ifndef DBT_LADDER_MEDIAN_H
#define DBT_LADDER_MEDIAN_H

#include <stddef.h>

/* Sorts the values and returns the one in the middle (of an even number the mean of two); 0 of
 * none. */
double dbt_median(double *values, size_t n);

#endif
