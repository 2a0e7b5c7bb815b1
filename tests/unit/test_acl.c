#include "support/tree.h"
#include "sys/acl.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	ALICE = 12001,
	BOB = 12002,
	CAROL = 12003,
	LAB = 12101,
	STAFF = 12102,
	GUESTS = 12103,
	NOBODY = 12999,
};

enum { NONE = -1 };

/* ALICE:LAB; bits is the mode, entries the list (n 0: none). */
struct acl_case {
	uint32_t bits;
	struct dbt_acl_entry entries[8];
	size_t n;
	struct {
		int uid, gid;
		unsigned want;
		bool allowed;
	} asked[10];
	size_t n_asked;
};

#define R DBT_ACL_READ
#define X DBT_ACL_EXEC

static const struct acl_case cases[] = {
	{ .bits = 0640,
	  .asked = { { ALICE, NONE, R, true },
	             { ALICE, NONE, R | X, false },
	             { NONE, LAB, R, true },
	             { BOB, LAB, R, true },
	             { BOB, NONE, R, false },
	             { NONE, NONE, R, false } },
	  .n_asked = 6 },
	/* the class decides, not the best one */
	{ .bits = 0044,
	  .asked = { { ALICE, LAB, R, false }, { NONE, LAB, R, true }, { NONE, NONE, R, true } },
	  .n_asked = 3 },
	{ .bits = 0604,
	  .asked = { { NONE, LAB, R, false }, { NONE, STAFF, R, true } },
	  .n_asked = 2 },
	/* the mask limits all but owner and others; a named user without rights gets no others' */
	{ .bits = 0614,
	  .entries = { { DBT_ACL_USER_OBJ, 6, UINT32_MAX },
	               { DBT_ACL_USER, 5, BOB },
	               { DBT_ACL_USER, 0, CAROL },
	               { DBT_ACL_GROUP_OBJ, 4, UINT32_MAX },
	               { DBT_ACL_GROUP, 5, STAFF },
	               { DBT_ACL_MASK, 1, UINT32_MAX },
	               { DBT_ACL_OTHER, 4, UINT32_MAX } },
	  .n = 7,
	  .asked = { { BOB, NONE, X, true },
	             { BOB, NONE, R, false },
	             { CAROL, NONE, R, false },
	             { NONE, STAFF, X, true },
	             { NONE, STAFF, R, false },
	             { NONE, LAB, R, false },
	             { NONE, GUESTS, R, true },
	             { ALICE, NONE, R, true },
	             { NOBODY, NONE, R, true } },
	  .n_asked = 9 },
	/* one of several matching groups is enough */
	{ .bits = 0770,
	  .entries = { { DBT_ACL_USER_OBJ, 7, UINT32_MAX },
	               { DBT_ACL_GROUP_OBJ, 0, UINT32_MAX },
	               { DBT_ACL_GROUP, 5, LAB },
	               { DBT_ACL_MASK, 7, UINT32_MAX },
	               { DBT_ACL_OTHER, 0, UINT32_MAX } },
	  .n = 5,
	  .asked = { { NONE, LAB, R | X, true }, { BOB, LAB, 2, false } },
	  .n_asked = 2 },
};

static void put_entries(const struct dbt_acl_entry *entries, size_t n, unsigned char *out)
{
	memset(out, 0, 4);
	out[0] = 2;
	for (size_t i = 0; i < n; i++) { /* little-endian */
		unsigned char *p = out + 4 + 8 * i;

		p[0] = (unsigned char)entries[i].tag;
		p[1] = (unsigned char)(entries[i].tag >> 8);
		p[2] = (unsigned char)entries[i].perm;
		p[3] = (unsigned char)(entries[i].perm >> 8);
		for (size_t b = 0; b < 4; b++)
			p[4 + b] = (unsigned char)(entries[i].id >> (8 * b));
	}
}

static struct dbt_acl acl_of(const struct acl_case *c)
{
	unsigned char data[128];
	struct dbt_acl acl = { 0 };

	if (c->n == 0)
		return acl;
	put_entries(c->entries, c->n, data);
	assert_int_equal(dbt_acl_parse(data, 4 + 8 * c->n, &acl), 0);
	assert_int_equal(acl.n, c->n);
	return acl;
}

static void the_check_is_the_kernels(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct acl_case *c = &cases[i];
		const struct dbt_ident id = { .mode = S_IFREG | c->bits, .uid = ALICE, .gid = LAB };
		struct dbt_acl acl = acl_of(c);

		for (size_t k = 0; k < c->n_asked; k++) {
			const struct dbt_acl_subject s = {
				.has_uid = c->asked[k].uid != NONE,
				.uid = (uint32_t)c->asked[k].uid,
				.has_gid = c->asked[k].gid != NONE,
				.gid = (uint32_t)c->asked[k].gid,
			};

			if (dbt_acl_allows(&id, &acl, &s, c->asked[k].want) != c->asked[k].allowed)
				fail_msg("case %zu, question %zu", i, k);
		}
		dbt_acl_release(&acl);
	}
}

/* The same questions put to the kernel: a child with that user and group asks access(2). */
static void the_kernel_agrees(void **state)
{
	char *dir, *file;

	(void)state;
	if (geteuid() != 0) {
		print_message("becoming other users needs root\n");
		skip();
	}
	dir = tree_new();
	file = tree_path(dir, "f");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct acl_case *c = &cases[i];
		unsigned char data[128];

		tree_put(dir, "f", "x");
		assert_int_equal(chown(file, ALICE, LAB), 0);
		assert_int_equal(chmod(file, c->bits), 0);
		put_entries(c->entries, c->n, data);
		if (c->n > 0)
			assert_int_equal(setxattr(file, DBT_ACL_ACCESS, data, 4 + 8 * c->n, 0), 0);
		for (size_t k = 0; k < c->n_asked; k++) {
			int uid = c->asked[k].uid, gid = c->asked[k].gid, status;
			pid_t pid = fork();

			if (pid == 0) {
				if (setgroups(0, NULL) < 0 ||
				    setgid((gid_t)(gid == NONE ? NOBODY : gid)) < 0 ||
				    setuid((uid_t)(uid == NONE ? NOBODY : uid)) < 0)
					_exit(9);
				_exit(access(file, (int)c->asked[k].want) == 0);
			}
			assert_int_equal(waitpid(pid, &status, 0), pid);
			if (WEXITSTATUS(status) != c->asked[k].allowed)
				fail_msg("the kernel disagrees: case %zu, question %zu", i, k);
		}
		assert_int_equal(unlink(file), 0);
	}
	tree_remove(dir);
	free(dir);
	free(file);
}

static void for_everybody(void **state)
{
	static const struct {
		uint32_t bits;
		uint16_t named, mask;
		bool all;
	} everybody[] = {
		{ 0444, 0, 0, true },  { 0644, 0, 0, true },  { 0640, 0, 0, false },
		{ 0604, 0, 0, false }, { 0044, 0, 0, false }, { 0644, 4, 4, true },
		{ 0644, 1, 7, false }, { 0614, 7, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(everybody) / sizeof(everybody[0]); i++) {
		const struct dbt_ident id = { .mode = S_IFREG | everybody[i].bits };
		struct dbt_acl_entry entries[] = {
			{ DBT_ACL_USER_OBJ, 6, UINT32_MAX },
			{ DBT_ACL_USER, everybody[i].named, BOB },
			{ DBT_ACL_GROUP_OBJ, 4, UINT32_MAX },
			{ DBT_ACL_MASK, everybody[i].mask, UINT32_MAX },
			{ DBT_ACL_OTHER, 4, UINT32_MAX },
		};
		const struct dbt_acl acl = { .items = entries, .n = everybody[i].mask ? 5 : 0 };

		assert_int_equal(dbt_acl_allows_all(&id, &acl, DBT_ACL_READ), everybody[i].all);
	}
}

static void damaged_lists(void **state)
{
	static const unsigned char version3[] = { 3, 0, 0, 0 };
	static const unsigned char cut[] = { 2, 0, 0, 0, 1, 0, 6, 0, 255, 255 };
	struct dbt_acl acl = { 0 };

	(void)state;
	assert_int_equal(dbt_acl_parse("", 0, &acl), -EINVAL);
	assert_int_equal(dbt_acl_parse(version3, sizeof(version3), &acl), -EINVAL);
	assert_int_equal(dbt_acl_parse(cut, sizeof(cut), &acl), -EINVAL);
	assert_null(acl.items);
}

static void no_list_is_no_error(void **state)
{
	char *dir = tree_new();
	struct dbt_acl acl = { 0 };
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(dbt_acl_of_fd(fd, &acl), 0);
	assert_int_equal(acl.n, 0);
	assert_int_equal(dbt_acl_of_path(dir, &acl), 0);
	assert_int_equal(acl.n, 0);
	(void)close(fd);
	tree_remove(dir);
	assert_int_equal(dbt_acl_of_path(dir, &acl), -ENOENT);
	free(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_check_is_the_kernels),
		cmocka_unit_test(the_kernel_agrees),
		cmocka_unit_test(for_everybody),
		cmocka_unit_test(damaged_lists),
		cmocka_unit_test(no_list_is_no_error),
	};

	return cmocka_run_group_tests_name("acl", tests, NULL, NULL);
}
