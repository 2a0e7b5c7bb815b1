/* Inside observe: the numbers of a line of /proc, one by one. */
#ifndef DBT_OBSERVE_WORDS_H
#define DBT_OBSERVE_WORDS_H

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The number that *at stands before, blanks passed over; *at moves behind it. What is negative becomes 0. False: there is
 * none. */
static inline bool dbt_next_number(const char **at, uint64_t *ret)
{
	const char *p = *at;
	char *end;
	bool negative;

	while (*p == ' ' || *p == '\t')
		p++;
	negative = *p == '-';
	p += negative;
	if (!isdigit((unsigned char)*p))
		return false;
	*ret = strtoull(p, &end, 10);
	if (negative)
		*ret = 0;
	*at = end;
	return true;
}

/* n numbers into ret; how many there were. */
static inline unsigned dbt_next_numbers(const char **at, uint64_t *ret, unsigned n)
{
	unsigned i = 0;

	while (i < n && dbt_next_number(at, &ret[i]))
		i++;
	return i;
}

#endif
