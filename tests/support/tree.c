#include "support/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

char *tree_new_in(const char *parent)
{
	char *path = NULL, *made;

	assert_true(asprintf(&path, "%s/dbtier-test-XXXXXX", parent) > 0);
	made = mkdtemp(path);
	assert_non_null(made);
	assert_int_equal(chmod(path, 0755), 0);
	return path;
}

char *tree_new(void)
{
	const char *tmp = getenv("TMPDIR");

	return tree_new_in(tmp && *tmp ? tmp : "/tmp");
}

char *tree_path(const char *root, const char *path)
{
	char *full = NULL;

	assert_true(asprintf(&full, "%s/%s", root, path) > 0);
	return full;
}

static void make_parents(char *full)
{
	for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(full, 0755) < 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
}

void tree_put_bytes(const char *root, const char *path, const void *data, size_t len)
{
	char *full = tree_path(root, path);
	FILE *file;

	make_parents(full);
	file = fopen(full, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	free(full);
}

void tree_put(const char *root, const char *path, const char *text)
{
	tree_put_bytes(root, path, text, strlen(text));
}

void tree_mkdir(const char *root, const char *path, mode_t mode)
{
	char *full = tree_path(root, path);

	make_parents(full);
	assert_int_equal(mkdir(full, 0755), 0);
	assert_int_equal(chmod(full, mode), 0);
	free(full);
}

void tree_symlink(const char *root, const char *path, const char *text)
{
	char *full = tree_path(root, path);

	make_parents(full);
	assert_int_equal(symlink(text, full), 0);
	free(full);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void tree_remove(const char *root)
{
	assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT), 0);
}
