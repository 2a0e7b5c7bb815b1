/* Many files through one run of the copy engine, and copies that an interrupted run left half-way. */
#include "move/copy.h"
#include "support/fault.h"
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
#include <xxhash.h>

#include <cmocka.h>

enum { BLOCK = 4 << 20, MAX_FILES = 400 };

static struct dbt_root live;
static struct dbt_ctx ctx;
static char *dir;
static atomic_int cancel;
static unsigned char *bytes; /* every file is the beginning of these */
static const size_t n_bytes = (size_t)20 * BLOCK;
static unsigned log_lines;

static void count_log(void *data, enum dbt_log_level level, const char *text)
{
	(void)data;
	(void)level;
	(void)text;
	log_lines++;
}

static int setup(void **state)
{
	uint64_t x = 0x9e3779b97f4a7c15U;

	(void)state;
	assert_int_equal(dbt_root_open(&live, NULL), 0);
	dbt_ctx_init(&ctx, &live);
	ctx.sys = &fault_sys;
	ctx.cancel = &cancel;
	ctx.log = count_log;
	log_lines = 0;
	atomic_store(&cancel, 0);
	fault_reset();
	dir = tree_new_in(access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp");
	bytes = malloc(n_bytes);
	assert_non_null(bytes);
	for (size_t i = 0; i < n_bytes; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[i] = (unsigned char)(x | 1);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fault_reset();
	tree_remove(dir);
	free(dir);
	free(bytes);
	dbt_root_close(&live);
	return 0;
}

struct one {
	char src[16], dst[16];
	size_t size;
	uint64_t kept;
	struct dbt_digest kept_digest;
	/* what was called */
	unsigned opened, written, flushed, proved, closed, failed;
	uint64_t flushed_bytes;
	struct dbt_copy_result result;
};

static struct one ones[MAX_FILES];
static size_t n_ones;

static void add(size_t size)
{
	struct one *one = &ones[n_ones];

	*one = (struct one){ .size = size };
	(void)snprintf(one->src, sizeof(one->src), "s%zu", n_ones);
	(void)snprintf(one->dst, sizeof(one->dst), "d%zu", n_ones);
	tree_put_bytes(dir, one->src, bytes, size);
	n_ones++;
}

static int open_in(const char *name, int flags)
{
	char *path = tree_path(dir, name);
	int fd = open(path, flags | O_CLOEXEC, 0600);

	free(path);
	return fd;
}

static uint64_t size_of(void *data, size_t i)
{
	return ((const struct one *)data)[i].size;
}

static int open_one(void *data, const struct dbt_ctx *c, size_t i, struct dbt_copy_item *ret,
                    struct dbt_err *err)
{
	struct one *one = (struct one *)data + i;

	(void)c;
	one->opened++;
	*ret = (struct dbt_copy_item){ .src = open_in(one->src, O_RDONLY),
		                       .dst = open_in(one->dst, O_RDWR | O_CREAT),
		                       .shown_src = one->src,
		                       .shown_dst = one->dst,
		                       .kept_bytes = one->kept,
		                       .kept_digest = one->kept_digest };
	return ret->src < 0 || ret->dst < 0 ? dbt_err_sys(err, -errno, "cannot open") : 0;
}

static int written_one(void *data, const struct dbt_ctx *c, size_t i, struct dbt_copy_item *item,
                       const struct dbt_digest *digest, struct dbt_err *err)
{
	struct one *one = (struct one *)data + i;

	(void)c;
	(void)err;
	one->written++;
	assert_true(digest->set);
	assert_int_equal(one->proved, 0);
	close(item->src);
	item->src = -1;
	return 0;
}

static int flushed_one(void *data, const struct dbt_ctx *c, size_t i,
                       const struct dbt_copy_item *item, uint64_t len,
                       const struct dbt_digest *digest, struct dbt_err *err)
{
	struct one *one = (struct one *)data + i;
	XXH128_hash_t h = XXH3_128bits(bytes, len);

	(void)c;
	(void)item;
	(void)err;
	one->flushed++;
	one->flushed_bytes = len;
	assert_int_equal(digest->high, h.high64);
	return 0;
}

static int proved_one(void *data, const struct dbt_ctx *c, size_t i, struct dbt_copy_item *item,
                      const struct dbt_copy_result *result, struct dbt_err *err)
{
	struct one *one = (struct one *)data + i;

	(void)c;
	(void)item;
	(void)err;
	one->proved++;
	one->result = *result;
	return 0;
}

static void close_one(void *data, const struct dbt_ctx *c, size_t i, struct dbt_copy_item *item,
                      bool failed)
{
	struct one *one = (struct one *)data + i;

	(void)c;
	one->closed++;
	one->failed += failed;
	if (item->src >= 0)
		close(item->src);
	close(item->dst);
}

static int run_jobs(unsigned jobs, struct dbt_err *err)
{
	const struct dbt_copy_many many = { .n = n_ones,
		                            .data = ones,
		                            .size = size_of,
		                            .open = open_one,
		                            .written = written_one,
		                            .flushed = flushed_one,
		                            .proved = proved_one,
		                            .close = close_one };
	const struct dbt_copy_opts opts = { .jobs = jobs, .shown_src = "a set" };

	return dbt_copy_many(&ctx, &many, &opts, err);
}

static void assert_copied(const struct one *one)
{
	unsigned char *found = malloc(one->size + 1);
	XXH128_hash_t h = XXH3_128bits(bytes, one->size);
	int fd = open_in(one->dst, O_RDONLY);

	assert_non_null(found);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, found, one->size + 1, 0), one->size);
	assert_memory_equal(found, bytes, one->size);
	assert_int_equal(one->result.digest.high, h.high64);
	assert_int_equal(one->result.digest.low, h.low64);
	assert_int_equal(one->opened, 1);
	assert_int_equal(one->written, 1);
	assert_int_equal(one->proved, 1);
	assert_int_equal(one->closed, 1);
	assert_int_equal(one->failed, 0);
	close(fd);
	free(found);
}

/* Sizes of every kind, more files than a window takes, any number of jobs. */
static void test_all_sizes(void **state)
{
	static const unsigned jobs[] = { 0, 100 };

	(void)state;
	for (size_t j = 0; j < sizeof(jobs) / sizeof(jobs[0]); j++) {
		struct dbt_err err;

		n_ones = 0;
		for (size_t i = 0; i < 300; i++)
			add(i % 100 == 7  ? 5 * BLOCK + i
			    : i % 30 == 3 ? 1 << 20
			    : i % 30 == 4 ? (1 << 20) + 1
			    : i % 11 == 0 ? 0
			                  : 4096 * (i % 5) + i);
		add(17 * BLOCK); /* over the end of a window */
		add(16 * BLOCK);
		add(1);
		fault_reset();
		assert_int_equal(run_jobs(jobs[j], &err), 0);
		for (size_t i = 0; i < n_ones; i++)
			assert_copied(&ones[i]);
		assert_true(ones[300].flushed >= 1);
		tree_remove(dir);
		free(dir);
		dir = tree_new_in(access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp");
	}
}

/* Small files share flushes where the filesystem takes syncfs; elsewhere each has its own. */
static void test_shared_flushes(void **state)
{
	int fd = open_in(".", O_RDONLY);
	bool shares = dbt_copy_sync_fs(&ctx, fd) == 0;
	struct dbt_err err;

	(void)state;
	close(fd);
	n_ones = 0;
	for (size_t i = 0; i < 300; i++)
		add(1000 + i);
	fault_reset();
	assert_int_equal(run_jobs(0, &err), 0);
	if (shares) {
		assert_int_equal(fault_count(FAULT_SYNCFS), 3);
		assert_int_equal(fault_count(FAULT_FSYNC), 0);
	} else {
		print_message("the filesystem of %s shares no flushes\n", dir);
		assert_int_equal(fault_count(FAULT_FSYNC), 300);
	}
	n_ones = 0;
	add(1000);
	fault_reset();
	assert_int_equal(run_jobs(0, &err), 0);
	assert_int_equal(fault_count(FAULT_SYNCFS), 0);
	assert_int_equal(fault_count(FAULT_FSYNC), 1);
}

/* Every call that can fail does, once; whatever was opened is closed again, and nothing unproved looks proved. */
static void test_each_failure(void **state)
{
	static const enum fault_call kinds[] = { FAULT_PREAD, FAULT_PWRITE,    FAULT_SYNCFS,
		                                 FAULT_FSYNC, FAULT_FTRUNCATE, FAULT_FALLOCATE };
	unsigned fired = 0;

	(void)state;
	n_ones = 0;
	for (size_t i = 0; i < 20; i++)
		add(i == 10 ? 18 * BLOCK : 5000);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (unsigned n = 1;;
		     n += kinds[k] == FAULT_PREAD || kinds[k] == FAULT_PWRITE ? 4 : 1) {
			struct dbt_err err;
			int r;

			for (size_t i = 0; i < n_ones; i++)
				ones[i].opened = ones[i].written = ones[i].proved = ones[i].closed =
					ones[i].failed = 0;
			fault_reset();
			fault_arm_call(kinds[k], n, EIO);
			r = run_jobs(0, &err);
			for (size_t i = 0; i < n_ones; i++) {
				assert_int_equal(ones[i].opened, ones[i].closed);
				assert_int_equal(ones[i].opened, ones[i].proved + ones[i].failed);
			}
			if (!fault_fired()) {
				assert_int_equal(r, 0);
				break;
			}
			fired++;
			assert_int_equal(r, -EIO);
		}
	print_message("%u failures, each reported\n", fired);
	assert_true(fired > 25);
}

static void put_half_copy(struct one *one, size_t kept, size_t junk)
{
	char *path = tree_path(dir, one->dst);
	XXH128_hash_t h = XXH3_128bits(bytes, kept);
	unsigned char *half = malloc(one->size);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_non_null(half);
	memcpy(half, bytes, kept);
	memset(half + kept, 0x55, junk);
	assert_int_equal(fwrite(half, 1, kept + junk, f), kept + junk);
	assert_int_equal(fclose(f), 0);
	one->kept = kept;
	one->kept_digest = (struct dbt_digest){ .set = true, .high = h.high64, .low = h.low64 };
	free(half);
	free(path);
}

/* Half copies are continued: what is kept is not read from the source again, which a changed source shows here. */
static void test_kept(void **state)
{
	static const size_t kept[] = { BLOCK, 16 * BLOCK, 17 * BLOCK, 17 * BLOCK + 99 };

	(void)state;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		struct dbt_err err;
		char *path;
		FILE *f;

		n_ones = 0;
		add(700);
		add(17 * BLOCK + 99);
		add(3 * BLOCK);
		put_half_copy(&ones[1], kept[i], ones[1].size - kept[i]);
		path = tree_path(dir, ones[1].src);
		f = fopen(path, "r+");
		assert_non_null(f);
		assert_int_equal(fwrite("overwritten", 1, 11, f), 11);
		assert_int_equal(fclose(f), 0);
		free(path);
		assert_int_equal(run_jobs(0, &err), 0);
		for (size_t k = 0; k < n_ones; k++)
			assert_copied(&ones[k]);
		assert_int_equal(ones[1].result.kept_bytes, kept[i]);
		assert_int_equal(ones[1].result.data_bytes, ones[1].size - kept[i]);
		assert_int_equal(log_lines, 0);
	}
}

/* A half copy that is not what it should be, or whose length is no whole number of blocks, is copied anew. */
static void test_not_kept(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct dbt_err err;

		n_ones = 0;
		add(9 * BLOCK + 1);
		add(100);
		put_half_copy(&ones[0], i == 2 ? 5 * BLOCK + 1 : 5 * BLOCK, 77);
		put_half_copy(&ones[1], 100, 0);
		if (i == 0)
			ones[0].kept_digest.low ^= 1;
		if (i == 1)
			ones[0].kept = 10 * BLOCK;
		if (i == 3) { /* shorter than it should be */
			char *path = tree_path(dir, ones[0].dst);

			assert_int_equal(truncate(path, BLOCK), 0);
			free(path);
		}
		log_lines = 0;
		assert_int_equal(run_jobs(0, &err), 0);
		assert_copied(&ones[0]);
		assert_copied(&ones[1]);
		assert_int_equal(ones[0].result.kept_bytes, 0);
		assert_int_equal(ones[1].result.kept_bytes, 100);
		assert_int_equal(log_lines, 1);
	}
}

/* Where the source has a hole nothing is written: what an earlier run left behind the kept part must not show. */
static void test_kept_before_a_hole(void **state)
{
	const size_t len = 8 * BLOCK;
	struct dbt_err err;
	unsigned char *found = malloc(len);
	char *path;
	int fd;

	(void)state;
	assert_non_null(found);
	n_ones = 0;
	add(2 * BLOCK);
	path = tree_path(dir, ones[0].src);
	assert_int_equal(truncate(path, (off_t)len), 0);
	free(path);
	ones[0].size = len;
	put_half_copy(&ones[0], BLOCK, 6 * BLOCK);
	assert_int_equal(run_jobs(0, &err), 0);
	fd = open_in(ones[0].dst, O_RDONLY);
	assert_int_equal(pread(fd, found, len, 0), len);
	assert_memory_equal(found, bytes, 2 * BLOCK);
	for (size_t i = 2 * BLOCK; i < len; i++)
		if (found[i])
			fail_msg("byte %zu is not zero", i);
	close(fd);
	free(found);
}

static void test_cancel(void **state)
{
	struct dbt_err err;

	(void)state;
	n_ones = 0;
	for (size_t i = 0; i < 50; i++)
		add(5000);
	atomic_store(&cancel, 2);
	assert_int_equal(run_jobs(0, &err), -ECANCELED);
	for (size_t i = 0; i < n_ones; i++)
		assert_int_equal(ones[i].opened, ones[i].closed);
	n_ones = 0;
	atomic_store(&cancel, 0);
	assert_int_equal(run_jobs(0, &err), 0); /* no files are fine */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_flushes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kept_before_a_hole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
