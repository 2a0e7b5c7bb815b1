#include "cmd/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t text_utf8_len(const char *text, size_t len)
{
	/* Smallest code point that may use n bytes (RFC 3629: nothing longer than needed). */
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	uint32_t code;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if ((s[0] & 0xe0) == 0xc0)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if ((s[0] & 0xf8) == 0xf0)
		n = 4;
	else
		return 0;
	if (n > len)
		return 0;
	code = s[0] & (0xffU >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fU);
	}
	if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

bool text_is_utf8(const char *text, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = text_utf8_len(text + i, len - i);
		if (n == 0)
			return false;
	}
	return true;
}

int text_add_utf8(struct dbt_buf *buf, const char *text, size_t len)
{
	int r = 0;

	for (size_t i = 0; i < len && r == 0;) {
		size_t n = text_utf8_len(text + i, len - i);

		r = n ? dbt_buf_add(buf, text + i, n) : dbt_buf_adds(buf, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	return r;
}

/* Control characters of ASCII and of the C1 block (U+0080 to U+009F, two bytes in UTF-8). */
static bool is_control(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	if (len == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	return len == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

int text_add_escaped(struct dbt_buf *buf, const char *text)
{
	size_t len = strlen(text);
	int r = 0;

	for (size_t i = 0; i < len && r == 0;) {
		size_t n = text_utf8_len(text + i, len - i);

		if (n > 0 && !is_control(text + i, n)) {
			r = dbt_buf_add(buf, text + i, n);
			i += n;
			continue;
		}
		for (n = n ? n : 1; n > 0 && r == 0; n--)
			r = dbt_buf_addf(buf, "\\x%02x", (unsigned char)text[i++]);
	}
	return r;
}

int text_add_base64(struct dbt_buf *buf, const void *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *s = data;
	int r = 0;

	for (size_t i = 0; i < len && r == 0; i += 3) {
		uint32_t group = (uint32_t)s[i] << 16;
		char out[4];

		if (i + 1 < len)
			group |= (uint32_t)s[i + 1] << 8;
		if (i + 2 < len)
			group |= s[i + 2];
		out[0] = digits[group >> 18];
		out[1] = digits[group >> 12 & 63];
		out[2] = digits[group >> 6 & 63];
		out[3] = digits[group & 63];
		if (i + 1 >= len)
			out[2] = '=';
		if (i + 2 >= len)
			out[3] = '=';
		r = dbt_buf_add(buf, out, sizeof(out));
	}
	return r;
}
