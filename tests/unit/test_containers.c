#include "support/tree.h"
#include "sys/containers.h"
#include "sys/root.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
	char *dir;
	struct dbt_root root;
	struct dbt_ctx ctx;
};

#define OWN_MOUNTS                                                                                 \
	"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"                                                    \
	"30 22 254:0 / /mnt/store rw - ext4 /dev/mapper/store rw\n"                                \
	"31 22 259:1 / /fast\\040disk rw - xfs /dev/nvme0n1 rw\n"

static void process(const struct scene *s, const char *pid, const char *ns, const char *mounts,
                    const char *uid)
{
	char path[128], text[256];

	(void)snprintf(path, sizeof(path), "proc/%s/ns/mnt", pid);
	tree_symlink(s->dir, path, ns);
	(void)snprintf(path, sizeof(path), "proc/%s/mountinfo", pid);
	tree_put(s->dir, path, mounts);
	(void)snprintf(path, sizeof(path), "proc/%s/comm", pid);
	tree_put(s->dir, path, "bakta\n");
	(void)snprintf(path, sizeof(path), "proc/%s/status", pid);
	(void)snprintf(text, sizeof(text), "Name:\tbakta\nUid:\t%s\t%s\t%s\t%s\n", uid, uid, uid,
	               uid);
	tree_put(s->dir, path, text);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->dir = tree_new();
	assert_int_equal(dbt_root_open(&s->root, s->dir), 0);
	dbt_ctx_init(&s->ctx, &s->root);
	process(s, "self", "mnt:[1]", OWN_MOUNTS, "0");
	process(s, "1", "mnt:[1]", OWN_MOUNTS, "0");
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	dbt_root_close(&s->root);
	tree_remove(s->dir);
	free(s->dir);
	free(s);
	return 0;
}

static void assert_text(const struct scene *s, const char *target, const char *expected)
{
	struct dbt_err err = { 0 };
	char *text = NULL;

	assert_int_equal(dbt_containers_check(&s->ctx, "/mnt/store/db", target, &text, &err), 0);
	if (expected) {
		assert_non_null(text);
		assert_string_equal(text, expected);
	} else if (text) {
		fail_msg("unexpected: %s", text);
	}
	free(text);
}

#define ASTRAY                                                                                     \
	"process 77 'bakta' sees '/mnt/store/db', but '/fast disk/psc.dmnd' is missing or "        \
	"something else in its mount namespace: bind '/fast disk' there too"

static void nothing_but_us(void **state)
{
	assert_text(*state, "/fast disk/psc.dmnd", NULL);
}

static void a_container_that_binds_the_source_only(void **state)
{
	struct scene *s = *state;

	process(s, "77", "mnt:[2]",
	        "50 1 0:55 / / rw - overlay overlay rw\n"
	        "51 50 254:0 /db /data rw - ext4 /dev/mapper/store rw\n",
	        "0");
	assert_text(s, "/fast disk/psc.dmnd", ASTRAY);
}

static void a_container_that_binds_both(void **state)
{
	struct scene *s = *state;

	process(s, "77", "mnt:[2]",
	        "50 1 0:55 / / rw - overlay overlay rw\n"
	        "51 50 254:0 /db /data rw - ext4 /dev/mapper/store rw\n"
	        "52 50 259:1 / /fast\\040disk rw - xfs /dev/nvme0n1 rw\n",
	        "0");
	assert_text(s, "/fast disk/psc.dmnd", NULL);
}

static void a_container_with_another_directory_there(void **state)
{
	struct scene *s = *state;

	process(s, "77", "mnt:[2]",
	        "50 1 0:55 / / rw - overlay overlay rw\n"
	        "51 50 254:0 /db /data rw - ext4 /dev/mapper/store rw\n"
	        "52 50 259:1 / /fast\\040disk rw - xfs /dev/nvme0n1 rw\n"
	        "53 50 259:1 /private /fast\\040disk rw - xfs /dev/nvme0n1 rw\n",
	        "0");
	assert_text(s, "/fast disk/psc.dmnd", ASTRAY);
}

static void containers_without_the_source_do_not_matter(void **state)
{
	struct scene *s = *state;

	process(s, "77", "mnt:[2]",
	        "50 1 0:55 / / rw - overlay overlay rw\n"
	        "51 50 254:0 /other /data rw - ext4 /dev/mapper/store rw\n"
	        "52 50 8:1 /mnt /mnt rw - ext4 /dev/sda1 rw\n",
	        "0");
	assert_text(s, "/fast disk/psc.dmnd", NULL);
}

static void a_private_tmp_matters_for_users_only(void **state)
{
	struct scene *s = *state;
	const char *mounts = OWN_MOUNTS "60 22 8:1 /tmp/private-1 /tmp rw - ext4 /dev/sda1 rw\n";

	process(s, "77", "mnt:[2]", mounts, "0");
	assert_text(s, "/tmp/psc.dmnd", NULL);
	process(s, "78", "mnt:[2]", mounts, "1001"); /* the same batch job, its user's part */
	assert_text(s, "/tmp/psc.dmnd",
	            "process 78 'bakta' sees '/mnt/store/db', but '/tmp/psc.dmnd' is missing or "
	            "something else in its mount namespace: bind '/tmp' there too");
	assert_text(s, "/fast disk/psc.dmnd", NULL);
}

static void namespaces_are_counted_once(void **state)
{
	struct scene *s = *state;
	const char *mounts = "50 1 0:55 / / rw - overlay overlay rw\n"
			     "51 50 254:0 / /data rw - ext4 /dev/mapper/store rw\n";
	char *text = NULL;

	process(s, "77", "mnt:[2]", mounts, "0");
	process(s, "78", "mnt:[2]", mounts, "0");
	assert_int_equal(dbt_containers_check(&s->ctx, "/mnt/store/db", "/x", &text, NULL), 0);
	assert_null(strstr(text, "more"));
	free(text);
	process(s, "79", "mnt:[3]", mounts, "0");
	assert_int_equal(dbt_containers_check(&s->ctx, "/mnt/store/db", "/x", &text, NULL), 0);
	assert_non_null(strstr(text, " (and 1 more) "));
	assert_non_null(strstr(text, "bind '/' there"));
	free(text);
}

static void an_installed_runtime_is_a_hint(void **state)
{
	struct scene *s = *state;

	tree_put(s->dir, "usr/local/bin/apptainer", "");
	assert_text(s, "/fast disk/psc.dmnd",
	            "a container (apptainer is installed) that uses '/mnt/store/db' must bind "
	            "'/fast disk' as well: --bind '/fast disk:/fast disk'");
	assert_text(s, "/tmp/psc.dmnd", NULL); /* bound by default */
	tree_put(s->dir, "usr/bin/podman", "");
	assert_text(s, "/tmp/psc.dmnd",
	            "a container (podman is installed) that uses '/mnt/store/db' must bind '/tmp' "
	            "as well: -v '/tmp:/tmp'");
}

/* The real thing: a child with a tmpfs over the target. */
static void on_this_machine(void **state)
{
	struct dbt_root live;
	struct dbt_ctx ctx;
	char *dir = tree_new(), *source = tree_path(dir, "source");
	char *target = tree_path(dir, "target"), *text = NULL, byte;
	int ready[2];
	pid_t pid;

	(void)state;
	tree_mkdir(dir, "source", 0755);
	tree_mkdir(dir, "target", 0755);
	if (geteuid() != 0) {
		print_message("a mount namespace needs root\n");
		tree_remove(dir);
		free(dir);
		free(source);
		free(target);
		skip();
	}
	assert_int_equal(dbt_root_open(&live, NULL), 0);
	dbt_ctx_init(&ctx, &live);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("tmpfs", target, "tmpfs", 0, NULL) < 0 || setuid(12001) < 0 ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	free(target);
	target = tree_path(dir, "target/psc.dmnd");
	assert_int_equal(dbt_containers_check(&ctx, source, target, &text, NULL), 0);
	assert_non_null(text);
	assert_non_null(strstr(text, "is missing or something else in its mount namespace"));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	free(text);
	dbt_root_close(&live);
	tree_remove(dir);
	free(dir);
	free(source);
	free(target);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_but_us),
		T(a_container_that_binds_the_source_only),
		T(a_container_that_binds_both),
		T(a_container_with_another_directory_there),
		T(containers_without_the_source_do_not_matter),
		T(a_private_tmp_matters_for_users_only),
		T(namespaces_are_counted_once),
		T(an_installed_runtime_is_a_hint),
		cmocka_unit_test(on_this_machine),
	};

	return cmocka_run_group_tests_name("containers", tests, NULL, NULL);
}
