/* "Did you mean": the word that somebody may have meant. */
#ifndef DBT_BASE_NEAREST_H
#define DBT_BASE_NEAREST_H

#include <stddef.h>

/* The one of n words most like text, NULL when none is near. Words of more than 64 bytes are passed over. Borrowed. */
const char *dbt_nearest(const char *text, const char *const *words, size_t n);

#endif
