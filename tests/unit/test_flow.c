/* The promise, attacked from inside: every call of promote, rollback and reclaim that can fail is made to fail, once
 * each, and once with all later ones failing as well. After each: the path opens with the right bytes; recover
 * brings order; nothing is left. */
#include "flow/flow.h"
#include "flow/health.h"
#include "flow/promote.h"
#include "flow/reclaim.h"
#include "flow/recover.h"
#include "flow/rollback.h"
#include "support/fault.h"
#include "support/loopfs.h"
#include "support/tree.h"
#include "sys/root.h"

#include <dirent.h>
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

enum { FILES = 3, FILE_BYTES = 70001 };

static struct dbt_root live;
static struct dbt_ctx ctx; /* with the table that fails */
static char *dir, *state_dir, *db, *fast;
/* In memory where that is possible: thousands of worlds, each with its synced ledger. Originals are not reclaimed
 * where the copy is in memory, though: such worlds lie on a filesystem in a loop device, or on the disk. */
static const char *parent, *memory, *disk;
static char *loop;       /* the mount point; NULL without one */
static unsigned n_files; /* members of the promotion under test: 1 a file, more a set */
static bool as_tree;     /* the directory db as one name instead; n_files is 1 then */
static unsigned failures, checks;

/* --- one world a case ----------------------------------------------------------------------------------- */

static void fill(char *bytes, unsigned file)
{
	for (unsigned i = 0; i < FILE_BYTES; i++)
		bytes[i] = (char)(i * 7 + i / 251 + file * 3 + 1);
}

static const char *file_name(unsigned file)
{
	static const char *const names[] = { "a.dmnd", "b b\n.db", "sub/c.idx" };

	return names[file];
}

static void world_new(void)
{
	static char bytes[FILE_BYTES];

	fault_reset();
	dir = tree_new_in(parent);
	state_dir = tree_path(dir, "state");
	db = tree_path(dir, "db");
	fast = tree_path(dir, "fast");
	tree_mkdir(dir, "fast", 0755);
	for (unsigned i = 0; i < FILES; i++) {
		char *path;

		assert_true(asprintf(&path, "db/%s", file_name(i)) > 0);
		fill(bytes, i);
		tree_put_bytes(dir, path, bytes, FILE_BYTES);
		free(path);
	}
}

static void world_remove(void)
{
	tree_remove(dir);
	free(dir);
	free(state_dir);
	free(db);
	free(fast);
}

static void flow_open(struct dbt_flow *flow)
{
	struct dbt_err err;

	assert_int_equal(dbt_flow_open(&ctx, state_dir, flow, &err), 0);
}

/* What dbt_plan_make would plan, without its rule that source and target lie on different filesystems. */
static void plan(struct dbt_promotion *p)
{
	struct dbt_ident target;

	*p = (struct dbt_promotion){ .run = 1, .is_set = n_files > 1 };
	assert_int_equal(dbt_flow_token(&ctx, p->token, NULL), 0);
	p->name = strdup(as_tree ? "db" : n_files > 1 ? "set" : file_name(0));
	p->format = strdup("file");
	p->path = as_tree || n_files > 1 ? strdup(db) : tree_path(db, file_name(0));
	p->target = strdup(fast);
	p->target_mount = strdup("/");
	p->made_dir = n_files > 1 ? tree_path(fast, "set") : NULL;
	assert_int_equal(dbt_ident_of(&ctx, AT_FDCWD, fast, &target), 0);
	p->target_ino = target.ino;
	p->members = calloc(n_files, sizeof(*p->members));
	p->n_members = n_files;
	for (unsigned i = 0; i < n_files; i++) {
		struct dbt_pmember *m = &p->members[i];
		const char *base = strrchr(file_name(i), '/');

		m->path = as_tree ? strdup(db) : tree_path(db, file_name(i));
		assert_true(asprintf(&m->kept, ".%s.dbtier-original",
		                     as_tree ? "db"
		                     : base  ? base + 1
		                             : file_name(i)) > 0);
		assert_true(asprintf(&m->copy, "%s%s/%s", fast, n_files > 1 ? "/set" : "",
		                     as_tree ? "db" : file_name(i)) > 0);
		assert_true(asprintf(&m->part, ".dbtier-%s-%u.part", p->token, i) > 0);
		assert_int_equal(dbt_ident_of(&ctx, AT_FDCWD, m->path, &m->source), 0);
	}
}

/* --- what must hold ------------------------------------------------------------------------------------- */

static void assert_path_reads(unsigned file)
{
	static char want[FILE_BYTES], found[FILE_BYTES + 1];
	char *path = tree_path(db, file_name(file));
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	fill(want, file);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, found, sizeof(found)), FILE_BYTES);
	assert_memory_equal(want, found, FILE_BYTES);
	close(fd);
	free(path);
}

static void assert_paths_read(void)
{
	for (unsigned i = 0; i < FILES; i++)
		assert_path_reads(i);
	checks++;
}

/* Names below a directory, at any depth. */
static unsigned count_names(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char *inner;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		n++;
		inner = tree_path(path, e->d_name);
		if (e->d_type == DT_DIR)
			n += count_names(inner);
		free(inner);
	}
	closedir(d);
	return n;
}

/* Names in a directory, with those of a certain ending or all. */
static unsigned count_ending(const char *path, const char *ending)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	if (!d)
		return 0;
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name), want = strlen(ending);

		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && len >= want &&
		     strcmp(e->d_name + len - want, ending) == 0;
	}
	closedir(d);
	return n;
}

static unsigned count_beside_db(void)
{
	return count_ending(dir, "");
}

static unsigned count_lists(void)
{
	return count_ending(state_dir, ".tree") + count_ending(state_dir, ".back") +
	       count_ending(state_dir, ".new");
}

static char *record; /* what the operation under test did, to be shown with a failure */
static unsigned record_n;

/* Three files and the directory sub, and nothing else on either side. */
static void assert_as_at_first(void)
{
	if (count_names(db) != FILES + 1 || count_names(fast) != 0)
		print_error("after a failure of call %u:\n%s", record_n, record ? record : "");
	assert_int_equal(count_names(db), FILES + 1);
	assert_int_equal(count_names(fast), 0);
	assert_int_equal(count_beside_db(), 3); /* db, fast, state */
	assert_int_equal(count_lists(), 0);
}

static void assert_promoted(unsigned kept)
{
	if (as_tree) {
		assert_int_equal(count_names(db), FILES + 1);
		assert_int_equal(count_names(fast), FILES + 2); /* db/ and db/sub/ */
		assert_int_equal(count_beside_db(), 3 + kept);
		assert_int_equal(count_lists(), 1);
		return;
	}
	assert_int_equal(count_names(db), FILES + 1 + kept);
	assert_int_equal(count_names(fast), n_files == 1 ? 1 : n_files + 2); /* set/ and set/sub/ */
}

/* The only promotion on record, or state failed where none is. */
static enum dbt_state recorded_state(unsigned *ret_kept)
{
	struct dbt_promotions list = { 0 };
	enum dbt_state state = DBT_STATE_FAILED;
	struct dbt_flow flow;

	flow_open(&flow);
	assert_int_equal(dbt_ledger_load(flow.ledger, &list, NULL), 0);
	*ret_kept = 0;
	if (list.n > 0) {
		enum dbt_health health;

		assert_int_equal(list.n, 1);
		state = list.items[0].state;
		for (unsigned i = 0; i < n_files; i++)
			*ret_kept += !list.items[0].members[i].reclaimed;
		assert_int_equal(list.items[0].owner.pid, 0);
		if (state == DBT_STATE_PROMOTED) {
			assert_int_equal(
				dbt_health_verify(&ctx, &list.items[0], &health, NULL, NULL), 0);
			assert_int_equal(health, DBT_HEALTH_OK);
		}
	}
	dbt_promotions_release(&list);
	dbt_flow_close(&flow);
	return state;
}

static void recover(void)
{
	struct dbt_recovery_report report = { 0 };
	struct dbt_flow flow;
	struct dbt_err err;

	flow_open(&flow);
	assert_int_equal(dbt_recover(&flow, NULL, &report, &err), 0);
	for (size_t i = 0; i < report.n; i++)
		if (report.items[i].what == DBT_RECOVERY_FAILED)
			fail_msg("recover: %s", report.items[i].text);
	dbt_recovery_report_release(&report);
	dbt_flow_close(&flow);
}

/* After recover there are two orders of things only, each whole. */
static void assert_in_order(void)
{
	unsigned kept;
	enum dbt_state state;

	assert_paths_read();
	recover();
	assert_paths_read();
	state = recorded_state(&kept);
	if (state == DBT_STATE_PROMOTED) {
		assert_promoted(kept);
	} else {
		assert_true(!dbt_state_is_active(state));
		assert_as_at_first();
	}
}

/* --- operations ----------------------------------------------------------------------------------------- */

static struct dbt_promotion planned;

static int promote(struct dbt_flow *flow, struct dbt_err *err)
{
	const struct dbt_promote_run run = { 0 };

	return dbt_promote(flow, &planned, &run, err);
}

static int claimed(struct dbt_flow *flow,
                   int (*op)(struct dbt_flow *, struct dbt_promotion *, struct dbt_err *),
                   struct dbt_err *err)
{
	struct dbt_promotion p = { 0 };
	int r = dbt_flow_claim(flow, 1, &p, err);

	if (r == 0)
		r = op(flow, &p, err);
	dbt_promotion_release(&p);
	return r;
}

static int rollback_op(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	const struct dbt_rollback_opts opts = { 0 };

	return dbt_rollback(flow, p, &opts, err);
}

static int rollback(struct dbt_flow *flow, struct dbt_err *err)
{
	return claimed(flow, rollback_op, err);
}

static int reclaim(struct dbt_flow *flow, struct dbt_err *err)
{
	return claimed(flow, dbt_reclaim, err);
}

/* Brings the world to where the operation under test begins. */
enum begin { BEGIN_PLAIN, BEGIN_PROMOTED, BEGIN_RECLAIMED };

static void begin_at(enum begin begin)
{
	struct dbt_flow flow;
	struct dbt_err err;

	dbt_promotion_release(&planned);
	plan(&planned);
	flow_open(&flow);
	if (begin != BEGIN_PLAIN)
		assert_int_equal(promote(&flow, &err), 0);
	if (begin == BEGIN_RECLAIMED)
		assert_int_equal(reclaim(&flow, &err), 0);
	dbt_flow_close(&flow);
}

/* --- the sweep ------------------------------------------------------------------------------------------ */

struct sweep {
	const char *name;
	enum begin begin;
	int (*op)(struct dbt_flow *flow, struct dbt_err *err);
};

static bool run_case(const struct sweep *s, unsigned n, int code, bool all_later)
{
	struct dbt_err err = { 0 };
	struct dbt_flow flow;
	bool fired;
	int r;

	world_new();
	begin_at(s->begin);
	flow_open(&flow);
	fault_reset();
	if (all_later)
		fault_arm_from(FAULT_CHANGES, n, code);
	else
		fault_arm(n, code);
	r = s->op(&flow, &err);
	fired = fault_fired();
	free(record);
	record = strdup(fault_record());
	record_n = n;
	fault_reset();
	dbt_flow_close(&flow);
	if (r < 0) {
		assert_true(fired);
		assert_true(strlen(err.text) > 10);
		failures++;
	}
	assert_in_order();
	world_remove();
	return fired;
}

static void sweep(const struct sweep *s)
{
	static const int codes[] = { EIO, ENOSPC };
	const bool on_disk = s->begin == BEGIN_RECLAIMED || s->op == reclaim;
	/* A directory takes many calls, and on a disk each case takes its time: then a sample, unless DBT_FULL is set. */
	const unsigned step = !as_tree || getenv("DBT_FULL") ? 1 : on_disk ? 11 : 5;
	unsigned points = 0;

	parent = on_disk ? disk : memory;
	failures = 0;
	for (size_t c = 0; c < (on_disk || as_tree ? 1 : sizeof(codes) / sizeof(codes[0])); c++)
		for (unsigned n = 1; run_case(s, n, codes[c], false); n += step)
			points++;
	for (unsigned n = 1; !(on_disk && n_files > 1) && run_case(s, n, EIO, true); n += step)
		points++;
	print_message("%s of %s%u: %u points, %u errors reported, 0 wrong\n", s->name,
	              as_tree ? "a directory, " : "", n_files, points, failures);
	assert_true(points > 30 / step);
}

static void sweep_both(const struct sweep *s)
{
	n_files = 1;
	sweep(s);
	n_files = FILES;
	sweep(s);
	n_files = 1;
	as_tree = true;
	sweep(s);
	as_tree = false;
}

static void test_promote(void **state)
{
	(void)state;
	sweep_both(&(struct sweep){ "promote", BEGIN_PLAIN, promote });
}

static void test_rollback(void **state)
{
	(void)state;
	sweep_both(&(struct sweep){ "rollback", BEGIN_PROMOTED, rollback });
}

static void test_reclaim(void **state)
{
	(void)state;
	sweep_both(&(struct sweep){ "reclaim", BEGIN_PROMOTED, reclaim });
}

static void test_rollback_reclaimed(void **state)
{
	(void)state;
	sweep_both(&(struct sweep){ "rollback of the reclaimed", BEGIN_RECLAIMED, rollback });
}

/* --- odd kernels and filesystems ------------------------------------------------------------------------ */

static void test_without_features(void **state)
{
	static const unsigned features[] = { FAULT_NO_OPENAT2, FAULT_NO_LEASE, FAULT_NO_DIRECT,
		                             FAULT_NO_NOREPLACE, FAULT_NO_FALLOCATE };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(features) / sizeof(features[0]); i++) {
		struct dbt_flow flow;
		struct dbt_err err;

		as_tree = i % 2 == 1;
		n_files = as_tree ? 1 : FILES;
		/* Without it no directory can get a name that must be free. */
		if (as_tree && features[i / 2] == FAULT_NO_NOREPLACE)
			continue;
		world_new();
		begin_at(BEGIN_PLAIN);
		fault_hide(features[i / 2]);
		flow_open(&flow);
		assert_int_equal(promote(&flow, &err), 0);
		assert_promoted(n_files);
		assert_paths_read();
		assert_int_equal(rollback(&flow, &err), 0);
		dbt_flow_close(&flow);
		assert_paths_read();
		assert_as_at_first();
		world_remove();
	}
	as_tree = false;
}

/* Where exchange does not work, or lies, no data is touched with it. */
static void test_false_exchange(void **state)
{
	static const unsigned features[] = { FAULT_NO_EXCHANGE, FAULT_FALSE_EXCHANGE };

	(void)state;
	n_files = 1;
	for (size_t i = 0; i < 4; i++) {
		struct dbt_flow flow;
		struct dbt_err err;

		as_tree = i >= 2; /* which --force does not help */
		world_new();
		begin_at(BEGIN_PLAIN);
		fault_hide(features[i % 2]);
		flow_open(&flow);
		assert_true(promote(&flow, &err) < 0);
		assert_int_equal(err.kind, DBT_ERR_REFUSED);
		assert_int_equal(strstr(err.text, "--force") == NULL, as_tree);
		dbt_flow_close(&flow);
		assert_paths_read();
		assert_as_at_first();
		world_remove();
	}
	as_tree = false;
}

static void test_by_link(void **state)
{
	const struct dbt_promote_run run = { .allow_by_link = true };

	(void)state;
	for (n_files = 1; n_files <= FILES; n_files += FILES - 1) {
		struct dbt_promotion p;
		struct dbt_flow flow;
		struct dbt_err err;

		world_new();
		fault_hide(FAULT_NO_EXCHANGE);
		flow_open(&flow);
		plan(&p);
		assert_int_equal(dbt_promote(&flow, &p, &run, &err), 0);
		assert_promoted(n_files);
		assert_paths_read();
		dbt_promotion_release(&p);
		assert_int_equal(rollback(&flow, &err), 0);
		dbt_flow_close(&flow);
		assert_paths_read();
		assert_as_at_first();
		world_remove();
	}
}

/* --- others who interfere ------------------------------------------------------------------------------- */

static void write_to_source(void *data)
{
	char *path = tree_path(db, file_name(0));
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	(void)data;
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "changed", 7, 100), 7);
	close(fd);
	free(path);
}

static void replace_source(void *data)
{
	char *path = tree_path(db, file_name(0));

	(void)data;
	tree_put(dir, "db/new", "a newer release");
	{
		char *new_path = tree_path(db, "new");

		assert_int_equal(rename(new_path, path), 0);
		free(new_path);
	}
	free(path);
}

/* The source is written to, or replaced by an updater, before every single changing call: what the others wrote is
 * what the path reads, in whatever state the promotion ends. */
static void interfere(void (*hook)(void *), const char *want, size_t want_off)
{
	unsigned given_up = 0, n = 1;

	for (;; n++) {
		struct dbt_flow flow;
		struct dbt_err err;
		char found[64] = "", *path;
		unsigned calls;
		int r, fd;

		world_new();
		begin_at(BEGIN_PLAIN);
		flow_open(&flow);
		fault_reset();
		fault_before(FAULT_CHANGES, n, hook, NULL);
		r = promote(&flow, &err);
		calls = fault_count(FAULT_CHANGES);
		dbt_flow_close(&flow);
		/* From the exchange on writers reach the copy or their own new file. In a directory a file may also
		 * change before it is looked at, and is copied as it is then. */
		if (calls < n || (r == 0 && !as_tree)) {
			world_remove();
			break;
		}
		given_up += r < 0;
		path = tree_path(db, file_name(0));
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(pread(fd, found, strlen(want), (off_t)want_off), strlen(want));
		assert_string_equal(found, want);
		close(fd);
		free(path);
		recover();
		assert_true(r == 0 || count_names(fast) == 0);
		world_remove();
	}
	print_message("%u moments, each noticed\n", given_up);
	assert_true(given_up >= 5);
}

static void test_writer(void **state)
{
	(void)state;
	n_files = 1;
	interfere(write_to_source, "changed", 100);
	as_tree = true;
	interfere(write_to_source, "changed", 100);
	as_tree = false;
}

static void test_updater(void **state)
{
	(void)state;
	n_files = 1;
	interfere(replace_source, "a newer release", 0);
	as_tree = true;
	interfere(replace_source, "a newer release", 0);
	as_tree = false;
}

static int group_setup(void **state)
{
	const char *why;

	(void)state;
	memory = access("/dev/shm", W_OK) < 0 ? "/var/tmp" : "/dev/shm";
	loop = loopfs_mount("ext4", &why);
	disk = loop ? loop : "/var/tmp";
	parent = memory;
	assert_int_equal(dbt_root_open(&live, NULL), 0);
	dbt_ctx_init(&ctx, &live);
	ctx.sys = &fault_sys;
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	dbt_root_close(&live);
	dbt_promotion_release(&planned);
	loopfs_umount(loop);
	print_message("%u times all paths were read and right\n", checks);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promote),          cmocka_unit_test(test_rollback),
		cmocka_unit_test(test_reclaim),          cmocka_unit_test(test_rollback_reclaimed),
		cmocka_unit_test(test_without_features), cmocka_unit_test(test_false_exchange),
		cmocka_unit_test(test_by_link),          cmocka_unit_test(test_writer),
		cmocka_unit_test(test_updater),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
