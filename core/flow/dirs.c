#include "flow/dirs.h"

#include "base/vec.h"
#include "sys/at.h"
#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCK_WAIT_NS 10000000000U

static bool is_listed(const struct dbt_dirs *dirs, const struct dbt_ident *ident)
{
	for (size_t i = 0; i < dirs->n; i++)
		if (dirs->items[i].dev == ident->dev && dirs->items[i].ino == ident->ino)
			return true;
	return false;
}

/* Moves the directory of `at` into the list, unless it is there. */
static int list_dir(const struct dbt_ctx *ctx, struct dbt_at *at, struct dbt_dirs *dirs)
{
	struct dbt_ident ident;
	struct dbt_dir *dir;
	int r = dbt_ident_fd(ctx, at->dirfd, &ident);

	if (r < 0 || is_listed(dirs, &ident))
		return r;
	dir = dbt_vec_push(dirs);
	if (!dir)
		return -ENOMEM;
	dir->fd = fcntl(at->dirfd, F_DUPFD_CLOEXEC, 3);
	r = dir->fd < 0 ? -errno : 0;
	dir->dev = ident.dev;
	dir->ino = ident.ino;
	dir->shown = strndup(at->shown, strlen(at->shown) - strlen(at->name));
	return r < 0 || dir->shown ? r : -ENOMEM;
}

int dbt_dirs_of(const struct dbt_ctx *ctx, const struct dbt_promotion *p, bool copies,
                struct dbt_dirs *ret, struct dbt_err *err)
{
	struct dbt_dirs dirs = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++) {
		const char *path = copies ? p->members[i].copy : p->members[i].path;
		struct dbt_at at;

		r = dbt_at_resolve_strict(ctx, path, &at, err);
		if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP) {
			r = 0;
			continue;
		}
		if (r < 0)
			break;
		r = list_dir(ctx, &at, &dirs);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot open the directory of '%s'", path);
		dbt_at_release(&at);
	}
	if (r < 0)
		dbt_dirs_release(&dirs);
	else
		*ret = dirs;
	return r;
}

int dbt_dirs_lock(const struct dbt_ctx *ctx, const struct dbt_dirs *dirs, struct dbt_err *err)
{
	for (size_t i = 0; i < dirs->n; i++) {
		int r = dbt_lock_dir(ctx, dirs->items[i].fd, LOCK_WAIT_NS);

		if (r == -EAGAIN)
			return dbt_err_set(err, DBT_ERR_BUSY, r,
			                   "another dbtier works in '%s': wait for it to end",
			                   dirs->items[i].shown);
		if (r < 0 && r != -ENOTSUP)
			return dbt_err_sys(err, r, "cannot lock '%s'", dirs->items[i].shown);
	}
	return 0;
}

int dbt_dirs_sync(const struct dbt_ctx *ctx, const struct dbt_dirs *dirs, struct dbt_err *err)
{
	for (size_t i = 0; i < dirs->n; i++) {
		int r = ctx->sys->fsync(dirs->items[i].fd);

		if (r < 0)
			return dbt_err_sys(err, r, "cannot flush '%s'", dirs->items[i].shown);
	}
	return 0;
}

void dbt_dirs_release(struct dbt_dirs *dirs)
{
	for (size_t i = 0; i < dirs->n; i++) {
		if (dirs->items[i].fd >= 0)
			(void)close(
				dirs->items[i]
					.fd); /* the copy shares the lock: it goes with the last */
		free(dirs->items[i].shown);
	}
	free(dirs->items);
	*dirs = (struct dbt_dirs){ 0 };
}
