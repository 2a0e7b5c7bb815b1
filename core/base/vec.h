/* Growing arrays of any type, with overflow checks. A vector is a struct with the members `items`,
 * `n` and `cap`; zero-initialised is empty and valid:
 *
 *	struct { struct dbt_file *items; size_t n, cap; } files = { 0 };
 *	struct dbt_file *f = dbt_vec_push(&files);   // zeroed, or NULL when out of memory
 *
 * The items belong to the vector's owner, who frees what they hold and then free(v.items). Pointers
 * to items die with the next push. */
#ifndef DBT_BASE_VEC_H
#define DBT_BASE_VEC_H

#include <stddef.h>

/* Makes room for one more item of item_bytes; returns the (possibly moved) array or NULL. */
void *dbt_vec_grow(void *items, size_t n, size_t *cap, size_t item_bytes);

#define dbt_vec_push(v)                                                                            \
	({                                                                                         \
		__typeof__(v) v_ = (v);                                                            \
		__typeof__(v_->items) new_ =                                                       \
			dbt_vec_grow(v_->items, v_->n, &v_->cap, sizeof(*v_->items));              \
		if (new_)                                                                          \
			v_->items = new_;                                                          \
		new_ ? &v_->items[v_->n++] : NULL;                                                 \
	})

#endif
