#include "survey/probestat.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int by_end(const void *a, const void *b)
{
	const struct dbt_sample *x = a, *y = b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How many of the samples, sorted by end, are ramp; at least one, the warm-up. */
static size_t ramp_length(const struct dbt_sample *s, size_t n, const struct dbt_ramp *ramp)
{
	size_t most = n / 3 > 1 ? n / 3 : 1, k = 1;

	while (k < ramp->reads && k < most && s[k - 1].end_ns - s[0].start_ns < ramp->ns)
		k++;
	return k;
}

/* Nearest rank. */
static uint64_t percentile(const uint64_t *sorted, size_t n, unsigned percent)
{
	size_t rank = (n * percent + 99) / 100;

	return sorted[rank > 0 ? rank - 1 : 0];
}

/* Half of the 95 % confidence interval of the mean of n values, relative to it; 1 when unknown. t is the
 * quantile of Student's distribution for them. */
static double relative_interval(double sum, double squares, size_t n, double t)
{
	double mean = sum / (double)n, variance;

	if (n < 2 || mean <= 0)
		return 1;
	variance = (squares - sum * mean) / (double)(n - 1);
	return variance > 0 ? t * sqrt(variance / (double)n) / mean : 0;
}

/* Reads that come back in bursts (a throttle, a full queue) or that slow down for a while depend on each
 * other, and their latencies promise too much or too little. So the time is cut into equal slices: how
 * much do they differ in reads completed? (The method of batch means.) s[0] ended at the start. -1 for
 * too few reads. */
static double throughput_interval(const struct dbt_sample *s, size_t n, uint64_t elapsed_ns)
{
	enum { SLICES = 8, MIN_READS = 8 * SLICES };
	static const double T_OF_SEVEN = 2.365; /* 7 degrees of freedom */
	double sum = 0, squares = 0;
	size_t done[SLICES] = { 0 };

	if (n <= MIN_READS)
		return -1;
	for (size_t i = 1; i < n; i++) {
		uint64_t since = s[i].end_ns - s[0].end_ns;

		/* A slice includes its end, the first one its beginning. */
		done[since > 0 ? (since * SLICES - 1) / elapsed_ns : 0]++;
	}
	for (size_t i = 0; i < SLICES; i++) {
		sum += (double)done[i];
		squares += (double)done[i] * (double)done[i];
	}
	return relative_interval(sum, squares, SLICES, T_OF_SEVEN);
}

static void fill_latencies(uint64_t *lat, size_t n, struct dbt_probestat *ret)
{
	static const double T_OF_MANY = 1.96;
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += (double)lat[i];
		squares += (double)lat[i] * (double)lat[i];
	}
	ret->lat_interval = relative_interval(sum, squares, n, T_OF_MANY);
	qsort(lat, n, sizeof(*lat), by_value);
	ret->avg_ns = (uint64_t)(sum / (double)n);
	ret->p50_ns = percentile(lat, n, 50);
	ret->p95_ns = percentile(lat, n, 95);
	ret->p99_ns = percentile(lat, n, 99);
}

int dbt_probestat(struct dbt_sample *samples, size_t n, const struct dbt_ramp *ramp,
                  struct dbt_probestat *ret)
{
	struct dbt_probestat out = { 0 };
	dbt_autofree uint64_t *lat = NULL;
	double seconds;
	size_t skip;

	if (n < 2)
		return -ENODATA;
	qsort(samples, n, sizeof(*samples), by_end);
	skip = ramp_length(samples, n, ramp);
	out.n = n - skip;
	/* Throughput counts the completions after the ramp's last one: right for any number of
	 * jobs, also where they complete in bursts. */
	out.elapsed_ns = samples[n - 1].end_ns - samples[skip - 1].end_ns;
	if (out.elapsed_ns == 0)
		return -ENODATA;
	lat = malloc(out.n * sizeof(*lat));
	if (!lat)
		return -ENOMEM;
	for (size_t i = 0; i < out.n; i++) {
		lat[i] = samples[skip + i].end_ns - samples[skip + i].start_ns;
		out.bytes += samples[skip + i].len_bytes;
	}
	seconds = (double)out.elapsed_ns / 1e9;
	out.iops = (double)out.n / seconds;
	out.rate_bytes_s = (uint64_t)((double)out.bytes / seconds);
	fill_latencies(lat, out.n, &out);
	out.interval = throughput_interval(samples + skip - 1, out.n + 1, out.elapsed_ns);
	if (out.interval < 0)
		out.interval = out.lat_interval;
	*ret = out;
	return 0;
}
