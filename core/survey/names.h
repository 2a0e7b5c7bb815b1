/* The names of a directory, thousands of them in two allocations. */
#ifndef DBT_SURVEY_NAMES_H
#define DBT_SURVEY_NAMES_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

struct dbt_names {
	struct dbt_buf text; /* one after the other, each with its NUL */
	struct {
		struct dbt_name_at {
			uint64_t ino;
			uint32_t off;       /* in text */
			unsigned char type; /* DT_* */
		} * items;
		size_t n, cap;
	} at;
};

/* Copies the name. Returns 0 or -ENOMEM. */
int dbt_names_add(struct dbt_names *names, const char *name, uint64_t ino, unsigned char type);

/* The i-th name; borrowed until the next add. */
char *dbt_names_text(const struct dbt_names *names, size_t i);

/* In the order of inodes. */
void dbt_names_sort(struct dbt_names *names);

void dbt_names_clear(struct dbt_names *names); /* keeps the memory */
void dbt_names_release(struct dbt_names *names);

#endif
