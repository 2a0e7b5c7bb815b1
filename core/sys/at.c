#include "sys/at.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* /proc appends " (deleted)" to the path of what has no name any more; a name may also really end
 * so. */
static bool is_deleted(int fd, const char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path);
	struct stat of_fd, of_path;

	if (len < sizeof(mark) || strcmp(path + len - (sizeof(mark) - 1), mark) != 0)
		return false;
	return fstat(fd, &of_fd) < 0 || lstat(path, &of_path) < 0 ||
	       of_fd.st_dev != of_path.st_dev || of_fd.st_ino != of_path.st_ino;
}

int dbt_fd_path(int fd, char **ret)
{
	char proc[64], text[PATH_MAX + 16];
	ssize_t len;
	char *path;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	len = readlink(proc, text, sizeof(text) - 1);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	if (text[0] != '/')
		return -EINVAL;
	if (is_deleted(fd, text))
		return -ENOENT;
	path = strdup(text);
	if (!path)
		return -ENOMEM;
	*ret = path;
	return 0;
}

static int open_dir_with(const struct dbt_ctx *ctx, int base, const char *path, bool strict,
                         int flags)
{
	struct open_how how = { .flags = (unsigned)flags,
		                .resolve =
		                        strict ? RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS : 0 };

	return strict ? ctx->sys->openat2(base, path, &how)
	              : ctx->sys->openat(base, path, flags, 0);
}

/* A directory that may be entered but not listed opens as a mere place: names in it can be looked at. Syncing it
 * fails, so nothing can be changed there. */
static int open_dir(const struct dbt_ctx *ctx, int base, const char *path, bool strict)
{
	int fd = open_dir_with(ctx, base, path, strict, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -EACCES)
		fd = open_dir_with(ctx, base, path, strict, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd;
}

/* One component; a link is -ELOOP, as openat2 says it (O_DIRECTORY makes the kernel say -ENOTDIR).
 */
static int open_component(const struct dbt_ctx *ctx, int dirfd, const char *name)
{
	struct statx stx;
	int fd = ctx->sys->openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0);

	if (fd == -ENOTDIR &&
	    ctx->sys->statx(dirfd, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx) == 0 &&
	    S_ISLNK(stx.stx_mode))
		return -ELOOP;
	return fd;
}

/* Kernels without openat2: one component after the other, none of them a link. */
static int open_dir_stepwise(const struct dbt_ctx *ctx, const char *path)
{
	dbt_autofree char *copy = strdup(path);
	char *save = NULL, *part;
	int fd, next;

	if (!copy)
		return -ENOMEM;
	fd = ctx->sys->openat(AT_FDCWD, *path == '/' ? "/" : ".",
	                      O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	for (part = strtok_r(copy, "/", &save); part && fd >= 0;
	     part = strtok_r(NULL, "/", &save)) {
		next = open_component(ctx, fd, part);
		(void)close(fd);
		fd = next;
	}
	return fd;
}

/* Splits "a/b/c" into "a/b" and "c"; both are allocated. A path that ends in a slash, "." or ".."
 * has no name of its own: *ret_name is then NULL and *ret_dir the whole path. */
static int split(const char *path, char **ret_dir, char **ret_name)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash ? slash + 1 : path;
	char *dir, *name = NULL;

	if (*last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
		dir = strdup(path);
	} else {
		dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path))
		            : strdup(".");
		name = strdup(last);
		if (!name) {
			free(dir);
			return -ENOMEM;
		}
	}
	if (!dir) {
		free(name);
		return -ENOMEM;
	}
	*ret_dir = dir;
	*ret_name = name;
	return 0;
}

static int join(const char *dir, const char *name, char **ret)
{
	return asprintf(ret, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) < 0 ? -ENOMEM : 0;
}

static int resolve(const struct dbt_ctx *ctx, const char *path, bool strict, struct dbt_at *ret,
                   struct dbt_err *err)
{
	dbt_autofree char *dir = NULL, *name = NULL, *canonical = NULL;
	struct dbt_at at = { .dirfd = -1 };
	int fd, r;

	if (*path == '\0')
		return dbt_err_set(err, DBT_ERR_USAGE, -ENOENT, "an empty name is no file");
	r = split(path, &dir, &name);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot resolve '%s'", path);
	fd = open_dir(ctx, AT_FDCWD, dir, strict);
	if (fd == -ENOSYS && strict)
		fd = open_dir_stepwise(ctx, dir);
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open the directory of '%s'", path);
	r = dbt_fd_path(fd, &canonical);
	if (!canonical) {
		(void)close(fd);
		return dbt_err_sys(err, r, "cannot resolve '%s'", path);
	}
	if (!name) { /* the directory itself, as a name in its parent */
		(void)close(fd);
		if (strcmp(canonical, "/") == 0)
			return dbt_err_set(err, DBT_ERR_USAGE, -EISDIR,
			                   "'/' is not something to work on");
		return resolve(ctx, canonical, strict, ret, err);
	}
	at.dirfd = fd;
	at.name = name;
	name = NULL;
	r = join(canonical, at.name, &at.shown);
	if (r < 0) {
		at.shown = NULL;
		dbt_at_release(&at);
		return dbt_err_sys(err, r, "cannot resolve '%s'", path);
	}
	*ret = at;
	return 0;
}

int dbt_at_resolve(const struct dbt_ctx *ctx, const char *path, struct dbt_at *ret,
                   struct dbt_err *err)
{
	return resolve(ctx, path, false, ret, err);
}

int dbt_at_resolve_strict(const struct dbt_ctx *ctx, const char *path, struct dbt_at *ret,
                          struct dbt_err *err)
{
	return resolve(ctx, path, true, ret, err);
}

int dbt_at_sibling(const struct dbt_at *at, const char *name, struct dbt_at *ret)
{
	size_t dir_len = strlen(at->shown) - strlen(at->name);
	struct dbt_at sib = { .dirfd = fcntl(at->dirfd, F_DUPFD_CLOEXEC, 3) };

	if (sib.dirfd < 0)
		return -errno;
	sib.name = strdup(name);
	if (asprintf(&sib.shown, "%.*s%s", (int)dir_len, at->shown, name) < 0)
		sib.shown = NULL;
	if (!sib.name || !sib.shown) {
		dbt_at_release(&sib);
		return -ENOMEM;
	}
	*ret = sib;
	return 0;
}

void dbt_at_release(struct dbt_at *at)
{
	if (at->name && at->dirfd >= 0)
		(void)close(at->dirfd);
	free(at->name);
	free(at->shown);
	*at = (struct dbt_at){ .dirfd = -1 };
}

int dbt_at_open(const struct dbt_ctx *ctx, const struct dbt_at *at, int flags, mode_t mode)
{
	return ctx->sys->openat(at->dirfd, at->name, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
	                        mode);
}

/* Kernels without openat2: one component after the other, each on the mount of the first. */
static int open_beneath_stepwise(const struct dbt_ctx *ctx, int dirfd, const char *path, int flags)
{
	dbt_autofree char *copy = strdup(path);
	struct dbt_ident base, here;
	char *save = NULL, *part = copy ? strtok_r(copy, "/", &save) : NULL;
	int fd = -1, r = copy ? dbt_ident_fd(ctx, dirfd, &base) : -ENOMEM;

	while (part && r == 0) {
		char *after = strtok_r(NULL, "/", &save);
		int next = strcmp(part, "..") == 0
		                   ? -EXDEV
		                   : ctx->sys->openat(fd < 0 ? dirfd : fd, part,
		                                      (after ? O_RDONLY | O_DIRECTORY : flags) |
		                                              O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
		                                      0);

		if (fd >= 0)
			(void)close(fd);
		fd = next;
		r = fd < 0 ? fd : dbt_ident_fd(ctx, fd, &here);
		if (r == 0 && (here.dev != base.dev || here.mnt_id != base.mnt_id))
			r = -EXDEV;
		part = after;
	}
	if (r < 0 && fd >= 0)
		(void)close(fd);
	return r < 0 ? r : fd < 0 ? -ENOENT : fd;
}

int dbt_at_open_beneath(const struct dbt_ctx *ctx, int dirfd, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd = ctx->sys->openat2(dirfd, path, &how);

	return fd == -ENOSYS ? open_beneath_stepwise(ctx, dirfd, path, flags) : fd;
}

/* Times that 64 bits of nanoseconds cannot hold (after 2262) end at the limit. */
static int64_t ns_of(struct statx_timestamp t)
{
	int64_t ns;

	if (__builtin_mul_overflow(t.tv_sec, INT64_C(1000000000), &ns) ||
	    __builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
		return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

static int ident(const struct dbt_ctx *ctx, int dirfd, const char *name, int flags,
                 struct dbt_ident *ret)
{
	struct statx stx = { 0 };
	int r;

	r = ctx->sys->statx(dirfd, name, flags | AT_STATX_SYNC_AS_STAT,
	                    STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, &stx);
	if (r < 0)
		return r;
	*ret = (struct dbt_ident){
		.dev = ((uint64_t)stx.stx_dev_major << 32) | stx.stx_dev_minor,
		.ino = stx.stx_ino,
		.size_bytes = stx.stx_size,
		.blocks512 = stx.stx_blocks,
		.mtime_ns = ns_of(stx.stx_mtime),
		.ctime_ns = ns_of(stx.stx_ctime),
		.btime_ns = (stx.stx_mask & STATX_BTIME) ? ns_of(stx.stx_btime) : 0,
		.atime_ns = ns_of(stx.stx_atime),
		.mnt_id = (stx.stx_mask & STATX_MNT_ID) ? stx.stx_mnt_id : 0,
		.mode = stx.stx_mode,
		.uid = stx.stx_uid,
		.gid = stx.stx_gid,
		.nlink = stx.stx_nlink,
		.attrs = stx.stx_attributes,
		.mount_root = (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
	};
	return 0;
}

int dbt_at_ident(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_ident *ret)
{
	return ident(ctx, at->dirfd, at->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, ret);
}

/* What statx does not tell before Linux 5.8, or where a filter forbids it. 0: unknown. */
static uint64_t mnt_id_of_fd(int fd)
{
	char path[64], line[128];
	uint64_t id = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && id == 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, "mnt_id:", 7) == 0)
			id = strtoull(line + 7, NULL, 10);
	if (f)
		(void)fclose(f);
	return id;
}

int dbt_ident_fd(const struct dbt_ctx *ctx, int fd, struct dbt_ident *ret)
{
	int r = ident(ctx, fd, "", AT_EMPTY_PATH, ret);

	if (r == 0 && ret->mnt_id == 0)
		ret->mnt_id = mnt_id_of_fd(fd);
	return r;
}

int dbt_ident_of(const struct dbt_ctx *ctx, int dirfd, const char *name, struct dbt_ident *ret)
{
	return ident(ctx, dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, ret);
}

int dbt_at_readlink(const struct dbt_at *at, char **ret)
{
	char text[PATH_MAX + 1];
	ssize_t len = readlinkat(at->dirfd, at->name, text, sizeof(text));
	char *copy;

	if (len < 0)
		return -errno;
	if ((size_t)len >= sizeof(text))
		return -ENAMETOOLONG;
	copy = strndup(text, (size_t)len);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

int dbt_at_sync_dir(const struct dbt_ctx *ctx, const struct dbt_at *at)
{
	return ctx->sys->fsync(at->dirfd);
}

bool dbt_ident_same_inode(const struct dbt_ident *a, const struct dbt_ident *b, bool any_dev)
{
	if (a->ino != b->ino || (a->mode & S_IFMT) != (b->mode & S_IFMT))
		return false;
	if (!any_dev && a->dev != b->dev)
		return false;
	return a->btime_ns == 0 || b->btime_ns == 0 || a->btime_ns == b->btime_ns;
}

bool dbt_ident_same_content(const struct dbt_ident *a, const struct dbt_ident *b, bool with_ctime,
                            bool any_dev)
{
	if (!dbt_ident_same_inode(a, b, any_dev))
		return false;
	if (S_ISDIR(a->mode))
		return true;
	if (a->size_bytes != b->size_bytes || a->mtime_ns != b->mtime_ns)
		return false;
	return !with_ctime || a->ctime_ns == b->ctime_ns;
}
