#include "support/fault.h"

#include "base/buf.h"
#include "sys/at.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
	const char *name;
	bool changes;
} calls[FAULT_N_CALLS] = {
	[FAULT_OPENAT] = { "openat", false }, /* only when it creates or empties */
	[FAULT_OPENAT2] = { "openat2", false },    [FAULT_CLOSE] = { "close", false },
	[FAULT_STATX] = { "statx", false },        [FAULT_PREAD] = { "pread", false },
	[FAULT_PWRITE] = { "pwrite", true },       [FAULT_FSYNC] = { "fsync", true },
	[FAULT_FDATASYNC] = { "fdatasync", true }, [FAULT_SYNCFS] = { "syncfs", true },
	[FAULT_FALLOCATE] = { "fallocate", true }, [FAULT_FTRUNCATE] = { "ftruncate", true },
	[FAULT_RENAMEAT2] = { "renameat2", true }, [FAULT_LINKAT] = { "linkat", true },
	[FAULT_SYMLINKAT] = { "symlinkat", true }, [FAULT_UNLINKAT] = { "unlinkat", true },
	[FAULT_MKDIRAT] = { "mkdirat", true },     [FAULT_FCHOWNAT] = { "fchownat", true },
	[FAULT_FCHMOD] = { "fchmod", true },       [FAULT_UTIMENSAT] = { "utimensat", true },
	[FAULT_FSETXATTR] = { "fsetxattr", true }, [FAULT_LEASE] = { "lease", false },
};

static struct {
	pthread_mutex_t lock;
	unsigned count[FAULT_N_CALLS], count_any, count_changes;

	enum fault_call armed;
	unsigned armed_n; /* 0: nothing is armed */
	int armed_code;
	bool armed_later; /* and all after it */
	bool fired;

	size_t short_bytes;
	unsigned eintr_every, eintr_count;
	unsigned hidden;
	uint64_t clock_ns;

	enum fault_call hook_call;
	unsigned hook_n; /* 0: none */
	void (*hook)(void *data);
	void *hook_data;

	struct dbt_buf record;
	size_t last_line; /* where the record's last line begins */
} fault = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void lock(void)
{
	(void)pthread_mutex_lock(&fault.lock);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&fault.lock);
}

/* --- what the test says --- */

void fault_reset(void)
{
	lock();
	memset(fault.count, 0, sizeof(fault.count));
	fault.count_any = 0;
	fault.count_changes = 0;
	fault.armed_n = 0;
	fault.fired = false;
	fault.short_bytes = 0;
	fault.eintr_every = 0;
	fault.eintr_count = 0;
	fault.hidden = 0;
	fault.clock_ns = 0;
	fault.hook_n = 0;
	dbt_buf_release(&fault.record);
	fault.last_line = 0;
	unlock();
}

static void arm(enum fault_call call, unsigned n, int code, bool later)
{
	lock();
	fault.armed = call;
	fault.armed_n = n;
	fault.armed_code = code;
	fault.armed_later = later;
	fault.fired = false;
	unlock();
}

void fault_arm(unsigned n, int code)
{
	arm(FAULT_ANY, n, code, false);
}

void fault_arm_call(enum fault_call call, unsigned n, int code)
{
	arm(call, n, code, false);
}

void fault_arm_from(enum fault_call call, unsigned n, int code)
{
	arm(call, n, code, true);
}

static unsigned count_of(enum fault_call call)
{
	if (call == FAULT_ANY)
		return fault.count_any;
	return call == FAULT_CHANGES ? fault.count_changes : fault.count[call];
}

bool fault_fired(void)
{
	bool fired;

	lock();
	fired = fault.fired;
	unlock();
	return fired;
}

unsigned fault_count(enum fault_call call)
{
	unsigned n;

	lock();
	n = count_of(call);
	unlock();
	return n;
}

void fault_short(size_t max_bytes)
{
	fault.short_bytes = max_bytes;
}

void fault_eintr(unsigned every)
{
	fault.eintr_every = every;
}

void fault_hide(unsigned features)
{
	fault.hidden = features;
}

void fault_clock(uint64_t ns)
{
	fault.clock_ns = ns;
}

void fault_before(enum fault_call call, unsigned n, void (*hook)(void *data), void *data)
{
	lock();
	fault.hook_call = call;
	fault.hook_n = n;
	fault.hook = hook;
	fault.hook_data = data;
	unlock();
}

const char *fault_record(void)
{
	return dbt_buf_str(&fault.record);
}

const char *fault_missing(const char *const *patterns)
{
	char *copy = strdup(fault_record()), *save = NULL, *line;

	for (line = strtok_r(copy, "\n", &save); line && *patterns;
	     line = strtok_r(NULL, "\n", &save))
		if (fnmatch(*patterns, line, 0) == 0)
			patterns++;
	free(copy);
	return *patterns;
}

/* --- what happens to a call --- */

static bool is_of(enum fault_call group, enum fault_call call, bool changes)
{
	return group == FAULT_ANY || group == call || (group == FAULT_CHANGES && changes);
}

/* Counts the call, lets the hook run, and returns 0 or the -errno to fail with. */
static int enter(enum fault_call call, bool changes)
{
	void (*hook)(void *data) = NULL;
	void *data = NULL;
	int r = 0;

	lock();
	fault.count[call]++;
	fault.count_any++;
	fault.count_changes += changes;
	if (fault.hook_n > 0 && is_of(fault.hook_call, call, changes) &&
	    count_of(fault.hook_call) == fault.hook_n) {
		hook = fault.hook;
		data = fault.hook_data;
		fault.hook_n = 0;
	}
	if (fault.armed_n > 0 && is_of(fault.armed, call, changes)) {
		unsigned n = count_of(fault.armed);

		if (n == fault.armed_n || (fault.armed_later && n > fault.armed_n)) {
			fault.fired = true;
			r = -fault.armed_code;
		}
	}
	unlock();
	if (hook)
		hook(data);
	return r;
}

/* Adds a line to the record; returns r. */
static long note(enum fault_call call, const char *a, const char *b, const char *flags, long r)
{
	struct dbt_buf line = { 0 };
	int full = dbt_buf_addf(&line, "%s %s%s%s%s%s%s%s\n", calls[call].name, a, b ? " " : "",
	                        b ? b : "", flags ? " " : "", flags ? flags : "", r < 0 ? " !" : "",
	                        r < 0 ? strerrorname_np((int)-r) : "");

	if (full < 0)
		abort();
	lock();
	if (fault.record.len == 0 ||
	    strcmp(fault.record.data + fault.last_line, dbt_buf_str(&line)) != 0) {
		fault.last_line = fault.record.len;
		if (dbt_buf_add(&fault.record, line.data, line.len) < 0)
			abort();
	}
	unlock();
	dbt_buf_release(&line);
	return r;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* As note, for a descriptor: the name of its file, with a slash when it is a directory. */
static long note_fd(enum fault_call call, int fd, const char *flags, long r)
{
	char *path = NULL, name[4200];
	struct stat st;
	bool dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);

	if (dbt_fd_path(fd, &path) < 0)
		path = NULL;
	(void)snprintf(name, sizeof(name), "%s%s", path ? base_name(path) : "?", dir ? "/" : "");
	free(path);
	return note(call, name, NULL, flags, r);
}

/* An *at call with AT_EMPTY_PATH is about the descriptor itself. */
static long note_at(enum fault_call call, int dirfd, const char *name, const char *flags, long r)
{
	return *name ? note(call, base_name(name), NULL, flags, r) : note_fd(call, dirfd, flags, r);
}

static bool hidden(enum fault_feature feature)
{
	return (fault.hidden & (unsigned)feature) != 0;
}

static bool interrupted(void)
{
	bool yes;

	lock();
	yes = fault.eintr_every > 0 && ++fault.eintr_count % fault.eintr_every == 0;
	unlock();
	return yes;
}

static size_t shortened(size_t len)
{
	return fault.short_bytes > 0 && len > fault.short_bytes ? fault.short_bytes : len;
}

/* --- the table --- */

static int open_how(enum fault_call call, int dirfd, const char *name, uint64_t flags, mode_t mode,
                    const struct open_how *how)
{
	bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;
	int r = enter(call, changes);

	if (r == 0 && call == FAULT_OPENAT2 && hidden(FAULT_NO_OPENAT2))
		r = -ENOSYS;
	if (r == 0 && (flags & O_DIRECT) && hidden(FAULT_NO_DIRECT))
		r = -EINVAL;
	if (r == 0)
		r = call == FAULT_OPENAT2 ? dbt_sys_real.openat2(dirfd, name, how)
		                          : dbt_sys_real.openat(dirfd, name, (int)flags, mode);
	if (changes)
		(void)note(call, base_name(name), NULL, (flags & O_CREAT) ? "CREAT" : "TRUNC",
		           r < 0 ? r : 0);
	return r;
}

static int fault_openat(int dirfd, const char *name, int flags, mode_t mode)
{
	return open_how(FAULT_OPENAT, dirfd, name, (unsigned)flags, mode, NULL);
}

static int fault_openat2(int dirfd, const char *name, const struct open_how *how)
{
	return open_how(FAULT_OPENAT2, dirfd, name, how->flags, (mode_t)how->mode, how);
}

static int fault_close(int fd)
{
	int failed = enter(FAULT_CLOSE, false), r = dbt_sys_real.close(fd);

	return failed < 0 ? failed : r;
}

static int fault_statx(int dirfd, const char *name, int flags, unsigned mask, struct statx *ret)
{
	int r = enter(FAULT_STATX, false);

	return r < 0 ? r : dbt_sys_real.statx(dirfd, name, flags, mask, ret);
}

static ssize_t fault_pread(int fd, void *buf, size_t len, uint64_t off)
{
	int r = enter(FAULT_PREAD, false);

	if (r == 0 && interrupted())
		r = -EINTR;
	return r < 0 ? r : dbt_sys_real.pread(fd, buf, shortened(len), off);
}

static ssize_t fault_pwrite(int fd, const void *buf, size_t len, uint64_t off)
{
	int failed = enter(FAULT_PWRITE, true);
	ssize_t r = failed;

	if (r == 0 && interrupted())
		return -EINTR;
	if (r == 0)
		r = dbt_sys_real.pwrite(fd, buf, shortened(len), off);
	(void)note_fd(FAULT_PWRITE, fd, NULL, r < 0 ? r : 0);
	return r;
}

static int fault_fsync(int fd)
{
	int r = enter(FAULT_FSYNC, true);

	return (int)note_fd(FAULT_FSYNC, fd, NULL, r < 0 ? r : dbt_sys_real.fsync(fd));
}

static int fault_fdatasync(int fd)
{
	int r = enter(FAULT_FDATASYNC, true);

	return (int)note_fd(FAULT_FDATASYNC, fd, NULL, r < 0 ? r : dbt_sys_real.fdatasync(fd));
}

static int fault_syncfs(int fd)
{
	int r = enter(FAULT_SYNCFS, true);

	return (int)note_fd(FAULT_SYNCFS, fd, NULL, r < 0 ? r : dbt_sys_real.syncfs(fd));
}

static int fault_fallocate(int fd, int mode, uint64_t off, uint64_t len)
{
	int r = enter(FAULT_FALLOCATE, true);

	if (r == 0 && hidden(FAULT_NO_FALLOCATE))
		r = -EOPNOTSUPP;
	return (int)note_fd(FAULT_FALLOCATE, fd, NULL,
	                    r < 0 ? r : dbt_sys_real.fallocate(fd, mode, off, len));
}

static int fault_ftruncate(int fd, uint64_t len)
{
	int r = enter(FAULT_FTRUNCATE, true);

	return (int)note_fd(FAULT_FTRUNCATE, fd, NULL, r < 0 ? r : dbt_sys_real.ftruncate(fd, len));
}

static int fault_renameat2(int olddir, const char *old, int newdir, const char *name,
                           unsigned flags)
{
	unsigned real_flags = flags;
	int r = enter(FAULT_RENAMEAT2, true);

	if (r == 0 && (flags & RENAME_EXCHANGE) && hidden(FAULT_NO_EXCHANGE))
		r = -EINVAL;
	if (r == 0 && (flags & RENAME_NOREPLACE) && hidden(FAULT_NO_NOREPLACE))
		r = -EINVAL;
	if (hidden(FAULT_FALSE_EXCHANGE))
		real_flags &= ~(unsigned)RENAME_EXCHANGE;
	if (r == 0)
		r = dbt_sys_real.renameat2(olddir, old, newdir, name, real_flags);
	return (int)note(FAULT_RENAMEAT2, base_name(old), base_name(name),
	                 (flags & RENAME_EXCHANGE)    ? "EXCHANGE"
	                 : (flags & RENAME_NOREPLACE) ? "NOREPLACE"
	                                              : NULL,
	                 r);
}

static int fault_linkat(int olddir, const char *old, int newdir, const char *name, int flags)
{
	int r = enter(FAULT_LINKAT, true);

	if (r == 0 && hidden(FAULT_NO_LINK))
		r = -EPERM;
	if (r == 0)
		r = dbt_sys_real.linkat(olddir, old, newdir, name, flags);
	return (int)note(FAULT_LINKAT, base_name(old), base_name(name), NULL, r);
}

static int fault_symlinkat(const char *text, int dirfd, const char *name)
{
	int r = enter(FAULT_SYMLINKAT, true);

	if (r == 0)
		r = dbt_sys_real.symlinkat(text, dirfd, name);
	return (int)note(FAULT_SYMLINKAT, base_name(name), NULL, NULL, r);
}

static int fault_unlinkat(int dirfd, const char *name, int flags)
{
	int r = enter(FAULT_UNLINKAT, true);

	if (r == 0)
		r = dbt_sys_real.unlinkat(dirfd, name, flags);
	return (int)note(FAULT_UNLINKAT, base_name(name), NULL,
	                 (flags & AT_REMOVEDIR) ? "REMOVEDIR" : NULL, r);
}

static int fault_mkdirat(int dirfd, const char *name, mode_t mode)
{
	int r = enter(FAULT_MKDIRAT, true);

	if (r == 0)
		r = dbt_sys_real.mkdirat(dirfd, name, mode);
	return (int)note(FAULT_MKDIRAT, base_name(name), NULL, NULL, r);
}

static int fault_fchownat(int dirfd, const char *name, uid_t uid, gid_t gid, int flags)
{
	int r = enter(FAULT_FCHOWNAT, true);

	if (r == 0)
		r = dbt_sys_real.fchownat(dirfd, name, uid, gid, flags);
	return (int)note_at(FAULT_FCHOWNAT, dirfd, name, NULL, r);
}

static int fault_fchmod(int fd, mode_t mode)
{
	int r = enter(FAULT_FCHMOD, true);

	return (int)note_fd(FAULT_FCHMOD, fd, NULL, r < 0 ? r : dbt_sys_real.fchmod(fd, mode));
}

static int fault_utimensat(int dirfd, const char *name, const struct timespec *times, int flags)
{
	int r = enter(FAULT_UTIMENSAT, true);

	if (r == 0)
		r = dbt_sys_real.utimensat(dirfd, name, times, flags);
	return (int)note_at(FAULT_UTIMENSAT, dirfd, name, NULL, r);
}

static int fault_fsetxattr(int fd, const char *name, const void *value, size_t len, int flags)
{
	int r = enter(FAULT_FSETXATTR, true);

	if (r == 0)
		r = dbt_sys_real.fsetxattr(fd, name, value, len, flags);
	return (int)note_fd(FAULT_FSETXATTR, fd, name, r);
}

static int fault_lease(int fd, int cmd, int type)
{
	int r = enter(FAULT_LEASE, false);

	if (r == 0 && hidden(FAULT_NO_LEASE))
		r = -EINVAL;
	return r < 0 ? r : dbt_sys_real.lease(fd, cmd, type);
}

static uint64_t fault_now_ns(void)
{
	return fault.clock_ns > 0 ? fault.clock_ns : dbt_sys_real.now_ns();
}

static uint64_t fault_wall_ns(void)
{
	return fault.clock_ns > 0 ? fault.clock_ns : dbt_sys_real.wall_ns();
}

static int fault_random(void *buf, size_t len)
{
	return dbt_sys_real.random(buf, len);
}

const struct dbt_sys fault_sys = {
	.openat = fault_openat,
	.openat2 = fault_openat2,
	.close = fault_close,
	.statx = fault_statx,
	.pread = fault_pread,
	.pwrite = fault_pwrite,
	.fsync = fault_fsync,
	.fdatasync = fault_fdatasync,
	.syncfs = fault_syncfs,
	.fallocate = fault_fallocate,
	.ftruncate = fault_ftruncate,
	.renameat2 = fault_renameat2,
	.linkat = fault_linkat,
	.symlinkat = fault_symlinkat,
	.unlinkat = fault_unlinkat,
	.mkdirat = fault_mkdirat,
	.fchownat = fault_fchownat,
	.fchmod = fault_fchmod,
	.utimensat = fault_utimensat,
	.fsetxattr = fault_fsetxattr,
	.lease = fault_lease,
	.now_ns = fault_now_ns,
	.wall_ns = fault_wall_ns,
	.random = fault_random,
};
