/* Replacing a name by a symlink and back, without a moment in which the name does not open.
 *
 * Both directions are one call: RENAME_EXCHANGE of two names in one directory (renameat2(2), Linux 3.15). What
 * came out is looked at afterwards, and exchanged back when it is not what was expected. Some FUSE filesystems
 * accept the flag and do a plain rename, which loses a file: so the exchange is proved on scratch files in the
 * very directory before it is used on data. */
#ifndef DBT_MOVE_SWAP_H
#define DBT_MOVE_SWAP_H

#include "base/err.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdbool.h>

/* What a name is expected to be: a certain inode with certain contents, or a symlink with a certain text. */
struct dbt_expect {
	const struct dbt_ident *ident; /* NULL: link_text counts */
	bool with_ctime; /* its metadata must be untouched too; a rename may change ctime */
	bool any_dev;    /* device numbers are of another boot */
	const char *link_text;
};

/* 1 the name is as expected, 0 it is not (or is missing), -errno. */
int dbt_expect_check(const struct dbt_ctx *ctx, int dirfd, const char *name,
                     const struct dbt_expect *expect);

/* Does exchange work in this directory? Proved on two scratch files named .dbtier-TOKEN-{a,b}.part, removed
 * again. 1 yes, 0 no, -errno when it cannot be tried (directory not writable, no space). */
int dbt_swap_prove_exchange(const struct dbt_ctx *ctx, int dirfd, const char *token);

/* Removes what a killed dbt_swap_prove_exchange with this token left. 0 also when there is nothing. */
int dbt_swap_remove_scratch(const struct dbt_ctx *ctx, int dirfd, const char *token);

/* Exchanges two names when `a` is as expect_a and `b` as expect_b say, and makes sure that afterwards each has
 * become the other. keep_going, when not NULL, is asked right after the exchange (a broken lease says no).
 * Returns 0; -ESTALE with everything as before when something was not as expected; -errno of the call. An
 * exchange that cannot be taken back is an error of kind CHANGED that says which name now holds what. The
 * directory is not synced. */
int dbt_swap_exchange(const struct dbt_ctx *ctx, const struct dbt_at *a,
                      const struct dbt_expect *expect_a, const char *b,
                      const struct dbt_expect *expect_b, bool (*keep_going)(void *data), void *data,
                      struct dbt_err *err);

/* Makes the symlink `name` beside `at` with the owner and mtime of `like`. -EEXIST when the name is taken. */
int dbt_swap_make_link(const struct dbt_ctx *ctx, const struct dbt_at *at, const char *name,
                       const char *text, const struct dbt_ident *like, struct dbt_err *err);

/* For filesystems without exchange, files only: links the original to the kept name, makes the new symlink under
 * temp, and renames it over the path. Between the last look and the rename an updater that replaces the path in
 * that instant would lose its new file: callers ask for --force. */
int dbt_swap_by_hardlink(const struct dbt_ctx *ctx, const struct dbt_at *at,
                         const struct dbt_expect *expect, const char *kept, const char *temp,
                         const char *text, struct dbt_err *err);

/* Unlinks a name when it is as expected. 1 removed, 0 not as expected or gone (left alone), -errno. */
int dbt_swap_unlink(const struct dbt_ctx *ctx, int dirfd, const char *name,
                    const struct dbt_expect *expect);

#endif
