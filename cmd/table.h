/* One column table per record drives everything that shows it: text and raw by libsmartcols, JSON
 * by Jansson, --output and its completion, and the manual page. A cell is a JSON value; text is
 * made from it. */
#ifndef DBT_CMD_TABLE_H
#define DBT_CMD_TABLE_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct table_spec;

enum column_type {
	COLUMN_TEXT = 0,
	COLUMN_SIZE, /* bytes; text as 42.9G unless -b */
	COLUMN_COUNT,
	COLUMN_NS,      /* nanoseconds; text as a duration, of a real from fractions of one on */
	COLUMN_SECONDS, /* a duration, integer or real; text as a duration */
	COLUMN_TIME,    /* seconds since the epoch (table_json_time); text as local date and time */
	COLUMN_RATE,    /* bytes a second; text as 210 MB/s unless -b */
	COLUMN_REAL,
	COLUMN_SHARE, /* 0 to 1; text as 83 % */
	COLUMN_BOOL,  /* yes or no */
	COLUMN_LIST,  /* JSON array of strings, joined with commas as text; with json_only anything,
	                as table_json_rows gives it */
	COLUMN_NAME,  /* a file name as bytes (table_json_name): in JSON the key KEY_raw follows it,
	                base64 of the bytes when they are not valid UTF-8, else null */
};

struct column {
	const char *key; /* JSON key: lower case, stable for ever; the header is its upper case */
	enum column_type type;
	const char *help;  /* one line, lower case */
	bool shown;        /* in the default text table; JSON has every column */
	bool json_only;    /* never a text column: nested arrays */
	bool text_only;    /* drawn for people: not in JSON; with -r and -P only when named */
	bool right;        /* numbers are right-aligned without it */
	bool wrap;         /* prose: wrapped on a terminal that is too narrow */
	double width_hint; /* for libsmartcols: below 1 a share of the width, else characters */
	const struct table_spec *nested; /* of the rows of a json_only column; for the schema */
	/* The cell of a row: a new reference, json_null() when unset. NULL: out of memory. */
	json_t *(*get)(const void *row);
	/* The colour of the text on a terminal ("red"), NULL for none; may be NULL itself. */
	const char *(*color)(const void *row);
};

struct table_spec {
	const char *key;              /* the array's key: "databases" */
	const struct column *columns; /* ends with .key == NULL; at most 64 */
};

struct global_args;

/* The rows of a table: an array of n structs, each of which is handed to the columns' get. */
struct table_rows {
	const void *items; /* borrowed; may be NULL when n is 0 */
	size_t n;
	size_t item_bytes;
	json_t *more; /* borrowed: an object whose keys follow the array in JSON; NULL none */
	const size_t
		*order; /* borrowed: indexes of the items as they are to appear; NULL as they are */
};

/* From an array and its length. */
#define TABLE_ROWS(array, length)                                                                  \
	((struct table_rows){ .items = (array), .n = (length), .item_bytes = sizeof(*(array)) })

/* Prints rows in the way the global options ask for.
 * Write errors of out stay in its error flag: the end of the program looks. */
int table_print(const struct table_spec *spec, const struct global_args *args,
                struct table_rows rows, FILE *out, struct dbt_err *err);

/* Colours, by the options, NO_COLOR and what out is. */
bool table_wants_color(const struct global_args *args, FILE *out);

/* Does --output name only columns that exist? Called before a command runs. */
int table_check_output(const struct table_spec *spec, const struct global_args *args,
                       struct dbt_err *err);

/* An array of objects with every column, for a nested array such as "children": the get of a
 * json_only column returns it. NULL: out of memory. */
json_t *table_json_rows(const struct table_spec *spec, struct table_rows rows);

/* For get functions. Each gives a new reference, NULL when out of memory. */
json_t *
table_json_name(const char *bytes); /* for COLUMN_NAME only: the bytes as they are, or null */
json_t *table_json_text(const char *text_or_null); /* U+FFFD for what is not UTF-8 */
json_t *table_json_size(uint64_t value);           /* beyond 2^63-1 clamped */
json_t *table_json_real(double value);             /* null for what is no finite number */
json_t *table_json_time(uint64_t wall_ns);         /* seconds since the epoch; 0 is null */
json_t *table_json_strings(const char *const *items, size_t n); /* for COLUMN_LIST */

#endif
