/* Walks a tree: one pass, by directory descriptors, each directory's names looked at in inode order.
 * Keeps of each directory only what may belong to a database (by name or by size), so that memory
 * does not grow with the tree. Links are not followed, except those that dbtier made. */
#ifndef DBT_SURVEY_WALK_H
#define DBT_SURVEY_WALK_H

#include "survey/dir.h"
#include "survey/scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file of an odd name is opened from this size on. */
enum { DBT_ODD_NAME_BYTES = 64 * 1024 };

struct dbt_walk {
	const struct dbt_ctx *ctx;
	const struct dbt_scan_opts *opts;
	struct dbt_scan_result *result; /* troubles, files_seen and partial are filled in */
	/* Called once a directory, while it is open. Returns 0 or -errno, which ends the walk. */
	int (*visit)(void *data, struct dbt_dir *dir);
	void *data;
	bool flat; /* do not descend */
	/* private */
	uint64_t bytes_seen, last_progress_ns;
};

/* Walks below the open directory fd (borrowed) of this absolute path. Returns 0 (also when parts
 * could not be read), what visit returned, or -ENOMEM. */
int dbt_walk_tree(struct dbt_walk *walk, int fd, const char *path);

/* Notes that path could not be looked at. */
void dbt_walk_trouble(struct dbt_walk *walk, const char *dir, const char *name, int code);

#endif
