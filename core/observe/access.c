#include "observe/access.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE_SHIFT = 12,
	/* Threads of one process that each walk their own part are as many streams, not jumps. */
	STREAMS = 16,
	BUCKETS = 1024,
};

/* Pages that were added this soon after each other were asked for together. */
static const uint64_t TOGETHER_NS = 200000;

/* So close to an earlier end a read goes on from there: read-around of a mapping begins before the page that was
 * touched, and a reader may step over a little. */
static const uint64_t NEAR_BYTES = 128 << 10;

/* A page that comes back after longer than this was dropped for a reason: others needed the memory. */
static const uint64_t AGAIN_NS = 10000000000ULL;

/* The pages seen of all files: at most so much memory for them, 43 GB of database need 1.4 MB. */
static const uint64_t MAX_SEEN_BYTES = 24 << 20;

struct reader {
	size_t file, reader;
	unsigned epoch; /* of the last read: a gap since then makes it begin anew */
	uint64_t last_end, last_ns;
	uint64_t ends[STREAMS];
	unsigned n_ends, oldest;
	struct reader *next;
};

struct seen {
	uint64_t since_ns;
	unsigned char *bits;
	size_t bytes;
};

struct dbt_access {
	unsigned epoch;
	struct reader *buckets[BUCKETS];
	struct {
		struct seen *items; /* by file */
		size_t n, cap;
	} seen;
	uint64_t seen_bytes;
};

struct dbt_access *dbt_access_new(void)
{
	return calloc(1, sizeof(struct dbt_access));
}

void dbt_access_free(struct dbt_access *access)
{
	if (!access)
		return;
	for (size_t b = 0; b < BUCKETS; b++)
		for (struct reader *r = access->buckets[b], *next; r; r = next) {
			next = r->next;
			free(r);
		}
	for (size_t i = 0; i < access->seen.n; i++)
		free(access->seen.items[i].bits);
	free(access->seen.items);
	free(access);
}

void dbt_access_gap(struct dbt_access *access)
{
	access->epoch++;
}

static struct reader *reader_of(struct dbt_access *access, const struct dbt_access_read *read)
{
	size_t b = (read->file * 31 + read->reader * 2654435761U) % BUCKETS;
	struct reader *r;

	for (r = access->buckets[b]; r; r = r->next)
		if (r->file == read->file && r->reader == read->reader)
			return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->file = read->file;
	r->reader = read->reader;
	r->epoch = access->epoch - 1;
	r->next = access->buckets[b];
	access->buckets[b] = r;
	return r;
}

/* --- read again --- */

static struct seen *seen_of(struct dbt_access *access, size_t file)
{
	while (access->seen.n <= file)
		if (!dbt_vec_push(&access->seen))
			return NULL;
	return &access->seen.items[file];
}

static int grow_seen(struct dbt_access *access, struct seen *s, size_t bytes)
{
	unsigned char *grown;

	if (bytes <= s->bytes)
		return 0;
	bytes = (bytes + 4095) & ~(size_t)4095;
	if (access->seen_bytes + bytes - s->bytes > MAX_SEEN_BYTES)
		return -EFBIG;
	grown = realloc(s->bits, bytes);
	if (!grown)
		return -ENOMEM;
	memset(grown + s->bytes, 0, bytes - s->bytes);
	access->seen_bytes += bytes - s->bytes;
	s->bits = grown;
	s->bytes = bytes;
	return 0;
}

/* Bytes of the read that were read before. A file too large to remember gives 0. */
static int count_again(struct dbt_access *access, const struct dbt_access_read *read,
                       uint64_t *ret_bytes)
{
	uint64_t page = read->off_bytes >> PAGE_SHIFT,
		 end = (read->off_bytes + read->len_bytes + 4095) >> PAGE_SHIFT;
	struct seen *s = seen_of(access, read->file);
	int r;

	*ret_bytes = 0;
	if (!s)
		return -ENOMEM;
	if (read->time_ns - s->since_ns > AGAIN_NS) {
		if (s->bits)
			memset(s->bits, 0, s->bytes);
		s->since_ns = read->time_ns;
	}
	r = end < page || end > SIZE_MAX / 2 ? -EFBIG : grow_seen(access, s, (size_t)(end / 8) + 1);
	if (r < 0)
		return r == -EFBIG ? 0 : r;
	for (; page < end; page++) {
		unsigned char bit = (unsigned char)(1U << (page & 7));

		if (s->bits[page >> 3] & bit)
			*ret_bytes += 1U << PAGE_SHIFT;
		s->bits[page >> 3] |= bit;
	}
	return 0;
}

/* --- requests and jumps --- */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Does the read go on where one of the reader's streams ended? Moves that stream, or begins one. */
static bool follows(struct reader *r, const struct dbt_access_read *read)
{
	uint64_t end = read->off_bytes + read->len_bytes;

	for (unsigned i = 0; i < r->n_ends; i++)
		if (distance(r->ends[i], read->off_bytes) <= NEAR_BYTES) {
			r->ends[i] = end;
			return true;
		}
	if (r->n_ends < STREAMS) {
		r->ends[r->n_ends++] = end;
	} else {
		r->ends[r->oldest] = end;
		r->oldest = (r->oldest + 1) % STREAMS;
	}
	return false;
}

static void count(struct dbt_obs_reads *sum, uint64_t bytes, uint64_t again, bool request,
                  bool jump)
{
	if (!sum)
		return;
	sum->bytes += bytes;
	sum->again_bytes += again;
	sum->requests += request;
	sum->jumps += jump;
}

int dbt_access_add(struct dbt_access *access, const struct dbt_access_read *read,
                   struct dbt_obs_reads *file, struct dbt_obs_reads *use)
{
	struct reader *r = reader_of(access, read);
	bool fresh, together, jump = false;
	uint64_t again;

	if (!r || count_again(access, read, &again) < 0)
		return -ENOMEM;
	fresh = r->epoch != access->epoch;
	if (fresh)
		r->n_ends = r->oldest = 0;
	together = !fresh && read->off_bytes == r->last_end &&
	           read->time_ns - r->last_ns <= TOGETHER_NS;
	/* The first read of a reader may be anywhere. */
	if (!follows(r, read) && !fresh)
		jump = true;
	r->epoch = access->epoch;
	r->last_end = read->off_bytes + read->len_bytes;
	r->last_ns = read->time_ns;
	count(file, read->len_bytes, again, !together, jump);
	count(use, read->len_bytes, again, !together, jump);
	return 0;
}
