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

static void fill_latencies(uint64_t *lat, size_t n, struct dbt_probestat *ret)
{
	double sum = 0, squares = 0, mean, variance;

	for (size_t i = 0; i < n; i++)
		sum += (double)lat[i];
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((double)lat[i] - mean) * ((double)lat[i] - mean);
	variance = n > 1 ? squares / (double)(n - 1) : 0;
	ret->interval = n > 1 && mean > 0 ? 1.96 * sqrt(variance / (double)n) / mean : 1;
	qsort(lat, n, sizeof(*lat), by_value);
	ret->avg_ns = (uint64_t)mean;
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
	*ret = out;
	return 0;
}
