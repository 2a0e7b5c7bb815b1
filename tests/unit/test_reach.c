#include "support/tree.h"
#include "sys/acl.h"
#include "sys/reach.h"
#include "sys/root.h"

#include <endian.h>
#include <errno.h>
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

enum {
	ALICE = 12001,
	BOB = 12002,
	LAB = 12101,
	STAFF = 12102,
};

/* DIR/srv/db/psc.dmnd and DIR/fast, with the passwd and group files of DIR as names. */
struct scene {
	char *dir, *file, *target;
	struct dbt_root root;
	struct dbt_ctx ctx;
};

static void give(const struct scene *s, const char *path, uid_t uid, gid_t gid, mode_t mode)
{
	char *full = tree_path(s->dir, path);

	assert_int_equal(chown(full, uid, gid), 0);
	assert_int_equal(chmod(full, mode), 0);
	free(full);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	*state = s;
	if (geteuid() != 0)
		return 0;
	s->dir = tree_new();
	tree_put(s->dir, "srv/db/psc.dmnd", "x");
	tree_mkdir(s->dir, "fast", 0755);
	tree_put(s->dir, "etc/passwd", "root:x:0:0::/:/bin/sh\nalice:x:12001:12101::/:/bin/sh\n");
	tree_put(s->dir, "etc/group", "root:x:0:\nlab:x:12101:alice\n");
	tree_put(s->dir, "proc/sys/fs/protected_symlinks", "1\n");
	s->file = tree_path(s->dir, "srv/db/psc.dmnd");
	s->target = tree_path(s->dir, "fast");
	assert_int_equal(dbt_root_open(&s->root, s->dir), 0);
	dbt_ctx_init(&s->ctx, &s->root);
	give(s, "srv/db/psc.dmnd", ALICE, LAB, 0644);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->dir) {
		dbt_root_close(&s->root);
		tree_remove(s->dir);
	}
	free(s->dir);
	free(s->file);
	free(s->target);
	free(s);
	return 0;
}

static struct scene *scene(void **state)
{
	if (geteuid() != 0) {
		print_message("changing owners needs root\n");
		skip();
	}
	return *state;
}

/* fmt: with %1$s for the scene's directory; NULL: no problem. */
static void assert_problem_to(const struct scene *s, const char *target, const char *expected)
{
	struct dbt_err err = { 0 };
	struct dbt_at at;
	char *problem = NULL, *short_problem, *at_dir;
	size_t len = strlen(s->dir);

	assert_int_equal(dbt_at_resolve(&s->ctx, s->file, &at, &err), 0);
	assert_int_equal(dbt_reach_compare(&s->ctx, &at, target, &problem, &err), 0);
	dbt_at_release(&at);
	if (!expected) {
		if (problem)
			fail_msg("unexpected: %s", problem);
		return;
	}
	assert_non_null(problem);
	/* the scene's directory is left out of the comparison */
	short_problem = strdup(problem);
	while ((at_dir = strstr(short_problem, s->dir)))
		memmove(at_dir, at_dir + len, strlen(at_dir + len) + 1);
	assert_string_equal(short_problem, expected);
	free(short_problem);
	free(problem);
}

static void assert_problem(const struct scene *s, const char *expected)
{
	assert_problem_to(s, s->target, expected);
}

static void an_open_target_suits_all(void **state)
{
	struct scene *s = scene(state);

	assert_problem(s, NULL);
	give(s, "fast", 0, 0, 0711);
	assert_problem(s, NULL);
	give(s, "fast", 0, 0, 01777);
	assert_problem(s, NULL);
}

static void others_are_shut_out(void **state)
{
	struct scene *s = scene(state);

	give(s, "fast", 0, 0, 0700);
	assert_problem(s, "others can read '/srv/db/psc.dmnd' but not enter '/fast' (mode 0700)");
	give(s, "fast", ALICE, LAB, 0750);
	assert_problem(s, "others can read '/srv/db/psc.dmnd' but not enter '/fast' (mode 0750)");
}

static void the_group_is_shut_out(void **state)
{
	struct scene *s = scene(state);

	give(s, "srv/db/psc.dmnd", ALICE, LAB, 0640);
	give(s, "fast", 0, STAFF, 0750);
	assert_problem(s,
	               "group 'lab' can read '/srv/db/psc.dmnd' but not enter '/fast' (mode 0750)");
	give(s, "fast", 0, LAB, 0750);
	assert_problem(s, NULL);
	give(s, "fast", ALICE, ALICE, 0700);
	assert_problem(s,
	               "group 'lab' can read '/srv/db/psc.dmnd' but not enter '/fast' (mode 0700)");
}

static void the_owner_is_shut_out(void **state)
{
	struct scene *s = scene(state);

	give(s, "srv/db/psc.dmnd", ALICE, LAB, 0600);
	give(s, "fast", 0, STAFF, 0750);
	assert_problem(s,
	               "its owner 'alice' can read '/srv/db/psc.dmnd' but not enter '/fast' (mode "
	               "0750)");
	give(s, "fast", ALICE, STAFF, 0700);
	assert_problem(s, NULL);
	give(s, "fast", 0, STAFF, 0711);
	assert_problem(s, NULL);
}

/* Whoever cannot get to the source today has nothing to lose. */
static void only_readers_of_today_count(void **state)
{
	struct scene *s = scene(state);

	give(s, "srv/db", ALICE, LAB, 0750);
	give(s, "fast", 0, LAB, 0750);
	assert_problem(s, NULL);
	give(s, "srv/db", 0, 0, 0755);
	give(s, "srv/db/psc.dmnd", 0, 0, 0640); /* root and its group */
	give(s, "fast", 0, 0, 0700);
	assert_problem(s, NULL);
}

/* The way to the source, not the file, says which group reads: file 0644, directory 0750. */
static void groups_of_directories_count(void **state)
{
	struct scene *s = scene(state);

	give(s, "srv/db/psc.dmnd", ALICE, LAB, 0644);
	give(s, "srv/db", ALICE, STAFF, 0750);
	give(s, "fast", ALICE, LAB, 0750);
	assert_problem(s,
	               "group 12102 can read '/srv/db/psc.dmnd' but not enter '/fast' (mode 0750)");
	give(s, "fast", ALICE, STAFF, 0750);
	assert_problem(s, NULL);
}

static void grant(const struct scene *s, const char *path, unsigned user_perm, uint32_t user)
{
	const struct {
		uint16_t tag, perm;
		uint32_t id;
	} entries[] = {
		{ DBT_ACL_USER_OBJ, 7, UINT32_MAX },  { DBT_ACL_USER, (uint16_t)user_perm, user },
		{ DBT_ACL_GROUP_OBJ, 0, UINT32_MAX }, { DBT_ACL_MASK, 7, UINT32_MAX },
		{ DBT_ACL_OTHER, 0, UINT32_MAX },
	};
	unsigned char data[64] = { 2 };
	char *full = tree_path(s->dir, path);

	for (size_t i = 0; i < 5; i++) {
		uint16_t tag = htole16(entries[i].tag), perm = htole16(entries[i].perm);
		uint32_t id = htole32(entries[i].id);

		memcpy(data + 4 + 8 * i, &tag, 2);
		memcpy(data + 4 + 8 * i + 2, &perm, 2);
		memcpy(data + 4 + 8 * i + 4, &id, 4);
	}
	assert_int_equal(setxattr(full, DBT_ACL_ACCESS, data, 44, 0), 0);
	free(full);
}

static void access_lists_count(void **state)
{
	struct scene *s = scene(state);

	grant(s, "srv/db/psc.dmnd", 4, BOB);
	give(s, "fast", ALICE, LAB, 0700);
	grant(s, "srv/db/psc.dmnd", 4, BOB);
	assert_problem(s,
	               "user 12002 can read '/srv/db/psc.dmnd' but not enter '/fast' (mode 0700)");
	grant(s, "fast", 1, BOB);
	assert_problem(s, NULL);
	/* a list that shuts one out although the group bits (its mask) look open */
	grant(s, "fast", 0, BOB);
	assert_problem(s, "user 12002 can read '/srv/db/psc.dmnd' but not enter '/fast' (mode "
	                  "0770 with an access control list)");
}

static void a_target_that_is_not_there_yet(void **state)
{
	struct scene *s = scene(state);
	char *deep = tree_path(s->dir, "fast/a/b");

	assert_problem_to(s, deep, NULL);
	give(s, "fast", ALICE, LAB, 0700);
	assert_problem_to(s, deep,
	                  "others can read '/srv/db/psc.dmnd' but not enter '/fast' (mode 0700)");
	free(deep);
}

static void links_to_the_target_are_followed(void **state)
{
	struct scene *s = scene(state);
	char *link = tree_path(s->dir, "link");

	tree_mkdir(s->dir, "hidden", 0700);
	tree_mkdir(s->dir, "hidden/open", 0755);
	tree_symlink(s->dir, "link", "hidden/open");
	assert_problem_to(s, link,
	                  "others can read '/srv/db/psc.dmnd' but not enter '/hidden' (mode 0700)");
	free(link);
}

static void directories_are_sources_too(void **state)
{
	struct scene *s = scene(state);

	free(s->file);
	s->file = tree_path(s->dir, "srv/db");
	give(s, "srv/db", ALICE, LAB, 0754);
	give(s, "fast", ALICE, LAB, 0750);
	assert_problem(s, NULL); /* others may list it, not use it */
	give(s, "srv/db", ALICE, LAB, 0755);
	assert_problem(s, "others can read '/srv/db' but not enter '/fast' (mode 0750)");
}

static void links_in_sticky_directories(void **state)
{
	const char *problem =
		"others can read '/srv/db/psc.dmnd' but not follow a link there: '/srv/db' is "
		"sticky and writable for all (fs.protected_symlinks)";
	struct scene *s = scene(state);

	give(s, "srv/db", 0, 0, 01777);
	assert_problem(s, problem);
	give(s, "srv/db", 0, 0, 01775);
	assert_problem(s, NULL);
	give(s, "srv/db", 0, 0, 0777);
	assert_problem(s, NULL);
	give(s, "srv/db", ALICE, 0, 01777);
	assert_problem(s, NULL);
	give(s, "srv/db", 0, 0, 01777);
	give(s, "srv/db/psc.dmnd", ALICE, LAB, 0600);
	assert_problem(s, NULL);
	give(s, "srv/db/psc.dmnd", ALICE, LAB, 0644);
	tree_put(s->dir, "proc/sys/fs/protected_symlinks", "0\n");
	assert_problem(s, NULL);
}

static void a_way_that_cannot_be_looked_at(void **state)
{
	struct scene *s = scene(state);
	struct dbt_err err = { 0 };
	struct dbt_at at;
	char *problem = NULL;

	assert_int_equal(dbt_at_resolve(&s->ctx, s->file, &at, &err), 0);
	assert_int_equal(dbt_reach_compare(&s->ctx, &at, s->file, &problem, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "psc.dmnd"));
	assert_null(problem);
	dbt_at_release(&at);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_open_target_suits_all),
		T(others_are_shut_out),
		T(the_group_is_shut_out),
		T(the_owner_is_shut_out),
		T(only_readers_of_today_count),
		T(groups_of_directories_count),
		T(access_lists_count),
		T(a_target_that_is_not_there_yet),
		T(links_to_the_target_are_followed),
		T(directories_are_sources_too),
		T(links_in_sticky_directories),
		T(a_way_that_cannot_be_looked_at),
	};

	return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
