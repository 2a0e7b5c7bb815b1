/* HMMER 3. hmmpress writes X.h3m (models, binary), .h3i (index), .h3f (what the first filter needs) and
 * .h3p (the rest of each profile). Magics from the HMMER source, src/p7_hmmfile.c and impl_sse/io.c; in
 * 3/f each record of .h3f and .h3p ends with the file's magic again, so the last four bytes tell a cut
 * file. Models that were not pressed are one file, text or binary. */
#include "survey/formats/format.h"
#include "survey/group.h"
#include "survey/ssi.h"

enum { KIND_PRESSED = 'p' };

static bool is_filter(const struct dbt_candidate *file)
{
	/* 3/f is f3 e6 e6 b3, 3/e f3 e6 e5 b3, and so on down to 3/b; 3/a is f3 e6 b3 e8. */
	if (dbt_has_magic(file, "\xf3\xe6\xb3\xe8", 4))
		return true;
	return dbt_has_magic(file, "\xf3\xe6", 2) && file->head_len >= 4 && file->head[2] >= 0xe2 &&
	       file->head[2] <= 0xe6 && file->head[3] == 0xb3;
}

static bool is_models(const struct dbt_candidate *file)
{
	/* Binary: 3/f is ba ed ed e8, 3/e b9, 3/d b0, 3/c b8, 3/b b7, 3/a b6. */
	if (file->head_len >= 4 && memcmp(file->head + 1, "\xed\xed\xe8", 3) == 0 &&
	    memchr("\xba\xb9\xb0\xb8\xb7\xb6", file->head[0], 6))
		return true;
	return dbt_has_magic(file, "HMMER3/", 7) || dbt_has_magic(file, "HMMER2.0", 8);
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	const size_t len = strlen(file->name);

	(void)why;
	if (len > 4 && strcmp(file->name + len - 4, ".h3f") == 0)
		return is_filter(file) ? DBT_MATCH_YES : DBT_MATCH_NO;
	return is_models(file) ? DBT_MATCH_YES : DBT_MATCH_NO;
}

/* The last record of a 3/f part ends with the magic that the file begins with. */
static int check_end(struct dbt_group *group, const struct dbt_file *file)
{
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

static int check(struct dbt_group *group)
{
	unsigned char magic[4];
	int r;

	if (group->alone)
		return 0;
	r = dbt_ssi_check(group, dbt_group_part(group, "*.h3i"));
	if (r < 0 || dbt_group_read(group, group->lead, magic, 4, 0) != 4 ||
	    memcmp(magic, "\xf3\xe6\xe6\xb3", 4) != 0)
		return r;
	r = check_end(group, dbt_group_part(group, "*.h3f"));
	return r < 0 ? r : check_end(group, dbt_group_part(group, "*.h3p"));
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.h3f", .kind = KIND_PRESSED }, { .pattern = "*.hmm", .alone = true },
	{ .pattern = "*.HMM", .alone = true },        { .pattern = "*.hmm3", .alone = true },
	{ .pattern = "*.LIB", .alone = true },        { 0 },
};

static const struct dbt_rule rules[] = {
	/* hmmscan reads all of .h3f again for each query, and the part of .h3p that belongs to the
	 * models left by the filter, forwards. hmmsearch reads .h3m, or the text. */
	{ "*.h3f", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT | DBT_RULE_CORE, KIND_PRESSED },
	{ "*.h3p", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT | DBT_RULE_REQUIRED, KIND_PRESSED },
	{ "*.h3m", DBT_CLASS_STREAM, DBT_RULE_REQUIRED, KIND_PRESSED },
	{ "*.h3i", DBT_CLASS_RANDOM_PREAD, DBT_RULE_REQUIRED, KIND_PRESSED },
	{ "*", DBT_CLASS_STREAM, 0, KIND_PRESSED },
	{ "*", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "*.ssi", DBT_CLASS_RANDOM_PREAD, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_hmmer = {
	.id = "hmmer",
	.name = "HMMER 3 profiles",
	.tools = "hmmscan, hmmsearch; inside Bakta, InterProScan, antiSMASH, AMRFinderPlus",
	.members = "X.h3f, X.h3p, X.h3m, X.h3i, optional text X; or one file of models",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".hmm",
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
