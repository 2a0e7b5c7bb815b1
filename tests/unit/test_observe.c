/* What is read from /proc and the trace, without either: parsers and the arithmetic of access. */
#include "observe/access.h"
#include "observe/machine.h"
#include "observe/ring.h"
#include "observe/tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- the ring buffer --- */

static const char format[] =
	"name: mm_filemap_add_to_page_cache\nID: 600\nformat:\n"
	"	field:unsigned short common_type;	offset:0;	size:2;	signed:0;\n"
	"	field:int common_pid;	offset:4;	size:4;	signed:1;\n\n"
	"	field:unsigned long i_ino;	offset:16;	size:8;	signed:0;\n"
	"	field:dev_t s_dev;	offset:32;	size:4;	signed:0;\n"
	"	field:char rwbs[10];	offset:34;	size:10;	signed:0;\n";

static void test_fields_are_found(void **state)
{
	struct dbt_ring_field f = dbt_ring_find_field(format, "i_ino");

	(void)state;
	assert_int_equal(dbt_ring_find_id(format), 600);
	assert_int_equal(f.at, 16);
	assert_int_equal(f.size_bytes, 8);
	assert_int_equal(dbt_ring_find_field(format, "rwbs[10]").at, 34);
	/* Not the end of a longer name, not one that is missing. */
	assert_int_equal(dbt_ring_find_field(format, "pid").size_bytes, 0);
	assert_int_equal(dbt_ring_find_field(format, "ino").size_bytes, 0);
	assert_int_equal(dbt_ring_find_id("no format"), -1);
}

static void put32(unsigned char *page, size_t *at, uint32_t word)
{
	memcpy(page + *at, &word, sizeof(word));
	*at += sizeof(word);
}

static uint32_t head(unsigned type, uint32_t delta)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? type | delta << 5 : type << 27 | delta;
}

static const struct dbt_ring_field commit_field = { .at = 8, .size_bytes = 8 };

static void test_events_of_a_page(void **state)
{
	unsigned char page[256] = { 0 };
	const unsigned char *event;
	struct dbt_ring_page p;
	uint64_t start = 1000, commit;
	size_t at = 16, len;

	(void)state;
	memcpy(page, &start, sizeof(start));
	put32(page, &at, head(2, 5)); /* two words, 5 ns later */
	put32(page, &at, 11);
	put32(page, &at, 12);
	put32(page, &at, head(30, 1)); /* time goes on by (2 << 27) + 1 */
	put32(page, &at, 2);
	put32(page, &at, head(29, 1)); /* dropped by a filter: 4 bytes behind the length */
	put32(page, &at, 8);
	put32(page, &at, 99);
	put32(page, &at, head(0, 3)); /* the length stands in a word of its own */
	put32(page, &at, 8);
	put32(page, &at, 13);
	commit = (at - 16) | 1ULL << 31;
	memcpy(page + 8, &commit, sizeof(commit));
	assert_true(dbt_ring_open(&p, page, sizeof(page), 16, commit_field));
	assert_int_equal(p.lost, 1);
	assert_true(dbt_ring_next(&p, &event, &len));
	assert_int_equal(len, 8);
	assert_int_equal(p.time_ns, 1005);
	assert_int_equal(dbt_ring_get((struct dbt_ring_field){ 4, 4 }, event, len), 12);
	assert_int_equal(dbt_ring_get((struct dbt_ring_field){ 8, 4 }, event, len), 0);
	assert_true(dbt_ring_next(&p, &event, &len));
	assert_int_equal(len, 4);
	assert_int_equal(p.time_ns, 1005 + (2ULL << 27) + 1 + 3);
	assert_int_equal(dbt_ring_get((struct dbt_ring_field){ 0, 4 }, event, len), 13);
	assert_false(dbt_ring_next(&p, &event, &len));
}

/* Whatever bytes come, nothing is read beyond them. */
static void test_garbage_is_no_page(void **state)
{
	unsigned char *page = malloc(64);
	struct dbt_ring_page p;
	const unsigned char *event;
	size_t len;

	(void)state;
	assert_non_null(page);
	for (unsigned seed = 0; seed < 20000; seed++) {
		unsigned x = seed * 2654435761U;

		for (size_t i = 0; i < 64; i++) {
			x = x * 1664525U + 1013904223U;
			page[i] = (unsigned char)(x >> 24);
		}
		page[9] = page[10] = page[11] = page[12] = page[13] = page[14] = page[15] = 0;
		if (!dbt_ring_open(&p, page, 64, 16, commit_field))
			continue;
		while (dbt_ring_next(&p, &event, &len))
			assert_true(event >= page && event + len <= page + 64);
	}
	assert_false(dbt_ring_open(&p, page, 10, 16, commit_field));
	free(page);
}

/* --- /proc --- */

static void test_stat_of_a_process(void **state)
{
	static const char text[] =
		"77 (a) b (c)) D 5 77 77 0 -1 4194304 100 0 7 0 20 30 0 0 20 0 3 0 1234 "
		"1 2 3 4 5 6 7 8 9 0 0 0 0 0 0 17 1 0 0 42 0 0\n";
	struct dbt_task_stat s;

	(void)state;
	assert_true(dbt_task_stat_parse(text, &s));
	assert_string_equal(s.name, "a) b (c)");
	assert_int_equal(s.state, 'D');
	assert_int_equal(s.parent, 5);
	assert_int_equal(s.major_faults, 7);
	assert_int_equal(s.cpu_ticks, 50);
	assert_int_equal(s.threads, 3);
	assert_int_equal(s.start_ticks, 1234);
	assert_int_equal(s.delay_ticks, 42);
	assert_false(s.kernel);
	assert_false(dbt_task_stat_parse("77 no name", &s));
	assert_false(dbt_task_stat_parse("", &s));
	assert_false(dbt_task_stat_parse(") (", &s));
}

static void test_small_texts(void **state)
{
	static const char disk[] = " 254 0 vda 10 1 80 30 20 2 160 40 1 50 70 0 0 0 0 0 0";
	static const char pressure[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=17\n"
				       "full avg10=0.00 avg60=0.00 avg300=0.00 total=4\n";
	struct dbt_obs_device d;
	char name[64];
	uint64_t v = 0;

	(void)state;
	assert_true(dbt_machine_diskstat(disk, &d, name));
	assert_string_equal(name, "vda");
	assert_int_equal(d.reads, 10);
	assert_int_equal(d.read_bytes, 80 * 512);
	assert_int_equal(d.read_ns, 30000000);
	assert_int_equal(d.write_bytes, 160 * 512);
	assert_int_equal(d.busy_ns, 50000000);
	assert_int_equal(d.queue_ns, 70000000);
	assert_false(dbt_machine_diskstat("254 0 vda 1", &d, name));
	assert_true(dbt_machine_pressure(pressure, "some", &v));
	assert_int_equal(v, 17);
	assert_true(dbt_machine_pressure(pressure, "full", &v));
	assert_int_equal(v, 4);
	assert_false(dbt_machine_pressure("", "some", &v));
	assert_true(dbt_machine_number("a 1\nMemTotal:   12 kB\n", "MemTotal", &v));
	assert_int_equal(v, 12);
	assert_false(dbt_machine_number("MemTotalX: 3\n", "MemTotal", &v));
}

/* --- access --- */

struct reads {
	struct dbt_access *access;
	struct dbt_obs_reads file;
	uint64_t now_ns;
};

static void read_at(struct reads *r, size_t reader, uint64_t off, uint64_t len, uint64_t wait_ns)
{
	r->now_ns += wait_ns;
	assert_int_equal(dbt_access_add(r->access,
	                                &(struct dbt_access_read){ .file = 3,
	                                                           .reader = reader,
	                                                           .time_ns = r->now_ns,
	                                                           .off_bytes = off,
	                                                           .len_bytes = len },
	                                &r->file, NULL),
	                 0);
}

enum { MS = 1000000, KB = 1024 };

static void test_a_stream_has_no_jumps(void **state)
{
	struct reads r = { .access = dbt_access_new(), .now_ns = 1 };

	(void)state;
	/* Two jobs, each in order, a megabyte at a time that comes in two pieces. */
	for (unsigned i = 0; i < 50; i++)
		for (size_t job = 0; job < 2; job++) {
			uint64_t at = (job * 1000 + i) * 1024 * KB;

			read_at(&r, job, at, 512 * KB, 5 * MS);
			read_at(&r, job, at + 512 * KB, 512 * KB, 1000);
		}
	assert_int_equal(r.file.bytes, 100ULL * 1024 * KB);
	assert_int_equal(r.file.requests, 100);
	assert_int_equal(r.file.jumps, 0);
	assert_int_equal(r.file.again_bytes, 0);
	dbt_access_free(r.access);
}

static void test_single_pages_are_jumps(void **state)
{
	struct reads r = { .access = dbt_access_new(), .now_ns = 1 };

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		read_at(&r, 1, i * 7919 % 1000 * 1024 * KB, 4 * KB, 5 * MS);
	assert_int_equal(r.file.requests, 100);
	/* The first one may be anywhere. */
	assert_int_equal(r.file.jumps, 99);
	dbt_access_free(r.access);
}

static void test_what_comes_again(void **state)
{
	struct reads r = { .access = dbt_access_new(), .now_ns = 1 };

	(void)state;
	read_at(&r, 1, 0, 1024 * KB, MS);
	read_at(&r, 2, 512 * KB, 1024 * KB, MS);
	assert_int_equal(r.file.again_bytes, 512 * KB);
	/* After more than ten seconds others have needed the memory. */
	read_at(&r, 1, 0, 1024 * KB, 20000ULL * MS);
	assert_int_equal(r.file.again_bytes, 512 * KB);
	dbt_access_free(r.access);
}

static void test_a_gap_is_no_jump(void **state)
{
	struct reads r = { .access = dbt_access_new(), .now_ns = 1 };

	(void)state;
	read_at(&r, 1, 0, 1024 * KB, MS);
	dbt_access_gap(r.access);
	read_at(&r, 1, 900000ULL * KB, 1024 * KB, MS);
	assert_int_equal(r.file.jumps, 0);
	read_at(&r, 1, 300000ULL * KB, 1024 * KB, MS);
	assert_int_equal(r.file.jumps, 1);
	dbt_access_free(r.access);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_are_found),
		cmocka_unit_test(test_events_of_a_page),
		cmocka_unit_test(test_garbage_is_no_page),
		cmocka_unit_test(test_stat_of_a_process),
		cmocka_unit_test(test_small_texts),
		cmocka_unit_test(test_a_stream_has_no_jumps),
		cmocka_unit_test(test_single_pages_are_jumps),
		cmocka_unit_test(test_what_comes_again),
		cmocka_unit_test(test_a_gap_is_no_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
