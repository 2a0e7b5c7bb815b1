#include "ladder/dnarun.h"

#include "ladder/median.h"
#include "survey/witness.h"
#include "sys/io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROUNDS = 5,
	COLD_ROUNDS = 3,
	COLD_READS = 1024,    /* of a round, at most */
	COLD_READS_CHUNK = 8, /* between two looks at the clock */
	DEPENDENT_MAX = 1 << 21,
	WARM_READS_MAX = 1 << 18,
	SHUFFLED_MAX = 1 << 26,
};

static const uint64_t BUDGET_NS = 600000000;     /* no round begins after it */
static const uint64_t COLD_ROUND_NS = 150000000; /* a round of single reads ends after it */

/* The part of the text that one round counts: positions order[from .. from + n), or with all of
 * them the whole text. */
struct part {
	uint64_t from, n;
};

static uint64_t length_of(const struct dbt_dnarun *run)
{
	return UINT64_C(1) << run->text->bits;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static const uint32_t *order_of(const struct dbt_dnarun *run, const struct part *part)
{
	return dbt_dnatext_order(run->text, DBT_PAGES_SMALL) + part->from;
}

static int read_shuffled_cold(const struct dbt_dnarun *run, struct part *part,
                              struct dbt_counts *counts)
{
	uint64_t start = run->ctx->sys->now_ns(), done = 0, most = part->n;
	int r = 0;

	while (r == 0 && done < most &&
	       (done == 0 || run->ctx->sys->now_ns() - start < COLD_ROUND_NS)) {
		uint64_t n = at_most(COLD_READS_CHUNK, most - done);

		r = dbt_ctx_cancelled(run->ctx)
		            ? -ECANCELED
		            : dbt_dnafile_count_index(run->ctx, run->file, true,
		                                      order_of(run, part) + done, n, counts);
		done += n;
	}
	part->n = done;
	return r;
}

/* Counts the part in the way of the mode; a part may turn out smaller. */
static int count(const struct dbt_dnarun *run, enum dbt_dna_mode mode, struct part *part,
                 struct dbt_counts *counts)
{
	const uint8_t *letters = dbt_dnatext_letters(run->text, DBT_PAGES_SMALL);

	switch (mode) {
	case DBT_DNA_MEMORY_ORDER:
		dbt_count_order(letters, part->n, counts);
		return 0;
	case DBT_DNA_MEMORY_SHUFFLED:
		dbt_count_index(letters, order_of(run, part), part->n, counts);
		return 0;
	case DBT_DNA_MEMORY_HUGE:
		dbt_count_index(dbt_dnatext_letters(run->text, DBT_PAGES_HUGE),
		                dbt_dnatext_order(run->text, DBT_PAGES_HUGE), part->n, counts);
		return 0;
	case DBT_DNA_MEMORY_SMALL_INDEX:
		dbt_dnatext_count_small_index(run->text, counts);
		return 0;
	case DBT_DNA_MEMORY_DEPENDENT:
		dbt_count_dependent(letters, order_of(run, part), part->n, counts);
		return 0;
	case DBT_DNA_FILE_ORDER_COLD:
	case DBT_DNA_FILE_ORDER_WARM:
		return dbt_dnafile_count_order(run->ctx, run->file, mode == DBT_DNA_FILE_ORDER_COLD,
		                               part->n, counts);
	case DBT_DNA_FILE_SHUFFLED_COLD:
		return read_shuffled_cold(run, part, counts);
	case DBT_DNA_FILE_SHUFFLED_WARM:
		return dbt_dnafile_count_index(run->ctx, run->file, false, order_of(run, part),
		                               part->n, counts);
	case DBT_DNA_MODES:
		break;
	}
	return -EINVAL;
}

static bool is_whole(const struct dbt_dnarun *run, const struct part *part)
{
	return part->from == 0 && part->n == length_of(run);
}

/* The same letters counted the plain way. */
static bool is_right(const struct dbt_dnarun *run, const struct part *part,
                     const struct dbt_counts *counts)
{
	const uint8_t *letters = dbt_dnatext_letters(run->text, DBT_PAGES_SMALL);
	struct dbt_counts expected = { 0 };

	if (is_whole(run, part))
		dbt_count_order(letters, part->n, &expected);
	else
		dbt_count_index(letters, order_of(run, part), part->n, &expected);
	return memcmp(&expected, counts, sizeof(expected)) == 0;
}

static struct part part_of(const struct dbt_dnarun *run, enum dbt_dna_mode mode, unsigned round)
{
	const uint64_t all = length_of(run);
	struct part part = { .n = all };

	if (mode == DBT_DNA_MEMORY_DEPENDENT)
		part.n = at_most(all, DEPENDENT_MAX);
	else if (mode == DBT_DNA_MEMORY_SHUFFLED || mode == DBT_DNA_MEMORY_HUGE)
		part.n = at_most(all, SHUFFLED_MAX);
	else if (mode == DBT_DNA_FILE_SHUFFLED_WARM)
		part.n = at_most(all, WARM_READS_MAX);
	else if (mode == DBT_DNA_FILE_SHUFFLED_COLD)
		part = (struct part){ .from = round * COLD_READS, .n = COLD_READS };
	return part;
}

struct rounds {
	double ns[ROUNDS];
	unsigned n;
	uint64_t counted;    /* bytes of the last round */
	uint64_t all;        /* ... of all rounds */
	uint64_t read_bytes; /* of all rounds, as asked of a cold file */
};

static int run_rounds(const struct dbt_dnarun *run, enum dbt_dna_mode mode, struct rounds *rounds,
                      struct dbt_err *err)
{
	const unsigned most = dbt_dna_is_cold(mode) ? COLD_ROUNDS : ROUNDS;
	const uint64_t begin = run->ctx->sys->now_ns();

	while (rounds->n < most &&
	       (rounds->n == 0 || run->ctx->sys->now_ns() - begin < BUDGET_NS)) {
		struct part part = part_of(run, mode, rounds->n);
		struct dbt_counts counts = { 0 };
		uint64_t start, ns;
		int r;

		if (dbt_ctx_cancelled(run->ctx))
			return dbt_err_sys(err, -ECANCELED, "the experiment was stopped");
		dbt_events_resume(run->events);
		start = run->ctx->sys->now_ns();
		r = count(run, mode, &part, &counts);
		ns = run->ctx->sys->now_ns() - start;
		dbt_events_pause(run->events);
		if (r < 0)
			return dbt_err_sys(err, r, "cannot count %s", dbt_dna_words(mode));
		if (!is_right(run, &part, &counts))
			return dbt_err_set(err, DBT_ERR_VERIFY, -EIO,
			                   "%s counts other letters than memory in order: memory "
			                   "or storage of this machine is not reliable",
			                   dbt_dna_words(mode));
		rounds->ns[rounds->n++] = (double)ns / (double)part.n;
		rounds->counted = part.n;
		rounds->all += part.n;
		rounds->read_bytes += mode == DBT_DNA_FILE_SHUFFLED_COLD
		                              ? part.n * DBT_DNAFILE_BLOCK_BYTES
		                              : part.n;
	}
	return 0;
}

/* Once through the file, so that the rounds find it in memory. */
static int warm(const struct dbt_dnarun *run, bool *ret_warm)
{
	struct dbt_counts counts = { 0 };
	uint64_t cached, all = length_of(run);
	int r = dbt_dnafile_count_order(run->ctx, run->file, false, all, &counts);

	*ret_warm = r == 0 &&
	            (dbt_io_cached(run->ctx, run->file->fd, 0, all, &cached) < 0 || cached >= all);
	return r;
}

static int add_note(struct dbt_dna_point *point, const char *text)
{
	point->note = strdup(text);
	return point->note ? 0 : -ENOMEM;
}

static double misses_of(const struct dbt_dnarun *run, enum dbt_event event,
                        const struct rounds *rounds)
{
	double count;

	return dbt_events_get(run->events, event, &count) && rounds->all > 0
	               ? count / (double)rounds->all
	               : -1;
}

/* What cold and warm points have in common at the end. */
static void fill(struct dbt_dna_point *point, struct rounds *rounds)
{
	point->known = true;
	point->rounds = rounds->n;
	point->counted = rounds->counted;
	point->ns = dbt_median(rounds->ns, rounds->n);
}

static int measure(const struct dbt_dnarun *run, struct dbt_dna_point *point, struct dbt_err *err)
{
	struct rounds rounds = { 0 };
	int r;

	/* Brings text and page tables to where the rounds find them. */
	if (!dbt_dna_is_file(point->mode) && run_rounds(run, point->mode, &rounds, err) < 0)
		return err->code;
	rounds = (struct rounds){ 0 };
	dbt_events_reset(run->events);
	r = run_rounds(run, point->mode, &rounds, err);
	if (r < 0)
		return r;
	point->cache_misses = misses_of(run, DBT_EVENT_CACHE_MISSES, &rounds);
	point->tlb_misses = misses_of(run, DBT_EVENT_TLB_MISSES, &rounds);
	fill(point, &rounds);
	return 0;
}

static int measure_cold(const struct dbt_dnarun *run, struct dbt_dna_point *point,
                        struct dbt_err *err)
{
	char why[DBT_WITNESS_TEXT_BYTES];
	struct dbt_witness before, after;
	struct rounds rounds = { 0 };
	int r;

	if (run->file->direct_fd < 0)
		return add_note(point, "the filesystem reads through memory only (no O_DIRECT)");
	before = dbt_witness_take(run->ctx, &run->file->place);
	r = run_rounds(run, point->mode, &rounds, err);
	after = dbt_witness_take(run->ctx, &run->file->place);
	if (r == -EINVAL)
		return add_note(point, "the filesystem reads through memory only (no O_DIRECT)");
	if (r < 0)
		return r;
	point->proved =
		dbt_witness_proves(&run->file->place, &before, &after, rounds.read_bytes, why);
	if (!point->proved)
		return add_note(point, why);
	fill(point, &rounds);
	return 0;
}

int dbt_dnarun(const struct dbt_dnarun *run, struct dbt_dna_point *ret, struct dbt_err *err)
{
	bool is_warm = true;
	int r = 0;

	ret->cache_misses = ret->tlb_misses = -1;
	if (dbt_dna_is_cold(ret->mode))
		return measure_cold(run, ret, err);
	if (dbt_dna_is_file(ret->mode))
		r = warm(run, &is_warm);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot read a temporary file");
	if (!is_warm)
		return add_note(ret, "the file did not stay in memory");
	return measure(run, ret, err);
}
