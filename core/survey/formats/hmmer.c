/* HMMER 3, pressed: hmmpress writes X.h3m (models, binary), .h3i (SSI index), .h3f (what the first
 * filter needs) and .h3p (the rest of each profile). Magics from the HMMER source, src/p7_hmmfile.c
 * and impl_sse/io.c; in 3/f each record of .h3f and .h3p ends with the file's magic again, so the
 * last four bytes tell a cut file. The index is Easel's SSI 3.0 (esl_ssi.c), big-endian: number of
 * secondary keys u64 at 22, size of their records u32 at 50, their offset u64 at 70. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static const unsigned char filter_magic[4] = { 0xf3, 0xe6, 0xe6, 0xb3 };

/* .h3f: 3/f is f3 e6 e6 b3, 3/e f3 e6 e5 b3, and so on down to 3/b; 3/a is f3 e6 b3 e8. */
static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (dbt_has_magic(file, "\xf3\xe6\xb3\xe8", 4))
		return DBT_MATCH_YES;
	if (!dbt_has_magic(file, "\xf3\xe6", 2) || file->head_len < 4)
		return DBT_MATCH_NO;
	return file->head[2] >= 0xe2 && file->head[2] <= 0xe6 && file->head[3] == 0xb3
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

/* The last record of a 3/f part ends with the magic that the file begins with. */
static int check_end(struct dbt_group *group, const char *suffix)
{
	const struct dbt_file *file = dbt_group_findf(group, "%s%s", group->base, suffix);
	unsigned char first[4], last[4];

	if (!file || file->foreign_link || file->dangling)
		return 0;
	if (file->size_bytes < 8 || dbt_group_read(group, file, first, 4, 0) != 4 ||
	    dbt_group_read(group, file, last, 4, file->size_bytes - 4) != 4 ||
	    memcmp(first, last, 4) != 0)
		return dbt_group_incomplete(group, "'%s' is cut short: its last model does not end",
		                            file->name);
	return 0;
}

static int check_index(struct dbt_group *group)
{
	enum { HEADER_BYTES = 78, MAGIC = 0xd3d3c9b3 };
	const struct dbt_file *file = dbt_group_findf(group, "%s.h3i", group->base);
	unsigned char head[HEADER_BYTES];
	uint64_t end;

	if (!file || file->foreign_link || file->dangling)
		return 0;
	if (dbt_group_read(group, file, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    dbt_be32(head) != MAGIC)
		return dbt_group_incomplete(group, "'%s' is no index of HMMER", file->name);
	end = dbt_size_of(dbt_be64(head + 22), dbt_be32(head + 50), dbt_be64(head + 70));
	if (end > file->size_bytes)
		return dbt_group_incomplete(group, "'%s' is cut short: %llu of %llu bytes",
		                            file->name, (unsigned long long)file->size_bytes,
		                            (unsigned long long)end);
	return 0;
}

static int check(struct dbt_group *group)
{
	unsigned char magic[4];
	int r = check_index(group);

	if (r == 0 && dbt_group_read(group, group->lead, magic, 4, 0) == 4 &&
	    memcmp(magic, filter_magic, 4) == 0)
		r = check_end(group, ".h3f");
	if (r == 0 && memcmp(magic, filter_magic, 4) == 0)
		r = check_end(group, ".h3p");
	return r;
}

static const struct dbt_lead leads[] = { { .pattern = "*.h3f" }, { 0 } };

static const struct dbt_rule rules[] = {
	/* hmmscan reads all of .h3f again for each query, and the part of .h3p that belongs to the
	 * models left by the filter, forwards. */
	{ .pattern = "*.h3f",
	  .class = DBT_CLASS_STREAM_PER_QUERY,
	  .flags = DBT_RULE_HOT | DBT_RULE_CORE },
	{ .pattern = "*.h3p",
	  .class = DBT_CLASS_STREAM_PER_QUERY,
	  .flags = DBT_RULE_HOT | DBT_RULE_REQUIRED },
	{ .pattern = "*.h3m",
	  .class = DBT_CLASS_STREAM,
	  .flags = DBT_RULE_REQUIRED }, /* hmmsearch */
	{ .pattern = "*.h3i", .class = DBT_CLASS_RANDOM_PREAD, .flags = DBT_RULE_REQUIRED },
	{ .pattern = "*", .class = DBT_CLASS_STREAM }, /* the text */
	{ .pattern = "*.ssi", .class = DBT_CLASS_RANDOM_PREAD },
	{ 0 },
};

const struct dbt_format dbt_format_hmmer = {
	.id = "hmmer",
	.name = "HMMER 3 profiles, pressed",
	.tools = "hmmscan, hmmsearch; inside Bakta, InterProScan, antiSMASH, AMRFinderPlus",
	.members = "X.h3f, X.h3p, X.h3m, X.h3i, optional text X",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_FILE,
	.class = DBT_CLASS_STREAM_PER_QUERY,
	.strip = ".hmm",
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
