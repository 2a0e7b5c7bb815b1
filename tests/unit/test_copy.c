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

enum { BLOCK = 4 << 20 };

static struct dbt_root live;
static struct dbt_ctx ctx;
static char *dir;
static atomic_int cancel;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(dbt_root_open(&live, NULL), 0);
	dbt_ctx_init(&ctx, &live);
	ctx.sys = &fault_sys;
	ctx.cancel = &cancel;
	atomic_store(&cancel, 0);
	fault_reset();
	/* Not on a filesystem in memory: O_DIRECT is to be used where there is a disk. */
	dir = tree_new_in(access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fault_reset();
	tree_remove(dir);
	free(dir);
	dbt_root_close(&live);
	return 0;
}

/* Bytes that differ from block to block and are never zero. */
static unsigned char *make_bytes(size_t len)
{
	unsigned char *bytes = malloc(len ? len : 1);
	uint64_t x = 0x9e3779b97f4a7c15U;

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[i] = (unsigned char)(x | 1);
	}
	return bytes;
}

static int open_in(const char *name, int flags)
{
	char *path = tree_path(dir, name);
	int fd = open(path, flags | O_CLOEXEC, 0600);

	free(path);
	assert_true(fd >= 0);
	return fd;
}

struct job {
	int src, dst;
	struct dbt_ident ident;
	struct dbt_copy_opts opts;
	struct dbt_copy_result result;
	struct dbt_err err;
};

static void job_open(struct job *job)
{
	*job = (struct job){ .src = open_in("src", O_RDONLY),
		             .dst = open_in("dst", O_RDWR | O_CREAT | O_TRUNC),
		             .opts = { .shown_src = "the source", .shown_dst = "the copy" } };
	assert_int_equal(dbt_ident_fd(&ctx, job->src, &job->ident), 0);
}

static int job_run(struct job *job)
{
	return dbt_copy_file(&ctx, job->src, &job->ident, job->dst, &job->opts, &job->result,
	                     &job->err);
}

static void job_close(struct job *job)
{
	close(job->src);
	close(job->dst);
}

static void assert_holds(int fd, const unsigned char *bytes, size_t len)
{
	unsigned char *found = malloc(len + 1);

	assert_non_null(found);
	assert_int_equal(pread(fd, found, len + 1, 0), len);
	assert_memory_equal(found, bytes, len);
	free(found);
}

static void assert_digest_of(const struct dbt_digest *digest, const unsigned char *bytes,
                             size_t len)
{
	XXH128_hash_t h = XXH3_128bits(bytes, len);

	assert_true(digest->set);
	assert_int_equal(digest->high, h.high64);
	assert_int_equal(digest->low, h.low64);
}

/* Sizes around every boundary that the engine knows: sector, block, ring of eight blocks, window of 64 MiB. */
static void test_sizes(void **state)
{
	static const size_t sizes[] = { 0,
		                        1,
		                        511,
		                        4095,
		                        4096,
		                        4097,
		                        BLOCK - 1,
		                        BLOCK,
		                        BLOCK + 1,
		                        8 * BLOCK,
		                        8 * BLOCK + 5,
		                        16 * BLOCK - 4096,
		                        16 * BLOCK,
		                        16 * BLOCK + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *bytes = make_bytes(sizes[i]);
		struct job job;

		tree_put_bytes(dir, "src", bytes, sizes[i]);
		job_open(&job);
		assert_int_equal(job_run(&job), 0);
		assert_int_equal(job.result.size_bytes, sizes[i]);
		assert_digest_of(&job.result.digest, bytes, sizes[i]);
		assert_holds(job.dst, bytes, sizes[i]);
		job_close(&job);
		free(bytes);
	}
}

/* The odd paths give the same bytes: no O_DIRECT, no reservation, short and interrupted calls. */
static void test_awkward_systems(void **state)
{
	const size_t len = 3 * BLOCK + 12345;
	unsigned char *bytes = make_bytes(len);

	(void)state;
	tree_put_bytes(dir, "src", bytes, len);
	for (unsigned i = 0; i < 4; i++) {
		struct job job;

		fault_reset();
		if (i == 0)
			fault_hide(FAULT_NO_DIRECT);
		if (i == 1)
			fault_hide(FAULT_NO_FALLOCATE);
		if (i == 2)
			fault_short(65536);
		if (i == 3)
			fault_eintr(3);
		job_open(&job);
		assert_int_equal(job_run(&job), 0);
		assert_digest_of(&job.result.digest, bytes, len);
		assert_holds(job.dst, bytes, len);
		job_close(&job);
	}
	free(bytes);
}

/* Data in block 0, in the middle of block 2 and in the last bytes; the rest is holes, also at the end. */
static void test_holes(void **state)
{
	const size_t len = 6 * BLOCK + 4096 + 77;
	struct stat src_st, dst_st;
	struct job job;
	unsigned char *want = calloc(1, len), *bytes = make_bytes(10000);
	int fd = open_in("src", O_RDWR | O_CREAT | O_TRUNC);
	const size_t at[] = { 0, 2 * BLOCK + 50000, 5 * BLOCK - 5000 };

	(void)state;
	assert_non_null(want);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	for (size_t i = 0; i < 3; i++) {
		memcpy(want + at[i], bytes, 10000);
		assert_int_equal(pwrite(fd, bytes, 10000, (off_t)at[i]), 10000);
	}
	assert_int_equal(fsync(fd), 0);
	close(fd);
	job_open(&job);
	assert_int_equal(job_run(&job), 0);
	assert_digest_of(&job.result.digest, want, len);
	assert_holds(job.dst, want, len);
	assert_int_equal(fstat(job.src, &src_st), 0);
	assert_int_equal(fsync(job.dst), 0);
	assert_int_equal(fstat(job.dst, &dst_st), 0);
	if ((size_t)src_st.st_blocks * 512 < len / 2) {
		assert_true((size_t)dst_st.st_blocks * 512 < len / 2);
		assert_true(job.result.data_bytes < len / 2);
	} else {
		print_message("the filesystem of %s keeps no holes\n", dir);
	}
	job_close(&job);
	free(want);
	free(bytes);
}

/* Every call that can fail does, once: the error is the call's, names the file, and never looks like success. */
static void test_each_failure(void **state)
{
	static const struct {
		enum fault_call call;
		int code;
		const char *names;
	} kinds[] = {
		{ FAULT_PREAD, EIO, "the " },         { FAULT_PWRITE, EIO, "the copy" },
		{ FAULT_PWRITE, ENOSPC, "the copy" }, { FAULT_FDATASYNC, EIO, "the copy" },
		{ FAULT_FTRUNCATE, EIO, "the copy" }, { FAULT_FALLOCATE, ENOSPC, "the copy" },
	};
	const size_t len = 18 * BLOCK + 100;
	unsigned char *bytes = make_bytes(len);
	unsigned fired = 0;

	(void)state;
	tree_put_bytes(dir, "src", bytes, len);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (unsigned n = 1;; n++) {
			struct job job;
			bool hit;
			int r;

			fault_reset();
			job_open(&job);
			fault_arm_call(kinds[k].call, n, kinds[k].code);
			r = job_run(&job);
			hit = fault_fired();
			job_close(&job);
			if (!hit) {
				assert_int_equal(r, 0);
				break;
			}
			fired++;
			assert_int_equal(r, -kinds[k].code);
			assert_non_null(strstr(job.err.text, kinds[k].names));
			assert_int_equal(job.err.kind, kinds[k].code == ENOSPC ? DBT_ERR_NOSPACE
			                                                       : DBT_ERR_SYSTEM);
		}
	print_message("%u failures, each reported\n", fired);
	assert_true(fired > 40);
	free(bytes);
}

/* Another process writes into the copy between the write and the proof. */
static void corrupt(void *data)
{
	int fd = open_in("dst", O_WRONLY);

	(void)data;
	assert_int_equal(pwrite(fd, "\0", 1, BLOCK + 7), 1);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

static void test_wrong_read_back(void **state)
{
	const size_t len = 2 * BLOCK;
	unsigned char *bytes = make_bytes(len);
	struct job job;

	(void)state;
	tree_put_bytes(dir, "src", bytes, len);
	job_open(&job);
	fault_before(FAULT_FDATASYNC, 1, corrupt, NULL);
	assert_int_equal(job_run(&job), -EIO);
	assert_int_equal(job.err.kind, DBT_ERR_VERIFY);
	assert_non_null(strstr(job.err.text, "the copy"));
	job_close(&job);
	free(bytes);
}

static void test_shrinking_source(void **state)
{
	const size_t len = 4 * BLOCK;
	unsigned char *bytes = make_bytes(len);
	struct job job;
	char *path = tree_path(dir, "src");

	(void)state;
	tree_put_bytes(dir, "src", bytes, len);
	job_open(&job);
	assert_int_equal(truncate(path, BLOCK), 0);
	assert_true(job_run(&job) < 0);
	assert_int_equal(job.err.kind, DBT_ERR_CHANGED);
	job_close(&job);
	free(path);
	free(bytes);
}

static void test_cancel(void **state)
{
	unsigned char *bytes = make_bytes(4 * BLOCK);
	struct job job;

	(void)state;
	tree_put_bytes(dir, "src", bytes, 4 * BLOCK);
	job_open(&job);
	atomic_store(&cancel, 2);
	assert_int_equal(job_run(&job), -ECANCELED);
	assert_int_equal(job.err.kind, DBT_ERR_INTERRUPTED);
	job_close(&job);
	free(bytes);
}

static void test_digest_and_compare(void **state)
{
	const size_t len = BLOCK + 4097;
	unsigned char *bytes = make_bytes(len);
	const struct dbt_copy_opts opts = { .shown_src = "a", .shown_dst = "b" };
	struct dbt_digest digest = { 0 };
	struct dbt_err err;
	bool same = false, from_device;
	int a, b;

	(void)state;
	tree_put_bytes(dir, "a", bytes, len);
	tree_put_bytes(dir, "b", bytes, len);
	a = open_in("a", O_RDONLY);
	b = open_in("b", O_RDONLY);
	assert_int_equal(dbt_copy_digest(&ctx, a, len, &opts, &digest, &from_device, &err), 0);
	assert_digest_of(&digest, bytes, len);
	assert_true(dbt_copy_digest(&ctx, a, len + 1, &opts, &digest, NULL, &err) < 0);
	assert_int_equal(err.kind, DBT_ERR_CHANGED);
	assert_int_equal(dbt_copy_compare(&ctx, a, b, &opts, &same, &digest, &err), 0);
	assert_true(same);
	close(b);
	bytes[len - 1] ^= 1;
	tree_put_bytes(dir, "b", bytes, len);
	b = open_in("b", O_RDONLY);
	assert_int_equal(dbt_copy_compare(&ctx, a, b, &opts, &same, NULL, &err), 0);
	assert_false(same);
	close(b);
	tree_put_bytes(dir, "b", bytes, len - 1); /* one is a prefix of the other */
	b = open_in("b", O_RDONLY);
	bytes[len - 1] ^= 1;
	assert_int_equal(dbt_copy_compare(&ctx, a, b, &opts, &same, NULL, &err), 0);
	assert_false(same);
	close(a);
	close(b);
	free(bytes);
}

static void test_hex(void **state)
{
	struct dbt_digest d = { .set = true, .high = 0x0123456789abcdefU, .low = 0xfU },
			  back = { 0 }, unset = { 0 };
	char hex[DBT_DIGEST_HEX_BYTES];

	(void)state;
	assert_string_equal(dbt_digest_hex(&d, hex), "0123456789abcdef000000000000000f");
	assert_int_equal(dbt_digest_parse(hex, &back), 0);
	assert_true(dbt_digest_equal(&d, &back));
	assert_false(dbt_digest_equal(&unset, &unset));
	assert_int_equal(dbt_digest_parse("", &back), -EINVAL);
	assert_int_equal(dbt_digest_parse("0123456789ABCDEF000000000000000f", &back), -EINVAL);
	assert_int_equal(dbt_digest_parse("0123456789abcdef000000000000000f0", &back), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_awkward_systems, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_read_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shrinking_source, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_digest_and_compare, setup, teardown),
		cmocka_unit_test(test_hex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
