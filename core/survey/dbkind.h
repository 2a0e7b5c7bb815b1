/* The catalogue by name and by content: which formats may a file of this name belong to, and what
 * do its first bytes say. Pure: no file is touched here. */
#ifndef DBT_SURVEY_DBKIND_H
#define DBT_SURVEY_DBKIND_H

#include "survey/formats/format.h"

#include <stdbool.h>

/* What a name tells, as flags; 0: nothing. */
enum dbt_hint {
	DBT_HINT_LEAD = 1U << 0,     /* some format begins with a file of this name */
	DBT_HINT_MEMBER = 1U << 1,   /* some format has a member of this name */
	DBT_HINT_EVERYDAY = 1U << 2, /* reads, archives, logs: bulk that no format claims; believed
	                                without opening it */
};
unsigned dbt_dbkind_hint(const char *name);

/* Would a file of this name move with its database, as far as the name tells: one that is read while it is searched, or
 * one of a set that moves whole, or SQLite's -wal or -journal, which it looks for beside the file that a link leads to? For files that are not there yet. */
bool dbt_dbkind_moves(const char *name);

/* A format that may begin with a file of this name. */
struct dbt_dbkind_lead {
	const struct dbt_format *format;
	const struct dbt_lead *lead;
	unsigned order; /* of the lead in its format */
};

/* Fills at most max leads that fit the name of a file of this size, strongest proof first; returns how
 * many. */
size_t dbt_dbkind_leads(const char *name, uint64_t size_bytes, struct dbt_dbkind_lead *ret,
                        size_t max);

/* Does the name fit the pattern with '*' standing for base? base NULL: for anything. */
bool dbt_pattern_fits(const char *pattern, const char *base, const char *name);

/* The formats whose test is strong enough for any name, asked in turn; NULL when none fits. */
const struct dbt_format *dbt_dbkind_by_content(const struct dbt_candidate *file,
                                               enum dbt_match *ret_match, struct dbt_buf *why);

/* An entry of the catalogue; NULL when there is none of this id. */
const struct dbt_format *dbt_format_by_id(const char *id);

#endif
