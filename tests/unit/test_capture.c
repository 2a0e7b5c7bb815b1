/* A capture answers as the machine did: every machine of the fixtures is captured, unpacked elsewhere and asked again. */
#include "base/cleanup.h"
#include "support/machine.h"
#include "support/tree.h"
#include "survey/capture.h"
#include "survey/mounts.h"
#include "survey/place.h"
#include "sys/root.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The tar of the machine below root, unpacked in a new directory. */
static char *capture(const char *root)
{
	char *dir = tree_new_in("/tmp"), *tar = tree_path(dir, "tar"), command[PATH_MAX * 2 + 64];
	int fd = open(tar, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct dbt_root opened;
	struct dbt_ctx ctx;
	struct dbt_err err;

	assert_true(fd >= 0);
	assert_int_equal(dbt_root_open(&opened, root), 0);
	dbt_ctx_init(&ctx, &opened);
	if (dbt_capture_write(&ctx, fd, tar, &err) < 0)
		fail_msg("%s: %s", root, err.text);
	dbt_root_close(&opened);
	(void)close(fd);
	(void)snprintf(command, sizeof(command), "tar -xf '%s' -C '%s'", tar, dir);
	assert_int_equal(system(command), 0);
	free(tar);
	return dir;
}

/* Names of mount points and volumes may have been changed, numbers and what follows from them not. */
static unsigned compare(const char *name, const struct dbt_place *was, const struct dbt_place *is)
{
	bool same = was->tier == is->tier && was->mixed == is->mixed &&
	            was->n_disks == is->n_disks && was->n_layers == is->n_layers;

	for (size_t i = 0; same && i < was->n_disks; i++)
		same = was->disks[i].devno == is->disks[i].devno &&
		       was->disks[i].tier == is->disks[i].tier &&
		       was->disks[i].rota == is->disks[i].rota;
	if (!same)
		print_error("%s: %s was %s (%s), in the capture it is %s (%s)%s%s\n", name,
		            was->mount, dbt_tier_name(was->tier), was->stack,
		            dbt_tier_name(is->tier), is->stack, is->note ? ": " : "",
		            is->note ? is->note : "");
	return !same;
}

struct asked {
	struct dbt_root root;
	struct dbt_ctx ctx;
	struct dbt_mounts *mounts;
};

static void ask_open(struct asked *a, const char *dir)
{
	struct dbt_err err;

	assert_int_equal(dbt_root_open(&a->root, dir), 0);
	dbt_ctx_init(&a->ctx, &a->root);
	if (dbt_mounts_new(&a->ctx, &a->mounts, &err) < 0)
		fail_msg("%s: %s", dir, err.text);
}

static void ask_close(struct asked *a)
{
	dbt_mounts_free(a->mounts);
	dbt_root_close(&a->root);
}

static unsigned check(const char *name, const char *root, unsigned *mounts)
{
	char *copy = capture(root);
	struct asked was, is;
	struct dbt_place a, b;
	struct dbt_err err;
	unsigned bad = 0;

	ask_open(&was, root);
	ask_open(&is, copy);
	assert_int_equal(dbt_mounts_count(was.mounts), dbt_mounts_count(is.mounts));
	for (size_t i = 0; i < dbt_mounts_count(was.mounts); i++) {
		uint64_t id = dbt_mounts_at(was.mounts, i)->id;

		if (dbt_place_of_mount(&was.ctx, was.mounts, id, NULL, &a, &err) < 0 ||
		    dbt_place_of_mount(&is.ctx, is.mounts, id, NULL, &b, &err) < 0)
			fail_msg("%s: %s", name, err.text);
		bad += compare(name, &a, &b);
		(*mounts)++;
		dbt_place_release(&a);
		dbt_place_release(&b);
	}
	ask_close(&was);
	ask_close(&is);
	tree_remove(copy);
	free(copy);
	return bad;
}

static unsigned check_written(const char *path, const char *name, unsigned *mounts)
{
	char text[16384];
	FILE *file = fopen(path, "re");
	unsigned bad = 0;
	char *root;

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	(void)fclose(file);
	/* The configuration is the user's, not the machine's: a capture leaves it out. */
	if (strstr(text, "dbtier.conf"))
		return 0;
	root = machine_build("/tmp", text, strlen(text));
	assert_non_null(root);
	bad = check(name, root, mounts);
	machine_remove(root);
	free(root);
	return bad;
}

static void a_capture_answers_as_the_machine_did(void **state)
{
	static const char *const dirs[] = { TEST_FIXTURES "/machines", TEST_FIXTURES "/sysroot" };
	unsigned bad = 0, mounts = 0;
	char path[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		dbt_autoclosedir DIR *d = opendir(dirs[i]);
		struct dirent *entry;

		assert_non_null(d);
		while ((entry = readdir(d))) {
			(void)snprintf(path, sizeof(path), "%s/%s", dirs[i], entry->d_name);
			if (entry->d_name[0] == '.')
				continue;
			if (strstr(entry->d_name, ".machine"))
				bad += check_written(path, entry->d_name, &mounts);
			else if (entry->d_type == DT_DIR)
				bad += check(entry->d_name, path, &mounts);
		}
	}
	print_message("%u mounts\n", mounts);
	assert_int_equal(bad, 0);
	assert_true(mounts > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_capture_answers_as_the_machine_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
