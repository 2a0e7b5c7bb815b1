/* One look at what is on disk for one file of a promotion. Every decision of rollback, recover and status is made
 * from this, with the ledger as the guide; nothing here changes anything. */
#ifndef DBT_FLOW_LOOK_H
#define DBT_FLOW_LOOK_H

#include "base/err.h"
#include "record/promotion.h"
#include "sys/at.h"
#include "sys/ctx.h"

enum dbt_path_is {
	DBT_PATH_MISSING = 0,
	DBT_PATH_LINK,     /* our link to the copy */
	DBT_PATH_ORIGINAL, /* the recorded inode, as it was */
	DBT_PATH_CHANGED,  /* the recorded inode, but somebody wrote to it */
	DBT_PATH_RETURNED, /* the file that a rollback copied back */
	DBT_PATH_OTHER,    /* something that is not ours: never touched */
};

enum dbt_kept_is {
	DBT_KEPT_MISSING = 0,
	DBT_KEPT_ORIGINAL,
	DBT_KEPT_CHANGED, /* the recorded inode, but size or mtime differ */
	DBT_KEPT_LINK,    /* our link: before the swap in, or after the swap out */
	DBT_KEPT_OTHER,
};

enum dbt_copy_is {
	DBT_COPY_MISSING = 0,
	DBT_COPY_INTACT,
	DBT_COPY_TOUCHED, /* only ctime differs: a chmod, a link, or bytes changed and the times put back */
	DBT_COPY_MODIFIED,  /* the recorded inode with another size or mtime */
	DBT_COPY_OTHER,     /* another file stands there: not ours */
	DBT_COPY_UNMOUNTED, /* its filesystem is not mounted */
};

struct dbt_look {
	struct dbt_at path; /* dirfd -1 when the directory is gone or became a link */
	struct dbt_at copy; /* likewise */
	int dir_error;      /* why path.dirfd is -1: -errno */
	enum dbt_path_is path_is;
	enum dbt_kept_is kept_is;
	enum dbt_kept_is
		back_is; /* the name of a copied-back file: MISSING, LINK, ORIGINAL (the returned file) */
	enum dbt_copy_is copy_is;
	bool kept_touched; /* the original's ctime differs: its bytes may, with the times put back */
	bool copy_journal; /* SQLite left changes beside the copy: the copy alone is not all */
	struct dbt_ident copy_ident; /* where the copy is INTACT, TOUCHED or MODIFIED */
};

/* Errors only for what cannot be looked at (no permission, an I/O error): missing things are findings. */
int dbt_look_at(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                const struct dbt_pmember *m, struct dbt_look *ret, struct dbt_err *err);

/* The same, and of a promoted directory also what is in it, entry by entry: the look alone tells only whether it is
 * the very directory. Errors also when its list cannot be read. */
int dbt_look_through(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                     const struct dbt_pmember *m, struct dbt_look *ret, struct dbt_err *err);

/* Is the filesystem that p was promoted to mounted? */
bool dbt_look_target_is_mounted(const struct dbt_ctx *ctx, const struct dbt_promotion *p);

void dbt_look_release(struct dbt_look *look);

/* Is the filesystem of the target mounted? To be asked where something on it is not found. */
bool dbt_look_target_is_mounted(const struct dbt_ctx *ctx, const struct dbt_promotion *p);

#endif
