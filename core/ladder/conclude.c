#include "ladder/conclude.h"

#include "base/err.h"
#include "base/units.h"
#include "base/vec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Differences of less than this share are noise. */
static const double NOISE = 0.05;

static double ns_of(const struct dbt_dna *dna, struct dbt_dna_series s, unsigned bits)
{
	const struct dbt_dna_point *p = dbt_dna_find(dna, s.mode, s.dir, bits);

	return p && p->known ? p->ns : 0;
}

bool dbt_dna_crossing(const struct dbt_dna *dna, struct dbt_dna_series a, struct dbt_dna_series b,
                      unsigned *ret_bits)
{
	unsigned from = 0;

	if (ns_of(dna, a, dna->max_bits) <= 0 || ns_of(dna, b, dna->max_bits) <= 0)
		return false;
	for (unsigned bits = dna->max_bits; bits >= DBT_DNA_MIN_BITS; bits--) {
		double x = ns_of(dna, a, bits), y = ns_of(dna, b, bits);

		if (x <= 0 || y <= 0)
			continue;
		if (x > y)
			break;
		from = bits;
	}
	if (from > 0)
		*ret_bits = from;
	return from > 0;
}

static int say(struct dbt_sentences *to, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static int say(struct dbt_sentences *to, const char *fmt, ...)
{
	char **slot = dbt_vec_push(to);
	va_list ap;
	int n;

	if (!slot)
		return -ENOMEM;
	va_start(ap, fmt);
	n = vasprintf(slot, fmt, ap);
	va_end(ap);
	if (n >= 0)
		return 0;
	*slot = NULL;
	return -ENOMEM;
}

static double memory_ns(const struct dbt_dna *dna, enum dbt_dna_mode mode, unsigned bits)
{
	return ns_of(dna, (struct dbt_dna_series){ mode, 0 }, bits);
}

static int conclude_growth(const struct dbt_dna *dna, struct dbt_sentences *to)
{
	double order = memory_ns(dna, DBT_DNA_MEMORY_ORDER, dna->max_bits);
	double first = memory_ns(dna, DBT_DNA_MEMORY_SHUFFLED, DBT_DNA_MIN_BITS);
	double last = memory_ns(dna, DBT_DNA_MEMORY_SHUFFLED, dna->max_bits);
	char a[DBT_UNITS_TEXT_BYTES], b[DBT_UNITS_TEXT_BYTES], c[DBT_UNITS_TEXT_BYTES];

	if (order <= 0 || first <= 0 || last <= 0)
		return 0;
	if (dna->max_bits == DBT_DNA_MIN_BITS)
		return say(to,
		           "Memory at 2^%u: a byte takes %s counted in order, %s in random order. "
		           "Only a longer text shows what grows.",
		           dna->max_bits, dbt_units_short(order, a), dbt_units_short(last, b));
	return say(to,
	           "Memory: counted in order a byte takes %s at 2^%u; in random order %s at 2^%u "
	           "and %s at 2^%u, %.1f times as long as in order.",
	           dbt_units_short(order, a), dna->max_bits, dbt_units_short(first, b),
	           (unsigned)DBT_DNA_MIN_BITS, dbt_units_short(last, c), dna->max_bits,
	           last / order);
}

/* How much of the growth goes away when one cause is taken out; there is some. */
static int add_cause(const struct dbt_dna *dna, enum dbt_dna_mode without, const char *cause,
                     struct dbt_sentences *to)
{
	double first = memory_ns(dna, DBT_DNA_MEMORY_SHUFFLED, DBT_DNA_MIN_BITS);
	double last = memory_ns(dna, DBT_DNA_MEMORY_SHUFFLED, dna->max_bits);
	double less = memory_ns(dna, without, dna->max_bits);
	double share = (last - less) / (last - first);
	char a[DBT_UNITS_TEXT_BYTES], b[DBT_UNITS_TEXT_BYTES];

	if (less <= 0)
		return 0;
	if (share < NOISE)
		return say(to, "%s takes it from %s to %s at 2^%u: no gain.", cause,
		           dbt_units_short(last, a), dbt_units_short(less, b), dna->max_bits);
	return say(to, "%s takes it from %s to %s at 2^%u: %.0f %% of the growth.", cause,
	           dbt_units_short(last, a), dbt_units_short(less, b), dna->max_bits,
	           100 * (share < 1 ? share : 1));
}

/* Does random order take longer in the longest text than in the shortest? */
static bool grows(const struct dbt_dna *dna)
{
	double first = memory_ns(dna, DBT_DNA_MEMORY_SHUFFLED, DBT_DNA_MIN_BITS);
	double last = memory_ns(dna, DBT_DNA_MEMORY_SHUFFLED, dna->max_bits);

	return first > 0 && last - first >= NOISE * last;
}

static int conclude_causes(const struct dbt_dna *dna, struct dbt_sentences *to)
{
	double shuffled = memory_ns(dna, DBT_DNA_MEMORY_SHUFFLED, dna->max_bits);
	double waiting = memory_ns(dna, DBT_DNA_MEMORY_DEPENDENT, dna->max_bits);
	char a[DBT_UNITS_TEXT_BYTES];
	int r;

	if (dna->max_bits == DBT_DNA_MIN_BITS)
		return 0;
	if (!grows(dna))
		return say(
			to,
			"Up to 2^%u random order takes no longer than in the shortest text: there "
			"is nothing to explain yet.",
			dna->max_bits);
	if (dna->huge_share > 0.9)
		r = add_cause(dna, DBT_DNA_MEMORY_HUGE, "Fewer address translations (huge pages)",
		              to);
	else
		r = say(to, "The kernel gave no huge pages: what address translation costs cannot "
		            "be told.");
	if (r == 0)
		r = add_cause(dna, DBT_DNA_MEMORY_SMALL_INDEX,
		              "An index that stays in the cache instead of one that is streamed",
		              to);
	if (r == 0 && waiting > (1 + NOISE) * shuffled)
		r = say(to,
		        "When each read needs the one before, a byte takes %s: that is how long a "
		        "read waits at 2^%u; independent reads overlap, %.1f at a time.",
		        dbt_units_short(waiting, a), dna->max_bits, waiting / shuffled);
	return r;
}

static int conclude_misses(const struct dbt_dna *dna, struct dbt_sentences *to)
{
	const struct dbt_dna_point *p =
		dbt_dna_find(dna, DBT_DNA_MEMORY_SHUFFLED, 0, dna->max_bits);
	int r = 0;

	if (!p)
		return 0;
	if (p->cache_misses < 0 && p->tlb_misses < 0)
		return say(to, "The kernel gives no counts of cache and TLB misses here (%s).",
		           dna->event_code ? dbt_err_text(dna->event_code) : "none were counted");
	if (p->cache_misses >= 0)
		r = say(to, "Of 100 random reads at 2^%u, %.0f miss the last cache.", p->bits,
		        100 * p->cache_misses);
	if (r == 0 && p->tlb_misses >= 0)
		r = say(to, "Of 100 random reads at 2^%u, %.0f miss the TLB.", p->bits,
		        100 * p->tlb_misses);
	return r;
}

static int conclude_order(const struct dbt_dna *dna, const char *name, size_t dir,
                          enum dbt_dna_mode mode, const char *how, struct dbt_sentences *to)
{
	const struct dbt_dna_series file = { mode, dir };
	const struct dbt_dna_series memory = { DBT_DNA_MEMORY_SHUFFLED, 0 };
	double mine = ns_of(dna, file, dna->max_bits), other = ns_of(dna, memory, dna->max_bits);
	char a[DBT_UNITS_TEXT_BYTES], b[DBT_UNITS_TEXT_BYTES];
	unsigned bits;

	if (mine <= 0 || other <= 0)
		return 0;
	if (dbt_dna_crossing(dna, file, memory, &bits))
		return say(
			to,
			"From 2^%u on, reading '%s' in order, %s, beats random memory: %s against "
			"%s a byte at 2^%u.",
			bits, name, how, dbt_units_short(mine, a), dbt_units_short(other, b),
			dna->max_bits);
	return say(
		to,
		"Reading '%s' in order, %s, does not beat random memory up to 2^%u: %s against %s "
		"a byte.",
		name, how, dna->max_bits, dbt_units_short(mine, a), dbt_units_short(other, b));
}

static int conclude_dir(const struct dbt_dna *dna, const char *name, size_t dir,
                        struct dbt_sentences *to)
{
	const struct dbt_dna_point *cold =
		dbt_dna_find(dna, DBT_DNA_FILE_SHUFFLED_COLD, dir, dna->max_bits);
	const struct dbt_dna_series in_order = { DBT_DNA_FILE_ORDER_COLD, dir };
	double order = ns_of(dna, in_order, dna->max_bits);
	double memory = memory_ns(dna, DBT_DNA_MEMORY_SHUFFLED, dna->max_bits);
	char a[DBT_UNITS_TEXT_BYTES];
	int r;

	r = conclude_order(dna, name, dir, DBT_DNA_FILE_ORDER_COLD, "cold", to);
	if (r == 0 && cold && cold->known && order > 0 && memory > 0)
		r = say(to,
		        "A random byte of '%s' takes %s: %.0f times as long as one in order from "
		        "there, %.0f times as long as a random byte of memory.",
		        name, dbt_units_short(cold->ns, a), cold->ns / order, cold->ns / memory);
	if (r == 0 && dbt_dna_failed(dna, dir))
		return say(to, "'%s' could not be measured: %s.", name,
		           cold && cold->note ? cold->note : "not measured");
	if (r == 0 && cold && !cold->known)
		r = say(to, "Cold reads of '%s' are not told: %s.", name,
		        cold->note ? cold->note : "not measured");
	if (r == 0)
		r = conclude_order(dna, name, dir, DBT_DNA_FILE_ORDER_WARM, "warm (from memory)",
		                   to);
	return r;
}

int dbt_dna_conclude(const struct dbt_dna *dna, const char *const *dirs, size_t n_dirs,
                     struct dbt_sentences *ret)
{
	struct dbt_sentences out = { 0 };
	int r = conclude_growth(dna, &out);

	if (r == 0)
		r = conclude_causes(dna, &out);
	if (r == 0)
		r = conclude_misses(dna, &out);
	for (size_t i = 0; i < n_dirs && r == 0; i++)
		r = conclude_dir(dna, dirs[i], i, &out);
	if (r == 0 && dna->limited)
		r = say(&out, "Note: %s.", dna->limited);
	if (r < 0)
		dbt_sentences_release(&out);
	else
		*ret = out;
	return r;
}

void dbt_sentences_release(struct dbt_sentences *sentences)
{
	for (size_t i = 0; i < sentences->n; i++)
		free(sentences->items[i]);
	free(sentences->items);
	*sentences = (struct dbt_sentences){ 0 };
}
