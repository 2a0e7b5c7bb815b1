#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *dbt_vec_grow(void *items, size_t n, size_t *cap, size_t item_bytes)
{
	size_t new_cap = *cap ? *cap : 8, bytes;

	if (n == *cap) {
		if (*cap && __builtin_mul_overflow(new_cap, 2U, &new_cap))
			return NULL;
		if (__builtin_mul_overflow(new_cap, item_bytes, &bytes))
			return NULL;
		items = realloc(items, bytes);
		if (!items)
			return NULL;
		*cap = new_cap;
	}
	memset((char *)items + n * item_bytes, 0, item_bytes);
	return items;
}
