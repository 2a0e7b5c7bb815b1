#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dbt_buf_reserve(struct dbt_buf *buf, size_t extra)
{
	size_t need, cap = buf->cap ? buf->cap : 64;
	char *data;

	if (__builtin_add_overflow(buf->len, extra, &need) ||
	    __builtin_add_overflow(need, 1U, &need))
		return -ENOMEM;
	if (need <= buf->cap)
		return 0;
	while (cap < need)
		if (__builtin_mul_overflow(cap, 2U, &cap))
			return -ENOMEM;
	data = realloc(buf->data, cap);
	if (!data)
		return -ENOMEM;
	buf->data = data;
	buf->cap = cap;
	return 0;
}

int dbt_buf_add(struct dbt_buf *buf, const void *data, size_t len)
{
	int r = dbt_buf_reserve(buf, len);

	if (r < 0)
		return r;
	if (len > 0)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
	return 0;
}

int dbt_buf_adds(struct dbt_buf *buf, const char *str)
{
	return dbt_buf_add(buf, str, strlen(str));
}

int dbt_buf_addc(struct dbt_buf *buf, char c)
{
	return dbt_buf_add(buf, &c, 1);
}

int dbt_buf_addf(struct dbt_buf *buf, const char *fmt, ...)
{
	va_list ap;
	int len, r;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		return -ENOMEM;
	r = dbt_buf_reserve(buf, (size_t)len);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t)len;
	return 0;
}

void dbt_buf_clear(struct dbt_buf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

void dbt_buf_release(struct dbt_buf *buf)
{
	free(buf->data);
	*buf = (struct dbt_buf){ 0 };
}

const char *dbt_buf_str(const struct dbt_buf *buf)
{
	return buf->data ? buf->data : "";
}

char *dbt_buf_take(struct dbt_buf *buf)
{
	char *data = buf->data ? buf->data : strdup("");

	*buf = (struct dbt_buf){ 0 };
	return data;
}
