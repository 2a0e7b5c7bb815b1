#include "flow/look.h"

#include "base/cleanup.h"
#include "flow/tree.h"
#include "move/swap.h"
#include "survey/mounts.h"
#include "survey/place.h"
#include "sys/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Gone or no directory any more: findings, not errors. */
static bool is_absence(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static int resolve(const struct dbt_ctx *ctx, const char *path, struct dbt_at *ret,
                   struct dbt_err *err)
{
	int r = dbt_at_resolve_strict(ctx, path, ret, err);

	if (r < 0)
		*ret = (struct dbt_at){ .dirfd = -1 };
	return r;
}

/* 1 and the identity, 0 when there is nothing, -errno. */
static int ident_if_any(const struct dbt_ctx *ctx, int dirfd, const char *name,
                        struct dbt_ident *ret)
{
	int r = dbt_ident_of(ctx, dirfd, name, ret);

	return r == 0 ? 1 : is_absence(r) ? 0 : r;
}

static int is_our_link(const struct dbt_ctx *ctx, int dirfd, const char *name,
                       const struct dbt_pmember *m)
{
	return dbt_expect_check(ctx, dirfd, name, &(struct dbt_expect){ .link_text = m->copy });
}

/* Device numbers may be of another boot; inode, birth time, size and mtime tell. */
static bool same(const struct dbt_ident *now, const struct dbt_ident *recorded)
{
	return recorded->ino != 0 && dbt_ident_same_content(now, recorded, false, true);
}

static int look_at_path(const struct dbt_ctx *ctx, const struct dbt_pmember *m,
                        struct dbt_look *look)
{
	struct dbt_ident now;
	int r = ident_if_any(ctx, look->path.dirfd, look->path.name, &now);

	if (r <= 0) {
		look->path_is = DBT_PATH_MISSING;
		return r;
	}
	if (same(&now, &m->source)) {
		look->path_is = DBT_PATH_ORIGINAL;
		return 0;
	}
	if (same(&now, &m->returned)) {
		look->path_is = DBT_PATH_RETURNED;
		return 0;
	}
	if (dbt_ident_same_inode(&now, &m->source, true)) {
		look->path_is = DBT_PATH_CHANGED;
		return 0;
	}
	r = is_our_link(ctx, look->path.dirfd, look->path.name, m);
	look->path_is = r == 1 ? DBT_PATH_LINK : DBT_PATH_OTHER;
	return r < 0 ? r : 0;
}

static int look_at_aside(const struct dbt_ctx *ctx, const struct dbt_pmember *m, int dirfd,
                         const char *name, const struct dbt_ident *recorded, enum dbt_kept_is *ret)
{
	struct dbt_ident now;
	int r = ident_if_any(ctx, dirfd, name, &now);

	*ret = DBT_KEPT_MISSING;
	if (r <= 0)
		return r;
	if (same(&now, recorded))
		*ret = DBT_KEPT_ORIGINAL;
	else if (recorded->ino != 0 && dbt_ident_same_inode(&now, recorded, true))
		*ret = DBT_KEPT_CHANGED;
	else if ((r = is_our_link(ctx, dirfd, name, m)) == 1)
		*ret = DBT_KEPT_LINK;
	else
		*ret = DBT_KEPT_OTHER;
	return r < 0 ? r : 0;
}

/* Another filesystem may be mounted in the place of the target's. */
static bool has_other_uuid(const struct dbt_ctx *ctx, const struct dbt_promotion *p)
{
	dbt_autoclose int fd =
		ctx->sys->openat(AT_FDCWD, p->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	struct dbt_mounts *mounts = NULL;
	struct dbt_place place = { 0 };
	bool other = false;

	if (fd >= 0 && p->target_uuid && dbt_mounts_new(ctx, &mounts, NULL) == 0 &&
	    dbt_place_of_fd(ctx, mounts, fd, NULL, &place, NULL) == 0)
		other = place.fs_uuid && strcmp(place.fs_uuid, p->target_uuid) != 0;
	dbt_place_release(&place);
	dbt_mounts_free(mounts);
	return other;
}

/* Asked only where the copy is not found. The place where the target was mounted may be an ordinary directory now, or
 * gone, or another filesystem. Kernels before 5.8 do not tell mount points: then the directory's inode tells. */
bool dbt_look_target_is_mounted(const struct dbt_ctx *ctx, const struct dbt_promotion *p)
{
	struct dbt_ident mount, target;

	if (p->target_mount && dbt_ident_of(ctx, AT_FDCWD, p->target_mount, &mount) == 0 &&
	    mount.mount_root)
		return !has_other_uuid(ctx, p);
	return dbt_ident_of(ctx, AT_FDCWD, p->target, &target) == 0 && target.ino == p->target_ino;
}

static int look_at_kept(const struct dbt_ctx *ctx, const struct dbt_pmember *m,
                        struct dbt_look *look)
{
	struct dbt_ident now;
	int r = look_at_aside(ctx, m, look->path.dirfd, m->kept, &m->source, &look->kept_is);

	if (r == 0 && look->kept_is == DBT_KEPT_ORIGINAL &&
	    dbt_ident_of(ctx, look->path.dirfd, m->kept, &now) == 0)
		look->kept_touched = !S_ISDIR(now.mode) && now.ctime_ns != m->source.ctime_ns;
	return r;
}

static int look_at_copy(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                        const struct dbt_pmember *m, struct dbt_look *look)
{
	const struct dbt_ident *was = &m->copied;
	char journal[DBT_JOURNAL_NAME_BYTES];
	struct dbt_ident now = { 0 };
	int r = look->copy.dirfd < 0 ? 0
	                             : ident_if_any(ctx, look->copy.dirfd, look->copy.name, &now);

	if (r < 0)
		return r;
	look->copy_ident = now;
	look->copy_journal = r > 0 && !S_ISDIR(now.mode) &&
	                     dbt_journal_beside(look->copy.dirfd, look->copy.name, journal);
	if (r == 0)
		look->copy_is =
			dbt_look_target_is_mounted(ctx, p) ? DBT_COPY_MISSING : DBT_COPY_UNMOUNTED;
	else if (was->ino == 0 || !dbt_ident_same_inode(&now, was, true))
		look->copy_is =
			dbt_look_target_is_mounted(ctx, p) ? DBT_COPY_OTHER : DBT_COPY_UNMOUNTED;
	else if (!dbt_ident_same_content(&now, was, false, true))
		look->copy_is = DBT_COPY_MODIFIED;
	else if (S_ISDIR(now.mode) || now.ctime_ns == was->ctime_ns)
		look->copy_is = DBT_COPY_INTACT;
	else
		look->copy_is = DBT_COPY_TOUCHED;
	return 0;
}

int dbt_look_at(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                const struct dbt_pmember *m, struct dbt_look *ret, struct dbt_err *err)
{
	struct dbt_look look = { .path = { .dirfd = -1 }, .copy = { .dirfd = -1 } };
	int r;

	look.dir_error = resolve(ctx, m->path, &look.path, err);
	if (look.dir_error < 0 && !is_absence(look.dir_error))
		return look.dir_error;
	r = resolve(ctx, m->copy, &look.copy, err);
	if (r < 0 && !is_absence(r)) {
		dbt_look_release(&look);
		return r;
	}
	r = 0;
	if (look.path.dirfd >= 0) {
		r = look_at_path(ctx, m, &look);
		if (r == 0)
			r = look_at_kept(ctx, m, &look);
		if (r == 0 && m->back)
			r = look_at_aside(ctx, m, look.path.dirfd, m->back, &m->returned,
			                  &look.back_is);
	}
	if (r == 0)
		r = look_at_copy(ctx, p, m, &look);
	if (r < 0) {
		dbt_look_release(&look);
		return dbt_err_sys(err, r, "cannot look at '%s'", m->path);
	}
	dbt_err_clear(err);
	*ret = look;
	return 0;
}

/* What is in one of the directories, SAME where there is nothing to compare. */
static int compare(const struct dbt_ctx *ctx, const char *list, int dirfd, const char *name,
                   enum dbt_tree_side side, const char *shown, enum dbt_tree_is *ret,
                   struct dbt_err *err)
{
	dbt_autoclose int fd =
		ctx->sys->openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct dbt_err why = { 0 };
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", shown);
	r = dbt_tree_compare(ctx, fd, list, side, shown, ret, &why, err);
	if (r == 0 && why.kind != DBT_ERR_NONE)
		dbt_ctx_log(ctx, DBT_LOG_DETAIL, "%s", why.text);
	return r;
}

static int look_into(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                     const struct dbt_pmember *m, struct dbt_look *look, struct dbt_err *err)
{
	enum dbt_tree_side side;
	dbt_autofree char *list = dbt_tree_list_path(p, ".tree");
	dbt_autofree char *list_of_copy = dbt_tree_list_of_copy(p, &side);
	enum dbt_tree_is is = DBT_TREE_SAME;
	int r = list && list_of_copy ? 0
	                             : dbt_err_sys(err, -ENOMEM, "cannot look at '%s'", m->path);

	if (r == 0 && look->path_is == DBT_PATH_ORIGINAL) {
		r = compare(ctx, list, look->path.dirfd, look->path.name, DBT_TREE_SOURCE, m->path,
		            &is, err);
		if (r == 0 && is == DBT_TREE_CHANGED)
			look->path_is = DBT_PATH_CHANGED;
	}
	if (r == 0 && look->kept_is == DBT_KEPT_ORIGINAL) {
		r = compare(ctx, list, look->path.dirfd, m->kept, DBT_TREE_SOURCE, m->path, &is,
		            err);
		look->kept_touched = r == 0 && is == DBT_TREE_TOUCHED;
		if (r == 0 && is == DBT_TREE_CHANGED)
			look->kept_is = DBT_KEPT_CHANGED;
	}
	if (r == 0 && look->copy_is == DBT_COPY_INTACT) {
		r = compare(ctx, list_of_copy, look->copy.dirfd, look->copy.name, side, m->copy,
		            &is, err);
		if (r == 0 && is != DBT_TREE_SAME)
			look->copy_is =
				is == DBT_TREE_TOUCHED ? DBT_COPY_TOUCHED : DBT_COPY_MODIFIED;
	}
	return r;
}

int dbt_look_through(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                     const struct dbt_pmember *m, struct dbt_look *ret, struct dbt_err *err)
{
	int r = dbt_look_at(ctx, p, m, ret, err);

	if (r < 0 || !dbt_promotion_is_tree(p))
		return r;
	r = look_into(ctx, p, m, ret, err);
	if (r < 0)
		dbt_look_release(ret);
	return r;
}

void dbt_look_release(struct dbt_look *look)
{
	dbt_at_release(&look->path);
	dbt_at_release(&look->copy);
}
