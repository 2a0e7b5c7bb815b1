/* The calls whose failure matters, as a table: the real one talks to the kernel, tests put another
 * in to fail the n-th call, to shorten reads, to hide a feature of newer kernels, or to turn the
 * clock. Every entry has the meaning of the call of that name, but returns -errno instead of
 * setting errno. */
#ifndef DBT_SYS_SYS_H
#define DBT_SYS_SYS_H

#include <linux/openat2.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* glibc's and the kernel's headers both define struct statx: ours is glibc's, by <sys/stat.h>. */
struct statx;

struct dbt_sys {
	int (*openat)(int dirfd, const char *name, int flags, mode_t mode);
	/* -ENOSYS before Linux 5.6 and under some seccomp filters: callers have a fallback. */
	int (*openat2)(int dirfd, const char *name, const struct open_how *how);
	int (*close)(int fd);
	int (*statx)(int dirfd, const char *name, int flags, unsigned mask, struct statx *ret);
	ssize_t (*pread)(int fd, void *buf, size_t len, uint64_t off);
	ssize_t (*pwrite)(int fd, const void *buf, size_t len, uint64_t off);
	int (*fsync)(int fd);
	int (*fdatasync)(int fd);
	int (*syncfs)(int fd);
	int (*fallocate)(int fd, int mode, uint64_t off, uint64_t len);
	int (*ftruncate)(int fd, uint64_t len);
	int (*renameat2)(int olddir, const char *old, int newdir, const char *name, unsigned flags);
	int (*linkat)(int olddir, const char *old, int newdir, const char *name, int flags);
	int (*symlinkat)(const char *text, int dirfd, const char *name);
	int (*unlinkat)(int dirfd, const char *name, int flags);
	int (*mkdirat)(int dirfd, const char *name, mode_t mode);
	int (*fchownat)(int dirfd, const char *name, uid_t uid, gid_t gid, int flags);
	int (*fchmod)(int fd, mode_t mode);
	/* times[2]: atime, mtime as for utimensat(2) */
	int (*utimensat)(int dirfd, const char *name, const struct timespec *times, int flags);
	int (*fsetxattr)(int fd, const char *name, const void *value, size_t len, int flags);
	/* F_SETLEASE and F_GETLEASE */
	int (*lease)(int fd, int cmd, int type);
	uint64_t (*now_ns)(void);  /* monotonic */
	uint64_t (*wall_ns)(void); /* since the epoch */
	int (*random)(void *buf, size_t len);
};

extern const struct dbt_sys dbt_sys_real;

#endif
