/* Walks what is in a directory, by directory descriptors: no link is followed, no mount is entered, the names of each
 * directory are looked at in the order of their inodes, so that a disk reads its inode tables forwards. */
#ifndef DBT_MOVE_TREE_H
#define DBT_MOVE_TREE_H

#include "base/err.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdbool.h>

enum dbt_tree_step {
	DBT_TREE_ENTRY = 0, /* anything that is no directory */
	DBT_TREE_ENTER,     /* a directory, before what is in it */
	DBT_TREE_LEAVE,     /* ... and after: its identity is looked at anew */
};

struct dbt_tree_visit {
	enum dbt_tree_step step;
	const char *path; /* relative to the root; "." is the root itself */
	const char *name; /* the last part of it */
	int dirfd;        /* the directory that holds it; -1 for the root */
	int fd;           /* of a directory: itself; else -1 */
	unsigned depth;   /* of what holds it: 0 is the root */
	struct dbt_ident ident;
	uint64_t n_entries; /* of a directory, without what dbt_tree_is_volatile names */
	bool has_volatile;  /* ... and whether there was such a thing */
};

struct dbt_tree_walk {
	const struct dbt_ctx *ctx;
	const char *shown; /* of the root, for messages; borrowed */
	/* Called for each step. Below 0 ends the walk with that code. */
	int (*visit)(void *data, const struct dbt_tree_visit *v, struct dbt_err *err);
	void *data;
};

/* Walks the open directory fd (borrowed). Refuses what lies on another filesystem or mount than the root, and trees
 * deeper than 200 directories. Something that vanishes in between is an error of kind CHANGED. */
int dbt_tree_walk(const struct dbt_tree_walk *walk, int fd, struct dbt_err *err);

/* The lock file of LMDB: readers write to it, its first user makes it anew, and it holds no data. What becomes of it
 * is no change of a database. path may have directories in it. */
bool dbt_tree_is_volatile(const char *path);

/* The names in an open directory, counted as in dbt_tree_visit. */
int dbt_tree_count(const struct dbt_ctx *ctx, int fd, uint64_t *ret, bool *ret_has_volatile);

/* Opens the directory part of a path below root_fd, and remembers it: lists name many files of one directory one
 * after the other. Zero-initialised but for the first three. */
struct dbt_tree_dirs {
	const struct dbt_ctx *ctx;
	int root_fd; /* borrowed */
	int fd;      /* -1: none yet */
	char *path;
};

/* The descriptor (borrowed until the next call) of the directory that holds path, and the name in it. For "." itself
 * that is the root and ".". -errno. */
int dbt_tree_dirs_of(struct dbt_tree_dirs *dirs, const char *path, const char **ret_name);
void dbt_tree_dirs_release(struct dbt_tree_dirs *dirs);

#endif
