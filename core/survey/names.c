#include "survey/names.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int dbt_names_add(struct dbt_names *names, const char *name, uint64_t ino, unsigned char type)
{
	struct dbt_name_at *at;
	size_t off = names->text.len;
	int r;

	if (off > UINT32_MAX)
		return -ENOMEM;
	r = dbt_buf_add(&names->text, name, strlen(name) + 1);
	if (r < 0)
		return r;
	at = dbt_vec_push(&names->at);
	if (!at)
		return -ENOMEM;
	*at = (struct dbt_name_at){ .ino = ino, .off = (uint32_t)off, .type = type };
	return 0;
}

char *dbt_names_text(const struct dbt_names *names, size_t i)
{
	return names->text.data + names->at.items[i].off;
}

static int by_inode(const void *a, const void *b)
{
	const struct dbt_name_at *x = a, *y = b;

	return (x->ino > y->ino) - (x->ino < y->ino);
}

void dbt_names_sort(struct dbt_names *names)
{
	if (names->at.n > 1)
		qsort(names->at.items, names->at.n, sizeof(names->at.items[0]), by_inode);
}

void dbt_names_clear(struct dbt_names *names)
{
	dbt_buf_clear(&names->text);
	names->at.n = 0;
}

void dbt_names_release(struct dbt_names *names)
{
	dbt_buf_release(&names->text);
	free(names->at.items);
	*names = (struct dbt_names){ 0 };
}
