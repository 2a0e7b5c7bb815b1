#include "survey/advice.h"

#include "base/buf.h"
#include "base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Below this a move is not worth its trouble. */
static const double WORTH = 1.5;

/* The page cache needs some room besides the database. */
static const double CACHE_ROOM = 1.2;

/* What a class of device does at least and at most, for targets that hold nothing to measure. From
 * data sheets and reviews of the last years; always called a guess. */
static const struct typical {
	double rand1_low, rand1_high; /* 4k reads a second, one job */
	double rand4_low, rand4_high;
	double stream_low, stream_high; /* bytes a second */
} typical[] = {
	[DBT_TIER_RAM] = { 200e3, 1000e3, 800e3, 3000e3, 4e9, 10e9 },
	[DBT_TIER_NVME] = { 8e3, 20e3, 30e3, 80e3, 1e9, 3e9 },
	[DBT_TIER_SSD] = { 4e3, 10e3, 15e3, 40e3, 300e6, 550e6 },
	[DBT_TIER_HDD] = { 60, 200, 80, 300, 80e6, 250e6 },
};

/* One pattern on both devices. */
struct basis {
	bool have;
	bool guess;  /* the target was not measured */
	bool proved; /* both sides were, by the devices' counters */
	bool random;
	unsigned jobs;
	double from, to;  /* IOPS or bytes a second; to is 0 for a guess */
	double low, high; /* ratio */
};

/* The hot files of one class. */
struct share {
	enum dbt_class class;
	const char *name; /* of the largest */
	uint64_t largest, bytes;
	double low, high;
};

struct sides {
	const struct dbt_speeds *from, *to;
	enum dbt_tier to_tier;
};

static double value_of(const struct dbt_speed *speed, bool random)
{
	return random ? speed->iops : (double)speed->rate_bytes_s;
}

static const struct dbt_speed *pattern_of(const struct dbt_speeds *speeds, bool random,
                                          unsigned jobs)
{
	if (random)
		return jobs == 1 ? &speeds->random1 : &speeds->random4;
	return jobs == 1 ? &speeds->stream1 : &speeds->stream4;
}

static struct basis compare(const struct sides *sides, bool random, unsigned jobs)
{
	const struct dbt_speed *from = pattern_of(sides->from, random, jobs),
			       *to = sides->to ? pattern_of(sides->to, random, jobs) : NULL;
	struct basis b = { .random = random, .jobs = jobs, .from = value_of(from, random) };
	const struct typical *t;

	if (b.from <= 0)
		return b;
	if (to && value_of(to, random) > 0) {
		b.have = true;
		b.to = value_of(to, random);
		b.proved = from->proved && to->proved;
		b.low = b.high = b.to / b.from;
		return b;
	}
	if ((size_t)sides->to_tier >= sizeof(typical) / sizeof(typical[0]))
		return b;
	t = &typical[sides->to_tier];
	if (t->stream_low <= 0)
		return b;
	b.have = b.guess = true;
	b.low = (random ? jobs == 1 ? t->rand1_low : t->rand4_low : t->stream_low) / b.from;
	b.high = (random ? jobs == 1 ? t->rand1_high : t->rand4_high : t->stream_high) / b.from;
	return b;
}

/* ---- words ---- */

static void add_count(struct dbt_buf *buf, double value)
{
	unsigned long long v = (unsigned long long)(value + 0.5);

	if (v >= 1000000)
		(void)dbt_buf_addf(buf, "%llu,%03llu,%03llu", v / 1000000, v / 1000 % 1000,
		                   v % 1000);
	else if (v >= 1000)
		(void)dbt_buf_addf(buf, "%llu,%03llu", v / 1000, v % 1000);
	else
		(void)dbt_buf_addf(buf, "%llu", v);
}

static void add_value(struct dbt_buf *buf, const struct basis *b, double value)
{
	char text[DBT_UNITS_TEXT_BYTES];

	if (b->random)
		add_count(buf, value);
	else
		(void)dbt_buf_adds(buf, dbt_units_rate((uint64_t)value, text));
}

static void add_factor(struct dbt_buf *buf, double factor)
{
	if (factor < 9.95)
		(void)dbt_buf_addf(buf, "%.1f", factor);
	else
		add_count(buf, factor);
}

/* "~12x", "~12-50x" */
static void add_range(struct dbt_buf *buf, double low, double high)
{
	struct dbt_buf from = { 0 }, to = { 0 };

	add_factor(&from, low);
	add_factor(&to, high);
	if (strcmp(dbt_buf_str(&from), dbt_buf_str(&to)) == 0)
		(void)dbt_buf_addf(buf, "~%sx", dbt_buf_str(&to));
	else
		(void)dbt_buf_addf(buf, "~%s-%sx", dbt_buf_str(&from), dbt_buf_str(&to));
	dbt_buf_release(&from);
	dbt_buf_release(&to);
}

/* "4 streams: 60 MB/s -> 3.0 GB/s" */
static void add_basis(struct dbt_buf *buf, const struct basis *b, enum dbt_tier to_tier)
{
	if (b->random)
		(void)dbt_buf_addf(buf, "random 4k, %u job%s: ", b->jobs, b->jobs == 1 ? "" : "s");
	else
		(void)dbt_buf_addf(buf, "%u stream%s: ", b->jobs, b->jobs == 1 ? "" : "s");
	add_value(buf, b, b->from);
	(void)dbt_buf_adds(buf, " -> ");
	if (b->guess)
		(void)dbt_buf_addf(buf, "%s, not measured: a guess", dbt_tier_name(to_tier));
	else
		add_value(buf, b, b->to);
	if (b->random && !b->guess)
		(void)dbt_buf_adds(buf, " IOPS");
	if (!b->guess && !b->proved)
		(void)dbt_buf_adds(buf, ", not proved by the device's counters");
}

/* ---- the forecast of one class ---- */

/* The measurements that matter for a class. random-mmap faults are read around, so it gains something
 * between the two ratios. */
static size_t bases_of(enum dbt_class class, const struct sides *sides, struct basis out[4])
{
	size_t n = 0, kept = 0;

	switch (class) {
	case DBT_CLASS_RANDOM_PREAD:
		out[n++] = compare(sides, true, 1);
		out[n++] = compare(sides, true, 4);
		break;
	case DBT_CLASS_RANDOM_MMAP:
		out[n++] = compare(sides, true, 1);
		out[n++] = compare(sides, true, 4);
		out[n++] = compare(sides, false, 1);
		break;
	case DBT_CLASS_SCAN_MMAP:
	case DBT_CLASS_STREAM:
	case DBT_CLASS_STREAM_PER_QUERY:
		out[n++] = compare(sides, false, 1);
		out[n++] = compare(sides, false, 4);
		break;
	case DBT_CLASS_LOAD_ALL:
		out[n++] = compare(sides, false, 1);
		break;
	case DBT_CLASS_UNKNOWN:
	case DBT_CLASS_COLD:
		break;
	}
	for (size_t i = 0; i < n; i++)
		if (out[i].have)
			out[kept++] = out[i];
	return kept;
}

/* Fills the share's range and describes it: "~12-50x (1 stream: ...; 4 streams: ...)". */
static bool forecast(struct share *share, const struct sides *sides, bool name_it,
                     struct dbt_buf *gain)
{
	struct basis bases[4];
	size_t n = bases_of(share->class, sides, bases);

	for (size_t i = 0; i < n; i++) {
		share->low = i == 0 || bases[i].low < share->low ? bases[i].low : share->low;
		share->high = bases[i].high > share->high ? bases[i].high : share->high;
	}
	if (n == 0)
		return false;
	if (gain->len > 0)
		(void)dbt_buf_adds(gain, ", ");
	if (name_it)
		(void)dbt_buf_addf(gain, "%s ", share->name);
	add_range(gain, share->low, share->high);
	(void)dbt_buf_adds(gain, " (");
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			(void)dbt_buf_adds(gain, "; ");
		add_basis(gain, &bases[i], sides->to_tier);
	}
	(void)dbt_buf_addc(gain, ')');
	return true;
}

enum { MAX_SHARES = 8 };

/* Sorts the hot members that are not promoted by class. */
static size_t shares_of(const struct dbt_database *db, struct share out[MAX_SHARES])
{
	size_t n = 0;

	for (size_t i = 0; i < db->n_members; i++) {
		const struct dbt_member *m = &db->members[i];
		enum dbt_class class = db->class != DBT_CLASS_UNKNOWN ? db->class : m->class;
		size_t k;

		if (!m->hot || m->promoted)
			continue;
		for (k = 0; k < n && out[k].class != class; k++)
			;
		if (k == MAX_SHARES)
			continue;
		if (k == n)
			out[n++] = (struct share){ .class = class };
		out[k].bytes += m->size_bytes;
		if (!out[k].name || m->size_bytes > out[k].largest) {
			out[k].name = m->name;
			out[k].largest = m->size_bytes;
		}
	}
	return n;
}

/* ---- the verdict ---- */

struct verdict {
	enum dbt_verdict verdict;
	struct dbt_buf text;
};

static void leave(struct verdict *v, const char *why)
{
	v->verdict = DBT_VERDICT_LEAVE;
	(void)dbt_buf_addf(&v->text, "leave: %s", why);
}

/* What needs no measurement. Returns true when that settled it. */
static bool settled_by_facts(const struct dbt_database *db, const struct dbt_place *from,
                             const struct dbt_place *to, uint64_t hot_bytes,
                             uint64_t free_memory_bytes, struct verdict *v)
{
	if (!db->complete) {
		leave(v, "incomplete");
	} else if (db->followed) {
		leave(v, "its files are links: scan where they lie");
	} else if (db->promoted && hot_bytes == 0) {
		(void)dbt_buf_adds(&v->text, "promoted");
	} else if (db->holds) {
		(void)dbt_buf_addf(&v->text,
		                   "unpack with 'dbtier promote ARCHIVE --to DIR'; holds %s",
		                   db->holds);
	} else if (hot_bytes == 0) {
		leave(v, "rarely read");
	} else if (from->tier == DBT_TIER_RAM || from->tier == DBT_TIER_NVME) {
		(void)dbt_buf_addf(&v->text, "leave: on %s already", dbt_tier_name(from->tier));
	} else if (from->network) {
		leave(v, "on the network");
	} else if ((double)hot_bytes * CACHE_ROOM < (double)free_memory_bytes) {
		leave(v, "fits in free memory");
	} else if (to && dbt_place_same_filesystem(from, to)) {
		leave(v, "there already");
	} else {
		return false;
	}
	return true;
}

static void add_copy_time(struct dbt_buf *text, uint64_t bytes, const struct sides *sides)
{
	uint64_t from = sides->from->stream1.rate_bytes_s,
		 to = sides->to ? sides->to->stream1.rate_bytes_s : 0,
		 rate = to > 0 && to < from ? to : from;
	char time[DBT_UNITS_TEXT_BYTES];

	if (rate > 0)
		(void)dbt_buf_addf(
			text, ", copy ~%s",
			dbt_units_duration((uint64_t)((double)bytes / (double)rate * 1e9), time));
}

/* Loaded once: a faster device shortens the start and nothing else. */
static void load_once(struct verdict *v, uint64_t bytes, const struct sides *sides)
{
	uint64_t from = sides->from->stream1.rate_bytes_s;
	char time[DBT_UNITS_TEXT_BYTES];

	leave(v, "loaded once");
	if (from > 0)
		(void)dbt_buf_addf(
			&v->text, " (~%s)",
			dbt_units_duration((uint64_t)((double)bytes / (double)from * 1e9), time));
}

static void weigh(struct verdict *v, struct dbt_advice *advice, struct share *shares, size_t n,
                  uint64_t bytes, const struct sides *sides, const struct dbt_place *from,
                  const struct dbt_place *to, bool in_part, struct dbt_buf *gain)
{
	const bool loaded = n == 1 && shares[0].class == DBT_CLASS_LOAD_ALL;
	bool measured = n > 0;

	for (size_t i = 0; i < n; i++)
		measured &= forecast(&shares[i], sides, n > 1, gain);
	if (!measured && !loaded) {
		v->verdict = DBT_VERDICT_UNKNOWN;
		(void)dbt_buf_addf(&v->text, "a guess: move to %s (%s to %s, not measured)",
		                   to->mount, dbt_tier_name(from->tier), dbt_tier_name(to->tier));
		dbt_buf_clear(gain);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || shares[i].low < advice->gain_low)
			advice->gain_low = shares[i].low;
		if (shares[i].high > advice->gain_high)
			advice->gain_high = shares[i].high;
	}
	if (loaded) {
		load_once(v, bytes, sides);
	} else if (advice->gain_high < WORTH) {
		(void)dbt_buf_addf(&v->text, "leave: %s gains nothing (", to->mount);
		add_range(&v->text, advice->gain_low, advice->gain_high);
		(void)dbt_buf_addc(&v->text, ')');
	} else {
		v->verdict = DBT_VERDICT_MOVE;
		(void)dbt_buf_addf(&v->text, "move%s to %s: ", in_part ? " the rest" : "",
		                   to->mount);
		add_range(&v->text, advice->gain_low, advice->gain_high);
		add_copy_time(&v->text, bytes, sides);
	}
}

int dbt_advice_for(const struct dbt_database *db, const struct dbt_place *from,
                   const struct dbt_speeds *from_speeds, const struct dbt_place *to,
                   const struct dbt_speeds *to_speeds, uint64_t free_memory_bytes,
                   struct dbt_advice *ret)
{
	static const struct dbt_speeds none;
	const struct sides sides = { .from = from_speeds ? from_speeds : &none,
		                     .to = to_speeds,
		                     .to_tier = to ? to->tier : DBT_TIER_UNKNOWN };
	struct dbt_advice advice = { 0 };
	struct share shares[MAX_SHARES];
	struct verdict v = { .verdict = DBT_VERDICT_LEAVE };
	struct dbt_buf gain = { 0 };
	size_t n = shares_of(db, shares);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += shares[i].bytes;
	if (settled_by_facts(db, from, to, bytes, free_memory_bytes, &v))
		; /* no forecast changes that */
	else if (!to)
		leave(&v, "no faster place known");
	else
		weigh(&v, &advice, shares, n, bytes, &sides, from, to, db->promoted, &gain);
	advice.verdict = v.verdict;
	advice.text = dbt_buf_take(&v.text);
	if (advice.text && gain.len > 0) {
		advice.gain = dbt_buf_take(&gain);
		if (!advice.gain) {
			free(advice.text);
			advice.text = NULL;
		}
	}
	dbt_buf_release(&gain);
	if (!advice.text)
		return -ENOMEM;
	*ret = advice;
	return 0;
}

void dbt_advice_release(struct dbt_advice *advice)
{
	free(advice->gain);
	free(advice->text);
	*advice = (struct dbt_advice){ 0 };
}
