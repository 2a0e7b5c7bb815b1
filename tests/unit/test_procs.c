#include "support/loopfs.h"
#include "support/tree.h"
#include "sys/procs.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct dbt_root live;
static struct dbt_ctx ctx;

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

/* What a child does with the file before it says that it is ready. Runs in the child. */
typedef void (*deed_fn)(const char *path);

static void child_check(bool ok)
{
	if (!ok)
		_exit(99);
}

static void deed_read(const char *path)
{
	child_check(open(path, O_RDONLY) >= 0);
}

static void deed_write(const char *path)
{
	child_check(open(path, O_WRONLY) >= 0);
}

static void deed_read_write(const char *path)
{
	child_check(open(path, O_RDWR) >= 0);
}

static void map_and_close(const char *path, int flags, int prot, int share)
{
	int fd = open(path, flags);

	child_check(fd >= 0 && mmap(NULL, 4096, prot, share, fd, 0) != MAP_FAILED);
	(void)close(fd);
}

static void deed_map_read(const char *path)
{
	map_and_close(path, O_RDONLY, PROT_READ, MAP_SHARED);
}

static void deed_map_private(const char *path)
{
	map_and_close(path, O_RDONLY, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static void deed_map_write(const char *path)
{
	map_and_close(path, O_RDWR, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void deed_chdir(const char *path)
{
	child_check(chdir(path) == 0);
}

static void deed_nothing(const char *path)
{
	(void)path;
}

/* Forks; returns once the deed is done. The child waits to be killed. */
static pid_t start(deed_fn deed, const char *path)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		child_check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); /* a failing test ends us */
		deed(path);
		child_check(write(ready[1], "x", 1) == 1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void stop(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct dbt_ident ident_of(const char *path)
{
	struct dbt_ident id;

	assert_int_equal(dbt_ident_of(&ctx, AT_FDCWD, path, &id), 0);
	return id;
}

/* How pid uses the file according to the module; 0 when it does not. */
static unsigned how_of(const char *path, const char *asked_path, pid_t pid)
{
	struct dbt_ident id = ident_of(path);
	struct dbt_procs procs;
	struct dbt_err err;
	unsigned how = 0;

	assert_int_equal(dbt_procs_users(&ctx, &id, asked_path, &procs, &err), 0);
	for (size_t i = 0; i < procs.n; i++) {
		assert_int_not_equal(procs.items[i].pid, getpid());
		if (procs.items[i].pid == pid) {
			how = procs.items[i].how;
			assert_int_equal(procs.items[i].uid, geteuid());
			assert_string_equal(procs.items[i].name, "test_procs");
		}
	}
	dbt_procs_release(&procs);
	return how;
}

/* Every way of use, found by identity alone, then also after the file was renamed. */
static void check_all_ways(const char *dir)
{
	static const struct {
		deed_fn deed;
		unsigned how;
	} cases[] = {
		{ deed_read, DBT_PROC_FD_READ },
		{ deed_write, DBT_PROC_FD_WRITE },
		{ deed_read_write, DBT_PROC_FD_READ | DBT_PROC_FD_WRITE },
		{ deed_map_read, DBT_PROC_MAPPED_READ },
		{ deed_map_private, DBT_PROC_MAPPED_READ },
		{ deed_map_write, DBT_PROC_MAPPED_READ | DBT_PROC_MAPPED_WRITE },
		{ deed_nothing, 0 },
	};
	char *file = tree_path(dir, "a.db"), *other = tree_path(dir, "b\n.db");

	tree_put(dir, "a.db", "0123456789");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t pid = start(cases[i].deed, file);

		assert_int_equal(how_of(file, file, pid), cases[i].how);
		assert_int_equal(how_of(file, NULL, pid), cases[i].how);
		assert_int_equal(rename(file, other), 0);
		assert_int_equal(how_of(other, other, pid), cases[i].how);
		assert_int_equal(rename(other, file), 0);
		stop(pid);
	}
	free(file);
	free(other);
}

static void finds_every_way_of_use_on_this_filesystem(void **state)
{
	char *dir = tree_new();

	(void)state;
	check_all_ways(dir);
	tree_remove(dir);
	free(dir);
}

static void on_filesystem(const char *fstype)
{
	const char *why = NULL;
	char *mount = loopfs_mount(fstype, &why);

	if (!mount) {
		print_message("%s: %s\n", fstype, why);
		skip();
	}
	check_all_ways(mount);
	loopfs_umount(mount);
}

static void finds_every_way_of_use_on_tmpfs(void **state)
{
	(void)state;
	on_filesystem("tmpfs");
}

static void finds_every_way_of_use_on_xfs(void **state)
{
	(void)state;
	on_filesystem("xfs");
}

static void finds_every_way_of_use_on_btrfs(void **state)
{
	(void)state;
	on_filesystem("btrfs");
}

static void finds_every_way_of_use_on_overlay(void **state)
{
	(void)state;
	on_filesystem("overlay");
}

static void own_use_is_left_out(void **state)
{
	char *dir = tree_new(), *file = tree_path(dir, "a.db");
	struct dbt_procs procs;
	struct dbt_ident id;
	int fd;

	(void)state;
	tree_put(dir, "a.db", "x");
	fd = open(file, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	id = ident_of(file);
	assert_int_equal(dbt_procs_users(&ctx, &id, file, &procs, NULL), 0);
	assert_int_equal(procs.n, 0);
	if (geteuid() == 0)
		assert_false(procs.blind);
	dbt_procs_release(&procs);
	(void)close(fd);
	tree_remove(dir);
	free(dir);
	free(file);
}

static void directory_users_below_and_by_cwd(void **state)
{
	char *dir = tree_new(), *db = tree_path(dir, "db"), *file = tree_path(dir, "db/x.sst");
	pid_t cwd, reader, mapper, other;

	(void)state;
	tree_put(dir, "db/x.sst", "0123");
	tree_put(dir, "db2/x.sst", "0123");
	cwd = start(deed_chdir, db);
	reader = start(deed_read, file);
	mapper = start(deed_map_write, file);
	free(file);
	file = tree_path(dir, "db2/x.sst");
	other = start(deed_read, file);
	assert_int_equal(how_of(db, db, cwd), DBT_PROC_CWD);
	assert_int_equal(how_of(db, NULL, cwd), DBT_PROC_CWD);
	assert_int_equal(how_of(db, db, reader), DBT_PROC_FD_READ);
	assert_int_equal(how_of(db, db, mapper), DBT_PROC_MAPPED_READ | DBT_PROC_MAPPED_WRITE);
	assert_int_equal(how_of(db, db, other), 0);
	stop(cwd);
	stop(reader);
	stop(mapper);
	stop(other);
	tree_remove(dir);
	free(dir);
	free(db);
	free(file);
}

static void several_files_in_one_walk(void **state)
{
	char *dir = tree_new(), *a = tree_path(dir, "a"), *b = tree_path(dir, "b");
	struct dbt_ident ids[2];
	struct dbt_procs procs;
	pid_t pid;

	(void)state;
	tree_put(dir, "a", "0123");
	tree_put(dir, "b", "0123");
	ids[0] = ident_of(a);
	ids[1] = ident_of(b);
	pid = start(deed_write, b);
	{
		const struct dbt_procs_file files[] = { { &ids[0], a }, { &ids[1], b } };

		assert_int_equal(dbt_procs_users_of(&ctx, files, 2, &procs, NULL), 0);
	}
	assert_int_equal(procs.n, 1);
	assert_int_equal(procs.items[0].pid, pid);
	assert_int_equal(procs.items[0].file, 1);
	assert_int_equal(dbt_procs_count(&procs, DBT_PROC_WRITES), 1);
	assert_int_equal(dbt_procs_count(&procs, DBT_PROC_READS), 0);
	dbt_procs_release(&procs);
	stop(pid);
	tree_remove(dir);
	free(dir);
	free(a);
	free(b);
}

/* --- a captured /proc: command lines, kernels without `ino`, maps without map_files --- */

struct captured {
	char *dir;
	char *file;
	struct dbt_root root;
	struct dbt_ctx ctx;
	struct dbt_ident id;
};

static void captured_init(struct captured *c)
{
	c->dir = tree_new();
	tree_put(c->dir, "data/a.db", "0123");
	c->file = tree_path(c->dir, "data/a.db");
	c->id = ident_of(c->file);
	assert_int_equal(dbt_root_open(&c->root, c->dir), 0);
	dbt_ctx_init(&c->ctx, &c->root);
	tree_mkdir(c->dir, "proc/77/fd", 0755);
	tree_put(c->dir, "proc/77/comm", "dia mond\n");
	tree_put(c->dir, "proc/77/status", "Name:\tdia mond\nUid:\t1\t1234\t3\t4\n");
	tree_put(c->dir, "proc/77/cmdline", "");
	tree_put(c->dir, "proc/77/maps", "");
	tree_put(c->dir, "proc/uptime", "1 1\n");
}

static void captured_release(struct captured *c)
{
	dbt_root_close(&c->root);
	tree_remove(c->dir);
	free(c->dir);
	free(c->file);
}

static unsigned captured_how(const struct captured *c)
{
	struct dbt_procs procs;
	unsigned how = 0;

	assert_int_equal(dbt_procs_users(&c->ctx, &c->id, c->file, &procs, NULL), 0);
	assert_true(procs.n <= 1);
	if (procs.n == 1) {
		how = procs.items[0].how;
		assert_int_equal(procs.items[0].pid, 77);
		assert_int_equal(procs.items[0].uid, 1234);
		assert_string_equal(procs.items[0].name, "dia mond");
	}
	dbt_procs_release(&procs);
	return how;
}

static void command_lines_are_searched_by_word(void **state)
{
	static const struct {
		const char *before, *after;
		bool hit;
	} cases[] = {
		{ "", "", true },
		{ "--db=", "", true },
		{ "-d", "", true },
		{ "file:", "?immutable=1", false },
		{ "diamond blastp -d ", " -q q.fa", true },
		{ "cat '", "'", true },
		{ "", ".log", false },
		{ "/chroot", "", false },
		{ "", "/x", false },
	};
	struct captured c;

	(void)state;
	captured_init(&c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char args[4096];
		int len = snprintf(args, sizeof(args), "prog%c%s%s%s%clast", 0, cases[i].before,
		                   c.file, cases[i].after, 0);

		tree_put_bytes(c.dir, "proc/77/cmdline", args, (size_t)len + 1);
		assert_int_equal(captured_how(&c), cases[i].hit ? DBT_PROC_CMDLINE : 0);
	}
	captured_release(&c);
}

static void relative_arguments_are_seen_from_the_working_directory(void **state)
{
	struct captured c;
	char *cwd;

	(void)state;
	captured_init(&c);
	cwd = tree_path(c.dir, "data");
	tree_symlink(c.dir, "proc/77/cwd", cwd);
	tree_put_bytes(c.dir, "proc/77/cmdline", "diamond\0-d\0./a.db", 18);
	assert_int_equal(captured_how(&c), DBT_PROC_CMDLINE);
	tree_put_bytes(c.dir, "proc/77/cmdline", "diamond\0-d\0aa.db", 17);
	assert_int_equal(captured_how(&c), 0);
	tree_put_bytes(c.dir, "proc/77/cmdline", "diamond\0-d\0x/a.db", 18);
	assert_int_equal(captured_how(&c), 0);
	free(cwd);
	captured_release(&c);
}

static void descriptors_of_kernels_without_ino(void **state)
{
	struct captured c;

	(void)state;
	captured_init(&c);
	tree_symlink(c.dir, "proc/77/fd/3", c.file);
	tree_symlink(c.dir, "proc/77/fd/4", "socket:[1]");
	tree_put(c.dir, "proc/77/fdinfo/3", "pos:\t0\nflags:\t0100002\nmnt_id:\t1\n");
	assert_int_equal(captured_how(&c), DBT_PROC_FD_READ | DBT_PROC_FD_WRITE);
	tree_put(c.dir, "proc/77/fdinfo/3", "pos:\t0\nflags:\t0100001\nmnt_id:\t9\nino:\t5\n");
	assert_int_equal(captured_how(&c), 0); /* the kernel says that it is another inode */
	captured_release(&c);
}

static void maps_without_map_files(void **state)
{
	struct captured c;
	char *text = NULL;
	struct stat st;

	(void)state;
	captured_init(&c);
	assert_int_equal(stat(c.file, &st), 0);
	/* same numbers, other path (renamed): a hit */
	assert_true(asprintf(&text,
	                     "00400000-00401000 rw-p 00000000 00:00 0 \n"
	                     "7f00000000-7f00001000 rw-s 00000000 %02x:%02x %lu    /x/y\n",
	                     (unsigned)(c.id.dev >> 32), (unsigned)c.id.dev, st.st_ino) > 0);
	tree_put(c.dir, "proc/77/maps", text);
	assert_int_equal(captured_how(&c), DBT_PROC_MAPPED_READ | DBT_PROC_MAPPED_WRITE);
	free(text);
	/* other device (btrfs, overlay), same path: a hit */
	assert_true(asprintf(&text, "7f00000000-7f00001000 r--s 00000000 00:99 %lu    %s\n",
	                     st.st_ino + 1, c.file) > 0);
	tree_put(c.dir, "proc/77/maps", text);
	assert_int_equal(captured_how(&c), DBT_PROC_MAPPED_READ);
	free(text);
	/* a newline in the name */
	{
		char *plain = c.file, *shown = tree_path(c.dir, "data/n\\012.db");

		c.file = tree_path(c.dir, "data/n\n.db");
		assert_true(asprintf(&text, "7f00000000-7f00001000 r--s 00000000 00:99 1    %s\n",
		                     shown) > 0);
		tree_put(c.dir, "proc/77/maps", text);
		assert_int_equal(captured_how(&c), DBT_PROC_MAPPED_READ);
		free(text);
		free(shown);
		free(c.file);
		c.file = plain;
	}
	/* same inode number of another filesystem */
	assert_true(asprintf(&text, "7f00000000-7f00001000 r--s 00000000 00:99 %lu    /z\n",
	                     st.st_ino) > 0);
	tree_put(c.dir, "proc/77/maps", text);
	assert_int_equal(captured_how(&c), 0);
	free(text);
	captured_release(&c);
}

static void long_maps_are_read_in_pieces(void **state)
{
	struct captured c;
	char *text = NULL;
	size_t size = 0;
	FILE *file;

	(void)state;
	captured_init(&c);
	file = open_memstream(&text, &size);
	assert_non_null(file);
	/* the line that counts lies across the end of the first 64 KiB */
	for (unsigned i = 0; ftell(file) < 65536 - 60; i++)
		(void)fprintf(file, "%08x-%08x r--p 00000000 00:99 %u /%u\n", i, i, i + 1, i);
	(void)fprintf(file, "7f00000000-7f00001000 r--p 00000000 00:99 1    %s\n", c.file);
	assert_true(ftell(file) > 65536);
	assert_int_equal(fclose(file), 0);
	tree_put(c.dir, "proc/77/maps", text);
	assert_int_equal(captured_how(&c), DBT_PROC_MAPPED_READ);
	free(text);
	captured_release(&c);
}

/* This program started as `test_procs --ask PATH`: its child asks who uses PATH. The exit status
 * is the number of processes that have it on their command line. */
static int ask_from_a_child(const char *path)
{
	struct dbt_procs procs;
	struct dbt_ident id;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		child_check(dbt_ident_of(&ctx, AT_FDCWD, path, &id) == 0 &&
		            dbt_procs_users(&ctx, &id, path, &procs, NULL) == 0);
		_exit((int)dbt_procs_count(&procs, DBT_PROC_CMDLINE));
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void command_lines_of_ancestors_do_not_count(void **state)
{
	char *dir = tree_new(), *file = tree_path(dir, "a.db");
	int status;
	pid_t pid;

	(void)state;
	tree_put(dir, "a.db", "x");
	pid = fork();
	if (pid == 0) {
		(void)execl("/proc/self/exe", "test_procs", "--ask", file, (char *)NULL);
		_exit(98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	tree_remove(dir);
	free(dir);
	free(file);
}

static void processes_of_others_make_blind(void **state)
{
	struct dbt_procs procs = { 0 };
	struct dbt_ident id = ident_of("/etc/passwd");
	int status, out[2];
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		assert_int_equal(dbt_procs_users(&ctx, &id, NULL, &procs, NULL), 0);
		assert_true(procs.blind);
		dbt_procs_release(&procs);
		return;
	}
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) { /* as nobody, below a root user's processes */
		child_check(setgid(65534) == 0 && setuid(65534) == 0);
		child_check(dbt_procs_users(&ctx, &id, NULL, &procs, NULL) == 0);
		_exit(procs.blind && procs.n_hidden > 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_run_is_alive_until_it_ends(void **state)
{
	struct dbt_run run, again;
	siginfo_t info;
	int out[2];
	pid_t pid;

	(void)state;
	assert_int_equal(dbt_procs_self_start(&ctx, &run), 0);
	assert_int_equal(dbt_procs_self_start(&ctx, &again), 0);
	assert_int_equal(run.pid, getpid());
	assert_int_equal(run.start_ticks, again.start_ticks);
	assert_int_equal(strlen(run.boot_id), 36);
	assert_true(dbt_procs_is_alive(&ctx, run.pid, run.start_ticks, run.boot_id));
	assert_false(dbt_procs_is_alive(&ctx, run.pid, run.start_ticks + 1, run.boot_id));
	assert_false(dbt_procs_is_alive(&ctx, run.pid, run.start_ticks, "another boot"));
	assert_false(dbt_procs_is_alive(&ctx, 0, run.start_ticks, run.boot_id));

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		child_check(dbt_procs_self_start(&ctx, &run) == 0);
		child_check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		child_check(write(out[1], &run, sizeof(run)) == (ssize_t)sizeof(run));
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(out[0], &run, sizeof(run)), sizeof(run));
	assert_int_equal(run.pid, pid);
	assert_true(dbt_procs_is_alive(&ctx, pid, run.start_ticks, run.boot_id));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	/* a zombie: its number and start time still stand in /proc */
	assert_false(dbt_procs_is_alive(&ctx, pid, run.start_ticks, run.boot_id));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(dbt_procs_is_alive(&ctx, pid, run.start_ticks, run.boot_id));
	(void)close(out[0]);
	(void)close(out[1]);
}

static void stat_line_with_odd_name(void **state)
{
	struct captured c;

	(void)state;
	captured_init(&c);
	tree_put(c.dir, "proc/77/stat",
	         "77 (a) R 1 (x) S 5 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4711 99 1\n");
	tree_put(c.dir, "proc/sys/kernel/random/boot_id", "abc\n");
	assert_true(dbt_procs_is_alive(&c.ctx, 77, 4711, "abc"));
	assert_false(dbt_procs_is_alive(&c.ctx, 77, 4712, "abc"));
	assert_false(dbt_procs_is_alive(&c.ctx, 78, 4711, "abc"));
	captured_release(&c);
}

static void how_reads_as_words(void **state)
{
	char text[DBT_PROC_HOW_TEXT_BYTES];

	(void)state;
	assert_string_equal(dbt_proc_how_text(DBT_PROC_FD_READ, text), "open");
	assert_string_equal(
		dbt_proc_how_text(DBT_PROC_FD_READ | DBT_PROC_FD_WRITE | DBT_PROC_MAPPED_READ,
	                          text),
		"open for writing, mapped");
	assert_string_equal(dbt_proc_how_text(~0U, text),
	                    "open for writing, mapped for writing, working directory, on its "
	                    "command line");
	assert_string_equal(dbt_proc_how_text(0, text), "");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_way_of_use_on_this_filesystem),
		cmocka_unit_test(finds_every_way_of_use_on_tmpfs),
		cmocka_unit_test(finds_every_way_of_use_on_xfs),
		cmocka_unit_test(finds_every_way_of_use_on_btrfs),
		cmocka_unit_test(finds_every_way_of_use_on_overlay),
		cmocka_unit_test(own_use_is_left_out),
		cmocka_unit_test(directory_users_below_and_by_cwd),
		cmocka_unit_test(several_files_in_one_walk),
		cmocka_unit_test(command_lines_are_searched_by_word),
		cmocka_unit_test(relative_arguments_are_seen_from_the_working_directory),
		cmocka_unit_test(descriptors_of_kernels_without_ino),
		cmocka_unit_test(maps_without_map_files),
		cmocka_unit_test(long_maps_are_read_in_pieces),
		cmocka_unit_test(command_lines_of_ancestors_do_not_count),
		cmocka_unit_test(processes_of_others_make_blind),
		cmocka_unit_test(a_run_is_alive_until_it_ends),
		cmocka_unit_test(stat_line_with_odd_name),
		cmocka_unit_test(how_reads_as_words),
	};

	if (argc == 3 && strcmp(argv[1], "--ask") == 0) {
		(void)group_setup(NULL);
		return ask_from_a_child(argv[2]);
	}
	return cmocka_run_group_tests_name("procs", tests, group_setup, group_teardown);
}
