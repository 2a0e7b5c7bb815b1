#include "move/swap.h"

#include "base/cleanup.h"
#include "move/meta.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int has_link_text(int dirfd, const char *name, const char *text)
{
	char found[4097];
	ssize_t len = readlinkat(dirfd, name, found, sizeof(found));

	if (len < 0)
		return errno == ENOENT || errno == EINVAL || errno == ENOTDIR ? 0 : -errno;
	return (size_t)len == strlen(text) && memcmp(found, text, (size_t)len) == 0;
}

int dbt_expect_check(const struct dbt_ctx *ctx, int dirfd, const char *name,
                     const struct dbt_expect *expect)
{
	struct dbt_ident now;
	int r;

	if (!expect->ident)
		return has_link_text(dirfd, name, expect->link_text);
	r = dbt_ident_of(ctx, dirfd, name, &now);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	return dbt_ident_same_content(&now, expect->ident, expect->with_ctime, expect->any_dev);
}

static int scratch_names(const char *token, char a[128], char b[128])
{
	int n = snprintf(a, 128, ".dbtier-%s-a.part", token);

	(void)snprintf(b, 128, ".dbtier-%s-b.part", token);
	return n < 128 ? 0 : -ENAMETOOLONG;
}

int dbt_swap_remove_scratch(const struct dbt_ctx *ctx, int dirfd, const char *token)
{
	char a[128], b[128];
	int r = scratch_names(token, a, b), r_b;

	if (r < 0)
		return r;
	r = ctx->sys->unlinkat(dirfd, a, 0);
	r_b = ctx->sys->unlinkat(dirfd, b, 0);
	if (r == 0 || r == -ENOENT)
		r = r_b;
	return r == -ENOENT ? 0 : r;
}

static int make_scratch(const struct dbt_ctx *ctx, int dirfd, const char *name,
                        struct dbt_ident *ret)
{
	dbt_autoclose int fd = ctx->sys->openat(
		dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? fd : dbt_ident_fd(ctx, fd, ret);
}

static bool is_inode(const struct dbt_ctx *ctx, int dirfd, const char *name,
                     const struct dbt_ident *ident)
{
	struct dbt_ident now;

	return dbt_ident_of(ctx, dirfd, name, &now) == 0 &&
	       dbt_ident_same_inode(&now, ident, false);
}

int dbt_swap_prove_exchange(const struct dbt_ctx *ctx, int dirfd, const char *token)
{
	char a[128], b[128];
	struct dbt_ident ia, ib;
	int r = scratch_names(token, a, b), removed;

	if (r == 0)
		r = make_scratch(ctx, dirfd, a, &ia);
	if (r < 0)
		return r;
	r = make_scratch(ctx, dirfd, b, &ib);
	if (r == 0) {
		r = ctx->sys->renameat2(dirfd, a, dirfd, b, RENAME_EXCHANGE);
		/* Filesystems without it say EINVAL, kernels and filters without the call ENOSYS. */
		if (r == 0)
			r = is_inode(ctx, dirfd, a, &ib) && is_inode(ctx, dirfd, b, &ia);
		else if (r == -EINVAL || r == -ENOSYS || r == -EOPNOTSUPP)
			r = 0;
	}
	removed = dbt_swap_remove_scratch(ctx, dirfd, token);
	return r < 0 ? r : removed < 0 ? removed : r;
}

static int as_expected(const struct dbt_ctx *ctx, int dirfd, const char *name,
                       const struct dbt_expect *expect, struct dbt_err *err)
{
	int r = dbt_expect_check(ctx, dirfd, name, expect);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", name);
	if (r == 0)
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                   "'%s' is not what it was any more", name);
	return 0;
}

/* After an exchange: is what lies under `name` what was expected under the other one? ctime may have moved. */
static bool arrived(const struct dbt_ctx *ctx, int dirfd, const char *name,
                    struct dbt_expect expect)
{
	expect.with_ctime = false;
	return dbt_expect_check(ctx, dirfd, name, &expect) == 1;
}

int dbt_swap_exchange(const struct dbt_ctx *ctx, const struct dbt_at *a,
                      const struct dbt_expect *expect_a, const char *b,
                      const struct dbt_expect *expect_b, bool (*keep_going)(void *data), void *data,
                      struct dbt_err *err)
{
	int r = as_expected(ctx, a->dirfd, b, expect_b, err);

	if (r == 0)
		r = as_expected(ctx, a->dirfd, a->name, expect_a, err);
	if (r < 0)
		return r;
	r = ctx->sys->renameat2(a->dirfd, a->name, a->dirfd, b, RENAME_EXCHANGE);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot exchange '%s' with '%s'", a->shown, b);
	if (arrived(ctx, a->dirfd, b, *expect_a) && arrived(ctx, a->dirfd, a->name, *expect_b) &&
	    (!keep_going || keep_going(data)))
		return 0;
	r = ctx->sys->renameat2(a->dirfd, a->name, a->dirfd, b, RENAME_EXCHANGE);
	if (r < 0)
		return dbt_err_set(err, DBT_ERR_CHANGED, r,
		                   "'%s' changed in the instant of the exchange, and exchanging it "
		                   "back failed: %s; "
		                   "what was under that name now lies beside it as '%s'",
		                   a->shown, dbt_err_text(r), b);
	return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
	                   "'%s' changed in the instant of the exchange, which was taken back",
	                   a->shown);
}

int dbt_swap_make_link(const struct dbt_ctx *ctx, const struct dbt_at *at, const char *name,
                       const char *text, const struct dbt_ident *like, struct dbt_err *err)
{
	int r = ctx->sys->symlinkat(text, at->dirfd, name);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot make the link '%s' beside '%s'", name,
		                   at->shown);
	/* protected_symlinks follows a link in a sticky directory only when its owner is the follower or the
	 * directory's; make-like tools compare times. Both are courtesy: a refusal is no reason to stop. */
	(void)dbt_meta_apply_link(ctx, at->dirfd, name, like);
	return 0;
}

int dbt_swap_by_hardlink(const struct dbt_ctx *ctx, const struct dbt_at *at,
                         const struct dbt_expect *expect, const char *kept, const char *temp,
                         const char *text, struct dbt_err *err)
{
	struct dbt_expect after = *expect;
	int r = as_expected(ctx, at->dirfd, at->name, expect, err);

	if (r < 0)
		return r;
	r = ctx->sys->linkat(at->dirfd, at->name, at->dirfd, kept, 0);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot keep '%s' as '%s'", at->shown, kept);
	after.with_ctime = false; /* the new link changed it */
	r = as_expected(ctx, at->dirfd, kept, &after, err);
	if (r == 0) {
		r = ctx->sys->fsync(at->dirfd);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot flush the directory of '%s'", at->shown);
	}
	if (r == 0)
		r = dbt_swap_make_link(ctx, at, temp, text, expect->ident, err);
	if (r == 0)
		r = as_expected(ctx, at->dirfd, at->name, &after, err);
	if (r == 0) {
		r = ctx->sys->renameat2(at->dirfd, temp, at->dirfd, at->name, 0);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot put the link in the place of '%s'",
			                  at->shown);
	}
	if (r < 0) {
		(void)dbt_swap_unlink(ctx, at->dirfd, temp,
		                      &(struct dbt_expect){ .link_text = text });
		/* Only the second name goes; the file is still under its own. */
		if (dbt_expect_check(ctx, at->dirfd, at->name, &after) == 1)
			(void)dbt_swap_unlink(ctx, at->dirfd, kept, &after);
	}
	return r;
}

int dbt_swap_unlink(const struct dbt_ctx *ctx, int dirfd, const char *name,
                    const struct dbt_expect *expect)
{
	int r = dbt_expect_check(ctx, dirfd, name, expect);

	if (r <= 0)
		return r;
	r = ctx->sys->unlinkat(dirfd, name, 0);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}
