#include "support/tree.h"
#include "survey/tmpfiles.h"
#include "sys/root.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
	char *dir;
	struct dbt_root root;
	struct dbt_ctx ctx;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->dir = tree_new();
	assert_int_equal(dbt_root_open(&s->root, s->dir), 0);
	dbt_ctx_init(&s->ctx, &s->root);
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

/* "boot FILE:LINE", "age AGE FILE:LINE" or "never"; free() it. */
static char *answer(const struct dbt_ctx *ctx, const char *path)
{
	struct dbt_tmpfiles_hit hit = { 0 };
	char *text = NULL;
	int r = dbt_tmpfiles_find(ctx, path, &hit);

	if (r == 0)
		return strdup("never");
	assert_int_equal(r, 1);
	if (hit.when == DBT_TMPFILES_AT_BOOT)
		assert_true(asprintf(&text, "boot %s:%u", hit.file, hit.line) > 0);
	else
		assert_true(asprintf(&text, "age %s %s:%u", hit.age, hit.file, hit.line) > 0);
	dbt_tmpfiles_hit_release(&hit);
	return text;
}

static void assert_answer(const struct scene *s, const char *path, const char *expected)
{
	char *text = answer(&s->ctx, path);

	assert_string_equal(text, expected);
	free(text);
}

static void debian_12_empties_tmp_at_boot(void **state)
{
	struct scene *s = *state;
	struct dbt_tmpfiles_hit hit = { 0 };

	tree_put(s->dir, "usr/lib/tmpfiles.d/tmp.conf",
	         "#  This file is part of systemd.\n\n# See tmpfiles.d(5) for details\n"
	         "  D /tmp 1777 root root -  \n#q /var/tmp 1777 root root 30d\n");
	assert_int_equal(dbt_tmpfiles_find(&s->ctx, "/tmp/psc.dmnd", &hit), 1);
	assert_int_equal(hit.when, DBT_TMPFILES_AT_BOOT);
	assert_string_equal(hit.file, "/usr/lib/tmpfiles.d/tmp.conf");
	assert_int_equal(hit.line, 4);
	assert_string_equal(hit.text, "D /tmp 1777 root root -");
	assert_null(hit.age);
	dbt_tmpfiles_hit_release(&hit);
	assert_answer(s, "/tmp", "never");
	assert_answer(s, "/tmpfoo/x", "never");
	assert_answer(s, "/mnt/tmp/x", "never");
	assert_answer(s, "/tmp/a/b/c", "boot /usr/lib/tmpfiles.d/tmp.conf:4");
}

static void upstream_cleans_by_age(void **state)
{
	struct scene *s = *state;

	tree_put(s->dir, "usr/lib/tmpfiles.d/tmp.conf",
	         "q /tmp 1777 root root 10d\nq /var/tmp 1777 root root 30d\n"
	         "x /tmp/systemd-private-%b-*\nX /tmp/systemd-private-%b-*/tmp\n"
	         "R! /tmp/systemd-private-*\n");
	tree_put(s->dir, "proc/sys/kernel/random/boot_id",
	         "11111111-2222-3333-4444-555555555555\n");
	assert_answer(s, "/tmp/psc.dmnd", "age 10d /usr/lib/tmpfiles.d/tmp.conf:1");
	assert_answer(s, "/var/tmp/a/psc.dmnd", "age 30d /usr/lib/tmpfiles.d/tmp.conf:2");
	assert_answer(s, "/var/lib/x", "never");
	assert_answer(s, "/tmp/systemd-private-x/f", "boot /usr/lib/tmpfiles.d/tmp.conf:5");
}

static void files_of_one_name_shadow_each_other(void **state)
{
	struct scene *s = *state;

	tree_put(s->dir, "usr/lib/tmpfiles.d/tmp.conf", "D /tmp\n");
	tree_put(s->dir, "usr/local/lib/tmpfiles.d/tmp.conf", "D /a\n");
	assert_answer(s, "/tmp/x", "never");
	assert_answer(s, "/a/x", "boot /usr/local/lib/tmpfiles.d/tmp.conf:1");
	tree_put(s->dir, "run/tmpfiles.d/tmp.conf", "D /b\n");
	assert_answer(s, "/a/x", "never");
	assert_answer(s, "/b/x", "boot /run/tmpfiles.d/tmp.conf:1");
	tree_symlink(s->dir, "etc/tmpfiles.d/tmp.conf", "/dev/null");
	assert_answer(s, "/b/x", "never");
	tree_put(s->dir, "usr/lib/tmpfiles.d/other.conf.bak", "D /c\n");
	assert_answer(s, "/c/x", "never");
	tree_symlink(s->dir, "etc/tmpfiles.d/other.conf", "/nowhere");
	tree_put(s->dir, "usr/lib/tmpfiles.d/other.conf", "D /c\n");
	assert_answer(s, "/c/x", "boot /usr/lib/tmpfiles.d/other.conf:1");
}

static void the_first_owner_of_a_path_counts(void **state)
{
	struct scene *s = *state;

	tree_put(s->dir, "usr/lib/tmpfiles.d/tmp.conf", "D /tmp - - - -\n");
	tree_put(s->dir, "etc/tmpfiles.d/00-local.conf", "d /tmp 1777 root root -\n");
	assert_answer(s, "/tmp/x", "never");
	/* a line for boot only does not stand in the way of the daily cleaning */
	tree_put(s->dir, "etc/tmpfiles.d/00-local.conf", "d! /tmp 1777 root root -\n");
	tree_put(s->dir, "usr/lib/tmpfiles.d/tmp.conf", "q /tmp 1777 root root 10d\n");
	assert_answer(s, "/tmp/x", "age 10d /usr/lib/tmpfiles.d/tmp.conf:1");
	/* by name, not by directory */
	tree_put(s->dir, "etc/tmpfiles.d/zz.conf", "D /a\n");
	tree_put(s->dir, "usr/lib/tmpfiles.d/aa.conf", "d /a\n");
	assert_answer(s, "/a/x", "never");
	/* a line that only adjusts owns nothing */
	tree_put(s->dir, "etc/tmpfiles.d/00-local.conf", "z /tmp 1777\n");
	assert_answer(s, "/tmp/x", "age 10d /usr/lib/tmpfiles.d/tmp.conf:1");
}

/* One configuration and what becomes of files under it: b at boot, a by age (always 0 here, so that
 * systemd-tmpfiles itself can be asked), k kept. */
static const struct fate_case {
	const char *conf;
	const char *fates; /* "FATE PATH" lines */
} fate_cases[] = {
	{ "D /t 0755 - - -\n", "b /t/f\nb /t/d/f\nk /u/f\n" },
	{ "D /t 0755 - - -\nx /t/d\n", "b /t/f\nb /t/d/f\n" },
	{ "d /t 0755 - - 0\nx /t/d\n", "a /t/f\nk /t/d/f\nk /t/d/e/f\na /t/e/f\n" },
	{ "d /t 0755 - - 0\nx /t/d - - - 0\n", "a /t/f\na /t/d/f\n" },
	{ "d /t 0755 - - 0\nX /t/d\n", "a /t/f\na /t/d/f\n" },
	{ "d /t 0755 - - 0\nX /t/f\n", "k /t/f\na /t/g\n" },
	{ "d /t 0755 - - 0\nx /t/d\nX /t/d/e\n", "k /t/d/f\na /t/d/e/f\n" },
	{ "d /t 0755 - - 0\nd /t/d 0755 - - -\n", "a /t/f\nk /t/d/f\na /t/e/f\n" },
	{ "d /t 0755 - - 0\nd /t/d 0755 - - -\nX /t/d/e\n", "k /t/d/f\na /t/d/e/f\n" },
	{ "d /t/d 0755 - - -\nd /t 0755 - - 0\nX /t/d/e\n", "k /t/d/f\nk /t/d/e/f\n" },
	{ "d /t 0755 - - 0\nd /t/d 0755 - - -\nX /t/*\n", "k /t/d/f\nk /t/f\n" },
	{ "d /t 0755 - - -\nd /t/d 0755 - - 0\nX /t/[de]\n", "a /t/d/f\na /t/e/f\nk /t/f\n" },
	{ "d /t 0755 - - -\n", "k /t/f\n" },
	{ "e /t/* 0755 - - 0\n", "k /t/f\na /t/d/f\na /t/d/e/f\n" },
	{ "e /t/{d,q} 0755 - - 0\n", "k /t/f\na /t/d/f\nk /t/e/f\n" },
	{ "d /t 0755 - - ~0\n", "k /t/f\na /t/d/f\na /t/d/e/f\n" },
	{ "d! /t 0755 - - 0\n", "k /t/f\n" },
	{ "q /t 0755 - - 0\nv /u 0755 - - 0\n", "a /t/f\na /u/f\n" },
	{ "R /t/d\n", "k /t/f\nb /t/d/f\nb /t/d/e/f\n" },
	{ "R! /t/d\n", "k /t/f\nb /t/d/f\n" },
	{ "R /t/d*\n", "b /t/d/f\nb /t/dd/f\nk /t/e/f\n" },
	{ "R /t/*\n", "b /t/f\nb /t/d/f\nk /t/.f\n" },
	{ "R /t/{d,e/{x,f}}\n", "b /t/d/f\nb /t/e/f\nk /t/f\nk /t/e/g\n" },
	{ "r /t/f\n", "b /t/f\nk /t/g\n" },
	{ "r /t/[fg]\n", "b /t/f\nb /t/g\nk /t/h\n" },
	{ "r /t/*\n", "b /t/f\nk /t/d/f\n" },
	{ "D \"/t/with blank\"\n", "b /t/with blank/f\nk /t/with/f\n" },
	{ "D '/t/it'\n", "b /t/it/f\n" },
	{ "D /t//d/\n", "b /t/d/f\nk /t/f\n" },
	{ "D %T/d\nR %%\nR /%%\n", "b /tmp/d/f\nb /%/f\n" },
	{ "D /t - - - nonsense\nD relative\nnonsense /t\nD\n", "k /t/f\n" },
	{ "D /t \"unfinished\nD /u\n", "k /t/f\nb /u/f\n" },
	{ "r /t/f\nd /t 0755 - - 0\n", "b /t/f\na /t/g\n" },
	{ "d /t 0755 - - 0\nz /t/f 0644\n", "k /t/f\na /t/g\n" },
	{ "d /t 0755 - - abmABM:0\n", "a /t/f\n" },
};

/* Calls with each path and its fate. */
static void for_each_fate(const struct fate_case *c,
                          void (*call)(struct scene *s, const struct fate_case *c, char fate,
                                       const char *path),
                          struct scene *s)
{
	char *fates = strdup(c->fates), *save = NULL;

	for (char *line = strtok_r(fates, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		call(s, c, line[0], line + 2);
	free(fates);
}

static void compare_fate(struct scene *s, const struct fate_case *c, char fate, const char *path)
{
	char *text = answer(&s->ctx, path);

	if (text[0] != (fate == 'k' ? 'n' : fate))
		fail_msg("%s is '%s', not '%c', with:\n%s", path, text, fate, c->conf);
	free(text);
}

static void fates(void **state)
{
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(fate_cases) / sizeof(fate_cases[0]); i++) {
		tree_put(s->dir, "etc/tmpfiles.d/a.conf", fate_cases[i].conf);
		for_each_fate(&fate_cases[i], compare_fate, s);
	}
}

/* The same table put to systemd-tmpfiles: the files are made, then it is run on them. */
static bool run_tmpfiles(const struct scene *s, const char *args)
{
	char command[1024];

	(void)snprintf(command, sizeof(command), "systemd-tmpfiles --root='%s' %s >/dev/null 2>&1",
	               s->dir, args);
	return system(command) != -1; // NOLINT(cert-env33-c): asks the program that is imitated
}

static void make_file(struct scene *s, const struct fate_case *c, char fate, const char *path)
{
	(void)c;
	(void)fate;
	tree_put(s->dir, path + 1, "x");
}

static bool is_there(const struct scene *s, const char *path)
{
	char *full = tree_path(s->dir, path + 1);
	bool there = access(full, F_OK) == 0;

	free(full);
	return there;
}

static void assert_cleaned(struct scene *s, const struct fate_case *c, char fate, const char *path)
{
	/* what goes at boot may go by age as well */
	if (fate != 'b' && is_there(s, path) != (fate == 'k'))
		fail_msg("systemd-tmpfiles --clean disagrees about %s with:\n%s", path, c->conf);
}

static void assert_removed(struct scene *s, const struct fate_case *c, char fate, const char *path)
{
	if (is_there(s, path) != (fate != 'b'))
		fail_msg("systemd-tmpfiles --remove disagrees about %s with:\n%s", path, c->conf);
}

static void systemd_agrees(void **state)
{
	struct scene *s = *state;

	if (system("command -v systemd-tmpfiles >/dev/null 2>&1") != 0) { // NOLINT(cert-env33-c)
		print_message("systemd-tmpfiles is not installed\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(fate_cases) / sizeof(fate_cases[0]); i++) {
		const struct fate_case *c = &fate_cases[i];

		tree_put(s->dir, "etc/tmpfiles.d/a.conf", c->conf);
		for_each_fate(c, make_file, s);
		assert_true(run_tmpfiles(s, "--clean"));
		for_each_fate(c, assert_cleaned, s);
		for_each_fate(c, make_file, s);
		assert_true(run_tmpfiles(s, "--remove --boot --exclude-prefix=/dev"));
		for_each_fate(c, assert_removed, s);
		(void)teardown(state);
		(void)setup(state);
		s = *state;
	}
}

static void specifiers_come_from_the_root(void **state)
{
	struct scene *s = *state;

	tree_put(s->dir, "proc/sys/kernel/random/boot_id",
	         "11111111-2222-3333-4444-555555555555\n");
	tree_put(s->dir, "proc/sys/kernel/hostname", "node7.example.org\n");
	tree_put(s->dir, "proc/sys/kernel/osrelease", "6.1.0-9\n");
	tree_put(s->dir, "etc/machine-id", "abc\n");
	tree_put(s->dir, "etc/os-release", "NAME=\"Debian\"\nID=debian\nVERSION_ID=\"12\"\n");
	tree_put(s->dir, "etc/tmpfiles.d/a.conf",
	         "D /1/%b\nD /2/%H\nD /3/%l\nD /4/%v\nD /5/%m\n"
	         "D /6/%o-%w\nD /7/%y\nD /8/%W\nD /9/%\nD %S/d\n");
	assert_answer(s, "/var/lib/d/f", "boot /etc/tmpfiles.d/a.conf:10");
	assert_answer(s, "/1/11111111222233334444555555555555/f", "boot /etc/tmpfiles.d/a.conf:1");
	assert_answer(s, "/2/node7.example.org/f", "boot /etc/tmpfiles.d/a.conf:2");
	assert_answer(s, "/3/node7/f", "boot /etc/tmpfiles.d/a.conf:3");
	assert_answer(s, "/4/6.1.0-9/f", "boot /etc/tmpfiles.d/a.conf:4");
	assert_answer(s, "/5/abc/f", "boot /etc/tmpfiles.d/a.conf:5");
	assert_answer(s, "/6/debian-12/f", "boot /etc/tmpfiles.d/a.conf:6");
	assert_answer(s, "/7/%y/f", "never");
	assert_answer(s, "/8/f", "never");
	assert_answer(s, "/9/f", "never");
}

static void odd_lines(void **state)
{
	struct scene *s = *state;

	/* the service at boot leaves /dev to another one, which removes nothing */
	tree_put(s->dir, "etc/tmpfiles.d/a.conf",
	         "D /dev/shm/x\nD /var/run/y\nd /t - - - infinity\nd / - - - 5d\n");
	assert_answer(s, "/dev/shm/x/f", "never");
	assert_answer(s, "/home/f", "age 5d /etc/tmpfiles.d/a.conf:4");
	assert_answer(s, "/run/y/f", "boot /etc/tmpfiles.d/a.conf:2");
	assert_answer(s, "/t/f", "never");
	/* as tmpfiles.d(5) says; systemd 252 itself takes the backslash for a mere quote */
	tree_put(s->dir, "etc/tmpfiles.d/a.conf",
	         "D /t/with\\x20blank\nD /t/\\141\\\\\nD /u/\\q\nD /v/\\x4\nD /w\\");
	assert_answer(s, "/t/with blank/f", "boot /etc/tmpfiles.d/a.conf:1");
	assert_answer(s, "/t/a\\/f", "boot /etc/tmpfiles.d/a.conf:2");
	assert_answer(s, "/u/q/f", "never");
	assert_answer(s, "/v/x4/f", "never");
	assert_answer(s, "/w/f", "never");
	/* more alternatives than anybody writes: given up, quickly */
	tree_put(s->dir, "etc/tmpfiles.d/a.conf",
	         "R /{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"
	         "{a,b}{a,b}{a,b}{a,b}{a,b}\nR /{a,b\nR /}a{\n");
	assert_answer(s, "/bbbbbbbbbbbbbbbbbbbb", "never");
	assert_answer(s, "/{a,b", "boot /etc/tmpfiles.d/a.conf:2");
}

static void no_configuration_no_danger(void **state)
{
	struct scene *s = *state;

	assert_answer(s, "/tmp/x", "never");
	tree_put_bytes(s->dir, "etc/tmpfiles.d/a.conf", "D /t\0 x\nD /u\n", 13);
	assert_answer(s, "/t/f", "never");
	assert_answer(s, "/u/f", "boot /etc/tmpfiles.d/a.conf:2");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(debian_12_empties_tmp_at_boot),
		T(upstream_cleans_by_age),
		T(files_of_one_name_shadow_each_other),
		T(the_first_owner_of_a_path_counts),
		T(fates),
		T(systemd_agrees),
		T(specifiers_come_from_the_root),
		T(odd_lines),
		T(no_configuration_no_danger),
	};

	return cmocka_run_group_tests_name("tmpfiles", tests, NULL, NULL);
}
