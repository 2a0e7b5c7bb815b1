/* Directories below an open one: nothing here follows a link or leaves the filesystem, whatever was put in the place of
 * a directory meanwhile. A path is relative, of plain components ("a/b"); "" is the directory itself. */
#ifndef DBT_MOVE_BELOW_H
#define DBT_MOVE_BELOW_H

#include "base/err.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdbool.h>

enum { DBT_BELOW_MOST_DEPTH = 64 };

/* Opens the directory, component by component; make: those that are missing are made, for nobody but this user.
 * Returns a descriptor, -ENOTDIR or -ELOOP where something else is in the way, -errno. */
int dbt_below_open(const struct dbt_ctx *ctx, int root, const char *path, bool make);

/* One thing below a directory, seen by a walk. dir: of the directory that holds it. */
struct dbt_below_item {
	int dirfd;
	const char *name;
	const char *path; /* relative to where the walk began */
	struct dbt_ident ident;
};

/* Everything below, in the order of names, a directory before or (`after`) behind what is in it. A negative value of
 * visit ends the walk and is returned. */
int dbt_below_walk(const struct dbt_ctx *ctx, int root, bool after,
                   int (*visit)(void *data, const struct dbt_below_item *item), void *data);

/* Removes a directory that this program alone has filled, with everything in it: its name says whose it is. A mount
 * point below is an error, -EXDEV. 0 also when there is none; -ENOTDIR when the name is no directory. */
int dbt_below_remove(const struct dbt_ctx *ctx, int dirfd, const char *name);

#endif
