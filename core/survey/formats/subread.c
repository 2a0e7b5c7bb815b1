/* Subread: X.00.b.tab ("2subindx") and X.00.b.array, more numbers for large genomes, and small texts. */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "2subindx", 8) ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = { { .pattern = "*.00.b.tab" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.00.b.tab", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "*.00.b.array", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.#.b.tab", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "*.#.b.array", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "*.files", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "*.reads", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "*.lowinf", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_subread = {
	.id = "subread",
	.name = "Subread index",
	.tools = "subread-align, subjunc",
	.members = "X.NN.b.tab, X.NN.b.array, X.files, X.reads, X.lowinf",
	.note = "a cut in one of its files is not noticed: nothing tells how long they are",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
};
