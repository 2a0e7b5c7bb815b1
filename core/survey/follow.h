/* Directories that links of others lead to, for a scan that follows links. Each is walked once, after the tree
 * itself and under its real path, so that links in a circle end and no database is found under two names. */
#ifndef DBT_SURVEY_FOLLOW_H
#define DBT_SURVEY_FOLLOW_H

#include "survey/dir.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_follow {
	void *ids; /* of every directory below, for tsearch(3) */
	struct dbt_follow_paths {
		char **items; /* absolute, without links */
		size_t n, cap;
	} begun, waiting;
};

/* Notes that a walk begins at this directory. Returns 0 or -ENOMEM. */
int dbt_follow_begin(struct dbt_follow *follow, const char *path, uint64_t dev, uint64_t ino);

/* Notes the directory that a link leads to; file->dev and ino are its own. What cannot be opened becomes a
 * trouble of the walk. Returns 0 or -ENOMEM. */
int dbt_follow_add(struct dbt_follow *follow, const struct dbt_dir *dir,
                   const struct dbt_file *file);

/* The next one to walk, which no walk came by so far; NULL: there is none. For the caller to free. */
char *dbt_follow_next(struct dbt_follow *follow);

/* Did a walk begin at this directory? Then another need not go through it again. */
bool dbt_follow_walked(const struct dbt_follow *follow, uint64_t dev, uint64_t ino);

void dbt_follow_release(struct dbt_follow *follow);

#endif
