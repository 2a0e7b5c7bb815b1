#include "survey/dbkind.h"

#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

/* Endings of files that come in thousands beside databases and are none of the catalogue's formats.
 * Their names are believed: opening each would cost a seek. */
static const char *const everyday[] = {
	".fastq", ".fq",   ".sam",  ".gz", ".bz2", ".xz",  ".zst", ".zip",  ".tar",   ".tgz",
	".log",   ".html", ".json", ".py", ".pyc", ".so",  ".o",   ".a",    ".c",     ".h",
	".js",    ".png",  ".jpg",  ".md", ".pdf", ".svg", ".rst", ".pod5", ".fast5",
};

/* Every pattern of the catalogue whose last ending is literal, hashed by that ending. Built once,
 * never changed. A test checks that the catalogue fits. */
enum { MAX_PATTERNS = 2048, BUCKETS = 1024 };

static struct {
	const char *pattern;
	const struct dbt_format *format; /* NULL: an everyday ending */
	const struct dbt_lead *lead;     /* NULL: a member */
	unsigned order;
	int next;
} patterns[MAX_PATTERNS];
static int n_patterns;
static int buckets[BUCKETS];
static pthread_once_t built = PTHREAD_ONCE_INIT;

static bool fits_glob(const char *p, const char *s)
{
	for (; *p; p++) {
		if (*p == '*') {
			for (const char *rest = s;; rest++) {
				if (fits_glob(p + 1, rest))
					return true;
				if (!*rest)
					return false;
			}
		}
		if (*p == '#') {
			if (!isdigit((unsigned char)*s))
				return false;
			while (isdigit((unsigned char)*s))
				s++;
			continue;
		}
		if (*p != *s)
			return false;
		s++;
	}
	return *s == '\0';
}

bool dbt_pattern_fits(const char *pattern, const char *base, const char *name)
{
	size_t len;

	if (!base || pattern[0] != '*')
		return fits_glob(pattern, name);
	len = strlen(base);
	return strncmp(name, base, len) == 0 && fits_glob(pattern + 1, name + len);
}

static const char *ending(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot : name;
}

/* NULL where the end of the pattern is not literal: such members are found by asking for them. */
static const char *pattern_ending(const char *pattern)
{
	const char *dot = strrchr(pattern, '.');
	const char *tail = dot ? dot : pattern;

	return strpbrk(tail, "*#") ? NULL : tail;
}

static unsigned bucket_of(const char *text)
{
	uint32_t h = 2166136261U; /* FNV-1a */

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619U;
	return (h ^ h >> 16) % BUCKETS;
}

static void add(const char *pattern, const struct dbt_format *format, const struct dbt_lead *lead,
                unsigned order)
{
	const char *key = pattern_ending(pattern);
	unsigned b;

	if (!key || n_patterns == MAX_PATTERNS)
		return;
	b = bucket_of(key);
	patterns[n_patterns].pattern = pattern;
	patterns[n_patterns].format = format;
	patterns[n_patterns].lead = lead;
	patterns[n_patterns].order = order;
	patterns[n_patterns].next = buckets[b];
	buckets[b] = n_patterns++;
}

static void build(void)
{
	for (int b = 0; b < BUCKETS; b++)
		buckets[b] = -1;
	for (size_t i = 0; i < sizeof(everyday) / sizeof(everyday[0]); i++)
		add(everyday[i], NULL, NULL, 0);
	for (const struct dbt_format *const *f = dbt_formats; *f; f++) {
		for (unsigned i = 0; (*f)->leads && (*f)->leads[i].pattern; i++)
			add((*f)->leads[i].pattern, *f, &(*f)->leads[i], i);
		for (const struct dbt_rule *r = (*f)->rules; r && r->pattern; r++)
			add(r->pattern, *f, NULL, 0);
	}
}

static int first_of(const char *name)
{
	(void)pthread_once(&built, build);
	return buckets[bucket_of(ending(name))];
}

unsigned dbt_dbkind_hint(const char *name)
{
	unsigned hint = 0;

	for (int i = first_of(name); i >= 0; i = patterns[i].next) {
		if (!patterns[i].format)
			hint |= strcmp(ending(name), patterns[i].pattern) == 0 ? DBT_HINT_EVERYDAY
			                                                       : 0U;
		else if (fits_glob(patterns[i].pattern, name))
			hint |= patterns[i].lead ? DBT_HINT_LEAD : DBT_HINT_MEMBER;
	}
	return hint;
}

static bool has_moving_rule(const struct dbt_format *f, const char *name, char kind)
{
	for (const struct dbt_rule *r = f->rules; r && r->pattern; r++)
		if ((r->kind == 0 || r->kind == kind) && fits_glob(r->pattern, name) &&
		    ((r->flags & DBT_RULE_HOT) || f->moves != DBT_MOVES_FILE))
			return true;
	return false;
}

/* "*" is whatever a lead found: it says nothing of other names. */
static bool has_moving_member(const struct dbt_format *f, const char *name)
{
	for (const struct dbt_rule *r = f->rules; r && r->pattern; r++)
		if (strcmp(r->pattern, "*") != 0 && fits_glob(r->pattern, name) &&
		    ((r->flags & DBT_RULE_HOT) || f->moves != DBT_MOVES_FILE))
			return true;
	return false;
}

static bool moves_itself(const char *name)
{
	for (const struct dbt_format *const *f = dbt_formats; *f; f++) {
		if (has_moving_member(*f, name))
			return true;
		for (const struct dbt_lead *lead = (*f)->leads; lead && lead->pattern; lead++)
			if (((*f)->shape == DBT_SHAPE_FILE || lead->alone) &&
			    fits_glob(lead->pattern, name) && has_moving_rule(*f, name, lead->kind))
				return true;
	}
	return false;
}

bool dbt_dbkind_moves(const char *name)
{
	static const char *const companions[] = { "-wal", "-journal", "-shm" };
	const size_t len = strlen(name);
	char of[NAME_MAX + 1];

	if (moves_itself(name))
		return true;
	for (size_t i = 0; i < sizeof(companions) / sizeof(companions[0]); i++) {
		const size_t end = strlen(companions[i]);

		if (len <= end || len > NAME_MAX || strcmp(name + len - end, companions[i]) != 0)
			continue;
		memcpy(of, name, len - end);
		of[len - end] = '\0';
		return moves_itself(of);
	}
	return false;
}

/* Strongest proof first; in one format the lead it prefers. */
static bool comes_before(const struct dbt_dbkind_lead *a, const struct dbt_dbkind_lead *b)
{
	if (a->format->proof != b->format->proof)
		return a->format->proof < b->format->proof;
	if (a->format != b->format)
		return strcmp(a->format->id, b->format->id) < 0;
	return a->order < b->order;
}

size_t dbt_dbkind_leads(const char *name, uint64_t size_bytes, struct dbt_dbkind_lead *ret,
                        size_t max)
{
	size_t n = 0;

	for (int i = first_of(name); i >= 0 && n < max; i = patterns[i].next) {
		const struct dbt_dbkind_lead lead = { .format = patterns[i].format,
			                              .lead = patterns[i].lead,
			                              .order = patterns[i].order };
		size_t at = n;

		if (!lead.lead || size_bytes < lead.lead->min_bytes ||
		    !fits_glob(patterns[i].pattern, name))
			continue;
		for (; at > 0 && comes_before(&lead, &ret[at - 1]); at--)
			ret[at] = ret[at - 1];
		ret[at] = lead;
		n++;
	}
	return n;
}

const struct dbt_format *dbt_dbkind_by_content(const struct dbt_candidate *file,
                                               enum dbt_match *ret_match, struct dbt_buf *why)
{
	for (enum dbt_proof proof = DBT_PROOF_MAGIC; proof <= DBT_PROOF_SIBLINGS; proof++)
		for (const struct dbt_format *const *f = dbt_formats; *f; f++) {
			enum dbt_match match;

			if (!(*f)->any_name || (*f)->proof != proof)
				continue;
			dbt_buf_clear(why);
			match = (*f)->test(file, why);
			if (match != DBT_MATCH_NO) {
				*ret_match = match;
				return *f;
			}
		}
	return NULL;
}

const struct dbt_format *dbt_format_by_id(const char *id)
{
	for (const struct dbt_format *const *f = dbt_formats; *f; f++)
		if (strcmp((*f)->id, id) == 0)
			return *f;
	return NULL;
}

ssize_t dbt_candidate_read(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off)
{
	if (off <= file->head_len && len <= file->head_len - off) {
		memcpy(buf, file->head + off, len);
		return (ssize_t)len;
	}
	return file->read(file, buf, len, off);
}

enum dbt_match dbt_match_cut(struct dbt_buf *why, uint64_t size_bytes, uint64_t expected_bytes)
{
	/* Without memory for the sentence the verdict still stands. */
	(void)dbt_buf_addf(why, "cut short: %llu of %llu bytes", (unsigned long long)size_bytes,
	                   (unsigned long long)expected_bytes);
	return DBT_MATCH_CUT;
}
