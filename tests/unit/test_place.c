/* Captured machines: each directory of fixtures/sysroot with the table NAME.expect beside it. */
#include "base/cleanup.h"
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

#include <cmocka.h>

struct machine {
	struct dbt_root root;
	struct dbt_ctx ctx;
	struct dbt_mounts *mounts;
};

static void machine_open(struct machine *m, const char *dir)
{
	struct dbt_err err;

	assert_int_equal(dbt_root_open(&m->root, dir), 0);
	dbt_ctx_init(&m->ctx, &m->root);
	if (dbt_mounts_new(&m->ctx, &m->mounts, &err) < 0)
		fail_msg("%s: %s", dir, err.text);
}

static void machine_close(struct machine *m)
{
	dbt_mounts_free(m->mounts);
	dbt_root_close(&m->root);
}

static void print_place(const char *key, const struct dbt_place *p)
{
	print_message("%s\t%s\t%s\t%s\n", key, dbt_tier_name(p->tier), p->mixed ? "mixed" : "-",
	              p->stack);
	for (size_t i = 0; i < p->n_evidence; i++)
		print_message("\t\t%s\n", p->evidence[i]);
	if (p->note)
		print_message("\t\tnote: %s\n", p->note);
}

/* One line of a table: "path<TAB>tier<TAB>mixed or -<TAB>stack[<TAB>part of the note]". Returns the
 * number of mismatches. */
static unsigned check_line(const struct machine *m, const char *name, char *line)
{
	char *save = NULL, *path = strtok_r(line, "\t", &save), *tier = strtok_r(NULL, "\t", &save),
	     *mixed = strtok_r(NULL, "\t", &save), *stack = strtok_r(NULL, "\t\n", &save),
	     *note = strtok_r(NULL, "\t\n", &save);
	const struct dbt_mount *mount;
	struct dbt_place place;
	struct dbt_err err;
	unsigned bad;

	assert_non_null(stack);
	mount = dbt_mounts_by_path(m->mounts, path);
	if (!mount || dbt_place_of_mount(&m->ctx, m->mounts, mount->id, NULL, &place, &err) < 0) {
		print_error("%s: %s: no place: %s\n", name, path, mount ? err.text : "no mount");
		return 1;
	}
	bad = strcmp(dbt_tier_name(place.tier), tier) != 0 ||
	      place.mixed != (strcmp(mixed, "mixed") == 0) || strcmp(place.stack, stack) != 0 ||
	      (note && (!place.note || !strstr(place.note, note)));
	if (bad) {
		print_error("%s: expected %s %s %s %s, got\n", name, tier, mixed, stack,
		            note ? note : "");
		print_place(path, &place);
	} else if (getenv("DBT_SHOW")) {
		print_place(path, &place);
	}
	dbt_place_release(&place);
	return bad;
}

static unsigned check_machine(const char *dir, const char *name)
{
	char path[PATH_MAX], line[2048];
	struct machine m;
	unsigned bad = 0;
	FILE *table;

	(void)snprintf(path, sizeof(path), "%s/%s.expect", dir, name);
	table = fopen(path, "re");
	assert_non_null(table);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	machine_open(&m, path);
	while (fgets(line, sizeof(line), table))
		if (line[0] == '/')
			bad += check_line(&m, name, line);
	machine_close(&m);
	(void)fclose(table);
	return bad;
}

static void every_captured_machine_is_told_right(void **state)
{
	static const char dir[] = TEST_FIXTURES "/sysroot";
	dbt_autoclosedir DIR *d = opendir(dir);
	struct dirent *entry;
	unsigned bad = 0, machines = 0;

	(void)state;
	assert_non_null(d);
	while ((entry = readdir(d))) {
		char *dot = strstr(entry->d_name, ".expect");

		if (!dot)
			continue;
		*dot = '\0';
		bad += check_machine(dir, entry->d_name);
		machines++;
	}
	assert_int_equal(bad, 0);
	assert_true(machines >= 1);
}

/* The running system: whatever it is, the file at hand has a place. */
static void a_live_file_has_a_place(void **state)
{
	struct machine m;
	struct dbt_place a, b;
	struct dbt_err err;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	    dir = open("/proc", O_RDONLY | O_CLOEXEC);

	(void)state;
	machine_open(&m, NULL);
	assert_int_equal(dbt_place_of_fd(&m.ctx, m.mounts, fd, NULL, &a, &err), 0);
	assert_int_equal(dbt_place_of_fd(&m.ctx, m.mounts, dir, NULL, &b, &err), 0);
	if (getenv("DBT_SHOW"))
		print_place("/proc/self/exe", &a);
	assert_non_null(a.mount);
	assert_true(a.size_bytes > 0);
	assert_true(dbt_place_same_filesystem(&a, &a));
	assert_false(dbt_place_same_filesystem(&a, &b));
	assert_string_equal(b.fstype, "proc");
	assert_int_equal(b.tier, DBT_TIER_UNKNOWN);
	dbt_place_release(&a);
	dbt_place_release(&b);
	(void)close(fd);
	(void)close(dir);
	machine_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_captured_machine_is_told_right),
		cmocka_unit_test(a_live_file_has_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
