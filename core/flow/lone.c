#include "flow/lone.h"

#include "base/cleanup.h"
#include "flow/flow.h"
#include "flow/tree.h"
#include "move/copy.h"
#include "move/swap.h"
#include "sys/at.h"
#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct lone {
	struct dbt_at at;
	char *kept;
	char *text; /* of the link */
	struct dbt_ident original;
};

static void lone_release(struct lone *l)
{
	dbt_at_release(&l->at);
	free(l->kept);
	free(l->text);
}

static int lone_init(const struct dbt_ctx *ctx, const char *path, struct lone *l,
                     struct dbt_err *err)
{
	int r = dbt_at_resolve(ctx, path, &l->at, err);

	if (r < 0)
		return r;
	r = dbt_at_readlink(&l->at, &l->text);
	if (r < 0)
		return dbt_err_set(
			err, DBT_ERR_UNKNOWN, r,
			"no promotion of '%s' is recorded, and it is no link: nothing to roll back",
			l->at.shown);
	if (asprintf(&l->kept, ".%s.dbtier-original", l->at.name) < 0) {
		l->kept = NULL;
		return dbt_err_sys(err, -ENOMEM, "cannot roll back '%s'", path);
	}
	r = dbt_ident_of(ctx, l->at.dirfd, l->kept, &l->original);
	if (r < 0 || (!S_ISREG(l->original.mode) && !S_ISDIR(l->original.mode)))
		return dbt_err_set(
			err, DBT_ERR_UNKNOWN, -ENOENT,
			"no promotion of '%s' is recorded, and no original '%s' stands beside it",
			l->at.shown, l->kept);
	return 0;
}

static int lone_compare(const struct dbt_ctx *ctx, const struct lone *l, struct dbt_err *err)
{
	const struct dbt_copy_opts opts = { .shown_src = l->at.shown, .shown_dst = l->kept };
	dbt_autoclose int copy =
		ctx->sys->openat(l->at.dirfd, l->at.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	dbt_autoclose int kept = ctx->sys->openat(
		l->at.dirfd, l->kept, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	struct dbt_ident ident;
	bool is_same = false;
	int r;

	if (kept < 0)
		return dbt_err_sys(err, kept, "cannot open '%s' beside '%s'", l->kept, l->at.shown);
	if (copy == -ENOENT)
		return 0; /* the link dangles: only the original is left */
	if (copy < 0)
		return dbt_err_sys(err, copy, "cannot open '%s'", l->at.shown);
	r = dbt_ident_fd(ctx, copy, &ident);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", l->at.shown);
	if (S_ISDIR(l->original.mode) && S_ISDIR(ident.mode))
		r = dbt_tree_equal(ctx, kept, copy, l->kept, l->at.shown, &is_same, err);
	else if (S_ISREG(l->original.mode) && S_ISREG(ident.mode))
		r = dbt_copy_compare(ctx, copy, kept, &opts, &is_same, NULL, err);
	if (r == 0 && !is_same)
		r = dbt_err_refuse(
			err,
			"'%s' (through its link) and the original '%s' beside it differ, and no "
			"ledger says why; --discard-changes returns to the original and leaves the "
			"other file where it is",
			l->at.shown, l->kept);
	return r;
}

int dbt_rollback_without_ledger(const struct dbt_ctx *ctx, const char *path, bool discard,
                                char **ret_copy, struct dbt_err *err)
{
	struct lone l = { .at = { .dirfd = -1 } };
	int r = lone_init(ctx, path, &l, err), works;
	char token[17];

	if (r == 0)
		r = dbt_flow_token(ctx, token, err);
	if (r == 0) {
		r = dbt_lock_dir(ctx, l.at.dirfd, 10000000000U);
		if (r == -ENOTSUP)
			r = 0;
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot lock the directory of '%s'", l.at.shown);
	}
	if (r == 0 && !discard)
		r = lone_compare(ctx, &l, err);
	if (r == 0) {
		works = dbt_swap_prove_exchange(ctx, l.at.dirfd, token);
		if (works <= 0)
			r = dbt_err_sys(err, works < 0 ? works : -EOPNOTSUPP,
			                "cannot exchange names beside '%s'", l.at.shown);
	}
	if (r == 0)
		r = dbt_swap_exchange(ctx, &l.at, &(struct dbt_expect){ .link_text = l.text },
		                      l.kept, &(struct dbt_expect){ .ident = &l.original }, NULL,
		                      NULL, err);
	if (r == 0) {
		r = dbt_swap_unlink(ctx, l.at.dirfd, l.kept,
		                    &(struct dbt_expect){ .link_text = l.text });
		if (r >= 0)
			r = dbt_at_sync_dir(ctx, &l.at);
		if (r < 0)
			(void)dbt_err_sys(
				err, r,
				"'%s' is the original again, but its directory could not be "
				"cleaned of the link '%s' and flushed",
				l.at.shown, l.kept);
	}
	if (r == 0) {
		*ret_copy = l.text;
		l.text = NULL;
	}
	lone_release(&l);
	return r;
}
