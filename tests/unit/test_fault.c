/* The tool of the other tests: a failure that is not delivered would make them pass for nothing. */
#include "support/fault.h"
#include "support/tree.h"
#include "sys/io.h"
#include "sys/lease.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
	char *dir;
	int dirfd, fd;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	fault_reset();
	s->dir = tree_new();
	tree_put(s->dir, "a", "0123456789");
	s->dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->fd = openat(s->dirfd, "a", O_RDWR | O_CLOEXEC);
	assert_true(s->fd >= 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	fault_reset();
	(void)close(s->fd);
	(void)close(s->dirfd);
	tree_remove(s->dir);
	free(s->dir);
	free(s);
	return 0;
}

static bool exists(const struct scene *s, const char *name)
{
	return faccessat(s->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A step of several calls, in the manner of the code under test. */
static int step(const struct scene *s)
{
	int r = fault_sys.mkdirat(s->dirfd, "d", 0755);

	if (r == 0)
		r = fault_sys.symlinkat("a", s->dirfd, "l");
	if (r == 0)
		r = fault_sys.renameat2(s->dirfd, "l", s->dirfd, "m", RENAME_NOREPLACE);
	return r == 0 ? fault_sys.fsync(s->dirfd) : r;
}

static void every_call_can_fail_once(void **state)
{
	const struct scene *s = *state;
	unsigned n;

	for (n = 1;; n++) {
		int r;

		fault_reset();
		(void)unlinkat(s->dirfd, "d", AT_REMOVEDIR);
		(void)unlinkat(s->dirfd, "l", 0);
		(void)unlinkat(s->dirfd, "m", 0);
		fault_arm(n, EIO);
		r = step(s);
		assert_int_equal(fault_count(FAULT_ANY), n > 4 ? 4 : n);
		if (!fault_fired()) {
			assert_int_equal(r, 0);
			break;
		}
		assert_int_equal(r, -EIO);
		assert_int_equal(exists(s, "d"), n > 1);
		assert_int_equal(exists(s, "l"), n == 3);
		assert_int_equal(exists(s, "m"), n == 4);
	}
	assert_int_equal(n, 5);
}

static void one_kind_can_fail(void **state)
{
	const struct scene *s = *state;

	fault_arm_call(FAULT_FSYNC, 2, EDQUOT);
	assert_int_equal(step(s), 0);
	assert_false(fault_fired());
	assert_int_equal(fault_sys.fdatasync(s->fd), 0);
	assert_int_equal(fault_sys.fsync(s->fd), -EDQUOT);
	assert_true(fault_fired());
	assert_int_equal(fault_sys.fsync(s->fd), 0); /* once */
	assert_int_equal(fault_count(FAULT_FSYNC), 3);
	assert_int_equal(fault_count(FAULT_CHANGES), 7);
}

static void groups_can_fail_from_then_on(void **state)
{
	const struct scene *s = *state;
	char byte;

	fault_arm_from(FAULT_CHANGES, 2, ENOSPC);
	assert_int_equal(fault_sys.pread(s->fd, &byte, 1, 0), 1);
	assert_int_equal(fault_sys.pwrite(s->fd, "x", 1, 0), 1);
	assert_int_equal(fault_sys.pread(s->fd, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(fault_sys.pwrite(s->fd, "y", 1, 0), -ENOSPC);
	assert_int_equal(fault_sys.unlinkat(s->dirfd, "a", 0), -ENOSPC);
	assert_int_equal(fault_sys.fsync(s->fd), -ENOSPC);
	assert_int_equal(fault_sys.pread(s->fd, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	assert_true(exists(s, "a"));
}

static int make_call(const struct scene *s, enum fault_call call)
{
	const struct open_how how = { .flags = O_RDONLY | O_CLOEXEC };
	const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	struct statx stx;
	int fd, r;
	char byte;

	switch (call) {
	case FAULT_OPENAT:
		return fault_sys.openat(s->dirfd, "n", O_RDWR | O_CREAT, 0600);
	case FAULT_OPENAT2:
		return fault_sys.openat2(s->dirfd, "a", &how);
	case FAULT_CLOSE:
		fd = dup(s->fd);
		r = fault_sys.close(fd);
		assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed all the same */
		return r;
	case FAULT_STATX:
		return fault_sys.statx(s->dirfd, "a", 0, STATX_BASIC_STATS, &stx);
	case FAULT_PREAD:
		return (int)fault_sys.pread(s->fd, &byte, 1, 0);
	case FAULT_PWRITE:
		return (int)fault_sys.pwrite(s->fd, "x", 1, 0);
	case FAULT_FSYNC:
		return fault_sys.fsync(s->fd);
	case FAULT_SYNCFS:
		return fault_sys.syncfs(s->fd);
	case FAULT_FDATASYNC:
		return fault_sys.fdatasync(s->fd);
	case FAULT_FALLOCATE:
		return fault_sys.fallocate(s->fd, 0, 0, 4096);
	case FAULT_FTRUNCATE:
		return fault_sys.ftruncate(s->fd, 0);
	case FAULT_RENAMEAT2:
		return fault_sys.renameat2(s->dirfd, "a", s->dirfd, "n", 0);
	case FAULT_LINKAT:
		return fault_sys.linkat(s->dirfd, "a", s->dirfd, "n", 0);
	case FAULT_SYMLINKAT:
		return fault_sys.symlinkat("a", s->dirfd, "n");
	case FAULT_UNLINKAT:
		return fault_sys.unlinkat(s->dirfd, "a", 0);
	case FAULT_MKDIRAT:
		return fault_sys.mkdirat(s->dirfd, "n", 0755);
	case FAULT_FCHOWNAT:
		return fault_sys.fchownat(s->dirfd, "a", 1, 1, 0);
	case FAULT_FCHMOD:
		return fault_sys.fchmod(s->fd, 0);
	case FAULT_UTIMENSAT:
		return fault_sys.utimensat(s->dirfd, "a", times, 0);
	case FAULT_FSETXATTR:
		return fault_sys.fsetxattr(s->fd, "user.x", "x", 1, 0);
	case FAULT_LEASE:
		return fault_sys.lease(s->fd, F_GETLEASE, 0);
	case FAULT_N_CALLS:
	case FAULT_ANY:
	case FAULT_CHANGES:
		break;
	}
	return 0;
}

/* Each entry of the table is counted under its own kind, and fails without being made. */
static void every_entry_counts_and_fails(void **state)
{
	const struct scene *s = *state;
	struct stat st;

	for (int i = 0; i < FAULT_N_CALLS; i++) {
		enum fault_call call = (enum fault_call)i;

		fault_reset();
		fault_arm_call(call, 1, EXDEV);
		assert_int_equal(make_call(s, call), -EXDEV);
		assert_int_equal(fault_count(call), 1);
		assert_int_equal(fault_count(FAULT_ANY), 1);
	}
	assert_false(exists(s, "n"));
	assert_int_equal(fstatat(s->dirfd, "a", &st, 0), 0);
	assert_int_equal(st.st_size, 10);
	assert_true(st.st_mtim.tv_sec > 1);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(fgetxattr(s->fd, "user.x", NULL, 0), -1);
}

static void reads_and_writes_get_short_and_interrupted(void **state)
{
	const struct scene *s = *state;
	struct dbt_ctx ctx = { .sys = &fault_sys };
	char buf[10];

	fault_short(3);
	fault_eintr(2);
	assert_int_equal(fault_sys.pread(s->fd, buf, 10, 0), 3);
	assert_int_equal(fault_sys.pread(s->fd, buf, 10, 0), -EINTR);
	assert_int_equal(dbt_io_pwrite(&ctx, s->fd, "abcdefghij", 10, 0), 0);
	assert_true(fault_count(FAULT_PWRITE) >= 7);
	assert_int_equal(dbt_io_pread(&ctx, s->fd, buf, 10, 0), 10);
	assert_memory_equal(buf, "abcdefghij", 10);
	assert_false(fault_fired());
}

static void features_can_be_hidden(void **state)
{
	const struct scene *s = *state;
	const struct open_how how = { .flags = O_RDONLY | O_CLOEXEC };
	struct dbt_ctx ctx = { .sys = &fault_sys };
	const char *why = NULL;
	int fd;

	tree_put(s->dir, "b", "bb");
	fault_hide(~(unsigned)FAULT_FALSE_EXCHANGE);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "a", s->dirfd, "b", RENAME_EXCHANGE),
	                 -EINVAL);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "a", s->dirfd, "c", RENAME_NOREPLACE),
	                 -EINVAL);
	assert_int_equal(fault_sys.openat2(s->dirfd, "a", &how), -ENOSYS);
	assert_int_equal(fault_sys.openat(s->dirfd, "a", O_RDONLY | O_DIRECT, 0), -EINVAL);
	assert_int_equal(fault_sys.fallocate(s->fd, 0, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(fault_sys.linkat(s->dirfd, "a", s->dirfd, "c", 0), -EPERM);
	fd = openat(s->dirfd, "a", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dbt_lease_take(&ctx, fd, &why), 0);
	(void)close(fd);
	fault_hide(0);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "a", s->dirfd, "b", RENAME_EXCHANGE), 0);
	assert_true(exists(s, "a") && exists(s, "b"));
	fault_hide(FAULT_FALSE_EXCHANGE);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "a", s->dirfd, "b", RENAME_EXCHANGE), 0);
	assert_false(exists(s, "a"));
	assert_false(fault_fired());
}

static void interfere(void *data)
{
	const struct scene *s = data;

	(void)unlinkat(s->dirfd, "a", 0);
}

static void another_process_can_come_in_between(void **state)
{
	struct scene *s = *state;

	fault_before(FAULT_RENAMEAT2, 2, interfere, s);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "a", s->dirfd, "b", 0), 0);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "b", s->dirfd, "a", 0), 0);
	assert_false(fault_fired());
	assert_true(exists(s, "a"));
	fault_reset();
	fault_before(FAULT_RENAMEAT2, 1, interfere, s);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "a", s->dirfd, "b", 0), -ENOENT);
}

static void changes_are_recorded_in_order(void **state)
{
	static const char *const in_order[] = { "pwrite a", "renameat2 a b", "fsync *", NULL };
	static const char *const wrong_order[] = { "renameat2 a b", "pwrite *", NULL };
	const struct scene *s = *state;
	char expected[512], byte;
	int fd;

	assert_int_equal(fault_sys.pwrite(s->fd, "x", 1, 0), 1);
	assert_int_equal(fault_sys.pwrite(s->fd, "x", 1, 1), 1);
	assert_int_equal(fault_sys.pread(s->fd, &byte, 1, 0), 1);
	fd = fault_sys.openat(s->dirfd, "n", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	(void)fault_sys.close(fd);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "a", s->dirfd, "b", RENAME_EXCHANGE),
	                 -ENOENT);
	assert_int_equal(fault_sys.renameat2(s->dirfd, "a", s->dirfd, "b", 0), 0);
	assert_int_equal(fault_sys.fchownat(s->fd, "", (uid_t)-1, (gid_t)-1, AT_EMPTY_PATH), 0);
	assert_int_equal(fault_sys.fsetxattr(s->fd, "user.x", "x", 1, 0), 0);
	assert_int_equal(fault_sys.mkdirat(s->dirfd, "d", 0700), 0);
	assert_int_equal(fault_sys.unlinkat(s->dirfd, "d", AT_REMOVEDIR), 0);
	fault_arm(fault_count(FAULT_ANY) + 1, EIO);
	assert_int_equal(fault_sys.fsync(s->dirfd), -EIO);
	(void)snprintf(expected, sizeof(expected),
	               "pwrite a\nopenat n CREAT\nrenameat2 a b EXCHANGE !ENOENT\nrenameat2 a b\n"
	               "fchownat b\nfsetxattr b user.x\nmkdirat d\nunlinkat d REMOVEDIR\n"
	               "fsync %s/ !EIO\n",
	               strrchr(s->dir, '/') + 1);
	assert_string_equal(fault_record(), expected);
	assert_null(fault_missing(in_order));
	assert_string_equal(fault_missing(wrong_order), "pwrite *");
	fault_reset();
	assert_string_equal(fault_record(), "");
}

static void the_clock_stands_still(void **state)
{
	(void)state;
	fault_clock(42);
	assert_int_equal(fault_sys.now_ns(), 42);
	assert_int_equal(fault_sys.wall_ns(), 42);
	fault_clock(0);
	assert_true(fault_sys.now_ns() > 42);
}

static void *writer(void *data)
{
	const struct scene *s = data;

	for (int i = 0; i < 1000; i++)
		(void)fault_sys.pwrite(s->fd, "x", 1, 0);
	return NULL;
}

static void threads_share_one_count(void **state)
{
	pthread_t threads[4];

	fault_arm_call(FAULT_PWRITE, 3999, EIO);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, writer, *state), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(fault_count(FAULT_PWRITE), 4000);
	assert_true(fault_fired());
	assert_non_null(strstr(fault_record(), "pwrite a !EIO\n"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_call_can_fail_once),
		T(one_kind_can_fail),
		T(groups_can_fail_from_then_on),
		T(every_entry_counts_and_fails),
		T(reads_and_writes_get_short_and_interrupted),
		T(features_can_be_hidden),
		T(another_process_can_come_in_between),
		T(changes_are_recorded_in_order),
		T(the_clock_stands_still),
		T(threads_share_one_count),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
