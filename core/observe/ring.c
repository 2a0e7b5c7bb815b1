#include "observe/ring.h"

#include <stdlib.h>
#include <string.h>

/* Values of type_len; 1 to 28 are lengths in words. */
enum { LEN_ARRAY = 0, TYPE_PADDING = 29, TYPE_EXTEND = 30, TYPE_STAMP = 31 };

/* Bits of the page's commit word (kernel/trace/ring_buffer.c): events were lost, and their number stands behind the
 * data. */
#define MISSED_EVENTS (1ULL << 31)
#define MISSED_STORED (1ULL << 30)
#define COMMIT_MASK   0xfffffffULL

struct dbt_ring_field dbt_ring_find_field(const char *format, const char *name)
{
	struct dbt_ring_field f = { 0 };
	size_t len = strlen(name);

	/* "	field:dev_t s_dev;	offset:32;	size:4;	signed:0;" */
	for (const char *at = strstr(format, "field:"); at; at = strstr(at + 1, "field:")) {
		const char *end = strchr(at, ';'), *offset, *size;

		if (!end || (size_t)(end - at) <= len || strncmp(end - len, name, len) != 0 ||
		    (end[-(ptrdiff_t)len - 1] != ' ' && end[-(ptrdiff_t)len - 1] != '*'))
			continue;
		offset = strstr(end, "offset:");
		size = strstr(end, "size:");
		if (!offset || !size)
			return f;
		f.at = (uint16_t)strtoul(offset + strlen("offset:"), NULL, 10);
		f.size_bytes = (uint16_t)strtoul(size + strlen("size:"), NULL, 10);
		return f;
	}
	return f;
}

int dbt_ring_find_id(const char *format)
{
	const char *at = strstr(format, "ID: ");
	long id = at ? strtol(at + strlen("ID: "), NULL, 10) : -1;

	return id > 0 && id <= UINT16_MAX ? (int)id : -1;
}

uint64_t dbt_ring_get(struct dbt_ring_field field, const unsigned char *event, size_t len)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	if (field.size_bytes == 0 || (size_t)field.at + field.size_bytes > len)
		return 0;
	switch (field.size_bytes) {
	case 1:
		return event[field.at];
	case 2:
		memcpy(&v16, event + field.at, sizeof(v16));
		return v16;
	case 4:
		memcpy(&v32, event + field.at, sizeof(v32));
		return v32;
	case 8:
		memcpy(&v64, event + field.at, sizeof(v64));
		return v64;
	default:
		return 0;
	}
}

bool dbt_ring_open(struct dbt_ring_page *page, const unsigned char *data, size_t len,
                   size_t data_at, struct dbt_ring_field commit)
{
	uint64_t word = dbt_ring_get(commit, data, len);
	size_t used = (size_t)(word & COMMIT_MASK);

	if (len < data_at || data_at < sizeof(page->time_ns) || commit.size_bytes == 0 ||
	    used > len - data_at)
		return false;
	*page = (struct dbt_ring_page){ .data = data + data_at, .len = used };
	memcpy(&page->time_ns, data, sizeof(page->time_ns));
	if (word & MISSED_EVENTS) {
		uint64_t lost = 0;
		size_t at = data_at + ((used + 3) & ~(size_t)3);

		/* Where the number had no room, it was at least one. */
		if ((word & MISSED_STORED) && at + sizeof(lost) <= len)
			memcpy(&lost, data + at, sizeof(lost));
		page->lost = lost ? lost : 1;
	}
	return true;
}

/* Splits an event's first word: five bits of type, 27 of time. */
static void split(uint32_t word, unsigned *ret_type, uint32_t *ret_delta)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	*ret_type = word & 31U;
	*ret_delta = word >> 5;
#else
	*ret_type = word >> 27;
	*ret_delta = word & 0x7ffffffU;
#endif
}

static bool take_word(struct dbt_ring_page *page, uint32_t *ret)
{
	if (page->len - page->at < sizeof(*ret))
		return false;
	memcpy(ret, page->data + page->at, sizeof(*ret));
	page->at += sizeof(*ret);
	return true;
}

bool dbt_ring_next(struct dbt_ring_page *page, const unsigned char **ret_event, size_t *ret_len)
{
	uint32_t word, delta, extra = 0;
	unsigned type;
	size_t len;

	while (take_word(page, &word)) {
		split(word, &type, &delta);
		if ((type == LEN_ARRAY || type >= TYPE_PADDING) &&
		    !(type == TYPE_PADDING && delta == 0) && !take_word(page, &extra))
			return false;
		switch (type) {
		case TYPE_PADDING:
			if (delta == 0)
				return false; /* the rest of the page is empty */
			len = extra < sizeof(extra) ? 0 : extra - sizeof(extra);
			break;
		case TYPE_EXTEND:
			page->time_ns += ((uint64_t)extra << 27) + delta;
			continue;
		case TYPE_STAMP:
			/* 59 bits of it; the upper ones stay. */
			page->time_ns =
				(page->time_ns & (31ULL << 59)) | ((uint64_t)extra << 27 | delta);
			continue;
		case LEN_ARRAY:
			page->time_ns += delta;
			/* The length counts its own word. */
			len = extra < sizeof(extra) ? 0 : extra - sizeof(extra);
			break;
		default:
			page->time_ns += delta;
			len = (size_t)type * 4;
			break;
		}
		len = (len + 3) & ~(size_t)3;
		if (len > page->len - page->at)
			return false;
		page->at += len;
		if (type == TYPE_PADDING)
			continue;
		*ret_event = page->data + page->at - len;
		*ret_len = len;
		return true;
	}
	return false;
}
