/* One column table per record drives everything that shows it: text and raw by libsmartcols, JSON
 * by Jansson,
 * --output and its completion, and the manual page. A cell is a JSON value; text is made from it.
 */
#ifndef DBT_CMD_TABLE_H
#define DBT_CMD_TABLE_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum column_type {
	COLUMN_TEXT = 0,
	COLUMN_SIZE, /* bytes; text as 42.9G unless -b */
	COLUMN_COUNT,
	COLUMN_NS,   /* nanoseconds; text as a duration */
	COLUMN_TIME, /* ns since the epoch; text as local date and time */
	COLUMN_RATE, /* bytes a second */
	COLUMN_REAL,
	COLUMN_BOOL, /* yes or no */
	COLUMN_LIST, /* JSON array; text joins with commas; shown in JSON and on request only */
	COLUMN_NAME, /* a file name as bytes: adds KEY_raw in JSON (base64 when not valid UTF-8,
	                else null) */
};

struct column {
	const char *key; /* JSON key: lower case, stable for ever; the header is its upper case */
	enum column_type type;
	const char *help;
	bool shown;        /* in the default text table */
	bool json_only;    /* never a text column: nested arrays */
	double width_hint; /* for libsmartcols; 0: free */
	bool right;
	/* The cell of a row: a new reference, json_null() when unset. NULL: out of memory. */
	json_t *(*get)(const void *row);
};

struct table_spec {
	const char *key;              /* the array's key: "databases" */
	const struct column *columns; /* ends with .key == NULL */
};

struct global_args;

/* Prints rows in the way the global options ask for. rows[i] is handed to the columns' get. */
int table_print(const struct table_spec *spec, const struct global_args *args,
                const void *const *rows, size_t n_rows, FILE *out, struct dbt_err *err);

/* For columns: a JSON string of bytes that may not be UTF-8 (U+FFFD for what is not), null for
 * NULL. */
json_t *table_json_name(const char *bytes);
json_t *table_json_text(const char *text_or_null);
json_t *table_json_size(uint64_t value); /* integers beyond 2^63-1 are clamped */

#endif
