/* The kernel's trace ring buffer as it is read from trace_pipe_raw: pages of events, and where in an event its fields
 * lie. Pure; the layout is that of include/linux/ring_buffer.h and of each event's "format" file. */
#ifndef DBT_OBSERVE_RING_H
#define DBT_OBSERVE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A field of an event: where it lies. size_bytes 0: this kernel's event has no such field. */
struct dbt_ring_field {
	uint16_t at, size_bytes;
};

/* Finds the field in the text of an event's "format" file (or of events/header_page). */
struct dbt_ring_field dbt_ring_find_field(const char *format, const char *name);

/* The event's number in the text of its "format" file, or -1. */
int dbt_ring_find_id(const char *format);

/* The field's value; 0 for one that is not there or lies outside. */
uint64_t dbt_ring_get(struct dbt_ring_field field, const unsigned char *event, size_t len);

struct dbt_ring_page {
	const unsigned char *data;
	size_t len, at;
	uint64_t time_ns;
	uint64_t lost; /* events before this page that found no room */
};

/* Begins a page of len bytes as one read(2) gave it. data_at: where events begin, commit: the field with their
 * length. False when this is no page. */
bool dbt_ring_open(struct dbt_ring_page *page, const unsigned char *data, size_t len,
                   size_t data_at, struct dbt_ring_field commit);

/* The next event, its time (in the trace clock) in page->time_ns. False at the end, and for what cannot be a page. */
bool dbt_ring_next(struct dbt_ring_page *page, const unsigned char **ret_event, size_t *ret_len);

#endif
