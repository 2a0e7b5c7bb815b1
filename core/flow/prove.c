#include "flow/prove.h"

#include "base/cleanup.h"
#include "flow/look.h"
#include "flow/tree.h"
#include "move/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int prove(const struct dbt_ctx *ctx, int dirfd, const char *name, const char *shown,
                 const struct dbt_pmember *m, bool *ret_same, bool *ret_from_device,
                 struct dbt_err *err)
{
	const struct dbt_copy_opts opts = { .shown_src = shown, .shown_dst = shown };
	dbt_autoclose int fd = ctx->sys->openat(
		dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	struct dbt_digest recorded, now;
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", shown);
	if (dbt_digest_parse(m->xxh128, &recorded) < 0)
		return dbt_err_set(err, DBT_ERR_LEDGER, -EINVAL, "no hash of '%s' is recorded",
		                   m->path);
	r = dbt_copy_digest(ctx, fd, m->source.size_bytes, &opts, &now, ret_from_device, err);
	if (r < 0 && !(err && err->kind == DBT_ERR_CHANGED))
		return r;
	*ret_same = r == 0 && dbt_digest_equal(&recorded, &now);
	if (r == 0 && !*ret_same)
		(void)dbt_err_set(err, DBT_ERR_VERIFY, -EIO,
		                  "'%s' holds other bytes than were promoted", shown);
	return 0;
}

/* What is in a directory, by its list. */
static int prove_tree(const struct dbt_ctx *ctx, const char *list, int dirfd, const char *name,
                      const char *shown, const struct dbt_pmember *m, bool *ret_same,
                      bool *ret_from_device, struct dbt_err *err)
{
	dbt_autoclose int fd =
		ctx->sys->openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct dbt_err why = { 0 };
	int r;

	if (fd < 0 || !list)
		return dbt_err_sys(err, fd < 0 ? fd : -ENOMEM, "cannot open '%s'", shown);
	r = dbt_tree_prove(ctx, fd, list, shown, m->source.size_bytes, ret_same, ret_from_device,
	                   &why, err);
	if (r == 0 && !*ret_same && err)
		*err = why;
	return r;
}

/* list: of a directory; NULL for a file. */
static int prove_any(const struct dbt_ctx *ctx, const char *list, int dirfd, const char *name,
                     const char *shown, const struct dbt_pmember *m, bool *ret_same,
                     bool *ret_from_device, struct dbt_err *err)
{
	return S_ISDIR(m->source.mode)
	               ? prove_tree(ctx, list, dirfd, name, shown, m, ret_same, ret_from_device,
	                            err)
	               : prove(ctx, dirfd, name, shown, m, ret_same, ret_from_device, err);
}

int dbt_prove_copy(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                   const struct dbt_pmember *m, bool *ret_same, bool *ret_from_device,
                   struct dbt_err *err)
{
	enum dbt_tree_side side;
	dbt_autofree char *list = dbt_promotion_is_tree(p) ? dbt_tree_list_of_copy(p, &side) : NULL;
	struct dbt_look look;
	int r = dbt_look_at(ctx, p, m, &look, err);

	if (r < 0)
		return r;
	if (look.copy_is == DBT_COPY_MISSING || look.copy_is == DBT_COPY_UNMOUNTED) {
		*ret_same = false;
		*ret_from_device = false;
		(void)dbt_err_set(
			err, DBT_ERR_CHANGED, -ENOENT, "the copy '%s' is not there%s", m->copy,
			look.copy_is == DBT_COPY_UNMOUNTED ? ": its filesystem is not mounted"
							   : "");
	} else {
		r = prove_any(ctx, list, look.copy.dirfd, look.copy.name, m->copy, m, ret_same,
		              ret_from_device, err);
	}
	dbt_look_release(&look);
	return r;
}

int dbt_prove_original(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                       const struct dbt_pmember *m, bool *ret_same, struct dbt_err *err)
{
	dbt_autofree char *list = dbt_promotion_is_tree(p) ? dbt_tree_list_path(p, ".tree") : NULL;
	struct dbt_look look;
	bool from_device;
	int r;

	*ret_same = true;
	if (m->reclaimed)
		return 0;
	r = dbt_look_at(ctx, p, m, &look, err);
	if (r < 0)
		return r;
	if (look.kept_is == DBT_KEPT_ORIGINAL || look.kept_is == DBT_KEPT_CHANGED) {
		r = prove_any(ctx, list, look.path.dirfd, m->kept, m->path, m, ret_same,
		              &from_device, err);
	} else {
		*ret_same = false;
		(void)dbt_err_set(err, DBT_ERR_CHANGED, -ENOENT,
		                  "the original of '%s' is not beside it", m->path);
	}
	dbt_look_release(&look);
	return r;
}
