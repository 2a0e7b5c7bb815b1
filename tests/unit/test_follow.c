/* A scan that looks behind the links of others: each database once, under the name where it lies, and an end in every
 * case. */
#include "support/samples.h"
#include "support/tree.h"
#include "survey/scan.h"
#include "sys/root.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct dbt_root live;
static struct dbt_ctx ctx;
static char *root;
static struct dbt_scan_result result;

static int setup(void **state)
{
	(void)state;
	root = tree_new();
	if (dbt_root_open(&live, NULL) < 0)
		return -1;
	dbt_ctx_init(&ctx, &live);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dbt_scan_result_release(&result);
	tree_remove(root);
	free(root);
	dbt_root_close(&live);
	return 0;
}

static void scan_with(const char *path, const struct dbt_scan_opts *opts)
{
	struct dbt_err err = { 0 };
	char *full = tree_path(root, path);

	dbt_scan_result_release(&result);
	if (dbt_scan(&ctx, full, opts, &result, &err) < 0)
		fail_msg("%s", err.text);
	free(full);
}

static void follow(const char *path)
{
	const struct dbt_scan_opts opts = { .follow = true };

	scan_with(path, &opts);
}

static void link_to(const char *path, const char *target)
{
	char *full = tree_path(root, target);

	tree_symlink(root, path, full);
	free(full);
}

static void assert_only(const char *path)
{
	char *full = tree_path(root, path);

	if (result.n_databases > 1)
		print_message("%s and %s\n", result.databases[0].path, result.databases[1].path);
	assert_int_equal(result.n_databases, 1);
	assert_string_equal(result.databases[0].path, full);
	assert_int_equal(result.troubles_total, 0);
	free(full);
}

static void a_directory_outside_is_walked_where_it_lies(void **state)
{
	(void)state;
	sample_write(root, "outside/deep/x.dmnd", sample_diamond(10));
	link_to("in/a", "outside");
	link_to("in/b", "outside/deep"); /* part of the other */
	link_to("in/c", "outside");
	follow("in");
	assert_only("outside/deep/x.dmnd");
	assert_false(result.databases[0].followed);
	scan_with("in", NULL);
	assert_int_equal(result.n_databases, 0);
}

/* One that is reached first, then the one above it. */
static void a_part_is_not_walked_again(void **state)
{
	(void)state;
	sample_write(root, "outside/deep/x.dmnd", sample_diamond(10));
	sample_write(root, "outside/y.dmnd", sample_diamond(10));
	link_to("in/1", "outside/deep");
	link_to("outside/deep/up", "outside");
	follow("in");
	assert_int_equal(result.n_databases, 2);
	assert_int_equal(result.files_seen, 4); /* each name once, the links too */
}

static void circles_end(void **state)
{
	(void)state;
	sample_write(root, "in/x.dmnd", sample_diamond(10));
	link_to("in/up", "");
	link_to("in/self", "in");
	link_to("other/back", "in");
	link_to("in/other", "other");
	follow("in");
	assert_only("in/x.dmnd");
}

static void a_link_in_a_circle_is_told(void **state)
{
	(void)state;
	link_to("in/one", "in/two");
	link_to("in/two", "in/one");
	tree_symlink(root, "in/nowhere", "/missing/file.dmnd");
	follow("in");
	assert_int_equal(result.n_databases, 0);
	assert_int_equal(result.troubles_total, 2);
	assert_int_equal(result.troubles[0].code, -ELOOP);
}

static void a_file_behind_a_link_is_looked_at(void **state)
{
	(void)state;
	sample_write(root, "outside/x.dmnd", sample_diamond(10));
	link_to("in/y.dmnd", "outside/x.dmnd");
	follow("in");
	assert_only("in/y.dmnd");
	assert_true(result.databases[0].followed);
	assert_true(result.databases[0].members[0].followed);
	assert_false(result.databases[0].members[0].link_of_database);
	assert_int_equal(result.databases[0].size_bytes, 96 + 10 * 16 + 11 * 16);
}

static void the_start_may_be_a_link(void **state)
{
	const struct dbt_scan_opts plain = { 0 };

	(void)state;
	sample_write(root, "outside/x.dmnd", sample_diamond(10));
	link_to("in/y.dmnd", "outside/x.dmnd");
	follow("in/y.dmnd");
	assert_only("outside/x.dmnd");
	scan_with("in/y.dmnd", &plain);
	assert_int_equal(result.n_databases, 0);
	link_to("in/dir", "outside");
	scan_with("in/dir", &plain);
	assert_only("outside/x.dmnd");
}

/* Whichever of the two comes first. */
static void a_file_is_shown_rather_than_its_link(void **state)
{
	char *link, expected[600];

	(void)state;
	sample_write(root, "in/m/x.dmnd", sample_diamond(10));
	link_to("in/a/x.dmnd", "in/m/x.dmnd");
	follow("in");
	assert_only("in/m/x.dmnd");
	link = tree_path(root, "in/a/x.dmnd");
	(void)snprintf(expected, sizeof(expected), "linked also as '%s'", link);
	assert_string_equal(result.databases[0].note, expected);
	free(link);
}

/* A set whose large file was put elsewhere by hand. */
static void a_set_with_a_linked_member_is_whole(void **state)
{
	char *hash;

	(void)state;
	sample_kraken2_dir(root, "in/db");
	sample_kraken2_dir(root, "outside");
	hash = tree_path(root, "in/db/hash.k2d");
	assert_int_equal(unlink(hash), 0);
	free(hash);
	link_to("in/db/hash.k2d", "outside/hash.k2d");
	tree_symlink(root, "in/db/inspect.txt", "opts.k2d"); /* a second name beside it */
	follow("in");
	assert_only("in/db");
	assert_true(result.databases[0].complete);
	assert_true(result.databases[0].followed);
	for (size_t i = 0; i < result.databases[0].n_members; i++) {
		const struct dbt_member *m = &result.databases[0].members[i];

		assert_int_equal(m->followed, strcmp(m->name, "hash.k2d") == 0);
		assert_int_equal(m->link_of_database, strcmp(m->name, "inspect.txt") == 0);
	}
}

static void excluded_is_excluded_by_either_name(void **state)
{
	static const char *const link[] = { "skip" }, *const real[] = { "outside" };
	struct dbt_scan_opts opts = { .follow = true, .exclude = link, .n_exclude = 1 };

	(void)state;
	sample_write(root, "outside/x.dmnd", sample_diamond(10));
	link_to("in/skip", "outside");
	scan_with("in", &opts);
	assert_int_equal(result.n_databases, 0);
	opts.exclude = real;
	scan_with("in", &opts);
	assert_int_equal(result.n_databases, 0);
	opts.n_exclude = 0;
	scan_with("in", &opts);
	assert_only("outside/x.dmnd");
}

static void other_filesystems_on_request_only(void **state)
{
	struct dbt_scan_opts opts = { .follow = true, .one_file_system = true };
	char path[] = "/dev/shm/dbtier-follow-XXXXXX";

	(void)state;
	if (!mkdtemp(path))
		skip();
	tree_symlink(root, "in/shm", path);
	sample_write(path, "x.dmnd", sample_diamond(10));
	scan_with("in", &opts);
	assert_int_equal(result.n_databases, 0);
	opts.one_file_system = false;
	scan_with("in", &opts);
	assert_int_equal(result.n_databases, 1);
	tree_remove(path);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_directory_outside_is_walked_where_it_lies),
		TEST(a_part_is_not_walked_again),
		TEST(circles_end),
		TEST(a_link_in_a_circle_is_told),
		TEST(a_file_behind_a_link_is_looked_at),
		TEST(the_start_may_be_a_link),
		TEST(a_file_is_shown_rather_than_its_link),
		TEST(a_set_with_a_linked_member_is_whole),
		TEST(excluded_is_excluded_by_either_name),
		TEST(other_filesystems_on_request_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
