#include "record/ledger.h"
#include "support/tree.h"
#include "sys/root.h"

#include <errno.h>
#include <setjmp.h>
#include <sqlite3.h>
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
static char *dir, *state_dir, *file;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(dbt_root_open(&live, NULL), 0);
	dbt_ctx_init(&ctx, &live);
	dir = tree_new();
	state_dir = tree_path(dir, "deep/state");
	file = tree_path(dir, "deep/state/dbtier.db");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tree_remove(dir);
	free(dir);
	free(state_dir);
	free(file);
	dbt_root_close(&live);
	return 0;
}

static struct dbt_ledger *open_ledger(enum dbt_ledger_open how)
{
	struct dbt_ledger *ledger = NULL;
	struct dbt_err err = { 0 };

	if (dbt_ledger_open(&ctx, state_dir, how, &ledger, &err) < 0)
		fail_msg("%s", err.text);
	return ledger;
}

/* A promotion with every field set; path is borrowed by nothing. */
static struct dbt_promotion sample(const char *path)
{
	struct dbt_promotion p = {
		.run = 7,
		.name = strdup("bad \xff name\n"),
		.format = strdup("bakta"),
		.path = strdup(path),
		.target = strdup("/nvme"),
		.target_uuid = strdup("uuid"),
		.target_mount = strdup("/nvme"),
		.target_ino = UINT64_MAX - 1,
		.made_dir = strdup("/nvme/db"),
		.token = "0123456789abcdef",
		.is_set = true,
		.reclaim = true,
		.by_link = true,
		.rollback_mode = DBT_ROLLBACK_KEEP_CHANGES,
		.state = DBT_STATE_COPYING,
		.owner = { .pid = 42, .start_ticks = UINT64_MAX, .boot_id = "boot" },
		.created_ns = 1,
		.promoted_ns = 2,
		.elapsed_ns = 3,
		.error = strdup("why"),
		.members = calloc(2, sizeof(*p.members)),
		.n_members = 2,
	};

	for (size_t i = 0; i < 2; i++) {
		struct dbt_pmember *m = &p.members[i];

		assert_true(asprintf(&m->path, "%s/%zu", path, i) > 0);
		assert_true(asprintf(&m->kept, ".%zu.dbtier-original", i) > 0);
		assert_true(asprintf(&m->copy, "/nvme%s/%zu", path, i) > 0);
		m->part = strdup(".dbtier-0123456789abcdef-0.part");
		m->back = i ? strdup(".dbtier-0123456789abcdef-1-back.part") : NULL;
		m->source = (struct dbt_ident){ .dev = UINT64_MAX,
			                        .ino = UINT64_MAX - i,
			                        .size_bytes = 1ULL << 62,
			                        .mtime_ns = INT64_MIN,
			                        .ctime_ns = -1,
			                        .btime_ns = INT64_MAX,
			                        .mode = 0100644,
			                        .uid = UINT32_MAX,
			                        .gid = 5,
			                        .nlink = 1 };
		m->copied.ino = 9;
		memcpy(m->xxh128, "00112233445566778899aabbccddeeff", 33);
		m->from_device = i;
		m->taken_over = !i;
		m->reclaimed = i;
		m->copy_left = !i;
	}
	return p;
}

static void assert_same(const struct dbt_promotion *a, const struct dbt_promotion *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->run, b->run);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->path, b->path);
	assert_string_equal(a->target_uuid, b->target_uuid);
	assert_string_equal(a->made_dir, b->made_dir);
	assert_string_equal(a->token, b->token);
	assert_string_equal(a->error, b->error);
	assert_string_equal(a->owner.boot_id, b->owner.boot_id);
	assert_true(a->target_ino == b->target_ino && a->owner.start_ticks == b->owner.start_ticks);
	assert_true(a->is_set == b->is_set && a->reclaim == b->reclaim && a->by_link == b->by_link);
	assert_int_equal(a->rollback_mode, b->rollback_mode);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->n_members, b->n_members);
	for (size_t i = 0; i < a->n_members; i++) {
		const struct dbt_pmember *x = &a->members[i], *y = &b->members[i];

		assert_string_equal(x->path, y->path);
		assert_string_equal(x->copy, y->copy);
		assert_string_equal(x->xxh128, y->xxh128);
		assert_true(dbt_ident_same_content(&x->source, &y->source, true, false));
		assert_true(x->source.uid == y->source.uid && x->source.mode == y->source.mode);
		assert_true(x->from_device == y->from_device && x->taken_over == y->taken_over);
		assert_true(x->reclaimed == y->reclaimed && x->copy_left == y->copy_left);
		assert_true(!x->back == !y->back);
	}
}

static void test_round_trip(void **state)
{
	struct dbt_ledger *ledger = open_ledger(DBT_LEDGER_WRITE);
	struct dbt_promotion p = sample("/store/db");
	struct dbt_promotions list = { 0 };
	char *steps = NULL;

	(void)state;
	assert_int_equal(dbt_ledger_add(ledger, &p, NULL), 0);
	assert_true(p.id > 0);
	p.state = DBT_STATE_VERIFIED;
	assert_int_equal(dbt_ledger_save(ledger, &p, "a step", NULL), 0);
	dbt_ledger_close(ledger);

	ledger = open_ledger(DBT_LEDGER_READ);
	assert_int_equal(dbt_ledger_load(ledger, &list, NULL), 0);
	assert_int_equal(list.n, 1);
	assert_same(&p, &list.items[0]);
	assert_int_equal(dbt_ledger_steps(ledger, p.id, &steps, NULL), 0);
	assert_non_null(strstr(steps, "a step"));
	free(steps);
	dbt_promotions_release(&list);
	dbt_promotion_release(&p);
	dbt_ledger_close(ledger);
}

/* One path, one copy: no second active promotion may have them in any role. */
static void test_conflicts(void **state)
{
	struct dbt_ledger *ledger = open_ledger(DBT_LEDGER_WRITE);
	struct dbt_promotion p = sample("/store/db"), q = sample("/store/db");
	struct dbt_err err;
	int64_t run = 0;

	(void)state;
	assert_int_equal(dbt_ledger_add(ledger, &p, NULL), 0);
	assert_int_equal(dbt_ledger_add(ledger, &q, &err), -EBUSY);
	assert_int_equal(err.kind, DBT_ERR_BUSY);
	assert_int_equal(q.id, 0);
	p.owner.pid = 0;
	assert_int_equal(dbt_ledger_save(ledger, &p, "let go", NULL), 0);
	assert_true(dbt_ledger_add(ledger, &q, &err) < 0);
	assert_int_equal(err.kind, DBT_ERR_REFUSED);
	free(q.members[0].path);
	q.members[0].path =
		strdup(p.members[1].copy); /* the copy of the first as source of the second */
	free(q.members[1].path);
	q.members[1].path = strdup("/elsewhere");
	assert_true(dbt_ledger_add(ledger, &q, &err) < 0);
	p.state = DBT_STATE_ROLLED_BACK;
	assert_int_equal(dbt_ledger_save(ledger, &p, "rolled back", NULL), 0);
	/* Planned as somebody else's file, it waits for its removal by now. */
	assert_true(p.members[0].copy_left && q.members[0].taken_over);
	assert_int_equal(dbt_ledger_add(ledger, &q, &err), -EBUSY);
	p.members[0].copy_left = false;
	assert_int_equal(dbt_ledger_save(ledger, &p, "cleaned up", NULL), 0);
	assert_int_equal(dbt_ledger_add(ledger, &q, &err), 0);
	assert_int_equal(dbt_ledger_next_run(ledger, &run, NULL), 0);
	assert_int_equal(run, 8);
	dbt_promotion_release(&p);
	dbt_promotion_release(&q);
	dbt_ledger_close(ledger);
}

static bool never(void *data, const struct dbt_run *owner)
{
	(void)data;
	(void)owner;
	return false;
}

/* The lock ends with the ledger that holds it, whatever is recorded of its owner. */
static void test_claim(void **state)
{
	const struct dbt_run me = { .pid = 77, .start_ticks = 5, .boot_id = "now" };
	struct dbt_ledger *first = open_ledger(DBT_LEDGER_WRITE),
			  *ledger = open_ledger(DBT_LEDGER_WRITE);
	struct dbt_promotion p = sample("/store/db"), got = { 0 };
	struct dbt_err err;

	(void)state;
	assert_int_equal(dbt_ledger_add(first, &p, NULL), 0);
	assert_int_equal(dbt_ledger_claim(ledger, p.id, &me, never, NULL, &got, &err), -EBUSY);
	assert_int_equal(err.kind, DBT_ERR_BUSY);
	assert_non_null(strstr(err.text, "42"));
	dbt_ledger_close(first);
	assert_int_equal(dbt_ledger_claim(ledger, p.id, &me, never, NULL, &got, &err), 0);
	assert_int_equal(got.owner.pid, 77);
	first = open_ledger(DBT_LEDGER_WRITE);
	assert_int_equal(dbt_ledger_claim(first, p.id, &me, never, NULL, &p, &err), -EBUSY);
	got.owner.pid = 0;
	assert_int_equal(dbt_ledger_save(ledger, &got, "let go", NULL), 0);
	dbt_promotion_release(&p);
	assert_int_equal(dbt_ledger_claim(first, 1, &me, never, NULL, &p, &err), 0);
	assert_int_equal(dbt_ledger_claim(ledger, 999, &me, never, NULL, &got, &err), -ENOENT);
	assert_int_equal(dbt_ledger_has_token(ledger, "0123456789abcdef", NULL), 1);
	assert_int_equal(dbt_ledger_has_token(ledger, "0123456789abcdee", NULL), 0);
	dbt_ledger_close(first);
	dbt_promotion_release(&got);
	dbt_promotion_release(&p);
	dbt_ledger_close(ledger);
}

static void run_sql(const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Rows that somebody edited, or a disk damaged, are errors with the promotion's number, never acted on. */
static void test_damaged_rows(void **state)
{
	static const char *const edits[] = {
		"UPDATE member SET path='relative'",
		"UPDATE member SET copy=CAST('' AS BLOB)",
		"UPDATE member SET kept='../../etc/passwd'",
		"UPDATE member SET kept='..'",
		"UPDATE member SET kept='.other.dbtier-original'",
		"UPDATE member SET part='a/b'",
		"UPDATE member SET part='precious'",
		"UPDATE member SET part='.dbtier-0123456789abcdee-0.part'",
		"UPDATE member SET part='.dbtier-0123456789abcdef-/../x'",
		"UPDATE member SET back='precious' WHERE seq=1",
		"UPDATE promotion SET kind='archive'", /* whose members have no such names */
		"UPDATE promotion SET kind='other'",
		"UPDATE member SET back='/x' WHERE seq=1",
		"UPDATE member SET source='dev=1 ino=2'",
		"UPDATE member SET copied='dev=1 ino=99999999999999999999999 size=1 mtime=1 "
		"ctime=1 btime=1 mode=1 "
		"uid=1 gid=1 nlink=1'",
		"UPDATE member SET returned=NULL",
		"UPDATE member SET xxh128='0123456789012345678901234567890123456789'",
		"UPDATE promotion SET state='done'",
		"UPDATE promotion SET state=x'00'",
		"UPDATE promotion SET token='../../../../tmp/'",
		"UPDATE promotion SET target='here'",
		"UPDATE promotion SET made_dir='here'",
		"DELETE FROM member",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		struct dbt_promotion p = sample("/store/db");
		struct dbt_promotions list = { 0 };
		struct dbt_ledger *ledger;
		struct dbt_err err = { 0 };
		char relaxed[512];

		(void)unlink(file);
		ledger = open_ledger(DBT_LEDGER_WRITE);
		assert_int_equal(dbt_ledger_add(ledger, &p, NULL), 0);
		dbt_ledger_close(ledger);
		/* NULL where the schema forbids it: as after damage. */
		(void)snprintf(relaxed, sizeof(relaxed),
		               "PRAGMA writable_schema=1; UPDATE sqlite_master SET "
		               "sql=replace(sql,'NOT NULL','');"
		               "PRAGMA writable_schema=RESET; %s",
		               edits[i]);
		run_sql(relaxed);
		ledger = open_ledger(DBT_LEDGER_READ);
		if (dbt_ledger_load(ledger, &list, &err) == 0)
			fail_msg("accepted: %s", edits[i]);
		assert_int_equal(err.kind, DBT_ERR_LEDGER);
		assert_int_equal(list.n, 0);
		dbt_ledger_close(ledger);
		dbt_promotion_release(&p);
	}
}

static void assert_refused(enum dbt_ledger_open how, const char *part)
{
	struct dbt_ledger *ledger = NULL;
	struct dbt_err err = { 0 };

	assert_true(dbt_ledger_open(&ctx, state_dir, how, &ledger, &err) < 0);
	assert_int_equal(err.kind, DBT_ERR_LEDGER);
	assert_non_null(strstr(err.text, part));
}

static void test_foreign_files(void **state)
{
	struct dbt_ledger *ledger = NULL;

	(void)state;
	/* None yet: for a reader that is an answer of its own. */
	assert_int_equal(dbt_ledger_open(&ctx, state_dir, DBT_LEDGER_READ, &ledger, NULL), -ENOENT);
	tree_put(dir, "deep/state/dbtier.db",
	         "this is no database at all, whatever its name says\n");
	assert_refused(DBT_LEDGER_READ, file);
	assert_refused(DBT_LEDGER_WRITE, file);
	assert_int_equal(unlink(file), 0);
	run_sql("CREATE TABLE precious(x); INSERT INTO precious VALUES(1)");
	assert_refused(DBT_LEDGER_WRITE, "another program");
	assert_int_equal(unlink(file), 0);
	dbt_ledger_close(open_ledger(DBT_LEDGER_WRITE));
	run_sql("PRAGMA user_version=99");
	assert_refused(DBT_LEDGER_WRITE, "newer");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0); /* not even opened */
	assert_refused(DBT_LEDGER_READ, state_dir);
	assert_refused(DBT_LEDGER_WRITE, state_dir);
	tree_put(dir, "plain", "x");
	free(state_dir);
	state_dir = tree_path(dir, "plain/state");
	assert_refused(DBT_LEDGER_WRITE, state_dir);
}

static void add_name(struct dbt_scan_names *names, const char *name, const char *path)
{
	names->items = realloc(names->items, (names->n + 1) * sizeof(*names->items));
	names->items[names->n++] = (struct dbt_scan_name){ .name = strdup(name),
		                                           .path = strdup(path),
		                                           .dir = strdup("/"),
		                                           .database = strdup("d"),
		                                           .format = strdup("f"),
		                                           .tier = strdup("hdd") };
}

static size_t count_names(struct dbt_ledger *ledger, const char *name)
{
	struct dbt_scan_names names = { 0 };
	size_t n;

	assert_int_equal(dbt_ledger_find_names(ledger, name, &names, NULL), 0);
	n = names.n;
	dbt_scan_names_release(&names);
	return n;
}

/* A scan of a directory forgets what was below it, and only that. */
static void test_names(void **state)
{
	struct dbt_ledger *ledger = open_ledger(DBT_LEDGER_WRITE);
	struct dbt_scan_names names = { 0 }, none = { 0 };

	(void)state;
	add_name(&names, "a", "/store/db/a");
	add_name(&names, "a", "/store/db2/a");
	add_name(&names, "odd \xff\n'\"", "/store/d%_b/x");
	assert_int_equal(dbt_ledger_save_scan(ledger, "/store", &names, NULL), 0);
	assert_int_equal(count_names(ledger, "a"), 2);
	assert_int_equal(count_names(ledger, "odd \xff\n'\""), 1);
	assert_int_equal(count_names(ledger, "b"), 0);
	assert_int_equal(dbt_ledger_save_scan(ledger, "/store/db", &none, NULL), 0);
	assert_int_equal(count_names(ledger, "a"), 1);
	assert_int_equal(dbt_ledger_save_scan(ledger, "/store/d", &none, NULL), 0);
	assert_int_equal(count_names(ledger, NULL), 2);
	assert_int_equal(dbt_ledger_save_scan(ledger, "/", &none, NULL), 0);
	assert_int_equal(count_names(ledger, NULL), 0);
	dbt_scan_names_release(&names);
	dbt_ledger_close(ledger);
}

static void test_measurements(void **state)
{
	struct dbt_ledger *ledger = open_ledger(DBT_LEDGER_WRITE);
	struct dbt_measurement m = { .key = strdup("k"),
		                     .pattern = strdup("random"),
		                     .jobs = 4,
		                     .iops = 207.5,
		                     .wall_ns = 5,
		                     .proved = true };
	struct dbt_measurements list = { .items = &m, .n = 1 }, got = { 0 };

	(void)state;
	assert_int_equal(dbt_ledger_save_measurements(ledger, &list, NULL), 0);
	m.iops = 300;
	assert_int_equal(dbt_ledger_save_measurements(ledger, &list, NULL), 0);
	assert_int_equal(dbt_ledger_load_measurements(ledger, "k", &got, NULL), 0);
	assert_int_equal(got.n, 1);
	assert_true(got.items[0].iops > 299 && got.items[0].iops < 301 && got.items[0].proved);
	dbt_measurements_release(&got);
	assert_int_equal(dbt_ledger_load_measurements(ledger, "other", &got, NULL), 0);
	assert_int_equal(got.n, 0);
	free(m.key);
	free(m.pattern);
	dbt_ledger_close(ledger);
}

/* Root's ledger is read by everybody, and reading writes nothing beside it. */
static void test_readers(void **state)
{
	struct stat st;

	(void)state;
	dbt_ledger_close(open_ledger(DBT_LEDGER_WRITE));
	assert_int_equal(stat(file, &st), 0);
	if (geteuid() == 0)
		assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(chmod(state_dir, 0555), 0);
	dbt_ledger_close(open_ledger(DBT_LEDGER_READ));
	assert_int_equal(chmod(state_dir, 0755), 0);
}

/* A ledger that version 0.1 wrote is read as it is, and gets the newer columns from the first run that writes. */
static void test_upgrade(void **state)
{
	struct dbt_ledger *ledger = open_ledger(DBT_LEDGER_WRITE);
	struct dbt_promotion p = sample("/old");

	(void)state;
	assert_int_equal(dbt_ledger_add(ledger, &p, NULL), 0);
	dbt_ledger_close(ledger);
	run_sql("ALTER TABLE promotion DROP COLUMN kind; ALTER TABLE member DROP COLUMN role;"
	        "PRAGMA user_version=1");
	for (enum dbt_ledger_open how = DBT_LEDGER_READ; how <= DBT_LEDGER_WRITE; how++) {
		struct dbt_promotions got = { 0 };

		ledger = open_ledger(how);
		assert_int_equal(dbt_ledger_load(ledger, &got, NULL), 0);
		assert_int_equal(got.n, 1);
		assert_int_equal(got.items[0].kind, DBT_KIND_FILES);
		assert_int_equal(got.items[0].members[1].role, DBT_ROLE_FILE);
		if (how == DBT_LEDGER_WRITE)
			assert_int_equal(dbt_ledger_save(ledger, &p, "again", NULL), 0);
		dbt_promotions_release(&got);
		dbt_ledger_close(ledger);
	}
	dbt_promotion_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_conflicts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_claim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_measurements, setup, teardown),
		cmocka_unit_test_setup_teardown(test_readers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_upgrade, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
