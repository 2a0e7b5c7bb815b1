/* What an entry of the catalogue is. A database format is described in one file of this folder,
 * which defines `const struct dbt_format dbt_format_<file name>`; CMake puts every file it finds
 * here into the catalogue, nothing else has to be edited. Look at diamond.c for a format of one
 * file, at hmmer.c for a set, at kraken2.c for a directory, at eggnog.c and bakta.c for a composite.
 * Its sample goes to tests/unit/test_formats_more.c, or to tests/cli/scan_tools.sh where a tool makes it.
 *
 * How a directory is recognised (recognise.c, group.c): every name is compared with the `leads` of all formats; a
 * file that fits is opened, its first bytes go to the format's `test`. A file that passes starts a
 * group, to which `rules` add the other members found in the directory; `check` then compares sizes
 * and headers. Large files that no group took are tested by the formats with `any_name`. */
#ifndef DBT_SURVEY_FORMATS_FORMAT_H
#define DBT_SURVEY_FORMATS_FORMAT_H

#include "base/buf.h"
#include "survey/database.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* First bytes read of a candidate: one small read each. */
enum { DBT_HEAD_BYTES = 4096 };

/* A file as a recogniser sees it. */
struct dbt_candidate {
	const char *name;
	uint64_t size_bytes;
	const unsigned char *head; /* the first head_len bytes of the file */
	size_t head_len;
	/* Reads elsewhere in the file; see dbt_candidate_read. */
	ssize_t (*read)(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off);
	const void *read_data;
};

/* Returns the number of bytes read, less than len only at the end of the file, or -errno. */
ssize_t dbt_candidate_read(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off);

enum dbt_match {
	DBT_MATCH_NO = 0,
	DBT_MATCH_YES,
	DBT_MATCH_CUT, /* it is this format, but not all of it: the reason went to `why` */
};

/* What proves the format; earlier ones are tried first. */
enum dbt_proof {
	DBT_PROOF_MAGIC = 0,  /* a byte string that nothing else has */
	DBT_PROOF_ARITHMETIC, /* numbers in the header that must agree with the file's size */
	DBT_PROOF_DIRECTORY,  /* several names beside each other */
	DBT_PROOF_TEXT,
	DBT_PROOF_SIBLINGS, /* a weak test, believed only because the siblings agree */
};

/* What the members are collected around; also the order in which groups claim files. */
enum dbt_shape {
	DBT_SHAPE_DIRECTORY = 0, /* the directory; rules are plain names in it */
	DBT_SHAPE_SET,           /* a base name: what '*' stood for in the lead's pattern */
	DBT_SHAPE_FILE,          /* one file; '*' in the rules is its whole name */
	DBT_SHAPE_COMPOSITE,     /* a directory made of databases of other formats, its parts */
};

/* Patterns are names with at most one '*' at the start (the base), then '#' for one or more digits. A
 * lead of a composite may end in '/': a sub-directory of that name; it is not tested but passes, and
 * collect looks further. */
struct dbt_lead {
	const char *pattern;
	char kind; /* which rules apply; 0: those without a kind */
	bool alone; /* a database of this one file (and its siblings), whatever the format's shape; so
	               is one found by content under an odd name */
	uint64_t min_bytes; /* smaller files of this name are not opened */
};

enum dbt_rule_flag {
	DBT_RULE_HOT = 1U << 0,
	DBT_RULE_REQUIRED = 1U << 1, /* missing: the database is incomplete */
	DBT_RULE_CORE = 1U << 2,     /* missing: it is no database at all */
	DBT_RULE_LINK = 1U << 3,     /* the database ships it as a symbolic link */
};

struct dbt_rule {
	const char *pattern;
	enum dbt_class class;
	unsigned flags;
	char kind; /* only for groups of this kind; 0: all */
};

struct dbt_group; /* a database being put together; group.h */

struct dbt_format {
	const char *id;
	const char *name;    /* for people */
	const char *tools;   /* that read it */
	const char *members; /* in words */
	const char *note;    /* what a user should know before moving it; NULL */
	enum dbt_proof proof;
	enum dbt_shape shape;
	enum dbt_moves moves;
	enum dbt_class class; /* UNKNOWN: follows from the hot members */
	bool any_name;        /* the test is strong enough for a file of any name */
	bool whole_directory; /* DIRECTORY: every file in it is a member; cold where no rule fits */
	bool uri_target;      /* its tool builds a file: URI of the resolved path */
	const char *strip;    /* ending that is no part of the database's name: ".dmnd"; NULL */
	const struct dbt_lead *leads; /* ends with .pattern NULL; in order of preference */
	const struct dbt_rule *rules; /* ends with .pattern NULL */
	bool subtree; /* COMPOSITE: all files below belong to it, large ones as members, the others as
	                 a sum */
	/* COMPOSITE: the databases below its directory that are its parts, as fnmatch patterns of
	 * their paths relative to it; ends with NULL. */
	const char *const *parts;

	/* Is this file the lead? Pure but for dbt_candidate_read. why: the reason of MATCH_CUT. NULL where only
	 * directories lead. */
	enum dbt_match (*test)(const struct dbt_candidate *file, struct dbt_buf *why);

	/* Adds members beyond the rules, or instead of them when it sets *use_rules to false. May be
	 * NULL. Returns 0, -ENOENT (no database after all) or -errno. */
	int (*collect)(struct dbt_group *group, bool *use_rules);

	/* Compares the members with each other. May be NULL. Returns as collect. */
	int (*check)(struct dbt_group *group);
};

/* The catalogue, generated from the files of this folder; ends with NULL. */
extern const struct dbt_format *const dbt_formats[];

/* Numbers of headers, by their bytes. */
static inline uint16_t dbt_be16(const unsigned char *p)
{
	return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t dbt_be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t dbt_be64(const unsigned char *p)
{
	return (uint64_t)dbt_be32(p) << 32 | dbt_be32(p + 4);
}

static inline uint32_t dbt_le32(const unsigned char *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint64_t dbt_le64(const unsigned char *p)
{
	return (uint64_t)dbt_le32(p + 4) << 32 | dbt_le32(p);
}

/* Reads a decimal number at *at and steps over it. False: there is none, or it is too large. */
static inline bool dbt_read_number(const char **at, uint64_t *ret)
{
	const char *p = *at;
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10U, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	if (p == *at)
		return false;
	*at = p;
	*ret = v;
	return true;
}

/* Does the file begin with these bytes? */
static inline bool dbt_has_magic(const struct dbt_candidate *file, const void *magic, size_t len)
{
	return file->head_len >= len && memcmp(file->head, magic, len) == 0;
}

/* a * b + c, saturated: a size that a forged header cannot wrap around. */
static inline uint64_t dbt_size_of(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r;

	if (__builtin_mul_overflow(a, b, &r) || __builtin_add_overflow(r, c, &r))
		return UINT64_MAX;
	return r;
}

/* "cut short: 100 of 132082 bytes"; always returns DBT_MATCH_CUT. */
enum dbt_match dbt_match_cut(struct dbt_buf *why, uint64_t size_bytes, uint64_t expected_bytes);

#endif
