/* The DNA experiment: a random text of A, C, G and T is counted letter by letter, in order and in
 * random order, from memory and from files, at growing lengths. The same loop everywhere (count.h),
 * so that what differs is where the bytes come from. */
#ifndef DBT_LADDER_DNA_H
#define DBT_LADDER_DNA_H

#include "base/err.h"
#include "ladder/count.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The order in which every output shows them. */
enum dbt_dna_mode {
	DBT_DNA_MEMORY_ORDER = 0,
	DBT_DNA_MEMORY_SHUFFLED,    /* by an array of all positions in random order; 4 KiB pages */
	DBT_DNA_MEMORY_HUGE,        /* the same with text and array on huge pages */
	DBT_DNA_MEMORY_SMALL_INDEX, /* the same by an array that stays in the cache */
	DBT_DNA_MEMORY_DEPENDENT,   /* shuffled, each position known only after the byte before */
	DBT_DNA_MEMORY_MODES,       /* their number; from here on the modes of files */
	DBT_DNA_FILE_ORDER_COLD = DBT_DNA_MEMORY_MODES, /* past the page cache, proved */
	DBT_DNA_FILE_SHUFFLED_COLD,
	DBT_DNA_FILE_ORDER_WARM, /* from the page cache: memory behind system calls */
	DBT_DNA_FILE_SHUFFLED_WARM,
	DBT_DNA_MODES,
};

enum { DBT_DNA_MIN_BITS = 15, DBT_DNA_MAX_BITS = 25, DBT_DNA_BITS_LIMIT = 32 };

struct dbt_dna_point {
	enum dbt_dna_mode mode;
	size_t dir;       /* index of the directory; 0 for memory */
	unsigned bits;    /* the text has 2^bits bytes */
	bool known;       /* false: see note */
	double ns;        /* a byte, the median of the rounds */
	uint64_t counted; /* bytes of a round: all, or a random part where all would take long */
	unsigned rounds;
	bool proved;         /* cold files: the disks' counters saw the reads */
	double cache_misses; /* a byte, of the last cache; below 0 unknown */
	double tlb_misses;   /* a byte; below 0 unknown */
	char *note;          /* NULL none */
};

struct dbt_dna {
	struct dbt_dna_point *items; /* by directory (memory first), mode, length */
	size_t n, cap;
	unsigned max_bits;
	double huge_share; /* of the text of the longest length that really lay on huge pages */
	int event_code;    /* why there are no cache and TLB misses, -errno; 0: there are */
	char *limited;     /* why max_bits is less than what was asked for; NULL */
};

struct dbt_dna_opts {
	unsigned max_bits; /* DBT_DNA_MIN_BITS to DBT_DNA_BITS_LIMIT */
	const char *const *dirs;
	size_t n_dirs;
};

/* The files are nameless (or lose their name at once): no end of the program leaves one. Memory is
 * kept within dbt_arena_limit by stopping at a shorter text. The points of a directory that cannot be
 * written to or read from, or is full, are not known, with a note. Errors: -ECANCELED, -ENOMEM, and
 * -EIO when two ways of counting disagree. On success the caller releases. */
int dbt_dna_run(const struct dbt_ctx *ctx, const struct dbt_dna_opts *opts, struct dbt_dna *ret,
                struct dbt_err *err);
void dbt_dna_release(struct dbt_dna *dna);

/* Is there no time at all of the directory's file? The notes say why. */
bool dbt_dna_failed(const struct dbt_dna *dna, size_t dir);

/* NULL when there is none. */
const struct dbt_dna_point *dbt_dna_find(const struct dbt_dna *dna, enum dbt_dna_mode mode,
                                         size_t dir, unsigned bits);

/* "memory in order", "file shuffled, cold" */
const char *dbt_dna_words(enum dbt_dna_mode mode);
/* "memory-order", "file-shuffled-cold": for programs, stable. */
const char *dbt_dna_id(enum dbt_dna_mode mode);
bool dbt_dna_is_file(enum dbt_dna_mode mode);
bool dbt_dna_is_cold(enum dbt_dna_mode mode);

#endif
