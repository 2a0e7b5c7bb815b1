#include "survey/advice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GIB (1024ULL * 1024 * 1024)

/* The machine of the mission: an encrypted HDD with 207 random reads a second at 19 ms, 240 MB/s in
 * one stream and some 60 MB/s when four are interleaved, beside an NVMe. */
static const struct dbt_speeds hdd_speeds = {
	.random1 = { .proved = true, .iops = 52, .lat_p50_ns = 19000000 },
	.random4 = { .proved = true, .iops = 207, .lat_p50_ns = 19000000 },
	.stream1 = { .proved = true, .rate_bytes_s = 240000000 },
	.stream4 = { .proved = true, .rate_bytes_s = 60000000 },
};

static const struct dbt_speeds nvme_speeds = {
	.random1 = { .proved = true, .iops = 20000, .lat_p50_ns = 50000 },
	.random4 = { .proved = true, .iops = 79700, .lat_p50_ns = 50000 },
	.stream1 = { .proved = true, .rate_bytes_s = 3000000000 },
	.stream4 = { .proved = true, .rate_bytes_s = 3000000000 },
};

static char hdd_mount[] = "/mnt/store", nvme_mount[] = "/fast";

static const struct dbt_place hdd = {
	.mnt_id = 1, .fs_devno = 1, .mount = hdd_mount, .tier = DBT_TIER_HDD
};
static const struct dbt_place nvme = {
	.mnt_id = 2, .fs_devno = 2, .mount = nvme_mount, .tier = DBT_TIER_NVME
};

struct case_db {
	struct dbt_database db;
	struct dbt_member members[2];
};

static struct dbt_database *make(struct case_db *c, enum dbt_class class, uint64_t bytes)
{
	static char name[] = "psc.dmnd";

	*c = (struct case_db){ .db = { .complete = true, .class = class, .n_members = 1 } };
	c->members[0] = (struct dbt_member){
		.name = name, .size_bytes = bytes, .class = class, .hot = true
	};
	c->db.members = c->members;
	c->db.size_bytes = bytes;
	return &c->db;
}

static struct dbt_advice ask(const struct dbt_database *db, const struct dbt_place *from,
                             const struct dbt_speeds *from_speeds, const struct dbt_place *to,
                             const struct dbt_speeds *to_speeds, uint64_t free_memory)
{
	struct dbt_advice advice;

	assert_int_equal(dbt_advice_for(db, from, from_speeds, to, to_speeds, free_memory, &advice),
	                 0);
	assert_non_null(advice.text);
	return advice;
}

/* A streamed database gains by bandwidth, one stream or several: never by the ratio of random reads,
 * which is 385 here. */
static void stream_gains_by_bandwidth(void **state)
{
	struct case_db c;
	struct dbt_advice a = ask(make(&c, DBT_CLASS_STREAM, 43 * GIB), &hdd, &hdd_speeds, &nvme,
	                          &nvme_speeds, 8 * GIB);

	(void)state;
	assert_int_equal(a.verdict, DBT_VERDICT_MOVE);
	assert_float_equal(a.gain_low, 12.5, 0.01);
	assert_float_equal(a.gain_high, 50, 0.01);
	assert_string_equal(a.gain, "~13-50x (1 stream: 240 MB/s -> 3.0 GB/s; "
	                            "4 streams: 60 MB/s -> 3.0 GB/s)");
	assert_string_equal(a.text, "move to /fast: ~13-50x, copy ~3m 12s");
	dbt_advice_release(&a);
}

static void only_the_matching_measurement_counts(void **state)
{
	struct case_db c;
	struct dbt_speeds only_random = hdd_speeds;
	struct dbt_advice a;

	(void)state;
	only_random.stream1 = only_random.stream4 = (struct dbt_speed){ 0 };
	a = ask(make(&c, DBT_CLASS_STREAM, 43 * GIB), &hdd, &only_random, &nvme, &nvme_speeds,
	        8 * GIB);
	assert_int_equal(a.verdict, DBT_VERDICT_UNKNOWN);
	assert_null(a.gain);
	assert_string_equal(a.text, "a guess: move to /fast (hdd to nvme, not measured)");
	dbt_advice_release(&a);
}

static void random_gains_by_iops(void **state)
{
	struct case_db c;
	struct dbt_advice a = ask(make(&c, DBT_CLASS_RANDOM_PREAD, 39 * GIB), &hdd, &hdd_speeds,
	                          &nvme, &nvme_speeds, 8 * GIB);

	(void)state;
	assert_int_equal(a.verdict, DBT_VERDICT_MOVE);
	assert_float_equal(a.gain_low, 20000.0 / 52, 0.1);
	assert_float_equal(a.gain_high, 79700.0 / 207, 0.5);
	assert_non_null(strstr(a.gain, "random 4k, 4 jobs: 207 -> 79,700 IOPS"));
	dbt_advice_release(&a);
}

/* Faults are read around: between bandwidth and IOPS. */
static void mapped_gains_something_between(void **state)
{
	struct case_db c;
	struct dbt_advice a = ask(make(&c, DBT_CLASS_RANDOM_MMAP, 39 * GIB), &hdd, &hdd_speeds,
	                          &nvme, &nvme_speeds, 8 * GIB);

	(void)state;
	assert_float_equal(a.gain_low, 12.5, 0.01);
	assert_true(a.gain_high > 380);
	dbt_advice_release(&a);
}

/* Bakta: each hot file by its own class. */
static void mixed_tells_each_file(void **state)
{
	static char db_name[] = "bakta.db";
	struct case_db c;
	struct dbt_advice a;

	(void)state;
	(void)make(&c, DBT_CLASS_STREAM, 43 * GIB);
	c.db.class = DBT_CLASS_UNKNOWN;
	c.db.mixed = true;
	c.db.n_members = 2;
	c.members[1] = (struct dbt_member){ .name = db_name,
		                            .size_bytes = 39 * GIB,
		                            .class = DBT_CLASS_RANDOM_PREAD,
		                            .hot = true };
	a = ask(&c.db, &hdd, &hdd_speeds, &nvme, &nvme_speeds, 8 * GIB);
	assert_int_equal(a.verdict, DBT_VERDICT_MOVE);
	assert_non_null(strstr(a.gain, "psc.dmnd ~13-50x (1 stream"));
	assert_non_null(strstr(a.gain, "bakta.db ~385x (random 4k, 1 job"));
	assert_float_equal(a.gain_low, 12.5, 0.01);
	assert_true(a.gain_high > 380);
	dbt_advice_release(&a);
}

/* Of a database that is promoted in part, what is left is weighed. */
static void the_rest_is_weighed(void **state)
{
	static char db_name[] = "bakta.db";
	struct case_db c;
	struct dbt_advice a;

	(void)state;
	(void)make(&c, DBT_CLASS_STREAM, 43 * GIB);
	c.db.class = DBT_CLASS_UNKNOWN;
	c.db.mixed = c.db.promoted = c.members[0].promoted = true;
	c.db.n_members = 2;
	c.members[1] = (struct dbt_member){ .name = db_name,
		                            .size_bytes = 39 * GIB,
		                            .class = DBT_CLASS_RANDOM_PREAD,
		                            .hot = true };
	a = ask(&c.db, &hdd, &hdd_speeds, &nvme, &nvme_speeds, 8 * GIB);
	assert_int_equal(a.verdict, DBT_VERDICT_MOVE);
	assert_string_equal(a.text, "move the rest to /fast: ~385x, copy ~2m 54s");
	dbt_advice_release(&a);
}

static void what_fits_in_memory_is_left(void **state)
{
	struct case_db c;
	struct dbt_advice a = ask(make(&c, DBT_CLASS_RANDOM_PREAD, 2 * GIB), &hdd, &hdd_speeds,
	                          &nvme, &nvme_speeds, 12 * GIB);

	(void)state;
	assert_int_equal(a.verdict, DBT_VERDICT_LEAVE);
	assert_string_equal(a.text, "leave: fits in free memory");
	assert_null(a.gain);
	dbt_advice_release(&a);
	/* Just too large for it: the cache needs room besides. */
	a = ask(make(&c, DBT_CLASS_RANDOM_PREAD, 11 * GIB), &hdd, &hdd_speeds, &nvme, &nvme_speeds,
	        12 * GIB);
	assert_int_equal(a.verdict, DBT_VERDICT_MOVE);
	dbt_advice_release(&a);
}

static void what_loads_once_is_left(void **state)
{
	struct case_db c;
	struct dbt_advice a = ask(make(&c, DBT_CLASS_LOAD_ALL, 72 * GIB), &hdd, &hdd_speeds, &nvme,
	                          &nvme_speeds, 8 * GIB);

	(void)state;
	assert_int_equal(a.verdict, DBT_VERDICT_LEAVE);
	assert_string_equal(a.text, "leave: loaded once (~5m 22s)");
	assert_string_equal(a.gain, "~13x (1 stream: 240 MB/s -> 3.0 GB/s)");
	dbt_advice_release(&a);
	a = ask(make(&c, DBT_CLASS_LOAD_ALL, 72 * GIB), &hdd, NULL, &nvme, NULL, 8 * GIB);
	assert_int_equal(a.verdict, DBT_VERDICT_LEAVE);
	assert_string_equal(a.text, "leave: loaded once");
	dbt_advice_release(&a);
}

static void facts_settle_the_rest(void **state)
{
	struct dbt_place network = {
		.mnt_id = 3, .fs_devno = 3, .tier = DBT_TIER_NETWORK, .network = true
	};
	struct case_db c;
	struct dbt_database *db = make(&c, DBT_CLASS_STREAM, 43 * GIB);
	struct dbt_advice a;

	(void)state;
	a = ask(db, &nvme, &nvme_speeds, &nvme, &nvme_speeds, GIB);
	assert_string_equal(a.text, "leave: on nvme already");
	dbt_advice_release(&a);
	a = ask(db, &hdd, &hdd_speeds, NULL, NULL, GIB);
	assert_string_equal(a.text, "leave: no faster place known");
	dbt_advice_release(&a);
	a = ask(db, &network, &hdd_speeds, &nvme, &nvme_speeds, GIB);
	assert_int_equal(a.verdict, DBT_VERDICT_LEAVE);
	dbt_advice_release(&a);
	db->complete = false;
	a = ask(db, &hdd, &hdd_speeds, &nvme, &nvme_speeds, GIB);
	assert_string_equal(a.text, "leave: incomplete");
	dbt_advice_release(&a);
	db->complete = true;
	db->followed = true;
	a = ask(db, &hdd, &hdd_speeds, &nvme, &nvme_speeds, GIB);
	assert_string_equal(a.text, "leave: its files are links: scan where they lie");
	dbt_advice_release(&a);
	db->followed = false;
	db->promoted = c.members[0].promoted = true;
	a = ask(db, &hdd, &hdd_speeds, &nvme, &nvme_speeds, GIB);
	assert_string_equal(a.text, "promoted");
	dbt_advice_release(&a);
}

static void no_gain_is_said(void **state)
{
	struct dbt_place ssd = {
		.mnt_id = 4, .fs_devno = 4, .mount = nvme_mount, .tier = DBT_TIER_SSD
	};
	struct case_db c;
	struct dbt_advice a = ask(make(&c, DBT_CLASS_STREAM, 43 * GIB), &hdd, &hdd_speeds, &ssd,
	                          &hdd_speeds, GIB);

	(void)state;
	assert_int_equal(a.verdict, DBT_VERDICT_LEAVE);
	assert_string_equal(a.text, "leave: /fast gains nothing (~1.0x)");
	dbt_advice_release(&a);
}

/* A directory moves as one name, like any other. */
static void directories_move(void **state)
{
	struct case_db c;
	struct dbt_advice a;

	(void)state;
	make(&c, DBT_CLASS_RANDOM_PREAD, 43 * GIB)->moves = DBT_MOVES_DIRECTORY;
	a = ask(&c.db, &hdd, &hdd_speeds, &nvme, &nvme_speeds, 8 * GIB);
	assert_int_equal(a.verdict, DBT_VERDICT_MOVE);
	assert_non_null(strstr(a.text, "move to /fast: ~385x"));
	dbt_advice_release(&a);
}

/* What was not measured, or not proved, is called so. */
static void guesses_are_called_guesses(void **state)
{
	struct dbt_speeds unproved = nvme_speeds;
	struct case_db c;
	struct dbt_database *db = make(&c, DBT_CLASS_STREAM, 43 * GIB);
	struct dbt_advice a = ask(db, &hdd, &hdd_speeds, &nvme, NULL, GIB);

	(void)state;
	assert_int_equal(a.verdict, DBT_VERDICT_MOVE);
	assert_non_null(strstr(a.gain, "240 MB/s -> nvme, not measured: a guess"));
	dbt_advice_release(&a);
	unproved.stream1.proved = false;
	a = ask(db, &hdd, &hdd_speeds, &nvme, &unproved, GIB);
	assert_non_null(strstr(a.gain, "not proved by the device's counters"));
	dbt_advice_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_gains_by_bandwidth),
		cmocka_unit_test(only_the_matching_measurement_counts),
		cmocka_unit_test(random_gains_by_iops),
		cmocka_unit_test(mapped_gains_something_between),
		cmocka_unit_test(mixed_tells_each_file),
		cmocka_unit_test(the_rest_is_weighed),
		cmocka_unit_test(what_fits_in_memory_is_left),
		cmocka_unit_test(what_loads_once_is_left),
		cmocka_unit_test(facts_settle_the_rest),
		cmocka_unit_test(no_gain_is_said),
		cmocka_unit_test(directories_move),
		cmocka_unit_test(guesses_are_called_guesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
