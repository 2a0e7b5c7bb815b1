/* Infernal. cmpress writes X.i1m (models, binary), .i1i (index as HMMER's), .i1f (filter HMMs, each
 * after a small header of its own) and .i1p (the rest of the filter HMMs). Magics from the Infernal
 * source, src/cm_file.c; .i1f and .i1p end with the magic of HMMER's record in 3/f. */
#include "survey/formats/format.h"
#include "survey/group.h"
#include "survey/ssi.h"

enum { KIND_PRESSED = 'p' };

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	const size_t len = strlen(file->name);
	bool yes;

	(void)why;
	if (len > 4 && strcmp(file->name + len - 4, ".i1f") == 0)
		yes = dbt_has_magic(file, "\xf3\xe6\xe1\xb1", 4);
	else
		yes = dbt_has_magic(file, "\xb2\xb0\xed\xe3", 4) ||
		      dbt_has_magic(file, "INFERNAL1/", 10) ||
		      dbt_has_magic(file, "INFERNAL-1", 10);
	return yes ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static int check_end(struct dbt_group *group, const struct dbt_file *file, const char *magic)
{
	unsigned char last[4];

	if (!file || file->foreign_link || file->dangling)
		return 0;
	if (file->size_bytes < 8 ||
	    dbt_group_read(group, file, last, 4, file->size_bytes - 4) != 4 ||
	    memcmp(last, magic, 4) != 0)
		return dbt_group_incomplete(group, "'%s' is cut short: its last model does not end",
		                            file->name);
	return 0;
}

static int check(struct dbt_group *group)
{
	unsigned char hmmer[4];
	int r;

	if (group->alone)
		return 0;
	r = dbt_ssi_check(group, dbt_group_part(group, "*.i1i"));
	/* The magic of the HMMs inside follows at 32. */
	if (r < 0 || dbt_group_read(group, group->lead, hmmer, 4, 32) != 4 ||
	    memcmp(hmmer, "\xf3\xe6\xe6\xb3", 4) != 0)
		return r;
	r = check_end(group, group->lead, "\xf3\xe6\xe6\xb3");
	return r < 0 ? r : check_end(group, dbt_group_part(group, "*.i1p"), "\xf3\xf0\xe6\xb3");
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.i1f", .kind = KIND_PRESSED },
	{ .pattern = "*.cm", .alone = true },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	/* cmscan reads .i1f again for each query, and of .i1m what the filter leaves. */
	{ "*.i1f", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT | DBT_RULE_CORE, KIND_PRESSED },
	{ "*.i1m", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT | DBT_RULE_REQUIRED, KIND_PRESSED },
	{ "*.i1p", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_REQUIRED, KIND_PRESSED },
	{ "*.i1i", DBT_CLASS_RANDOM_PREAD, DBT_RULE_REQUIRED, KIND_PRESSED },
	{ "*", DBT_CLASS_STREAM, 0, KIND_PRESSED },
	{ "*", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "*.ssi", DBT_CLASS_RANDOM_PREAD, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_infernal = {
	.id = "infernal",
	.name = "Infernal covariance models",
	.tools = "cmscan, cmsearch; inside Bakta",
	.members = "X.i1f, X.i1m, X.i1p, X.i1i, optional text X; or one file of models",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".cm",
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
