/* File names are bytes: how they are shown to people and to programs. */
#ifndef DBT_CMD_TEXT_H
#define DBT_CMD_TEXT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Length of the valid UTF-8 sequence at text (at least one byte is there), 0 when it is none. */
size_t text_utf8_len(const char *text, size_t len);
bool text_is_utf8(const char *text, size_t len);

/* Appends text with U+FFFD for each byte that belongs to no valid sequence. 0 or -ENOMEM. */
int text_add_utf8(struct dbt_buf *buf, const char *text, size_t len);

/* Appends text for a terminal: control characters and invalid bytes as \x0a. 0 or -ENOMEM. */
int text_add_escaped(struct dbt_buf *buf, const char *text);

/* Appends base64 with padding (RFC 4648, section 4). 0 or -ENOMEM. */
int text_add_base64(struct dbt_buf *buf, const void *data, size_t len);

#endif
