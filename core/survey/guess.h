/* Which databases a list of members would make, guessed from their names and, where their first bytes are at hand,
 * from these. For files that are not there yet. */
#ifndef DBT_SURVEY_GUESS_H
#define DBT_SURVEY_GUESS_H

#include "base/buf.h"
#include "survey/formats/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DBT_GUESS_MOST = 16 };

struct dbt_guess {
	struct dbt_guess_item {
		const struct dbt_format *format;
		char *member;    /* the first that told, as the archive calls it */
		bool by_content; /* its first bytes passed the format's test */
	} items[DBT_GUESS_MOST]; /* in the order of the archive */
	size_t n;
};

/* Would the first bytes of a member of this path and size tell more than its name? */
bool dbt_guess_wants_head(const char *path, uint64_t size_bytes);

/* Takes a member into account. head NULL: unknown. 0 or -ENOMEM. */
int dbt_guess_add(struct dbt_guess *guess, const char *path, uint64_t size_bytes,
                  const unsigned char *head, size_t head_len);

/* Does anything look like a database? */
bool dbt_guess_any(const struct dbt_guess *guess);

/* Appends "diamond ('db/psc.dmnd', by its first bytes), sqlite ('db/bakta.db', by its name)". 0 or -ENOMEM. */
int dbt_guess_say(const struct dbt_guess *guess, struct dbt_buf *text);

void dbt_guess_release(struct dbt_guess *guess);

#endif
