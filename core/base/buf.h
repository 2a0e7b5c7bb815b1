/* A growing byte string, always NUL-terminated once it holds anything. Zero-initialised is empty
 * and valid. All functions return 0 or -ENOMEM; on failure the old contents stay. */
#ifndef DBT_BASE_BUF_H
#define DBT_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct dbt_buf {
	char *data; /* NULL while empty; owned */
	size_t len; /* without the NUL */
	size_t cap;
};

int dbt_buf_add(struct dbt_buf *buf, const void *data, size_t len);
int dbt_buf_adds(struct dbt_buf *buf, const char *str);
int dbt_buf_addc(struct dbt_buf *buf, char c);
int dbt_buf_addf(struct dbt_buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int dbt_buf_reserve(struct dbt_buf *buf, size_t extra);
void dbt_buf_clear(struct dbt_buf *buf); /* keeps the memory */
void dbt_buf_release(struct dbt_buf *buf);

/* The string, "" when empty; borrowed. */
const char *dbt_buf_str(const struct dbt_buf *buf);

/* Hands the memory to the caller (free()), leaves buf empty. NULL when out of memory. */
char *dbt_buf_take(struct dbt_buf *buf);

#endif
