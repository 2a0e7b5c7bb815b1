#include "support/tree.h"
#include "survey/mounts.h"
#include "sys/root.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct table {
	char *dir;
	struct dbt_root root;
	struct dbt_ctx ctx;
	struct dbt_mounts *mounts;
};

static int table_read(struct table *t, const char *text, struct dbt_err *err)
{
	t->dir = tree_new();
	tree_put(t->dir, "proc/self/mountinfo", text);
	assert_int_equal(dbt_root_open(&t->root, t->dir), 0);
	dbt_ctx_init(&t->ctx, &t->root);
	t->mounts = NULL;
	return dbt_mounts_new(&t->ctx, &t->mounts, err);
}

static void table_release(struct table *t)
{
	dbt_mounts_free(t->mounts);
	dbt_root_close(&t->root);
	tree_remove(t->dir);
	free(t->dir);
}

static void fields_are_decoded(void **state)
{
	const struct dbt_mount *m;
	struct dbt_err err;
	struct table t;

	(void)state;
	assert_int_equal(table_read(&t,
	                            "36 35 98:0 /mnt1\\040x /mnt\\0402 rw,noatime master:1 - ext3 "
	                            "/dev/root\\011x ro,errors=continue\n",
	                            &err),
	                 0);
	assert_int_equal(dbt_mounts_count(t.mounts), 1);
	m = dbt_mounts_by_id(t.mounts, 36);
	assert_non_null(m);
	assert_ptr_equal(m, dbt_mounts_at(t.mounts, 0));
	assert_null(dbt_mounts_at(t.mounts, 1));
	assert_null(dbt_mounts_by_id(t.mounts, 35));
	assert_int_equal(m->parent_id, 35);
	assert_string_equal(m->target, "/mnt 2");
	assert_string_equal(m->root, "/mnt1 x");
	assert_string_equal(m->source, "/dev/root\tx");
	assert_string_equal(m->fstype, "ext3");
	assert_string_equal(m->vfs_options, "rw,noatime");
	assert_string_equal(m->fs_options, "ro,errors=continue");
	assert_true(m->read_only);
	table_release(&t);
}

static void garbage_is_skipped_and_counted(void **state)
{
	struct dbt_err err;
	struct table t;

	(void)state;
	assert_int_equal(table_read(&t,
	                            "no mount table\n\n20 1 8:0 / / rw - ext4 /dev/sda rw\n"
	                            "21 garbage\n22 20 8:1 / /x rw - ext4 /dev/sdb rw\n",
	                            &err),
	                 0);
	assert_int_equal(dbt_mounts_count(t.mounts), 2);
	assert_true(dbt_mounts_garbled(t.mounts) >= 2);
	table_release(&t);
}

static void nothing_readable_is_an_error(void **state)
{
	static const char *const texts[] = { "", "\n", "garbage\nmore\n", "1 2 3" };
	struct dbt_err err;
	struct table t;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_true(table_read(&t, texts[i], &err) < 0);
		assert_non_null(strstr(err.text, "mount table"));
		table_release(&t);
	}
}

/* Each path leads to the mount that the kernel would take. */
static void paths_lead_where_the_kernel_goes(void **state)
{
	static const struct {
		const char *path;
		uint64_t id;
	} cases[] = {
		{ "/", 20 },       { "/x", 20 },          { "/data", 22 },   { "/data/", 22 },
		{ "/data/x", 22 }, { "/database", 20 },   { "/over/x", 24 }, { "/hide/in/x", 26 },
		{ "/hide", 26 },   { "/data/sub/x", 27 },
	};
	struct dbt_err err;
	struct table t;

	(void)state;
	assert_int_equal(table_read(&t,
	                            "20 1 8:0 / / rw - ext4 /dev/sda rw\n"
	                            "22 20 8:1 / /data rw - ext4 /dev/sdb rw\n"
	                            "23 20 8:2 / /over rw - ext4 /dev/sdc rw\n"
	                            "24 23 8:3 / /over rw - ext4 /dev/sdd rw\n"
	                            "25 20 8:4 / /hide/in rw - ext4 /dev/sde rw\n"
	                            "26 20 8:5 / /hide rw - ext4 /dev/sdf rw\n"
	                            "27 22 8:6 / /data/sub rw - ext4 /dev/sdg rw\n",
	                            &err),
	                 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (dbt_mounts_by_path(t.mounts, cases[i].path)->id != cases[i].id)
			fail_msg("%s leads to %lu", cases[i].path,
			         (unsigned long)dbt_mounts_by_path(t.mounts, cases[i].path)->id);
	table_release(&t);
}

static void a_table_of_circles_ends(void **state)
{
	struct dbt_err err;
	struct table t;

	(void)state;
	assert_int_equal(table_read(&t,
	                            "20 21 8:0 / / rw - ext4 /dev/sda rw\n"
	                            "21 20 8:1 / / rw - ext4 /dev/sdb rw\n"
	                            "30 30 8:2 / / rw - ext4 /dev/sdc rw\n",
	                            &err),
	                 0);
	(void)dbt_mounts_by_path(t.mounts, "/x");
	table_release(&t);
}

static void options_have_values(void **state)
{
	static const char options[] = "rw,lowerdir+=/a,lowerdir+=/b,upperdir=/u:x,noval";
	char *value = NULL;

	(void)state;
	assert_int_equal(dbt_mount_option(options, "upperdir", 0, &value), 0);
	assert_string_equal(value, "/u:x");
	free(value);
	assert_int_equal(dbt_mount_option(options, "lowerdir+", 1, &value), 0);
	assert_string_equal(value, "/b");
	free(value);
	assert_true(dbt_mount_option(options, "lowerdir+", 2, &value) < 0);
	assert_true(dbt_mount_option(options, "lowerdir", 0, &value) < 0);
	assert_true(dbt_mount_option(options, "noval", 0, &value) < 0);
	assert_true(dbt_mount_option(NULL, "x", 0, &value) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_decoded),
		cmocka_unit_test(garbage_is_skipped_and_counted),
		cmocka_unit_test(nothing_readable_is_an_error),
		cmocka_unit_test(paths_lead_where_the_kernel_goes),
		cmocka_unit_test(a_table_of_circles_ends),
		cmocka_unit_test(options_have_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
