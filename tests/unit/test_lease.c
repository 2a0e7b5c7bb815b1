#include "support/loopfs.h"
#include "support/tree.h"
#include "sys/lease.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct dbt_root live;
static struct dbt_ctx ctx;

struct scene {
	char *dir, *file;
	int fd;
};

static int group_setup(void **state)
{
	(void)state;
	assert_int_equal(dbt_root_open(&live, NULL), 0);
	dbt_ctx_init(&ctx, &live);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	dbt_root_close(&live);
	return 0;
}

static void scene_init(struct scene *s, const char *parent)
{
	s->dir = parent ? tree_new_in(parent) : tree_new();
	s->file = tree_path(s->dir, "a.db");
	tree_put(s->dir, "a.db", "0123456789");
	s->fd = open(s->file, O_RDONLY | O_CLOEXEC);
	assert_true(s->fd >= 0);
}

static void scene_release(struct scene *s)
{
	(void)close(s->fd);
	tree_remove(s->dir);
	free(s->dir);
	free(s->file);
}

static bool sigio_blocked(void)
{
	sigset_t set;

	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	return sigismember(&set, SIGIO) == 1;
}

/* Another process opens the file for writing without waiting: EWOULDBLOCK while the lease stands,
 * which is what breaks it. Returns the errno, 0 when it opened. */
static int writer_knocks(const char *path)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(open(path, O_WRONLY | O_NONBLOCK) < 0 ? errno : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_hold_break_drop(const char *parent)
{
	const char *why = NULL;
	struct scene s;

	scene_init(&s, parent);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), 1);
	assert_true(sigio_blocked());
	assert_false(dbt_lease_broken(&ctx, s.fd));
	assert_int_equal(writer_knocks(s.file), EWOULDBLOCK);
	assert_true(dbt_lease_broken(&ctx, s.fd));
	dbt_lease_drop(&ctx, s.fd); /* the pending SIGIO would end this test program */
	assert_false(sigio_blocked());
	assert_int_equal(writer_knocks(s.file), 0);
	scene_release(&s);
}

static void held_broken_and_dropped_here(void **state)
{
	(void)state;
	check_hold_break_drop(NULL);
}

static void on_filesystem(const char *fstype)
{
	const char *why = NULL;
	char *mount = loopfs_mount(fstype, &why);

	if (!mount) {
		print_message("%s: %s\n", fstype, why);
		skip();
	}
	check_hold_break_drop(mount);
	loopfs_umount(mount);
}

static void held_broken_and_dropped_on_tmpfs(void **state)
{
	(void)state;
	on_filesystem("tmpfs");
}

static void held_broken_and_dropped_on_xfs(void **state)
{
	(void)state;
	on_filesystem("xfs");
}

static void held_broken_and_dropped_on_btrfs(void **state)
{
	(void)state;
	on_filesystem("btrfs");
}

static void a_writer_means_eagain(void **state)
{
	const char *why = NULL;
	struct scene s;
	int writer;

	(void)state;
	scene_init(&s, NULL);
	writer = open(s.file, O_WRONLY | O_CLOEXEC);
	assert_true(writer >= 0);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), -EAGAIN);
	assert_false(sigio_blocked());
	(void)close(writer);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), 1);
	dbt_lease_drop(&ctx, s.fd);
	scene_release(&s);
}

static void a_writer_with_only_a_mapping_means_eagain(void **state)
{
	const char *why = NULL;
	struct scene s;
	void *map;
	int writer;

	(void)state;
	scene_init(&s, NULL);
	writer = open(s.file, O_RDWR | O_CLOEXEC);
	map = mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0);
	assert_true(map != MAP_FAILED);
	(void)close(writer);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), -EAGAIN);
	assert_int_equal(munmap(map, 10), 0);
	scene_release(&s);
}

static void readers_do_not_matter(void **state)
{
	const char *why = NULL;
	struct scene s;
	int reader;

	(void)state;
	scene_init(&s, NULL);
	reader = open(s.file, O_RDONLY | O_CLOEXEC);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), 1);
	(void)close(open(s.file, O_RDONLY | O_CLOEXEC));
	assert_false(dbt_lease_broken(&ctx, s.fd));
	assert_int_equal(rename(s.file, s.file), 0);
	assert_false(dbt_lease_broken(&ctx, s.fd));
	dbt_lease_drop(&ctx, s.fd);
	(void)close(reader);
	scene_release(&s);
}

/* The mask comes back only after the last of several, in any order. */
static void several_at_once(void **state)
{
	const char *why = NULL;
	struct scene a, b;

	(void)state;
	scene_init(&a, NULL);
	scene_init(&b, NULL);
	assert_int_equal(dbt_lease_take(&ctx, a.fd, &why), 1);
	assert_int_equal(dbt_lease_take(&ctx, b.fd, &why), 1);
	assert_int_equal(writer_knocks(a.file), EWOULDBLOCK);
	assert_int_equal(writer_knocks(b.file), EWOULDBLOCK);
	dbt_lease_drop(&ctx, a.fd);
	assert_true(sigio_blocked());
	assert_true(dbt_lease_broken(&ctx, b.fd));
	dbt_lease_drop(&ctx, b.fd);
	assert_false(sigio_blocked());
	scene_release(&a);
	scene_release(&b);
}

static void a_mask_that_was_there_stays(void **state)
{
	const char *why = NULL;
	struct scene s;
	sigset_t set;

	(void)state;
	scene_init(&s, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGIO);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), 1);
	dbt_lease_drop(&ctx, s.fd);
	assert_true(sigio_blocked());
	assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	scene_release(&s);
}

static void *other_thread(void *stop)
{
	while (!atomic_load((atomic_int *)stop))
		(void)usleep(1000);
	return NULL;
}

/* Another thread with SIGIO unblocked must not get the notice: it would end the process. */
static void the_notice_goes_to_the_holding_thread(void **state)
{
	const char *why = NULL;
	atomic_int end = 0;
	pthread_t thread;
	struct scene s;

	(void)state;
	scene_init(&s, NULL);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &end), 0);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), 1);
	assert_int_equal(writer_knocks(s.file), EWOULDBLOCK);
	dbt_lease_drop(&ctx, s.fd);
	atomic_store(&end, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	scene_release(&s);
}

static void overlay_tells_writers_but_gives_no_lease(void **state)
{
	const char *why = NULL;
	char *mount = loopfs_mount("overlay", &why);
	struct scene s;
	int writer;

	(void)state;
	if (!mount) {
		print_message("overlay: %s\n", why);
		skip();
	}
	scene_init(&s, mount);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), 0);
	assert_non_null(strstr(why, "overlay"));
	assert_int_equal(writer_knocks(s.file), 0); /* nothing is held */
	writer = open(s.file, O_WRONLY | O_CLOEXEC);
	assert_int_equal(dbt_lease_take(&ctx, s.fd, &why), -EAGAIN);
	(void)close(writer);
	assert_false(sigio_blocked());
	scene_release(&s);
	loopfs_umount(mount);
}

static int lease_errno;

static int failing_lease(int fd, int cmd, int type)
{
	(void)fd;
	(void)cmd;
	(void)type;
	return lease_errno;
}

static void unavailable_says_why(void **state)
{
	static const struct {
		int code, result;
		const char *word;
	} cases[] = {
		{ -EINVAL, 0, "filesystem" },
		{ -EACCES, 0, "owner" },
		{ -EAGAIN, -EAGAIN, NULL },
		{ -ENOMEM, -ENOMEM, NULL },
	};
	struct dbt_sys sys = dbt_sys_real;
	struct dbt_ctx failing = ctx;
	struct scene s;

	(void)state;
	scene_init(&s, NULL);
	sys.lease = failing_lease;
	failing.sys = &sys;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = NULL;

		lease_errno = cases[i].code;
		assert_int_equal(dbt_lease_take(&failing, s.fd, &why), cases[i].result);
		if (cases[i].word)
			assert_non_null(strstr(why, cases[i].word));
		else
			assert_null(why);
		assert_false(sigio_blocked());
	}
	lease_errno = F_UNLCK;
	assert_true(dbt_lease_broken(&failing, s.fd));
	scene_release(&s);
}

static void not_the_owner(void **state)
{
	const char *why = NULL;
	struct scene s;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("changing the user needs root\n");
		skip();
	}
	scene_init(&s, NULL);
	pid = fork();
	if (pid == 0) {
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(9);
		_exit(dbt_lease_take(&ctx, s.fd, &why) == 0 && strstr(why, "owner") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	scene_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_broken_and_dropped_here),
		cmocka_unit_test(held_broken_and_dropped_on_tmpfs),
		cmocka_unit_test(held_broken_and_dropped_on_xfs),
		cmocka_unit_test(held_broken_and_dropped_on_btrfs),
		cmocka_unit_test(a_writer_means_eagain),
		cmocka_unit_test(a_writer_with_only_a_mapping_means_eagain),
		cmocka_unit_test(readers_do_not_matter),
		cmocka_unit_test(several_at_once),
		cmocka_unit_test(a_mask_that_was_there_stays),
		cmocka_unit_test(the_notice_goes_to_the_holding_thread),
		cmocka_unit_test(overlay_tells_writers_but_gives_no_lease),
		cmocka_unit_test(unavailable_says_why),
		cmocka_unit_test(not_the_owner),
	};

	return cmocka_run_group_tests_name("lease", tests, group_setup, group_teardown);
}
