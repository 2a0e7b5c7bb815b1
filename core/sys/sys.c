#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

static int real_openat(int dirfd, const char *name, int flags, mode_t mode)
{
	return result(openat(dirfd, name, flags, mode));
}

static int real_openat2(int dirfd, const char *name, const struct open_how *how)
{
	return result(syscall(SYS_openat2, dirfd, name, how, sizeof(*how)));
}

static int real_close(int fd)
{
	return result(close(fd));
}

static int real_statx(int dirfd, const char *name, int flags, unsigned mask, struct statx *ret)
{
	return result(statx(dirfd, name, flags, mask, ret));
}

static ssize_t real_pread(int fd, void *buf, size_t len, uint64_t off)
{
	ssize_t r = pread(fd, buf, len, (off_t)off);

	return r < 0 ? -errno : r;
}

static ssize_t real_pwrite(int fd, const void *buf, size_t len, uint64_t off)
{
	ssize_t r = pwrite(fd, buf, len, (off_t)off);

	return r < 0 ? -errno : r;
}

static int real_fsync(int fd)
{
	return result(fsync(fd));
}

static int real_fdatasync(int fd)
{
	return result(fdatasync(fd));
}

static int real_syncfs(int fd)
{
	return result(syncfs(fd));
}

static int real_fallocate(int fd, int mode, uint64_t off, uint64_t len)
{
	return result(fallocate(fd, mode, (off_t)off, (off_t)len));
}

static int real_ftruncate(int fd, uint64_t len)
{
	return result(ftruncate(fd, (off_t)len));
}

static int real_renameat2(int olddir, const char *old, int newdir, const char *name, unsigned flags)
{
	return result(renameat2(olddir, old, newdir, name, flags));
}

static int real_linkat(int olddir, const char *old, int newdir, const char *name, int flags)
{
	return result(linkat(olddir, old, newdir, name, flags));
}

static int real_symlinkat(const char *text, int dirfd, const char *name)
{
	return result(symlinkat(text, dirfd, name));
}

static int real_unlinkat(int dirfd, const char *name, int flags)
{
	return result(unlinkat(dirfd, name, flags));
}

static int real_mkdirat(int dirfd, const char *name, mode_t mode)
{
	return result(mkdirat(dirfd, name, mode));
}

static int real_fchownat(int dirfd, const char *name, uid_t uid, gid_t gid, int flags)
{
	return result(fchownat(dirfd, name, uid, gid, flags));
}

static int real_fchmod(int fd, mode_t mode)
{
	return result(fchmod(fd, mode));
}

static int real_utimensat(int dirfd, const char *name, const struct timespec *times, int flags)
{
	return result(utimensat(dirfd, name, times, flags));
}

static int real_fsetxattr(int fd, const char *name, const void *value, size_t len, int flags)
{
	return result(fsetxattr(fd, name, value, len, flags));
}

static int real_lease(int fd, int cmd, int type)
{
	return result(fcntl(fd, cmd, type));
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static uint64_t real_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t real_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

static int real_random(void *buf, size_t len)
{
	ssize_t r = getrandom(buf, len, 0);

	if (r < 0)
		return -errno;
	return (size_t)r == len ? 0 : -EIO;
}

const struct dbt_sys dbt_sys_real = {
	.openat = real_openat,
	.openat2 = real_openat2,
	.close = real_close,
	.statx = real_statx,
	.pread = real_pread,
	.pwrite = real_pwrite,
	.fsync = real_fsync,
	.fdatasync = real_fdatasync,
	.syncfs = real_syncfs,
	.fallocate = real_fallocate,
	.ftruncate = real_ftruncate,
	.renameat2 = real_renameat2,
	.linkat = real_linkat,
	.symlinkat = real_symlinkat,
	.unlinkat = real_unlinkat,
	.mkdirat = real_mkdirat,
	.fchownat = real_fchownat,
	.fchmod = real_fchmod,
	.utimensat = real_utimensat,
	.fsetxattr = real_fsetxattr,
	.lease = real_lease,
	.now_ns = real_now_ns,
	.wall_ns = real_wall_ns,
	.random = real_random,
};
