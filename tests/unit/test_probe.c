/* What a probe reads, and what it does when reads fail, hang or are called off. The figures
 * themselves are tested on real devices by cli/probe.sh. */
#include "base/cleanup.h"
#include "support/tree.h"
#include "survey/mounts.h"
#include "survey/probe.h"
#include "survey/probeplan.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20 };

static struct dbt_root root;
static struct dbt_ctx ctx;
static struct dbt_sys faulty;
static atomic_int preads, cancel;

/* --- a table of calls that misbehaves --- */

static ssize_t pread_eio(int fd, void *buf, size_t len, uint64_t off)
{
	if (atomic_fetch_add(&preads, 1) == 40)
		return -EIO;
	return dbt_sys_real.pread(fd, buf, len, off);
}

static ssize_t pread_short(int fd, void *buf, size_t len, uint64_t off)
{
	return dbt_sys_real.pread(fd, buf, len / 2, off);
}

/* O_DIRECT was accepted, but the read is not. */
static ssize_t pread_no_direct(int fd, void *buf, size_t len, uint64_t off)
{
	atomic_fetch_add(&preads, 1);
	if (fcntl(fd, F_GETFL) & O_DIRECT)
		return -EINVAL;
	return dbt_sys_real.pread(fd, buf, len, off);
}

static ssize_t pread_then_cancel(int fd, void *buf, size_t len, uint64_t off)
{
	if (atomic_fetch_add(&preads, 1) == 100)
		atomic_store(&cancel, 2);
	(void)usleep(1000);
	return dbt_sys_real.pread(fd, buf, len, off);
}

/* A disk that does not answer: the read comes back when the test says so. */
static sem_t hanging, released;

static ssize_t pread_that_hangs(int fd, void *buf, size_t len, uint64_t off)
{
	ssize_t r;

	atomic_store(&cancel, 2);
	while (sem_wait(&hanging) < 0)
		;
	r = dbt_sys_real.pread(fd, buf, len, off);
	(void)sem_post(&released);
	return r;
}

static int setup(void **state)
{
	(void)state;
	atomic_store(&preads, 0);
	atomic_store(&cancel, 0);
	assert_int_equal(dbt_root_open(&root, NULL), 0);
	dbt_ctx_init(&ctx, &root);
	faulty = dbt_sys_real;
	ctx.sys = &faulty;
	ctx.cancel = &cancel;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dbt_root_close(&root);
	return 0;
}

/* --- files --- */

static void fill(int fd, uint64_t off, uint64_t len)
{
	char *block = malloc(MIB);

	assert_non_null(block);
	for (uint64_t at = 0; at < len; at += MIB) {
		for (size_t i = 0; i < MIB; i++)
			block[i] = (char)((at + i) * 2654435761U >> 7);
		assert_int_equal(pwrite(fd, block, MIB, (off_t)(off + at)), MIB);
	}
	free(block);
}

struct scratch {
	char *dir, *path;
	const char *paths[1];
	struct dbt_place place;
	struct dbt_probe_target target;
};

/* A file of 16 MiB with data in [4, 6) and [10, 15) MiB only, [0, 2) reserved, on the device and out of memory. */
static void scratch_make(struct scratch *s)
{
	struct dbt_mounts *mounts;
	struct dbt_err err;
	int fd;

	s->dir = tree_new_in("/var/tmp");
	s->path = tree_path(s->dir, "db");
	fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	fill(fd, 4 * MIB, 2 * MIB);
	fill(fd, 10 * MIB, 5 * MIB);
	assert_int_equal(ftruncate(fd, 16 * MIB), 0);
	/* Reserved, never written: the disk would answer from nowhere. Some filesystems cannot. */
	(void)!fallocate(fd, 0, 0, 2 * MIB);
	assert_int_equal(fsync(fd), 0);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	assert_int_equal(dbt_mounts_new(&ctx, &mounts, &err), 0);
	assert_int_equal(dbt_place_of_fd(&ctx, mounts, fd, NULL, &s->place, &err), 0);
	dbt_mounts_free(mounts);
	(void)close(fd);
	s->paths[0] = s->path;
	s->target =
		(struct dbt_probe_target){ .paths = s->paths, .n_paths = 1, .place = &s->place };
}

static void scratch_remove(struct scratch *s)
{
	dbt_place_release(&s->place);
	tree_remove(s->dir);
	free(s->path);
	free(s->dir);
}

static bool in_data(const struct dbt_read_op *op)
{
	uint64_t from = op->off_bytes, to = from + op->len_bytes;

	return (from >= 4 * MIB && to <= 6 * MIB) || (from >= 10 * MIB && to <= 15 * MIB);
}

static int by_offset(const void *a, const void *b)
{
	const struct dbt_read_op *x = a, *y = b;

	return (x->off_bytes > y->off_bytes) - (x->off_bytes < y->off_bytes);
}

static void check_ops(struct dbt_probe_plan *plan)
{
	qsort(plan->ops, plan->n_ops, sizeof(*plan->ops), by_offset);
	for (size_t i = 0; i < plan->n_ops; i++) {
		assert_true(in_data(&plan->ops[i]));
		assert_int_equal(plan->ops[i].off_bytes % plan->align, 0);
		assert_int_equal(plan->ops[i].len_bytes % plan->align, 0);
		if (i > 0)
			assert_true(plan->ops[i].off_bytes >=
			            plan->ops[i - 1].off_bytes + plan->ops[i - 1].len_bytes);
	}
}

static void only_data_is_read_and_nothing_twice(void **state)
{
	struct dbt_probe_plan plan;
	struct dbt_err err;
	struct scratch s;

	(void)state;
	scratch_make(&s);
	if (dbt_probe_plan_open(&ctx, &s.target, &plan, &err) < 0) {
		print_message("skipped: %s\n", err.text);
		scratch_remove(&s);
		skip();
	}
	assert_int_equal(plan.extents.data_bytes, 7 * MIB);
	assert_int_equal(dbt_probe_plan_random(&ctx, &plan, 512, &err), 0);
	assert_int_equal(plan.n_ops, 512);
	check_ops(&plan);
	/* Over the whole of it: a fair share in each of the two parts. */
	assert_true(plan.ops[100].off_bytes < 6 * MIB);
	assert_true(plan.ops[200].off_bytes >= 10 * MIB);
	assert_int_equal(dbt_probe_plan_stream(&ctx, &plan, 1, 100, &err), 0);
	check_ops(&plan);
	assert_int_equal(dbt_probe_plan_stream(&ctx, &plan, 3, 100, &err), 0);
	assert_int_equal(plan.n_ops, 3 * plan.each);
	check_ops(&plan);
	/* More than there is: each block once. */
	assert_int_equal(dbt_probe_plan_random(&ctx, &plan, 5000, &err), 0);
	assert_true(plan.n_ops <= 7 * MIB / plan.block_bytes);
	check_ops(&plan);
	dbt_probe_plan_release(&plan);
	scratch_remove(&s);
}

/* Of a set of many files the largest are read; what cannot be opened is left out. */
static void many_files_and_missing_ones(void **state)
{
	enum { N = 300 };
	static const char *paths[N];
	struct dbt_probe_plan plan;
	struct dbt_err err;
	struct scratch s;

	(void)state;
	scratch_make(&s);
	tree_put(s.dir, "small", "nothing much");
	for (size_t i = 0; i < N; i++)
		paths[i] = i % 2 ? "/nonexistent" : tree_path(s.dir, "small");
	paths[251] = s.path;
	s.target.paths = paths;
	s.target.n_paths = N;
	if (dbt_probe_plan_open(&ctx, &s.target, &plan, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(plan.extents.data_bytes, 7 * MIB);
	assert_true(plan.n_files <= 128);
	dbt_probe_plan_release(&plan);
	for (size_t i = 0; i < N; i += 2)
		free((void *)(uintptr_t)paths[i]);
	scratch_remove(&s);
}

static void a_failing_read_is_an_error(void **state)
{
	struct dbt_probe_result result;
	struct dbt_err err;
	struct scratch s;

	(void)state;
	scratch_make(&s);
	faulty.pread = pread_eio;
	assert_int_equal(dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 4, NULL, &result, &err),
	                 -EIO);
	assert_non_null(strstr(err.text, s.path));
	faulty.pread = pread_short;
	assert_int_equal(dbt_probe_run(&ctx, &s.target, DBT_PATTERN_STREAM, 1, NULL, &result, &err),
	                 -EIO);
	scratch_remove(&s);
}

static void refused_direct_reads_go_through_the_cache(void **state)
{
	const struct dbt_probe_opts opts = { .max_ns = 300000000 };
	struct dbt_probe_result result;
	struct dbt_err err;
	struct scratch s;

	(void)state;
	scratch_make(&s);
	faulty.pread = pread_no_direct;
	if (dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, &opts, &result, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(result.reads > 32);
	assert_true(result.iops > 0);
	dbt_probe_result_release(&result);
	scratch_remove(&s);
}

static void an_interrupted_probe_tells_what_it_knows(void **state)
{
	struct dbt_probe_result result;
	struct dbt_err err;
	struct scratch s;
	int r;

	(void)state;
	scratch_make(&s);
	faulty.pread = pread_then_cancel;
	assert_int_equal(dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, NULL, &result, &err),
	                 0);
	assert_true(result.interrupted);
	assert_non_null(strstr(result.note, "stopped early"));
	dbt_probe_result_release(&result);
	/* Called off before it begins: nothing was read, or what a thread was quick enough to read. */
	r = dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, NULL, &result, &err);
	if (r == 0) {
		assert_true(result.interrupted);
		dbt_probe_result_release(&result);
	} else {
		assert_int_equal(r, -ECANCELED);
		assert_int_equal(err.kind, DBT_ERR_INTERRUPTED);
	}
	scratch_remove(&s);
}

static void an_interrupt_does_not_wait_for_a_dead_disk(void **state)
{
	struct dbt_probe_result result;
	struct dbt_err err;
	struct scratch s;

	(void)state;
	scratch_make(&s);
	assert_int_equal(sem_init(&hanging, 0, 0), 0);
	assert_int_equal(sem_init(&released, 0, 0), 0);
	faulty.pread = pread_that_hangs;
	assert_int_equal(dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, NULL, &result, &err),
	                 -ECANCELED);
	/* The read still finds its file and its memory. */
	assert_int_equal(sem_post(&hanging), 0);
	while (sem_wait(&released) < 0)
		;
	scratch_remove(&s);
}

static void memory_and_nothing_are_no_devices(void **state)
{
	struct dbt_probe_result result;
	struct dbt_speeds speeds;
	struct dbt_err err;
	struct scratch s;

	(void)state;
	scratch_make(&s);
	s.place.ram = true;
	assert_int_equal(dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, NULL, &result, &err),
	                 -ENODATA);
	assert_int_equal(dbt_probe_quick(&ctx, &s.target, &speeds, &err), -ENODATA);
	s.place.ram = false;
	s.target.n_paths = 0;
	assert_int_equal(dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, NULL, &result, &err),
	                 -ENODATA);
	s.target.n_paths = 1;
	s.paths[0] = "/nonexistent";
	assert_int_equal(dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, NULL, &result, &err),
	                 -ENOENT);
	scratch_remove(&s);
}

/* Eight MiB for both random patterns, with the ramp, the repetition and what was on its way at the end. */
static void the_random_reads_are_bounded(void **state)
{
	const struct dbt_probe_opts opts = { .max_ns = 3000000000 };
	struct dbt_probe_result one, four;
	struct dbt_err err;
	struct scratch s;

	(void)state;
	scratch_make(&s);
	if (dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, &opts, &one, &err) < 0 ||
	    dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 4, &opts, &four, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(one.read_bytes > 0 && four.read_bytes > 0);
	assert_true(one.read_bytes + four.read_bytes <= 8 * MIB);
	assert_true(one.load >= 0 && one.load <= 1);
	dbt_probe_result_release(&one);
	dbt_probe_result_release(&four);
	scratch_remove(&s);
}

/* Without disks to count, nothing is proved, whatever the figure. */
static void no_counters_no_proof(void **state)
{
	const struct dbt_probe_opts opts = { .max_ns = 300000000 };
	struct dbt_probe_result result;
	struct dbt_err err;
	struct scratch s;
	size_t n;

	(void)state;
	scratch_make(&s);
	n = s.place.n_disks;
	s.place.n_disks = 0;
	if (dbt_probe_run(&ctx, &s.target, DBT_PATTERN_RANDOM, 1, &opts, &result, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(result.proved);
	assert_non_null(strstr(result.note, "not proved"));
	dbt_probe_result_release(&result);
	s.place.n_disks = n;
	scratch_remove(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_data_is_read_and_nothing_twice, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(many_files_and_missing_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failing_read_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_direct_reads_go_through_the_cache, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(an_interrupted_probe_tells_what_it_knows, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(an_interrupt_does_not_wait_for_a_dead_disk, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(memory_and_nothing_are_no_devices, setup, teardown),
		cmocka_unit_test_setup_teardown(the_random_reads_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(no_counters_no_proof, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
