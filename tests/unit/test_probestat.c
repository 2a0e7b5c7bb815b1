#include "survey/probestat.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MS = 1000000, N = 1000 };

static const struct dbt_ramp ramp = { .reads = 32, .ns = 1000 * (uint64_t)MS };
static struct dbt_sample samples[N];

/* One job, each read right after the other. */
static void fill_even(size_t n, uint64_t each_ns)
{
	for (size_t i = 0; i < n; i++)
		samples[i] = (struct dbt_sample){ .start_ns = i * each_ns,
			                          .end_ns = (i + 1) * each_ns,
			                          .len_bytes = 4096 };
}

static void an_even_disk(void **state)
{
	struct dbt_probestat s;

	(void)state;
	fill_even(232, 5 * MS);
	assert_int_equal(dbt_probestat(samples, 232, &ramp, &s), 0);
	assert_int_equal(s.n, 200);
	assert_true(s.iops > 199.9 && s.iops < 200.1);
	assert_int_equal(s.p50_ns, 5 * MS);
	assert_int_equal(s.p99_ns, 5 * MS);
	assert_int_equal(s.avg_ns, 5 * MS);
	assert_int_equal(s.rate_bytes_s, 200 * 4096);
	assert_true(s.interval < 0.001);
	assert_int_equal(s.elapsed_ns, 1000 * (uint64_t)MS);
}

/* 200 a second behind a throttle: the first 20 pass at once, then 20 every 100 ms, four jobs. Without
 * the ramp this would look like 210 and, over 60 reads, like 300. */
static void a_throttle_that_lets_a_burst_pass(void **state)
{
	struct dbt_probestat s;

	(void)state;
	for (size_t i = 0; i < 620; i++) {
		uint64_t end = i < 20 ? (i + 1) * 1000
		                      : (1 + (i - 20) / 20) * (100 * (uint64_t)MS) + i * 10;

		samples[i] = (struct dbt_sample){ .start_ns = end > 20 * MS ? end - 20 * MS : 0,
			                          .end_ns = end,
			                          .len_bytes = 4096 };
	}
	assert_int_equal(dbt_probestat(samples, 620, &ramp, &s), 0);
	assert_true(s.iops > 196 && s.iops < 208);
}

static void order_of_arrival_does_not_matter(void **state)
{
	struct dbt_probestat s;

	(void)state;
	fill_even(100, MS);
	for (size_t i = 0; i < 50; i++) {
		struct dbt_sample tmp = samples[i];

		samples[i] = samples[99 - i];
		samples[99 - i] = tmp;
	}
	assert_int_equal(dbt_probestat(samples, 100, &ramp, &s), 0);
	assert_int_equal(s.n, 68);
	assert_true(s.iops > 999 && s.iops < 1001);
}

static void percentiles_are_nearest_ranks(void **state)
{
	struct dbt_probestat s;

	(void)state;
	samples[0] = (struct dbt_sample){ .start_ns = 0, .end_ns = 1, .len_bytes = 1 };
	for (size_t i = 1; i <= 100; i++)
		samples[i] = (struct dbt_sample){ .start_ns = 1000 * i,
			                          .end_ns = 1000 * i + i,
			                          .len_bytes = 1 };
	assert_int_equal(dbt_probestat(samples, 101, &(struct dbt_ramp){ .reads = 1 }, &s), 0);
	assert_int_equal(s.n, 100);
	assert_int_equal(s.p50_ns, 50);
	assert_int_equal(s.p95_ns, 95);
	assert_int_equal(s.p99_ns, 99);
	assert_int_equal(dbt_probestat(samples, 51, &(struct dbt_ramp){ .reads = 1 }, &s), 0);
	assert_int_equal(s.n, 50);
	assert_int_equal(s.p95_ns, 48);
	assert_int_equal(s.p99_ns, 50);
}

static void a_slow_start_ends_the_ramp_by_time(void **state)
{
	struct dbt_probestat s;

	(void)state;
	fill_even(30, 400 * MS);
	assert_int_equal(dbt_probestat(samples, 30, &ramp, &s), 0);
	assert_int_equal(s.n, 27); /* the first three took more than a second */
}

static void too_little_is_no_figure(void **state)
{
	struct dbt_probestat s;

	(void)state;
	fill_even(2, MS);
	assert_int_equal(dbt_probestat(samples, 0, &ramp, &s), -ENODATA);
	assert_int_equal(dbt_probestat(samples, 1, &ramp, &s), -ENODATA);
	assert_int_equal(dbt_probestat(samples, 2, &ramp, &s), 0);
	assert_int_equal(s.n, 1);
	memset(samples, 0, sizeof(samples));
	assert_int_equal(dbt_probestat(samples, 10, &ramp, &s), -ENODATA); /* no time passed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_even_disk),
		cmocka_unit_test(a_throttle_that_lets_a_burst_pass),
		cmocka_unit_test(order_of_arrival_does_not_matter),
		cmocka_unit_test(percentiles_are_nearest_ranks),
		cmocka_unit_test(a_slow_start_ends_the_ramp_by_time),
		cmocka_unit_test(too_little_is_no_figure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
