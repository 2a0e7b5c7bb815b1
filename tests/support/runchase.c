/* The latency of memory by other means than core/ladder: runchase MEGABYTES prints nanoseconds. An array of indexes in
 * one random cycle (Sattolo's algorithm with rand_r), 64 bytes apart, followed for a fixed number of steps on small
 * pages; the median of nine rounds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { STRIDE = 16, STEPS = 2000000, ROUNDS = 9 };

static int smaller_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const size_t bytes = (argc == 2 ? strtoul(argv[1], NULL, 10) : 0) << 20;
	const size_t n = bytes / (STRIDE * sizeof(uint32_t));
	double rounds[ROUNDS];
	unsigned seed = 1;
	volatile uint32_t *next;
	uint32_t at = 0;

	if (n < 2)
		return 2;
	next = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (next == MAP_FAILED)
		return 1;
	(void)madvise((void *)(uintptr_t)next, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i++)
		next[i * STRIDE] = (uint32_t)i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t j = ((uint64_t)rand_r(&seed) << 31 | (uint64_t)rand_r(&seed)) % i;
		uint32_t kept = next[i * STRIDE];

		next[i * STRIDE] = next[j * STRIDE];
		next[j * STRIDE] = kept;
	}
	for (int round = 0; round < ROUNDS; round++) {
		double start = seconds();

		for (int step = 0; step < STEPS; step++)
			at = next[(size_t)at * STRIDE];
		rounds[round] = (seconds() - start) / STEPS * 1e9;
	}
	qsort(rounds, ROUNDS, sizeof(rounds[0]), smaller_first);
	printf("%.2f\n", rounds[ROUNDS / 2]);
	return at == UINT32_MAX;
}
