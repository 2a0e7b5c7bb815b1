/* meryl of 2008 (kmer package): X.mcidx and X.mcdat, both bit-packed files. */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "bitPackedFile", 14) ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = { { .pattern = "*.mcidx" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.mcidx", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "*.mcdat", DBT_CLASS_STREAM, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_meryl1 = {
	.id = "meryl1",
	.name = "meryl k-mer counts",
	.tools = "meryl (kmer package)",
	.members = "X.mcidx, X.mcdat",
	.note = "a cut in one of its files is not noticed: nothing tells how long they are",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.leads = leads,
	.rules = rules,
	.test = test,
};
