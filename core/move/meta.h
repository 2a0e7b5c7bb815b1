/* Owner, group, mode, times, extended attributes and ACLs: set on a copy, compared afterwards, and
 * what the target cannot hold listed by name. Works on files and directories. */
#ifndef DBT_MOVE_META_H
#define DBT_MOVE_META_H

#include "base/err.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>

struct dbt_meta_item {
	char *what; /* "owner", "group", "mode", "mtime", "xattr user.origin", "attribute
	               nodatacow", "project id" */
	char *why;  /* "uid 0 instead of 1000", "operation not supported" */
};

/* What differs between a file and its copy. Zero-initialised is empty and valid. */
struct dbt_meta_report {
	struct dbt_meta_item *items;
	size_t n, cap;
	/* Who may read the copy is not who may read the file: a sentence part that says why
	 * ("its group is 0 instead of 1003"); NULL when nobody gains or loses. By default a reason
	 * to give up. */
	char *readability;
	bool immutable, append; /* the source has these chattr attributes; the copy never gets them
	                         */
};

/* Gives dst what src has, in the order that keeps it (owner, mode, attributes), and compares. Both
 * are open descriptors, dst of a file that nobody else uses yet. A thing that the target cannot
 * hold or this user may not set is an item of the report; an error is what stops the work (I/O).
 * Times are left alone. ret is written on success only; release it. */
int dbt_meta_apply(const struct dbt_ctx *ctx, int src_fd, int dst_fd, struct dbt_meta_report *ret,
                   struct dbt_err *err);

/* Sets atime and mtime as recorded in src; the last thing done to dst, for writing attributes does
 * not change mtime but writing data does. Returns 0; 1 when the target keeps times more coarsely
 * and mtime is not exactly the same; -errno. */
int dbt_meta_apply_times(const struct dbt_ctx *ctx, const struct dbt_ident *src, int dst_fd,
                         struct dbt_err *err);

/* What b lacks or has otherwise than a, mtime included, atime not (reading changes it). */
int dbt_meta_compare(const struct dbt_ctx *ctx, int fd_a, int fd_b, struct dbt_meta_report *ret,
                     struct dbt_err *err);

/* A symbolic link gets the owner, group and mtime of src. Where this user may not: what is allowed,
 * and 1. Returns 0 or -errno otherwise. */
int dbt_meta_apply_link(const struct dbt_ctx *ctx, int dirfd, const char *name,
                        const struct dbt_ident *src);

/* "owner (uid 0 instead of 1000), xattr user.x (operation not supported)"; free() it. "" when
 * nothing differs. 0 or -ENOMEM. */
int dbt_meta_report_text(const struct dbt_meta_report *report, char **ret);

void dbt_meta_report_release(struct dbt_meta_report *report);

#endif
