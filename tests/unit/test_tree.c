/* What is in a directory: the list of it, read back and damaged; the comparison, for every kind of change; copying,
 * and deleting by the list. */
#include "flow/tree.h"
#include "support/tree.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct dbt_root live;
static struct dbt_ctx ctx;
static char *dir, *list;
static int src, out; /* the directory, and the one that copies are made in */

/* --- a world --------------------------------------------------------------------------------------------- */

static void world_new(void)
{
	char *path;

	dir = tree_new();
	list = tree_path(dir, "list");
	tree_put(dir, "src/a", "some bytes");
	tree_put(dir, "src/sub/b\nc", "more bytes");
	tree_put(dir, "src/sub/deep/lock.mdb", "");
	tree_put(dir, "src/empty-file", "");
	tree_mkdir(dir, "src/empty", 0755);
	tree_symlink(dir, "src/sub/link", "../a");
	tree_mkdir(dir, "out", 0755);
	path = tree_path(dir, "src");
	src = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(path);
	path = tree_path(dir, "out");
	out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(path);
	assert_true(src >= 0 && out >= 0);
}

static void world_remove(void)
{
	close(src);
	close(out);
	tree_remove(dir);
	free(dir);
	free(list);
}

static void copy(struct dbt_tree_copied *ret)
{
	const struct dbt_tree_copy c = { .ctx = &ctx,
		                         .src = src,
		                         .dst_dirfd = out,
		                         .dst_name = "copy",
		                         .shown_src = "src",
		                         .shown_dst = "copy",
		                         .list = list,
		                         .token = "0123456789abcdef" };
	struct dbt_err err = { 0 };

	if (dbt_tree_copy(&c, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static int open_copy(void)
{
	int fd = openat(out, "copy", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static enum dbt_tree_is compare(int fd, enum dbt_tree_side side)
{
	struct dbt_err why = { 0 }, err = { 0 };
	enum dbt_tree_is is = DBT_TREE_CHANGED;

	if (dbt_tree_compare(&ctx, fd, list, side, "it", &is, &why, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(is == DBT_TREE_CHANGED,
	                 why.kind != DBT_ERR_NONE && is != DBT_TREE_TOUCHED);
	return is;
}

/* --- the list -------------------------------------------------------------------------------------------- */

static const struct dbt_tree_entry entries[] = {
	{ .kind = 'f',
	  .source = { .ino = UINT64_MAX,
	              .size_bytes = 7,
	              .mtime_ns = INT64_MIN,
	              .mode = S_IFREG | 04711 },
	  .copied = { .ino = 3, .ctime_ns = INT64_MAX },
	  .digest = { .set = true, .high = 1, .low = UINT64_MAX },
	  .path = "sub/a b\n\xff" },
	{ .kind = 'l',
	  .source = { .ino = 4, .mode = S_IFLNK | 0777 },
	  .digest = { .set = true },
	  .path = "l" },
	{ .kind = 'd',
	  .source = { .ino = 5, .mode = S_IFDIR | 0755, .uid = 7 },
	  .n_entries = 2,
	  .path = "." },
};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

static void write_list(void)
{
	struct dbt_tree_writer w;
	struct dbt_err err = { 0 };

	assert_int_equal(dbt_tree_writer_open(list, &w, &err), 0);
	for (size_t i = 0; i < ENTRIES; i++)
		assert_int_equal(dbt_tree_writer_add(&w, &entries[i], &err), 0);
	assert_int_equal(dbt_tree_writer_commit(&ctx, &w, &err), 0);
	dbt_tree_writer_release(&w);
}

static void a_list_is_read_as_it_was_written(void **state)
{
	struct dbt_tree_reader r;
	struct dbt_tree_entry e;
	struct dbt_err err = { 0 };

	(void)state;
	world_new();
	write_list();
	assert_int_equal(dbt_tree_reader_open(list, &r, &err), 0);
	for (size_t i = 0; i < ENTRIES; i++) {
		const struct dbt_tree_entry *want = &entries[i];

		assert_int_equal(dbt_tree_reader_next(&r, &e, &err), 1);
		assert_int_equal(e.kind, want->kind);
		assert_string_equal(e.path, want->path);
		assert_true(e.source.ino == want->source.ino && e.copied.ino == want->copied.ino);
		assert_true(e.source.mtime_ns == want->source.mtime_ns);
		assert_true(e.copied.ctime_ns == want->copied.ctime_ns);
		assert_int_equal(e.source.mode, want->source.mode);
		assert_int_equal(e.source.uid, want->source.uid);
		assert_true(e.n_entries == want->n_entries &&
		            e.source.size_bytes == want->source.size_bytes);
		assert_int_equal(e.digest.set, want->digest.set);
		assert_true(e.digest.high == want->digest.high && e.digest.low == want->digest.low);
	}
	assert_int_equal(dbt_tree_reader_next(&r, &e, &err), 0);
	dbt_tree_reader_release(&r);
	world_remove();
}

/* Every byte, and every length: never an entry of it. */
static void a_damaged_list_is_not_believed(void **state)
{
	char whole[4096], bytes[4096];
	FILE *f;
	size_t len;

	(void)state;
	world_new();
	write_list();
	f = fopen(list, "r");
	assert_non_null(f);
	len = fread(whole, 1, sizeof(whole), f);
	assert_true(len > 200 && len < sizeof(whole));
	fclose(f);
	for (size_t i = 0; i < 2 * len; i++) {
		struct dbt_tree_reader r;
		struct dbt_err err = { 0 };

		memcpy(bytes, whole, len);
		if (i < len)
			bytes[i] ^= 1;
		f = fopen(list, "w");
		assert_non_null(f);
		assert_true(fwrite(bytes, 1, i < len ? len : i - len, f) ==
		            (i < len ? len : i - len));
		fclose(f);
		assert_true(dbt_tree_reader_open(list, &r, &err) < 0);
		assert_int_equal(err.kind, DBT_ERR_LEDGER);
		assert_non_null(strstr(err.text, list));
	}
	world_remove();
}

static void a_path_that_leads_out_is_not_believed(void **state)
{
	static const char *const bad[] = { "..",          "../a", "a/../b", "a//b",
		                           "/etc/passwd", "",     "a/.",    "./a" };

	(void)state;
	world_new();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dbt_tree_entry e = entries[0];
		struct dbt_tree_writer w;
		struct dbt_tree_reader r;
		struct dbt_err err = { 0 };

		e.path = bad[i];
		assert_int_equal(dbt_tree_writer_open(list, &w, &err), 0);
		assert_int_equal(dbt_tree_writer_add(&w, &e, &err), 0);
		assert_int_equal(dbt_tree_writer_commit(&ctx, &w, &err), 0);
		dbt_tree_writer_release(&w);
		assert_true(dbt_tree_reader_open(list, &r, &err) < 0);
	}
	world_remove();
}

/* --- copying and comparing ------------------------------------------------------------------------------- */

static void a_copy_is_what_was_copied(void **state)
{
	struct dbt_tree_copied copied;
	struct dbt_err why = { 0 }, err = { 0 };
	bool same = false, from_device;
	int fd;

	(void)state;
	world_new();
	copy(&copied);
	fd = open_copy();
	assert_int_equal(copied.source.size_bytes, strlen("some bytes") + strlen("more bytes"));
	assert_int_equal(compare(src, DBT_TREE_SOURCE), DBT_TREE_SAME);
	assert_int_equal(compare(fd, DBT_TREE_COPY), DBT_TREE_SAME);
	assert_int_equal(compare(fd, DBT_TREE_SOURCE), DBT_TREE_CHANGED);
	assert_int_equal(dbt_tree_prove(&ctx, fd, list, "copy", 0, &same, &from_device, &why, &err),
	                 0);
	assert_true(same);
	same = false;
	assert_int_equal(dbt_tree_equal(&ctx, src, fd, "src", "copy", &same, &err), 0);
	assert_true(same);
	close(fd);
	world_remove();
}

static void sh(int fd, const char *command)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "cd /proc/%d/fd/%d && %s", (int)getpid(), fd, command);
	assert_int_equal(system(text), 0);
}

/* What can happen to a tree, and whether it is a change, by the looks and by reading. */
static void every_change_is_seen(void **state)
{
	static const struct {
		const char *what;
		enum dbt_tree_is is;
		bool reads_same;
	} cases[] = {
		{ "true", DBT_TREE_SAME, true },
		{ "echo x >>a", DBT_TREE_CHANGED, false },
		{ "touch a", DBT_TREE_CHANGED, true },
		{ "cp -p a n && mv n a", DBT_TREE_CHANGED, true },
		{ "rm a", DBT_TREE_CHANGED, false },
		{ "touch new", DBT_TREE_CHANGED, false },
		{ "touch empty/.hidden", DBT_TREE_CHANGED, false },
		{ "mkdir sub/new", DBT_TREE_CHANGED, false },
		{ "rmdir empty", DBT_TREE_CHANGED, false },
		{ "ln -sfn ../empty-file sub/link", DBT_TREE_CHANGED, false },
		{ "rm sub/link && cp a sub/link", DBT_TREE_CHANGED, false },
		{ "mv sub sub2 && cp -a sub2 sub && rm -r sub2", DBT_TREE_CHANGED, true },
		{ "rm a && ln sub/b* a", DBT_TREE_CHANGED, false },
		{ "chmod 600 a && chmod 644 a", DBT_TREE_TOUCHED, true },
		{ "touch -r a /proc/self/fd/0 2>/dev/null; cp -p a ../ref; printf S | dd of=a bs=1 "
		  "conv=notrunc "
		  "2>/dev/null; touch -r ../ref a; rm ../ref",
		  DBT_TREE_TOUCHED, false },
		{ "chmod 700 sub", DBT_TREE_TOUCHED, true },
		/* LMDB's lock file may change, come and go. */
		{ "echo x >sub/deep/lock.mdb", DBT_TREE_SAME, true },
		{ "rm sub/deep/lock.mdb", DBT_TREE_TOUCHED, true },
		{ "touch lock.mdb", DBT_TREE_SAME, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int of_copy = 0; of_copy < 2; of_copy++) {
			struct dbt_tree_copied copied;
			struct dbt_err why = { 0 }, err = { 0 };
			bool same = !cases[i].reads_same, from_device;
			enum dbt_tree_is is;
			int fd;

			world_new();
			copy(&copied);
			fd = of_copy ? open_copy() : dup(src);
			sh(fd, cases[i].what);
			is = compare(fd, of_copy ? DBT_TREE_COPY : DBT_TREE_SOURCE);
			if (is != cases[i].is)
				print_error("%s\n", cases[i].what);
			assert_int_equal(is, cases[i].is);
			assert_int_equal(dbt_tree_prove(&ctx, fd, list, "it", 0, &same,
			                                &from_device, &why, &err),
			                 0);
			if (same != cases[i].reads_same)
				print_error("%s\n", cases[i].what);
			assert_int_equal(same, cases[i].reads_same);
			close(fd);
			world_remove();
		}
}

/* --- deleting -------------------------------------------------------------------------------------------- */

static bool stands(const char *path)
{
	return faccessat(out, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void only_what_is_listed_is_deleted(void **state)
{
	static const struct {
		const char *before;
		const char *stays; /* NULL: nothing */
	} cases[] = {
		{ "true", NULL },
		{ "rm a && rm -r sub/deep", NULL }, /* an earlier run was interrupted */
		{ "touch lock.mdb empty/lock.mdb", NULL },
		{ "touch empty/theirs", "copy/empty/theirs" },
		{ "echo newer >>a", "copy/a" },
		{ "cp -p a n && mv n a", "copy/a" },
		{ "mkdir sub/theirs", "copy/sub/theirs" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dbt_tree_copied copied;
		struct dbt_err err = { 0 };
		uint64_t left = 0;
		int fd;

		world_new();
		copy(&copied);
		fd = open_copy();
		sh(fd, cases[i].before);
		close(fd);
		assert_int_equal(dbt_tree_remove_listed(&ctx, out, "copy", list, DBT_TREE_COPY,
		                                        "copy", &left, &err),
		                 0);
		assert_int_equal(stands("copy"), cases[i].stays != NULL);
		assert_int_equal(left != 0, cases[i].stays != NULL);
		if (cases[i].stays)
			assert_true(stands(cases[i].stays));
		assert_false(stands("copy/empty-file"));
		world_remove();
	}
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_read_as_it_was_written),
		cmocka_unit_test(a_damaged_list_is_not_believed),
		cmocka_unit_test(a_path_that_leads_out_is_not_believed),
		cmocka_unit_test(a_copy_is_what_was_copied),
		cmocka_unit_test(every_change_is_seen),
		cmocka_unit_test(only_what_is_listed_is_deleted),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
