/* Captured machines: each directory of fixtures/sysroot with the table NAME.expect beside it. */
#include "base/cleanup.h"
#include "support/machine.h"
#include "survey/blkdev.h"
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
#include <sys/sysmacros.h>

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
		fail_msg("%s: %s", dir ? dir : "/", err.text);
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

struct expectation {
	const char *path, *tier, *mixed, *stack;
	const char *note; /* a part of it; NULL: any */
};

/* Returns the number of mismatches. */
static unsigned check(const struct machine *m, const char *name, const struct expectation *e)
{
	const struct dbt_mount *mount = dbt_mounts_by_path(m->mounts, e->path);
	struct dbt_place place;
	struct dbt_err err;
	unsigned bad;

	if (!mount || dbt_place_of_mount(&m->ctx, m->mounts, mount->id, NULL, &place, &err) < 0) {
		print_error("%s: %s: no place: %s\n", name, e->path, mount ? err.text : "no mount");
		return 1;
	}
	bad = strcmp(dbt_tier_name(place.tier), e->tier) != 0 ||
	      place.mixed != (strcmp(e->mixed, "mixed") == 0) ||
	      strcmp(place.stack, e->stack) != 0 ||
	      (e->note && (!place.note || !strstr(place.note, e->note)));
	/* Whoever cannot say what it is says why. */
	bad = bad || (place.tier == DBT_TIER_UNKNOWN && place.n_evidence == 0 && !place.note);
	if (bad)
		print_error("%s: expected %s %s %s %s, got\n", name, e->tier, e->mixed, e->stack,
		            e->note ? e->note : "");
	if (bad || getenv("DBT_SHOW"))
		print_place(e->path, &place);
	dbt_place_release(&place);
	return bad;
}

/* "path<TAB>tier<TAB>mixed or -<TAB>stack[<TAB>part of the note]" */
static unsigned check_line(const struct machine *m, const char *name, char *line)
{
	char *save = NULL;
	struct expectation e = { .path = strtok_r(line, "\t", &save),
		                 .tier = strtok_r(NULL, "\t", &save),
		                 .mixed = strtok_r(NULL, "\t", &save),
		                 .stack = strtok_r(NULL, "\t\n", &save),
		                 .note = strtok_r(NULL, "\t\n", &save) };

	assert_non_null(e.stack);
	return check(m, name, &e);
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

/* The next "expect" line of a machine's text, " | " made tabs; false at the end. */
static bool next_expectation(const char **text, char *line, size_t size)
{
	const char *at = *text ? strstr(*text, "\nexpect ") : NULL;
	char *to = line;

	if (!at)
		return false;
	at += strlen("\nexpect ");
	while (*at && *at != '\n' && to < line + size - 1) {
		if (strncmp(at, " | ", 3) == 0) {
			*to++ = '\t';
			at += 3;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
	*text = at;
	return true;
}

static unsigned check_written(const char *path, const char *name, unsigned *ret_checked)
{
	char text[16384], line[1024];
	FILE *file = fopen(path, "re");
	const char *at = text;
	struct machine m;
	unsigned bad = 0;
	char *root;

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	(void)fclose(file);
	root = machine_build("/tmp", text, strlen(text));
	assert_non_null(root);
	machine_open(&m, root);
	while (next_expectation(&at, line, sizeof(line))) {
		bad += check_line(&m, name, line);
		(*ret_checked)++;
	}
	machine_close(&m);
	machine_remove(root);
	free(root);
	return bad;
}

static void every_machine_written_down_is_told_right(void **state)
{
	static const char dir[] = TEST_FIXTURES "/machines";
	dbt_autoclosedir DIR *d = opendir(dir);
	struct dirent *entry;
	unsigned bad = 0, machines = 0, checked = 0;
	char path[PATH_MAX];

	(void)state;
	assert_non_null(d);
	while ((entry = readdir(d))) {
		if (!strstr(entry->d_name, ".machine"))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		bad += check_written(path, entry->d_name, &checked);
		machines++;
	}
	print_message("%u machines, %u mounts\n", machines, checked);
	assert_int_equal(bad, 0);
	assert_true(machines >= 20);
}

/* A disk that holds a pool's metadata only is none of the filesystem's disks. */
static void only_disks_with_data_are_listed(void **state)
{
	static const char text[] =
		"mount /thin ext4 /dev/mapper/vg-thin 253:2\n"
		"disk sda 8:0 pci0/ata1/host0/target0:0:0/0:0:0:0 queue/rotational=1\n"
		"disk sdb 8:16 pci0/ata2/host1/target1:0:0/1:0:0:0 queue/rotational=0\n"
		"dm dm-0 253:0 vg-pool_tmeta LVM-0-tmeta on sdb\n"
		"dm dm-1 253:1 vg-pool_tdata LVM-0-tdata on sda\n"
		"dm dm-2 253:2 vg-thin LVM-0 on dm-0 dm-1\n"
		"mount /sdb ext4 /dev/sdb 8:16\n"
		"mount /sda ext4 /dev/sda 8:0\n";
	char *root = machine_build("/tmp", text, sizeof(text) - 1);
	struct dbt_place place[3];
	struct dbt_err err;
	struct machine m;

	(void)state;
	assert_non_null(root);
	machine_open(&m, root);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(
			dbt_place_of_mount(&m.ctx, m.mounts, 20 + i, NULL, &place[i], &err), 0);
	assert_int_equal(place[0].n_disks, 1);
	assert_string_equal(place[0].disks[0].name, "sda");
	assert_string_equal(place[0].disks[0].tran, "sata");
	assert_int_equal(place[0].disks[0].tier, DBT_TIER_HDD);
	assert_string_equal(place[0].device, "dm-2");
	assert_int_equal(place[0].n_layers, 5);
	assert_false(dbt_place_share_disk(&place[0], &place[1]));
	assert_true(dbt_place_share_disk(&place[0], &place[2]));
	assert_false(dbt_place_same_filesystem(&place[0], &place[2]));
	for (size_t i = 0; i < 3; i++)
		dbt_place_release(&place[i]);
	machine_close(&m);
	machine_remove(root);
	free(root);
}

/* Before Linux 6.4 an NVMe multipath disk itself counts nothing. */
static void the_paths_of_a_multipath_disk_count(void **state)
{
	static const char text[] =
		"mount / ext4 /dev/nvme1n1 259:3\n"
		"disk nvme1n1 259:3 virtual/nvme-subsystem/nvme-subsys1 queue/rotational=0\n"
		"attr nvme1n1 stat=0_0_0_0_0_0_0_0_0_0_0\n"
		"file sys/block/nvme1c0n1/stat 100 0 800 5 10 0 80 5 0 40 50\n"
		"file sys/block/nvme1c12n1/stat 1 0 8 5 1 0 8 5 0 2 50\n"
		"file sys/block/nvme1c0n2/stat 7 0 7 7 7 0 7 7 0 7 7\n"
		"file sys/block/nvme11c0n1/stat 7 0 7 7 7 0 7 7 0 7 7\n"
		"file sys/block/nvme0n1/stat 7 0 7 7 7 0 7 7 0 7 7\n"
		"mount /new ext4 /dev/nvme2n1 259:4\n"
		"disk nvme2n1 259:4 virtual/nvme-subsystem/nvme-subsys2 queue/rotational=0\n"
		"attr nvme2n1 stat=9_0_72_0_0_0_0_0_0_5_0\n"
		"file sys/block/nvme2c0n1/stat 9 0 72 0 0 0 0 0 0 5 0\n";
	char *root = machine_build("/tmp", text, sizeof(text) - 1);
	struct dbt_blk_counters c;
	struct machine m;

	(void)state;
	assert_non_null(root);
	machine_open(&m, root);
	assert_int_equal(dbt_blkdev_counters(&m.ctx, makedev(259, 3), &c), 0);
	assert_int_equal(c.reads, 101);
	assert_int_equal(c.read_sectors512, 808);
	assert_int_equal(c.writes, 11);
	assert_int_equal(c.written_sectors512, 88);
	assert_int_equal(c.busy_ms, 42);
	/* Newer kernels count both: once is enough. */
	assert_int_equal(dbt_blkdev_counters(&m.ctx, makedev(259, 4), &c), 0);
	assert_int_equal(c.read_sectors512, 72);
	machine_close(&m);
	machine_remove(root);
	free(root);
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
		cmocka_unit_test(every_machine_written_down_is_told_right),
		cmocka_unit_test(only_disks_with_data_are_listed),
		cmocka_unit_test(the_paths_of_a_multipath_disk_count),
		cmocka_unit_test(a_live_file_has_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
