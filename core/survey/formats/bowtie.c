/* Bowtie 1: X.1.ebwt and five more; .ebwtl for genomes beyond 4 Gbp. */
#include "survey/ebwt.h"

enum { KIND_SMALL = 's', KIND_LARGE = 'l' };

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	return dbt_ebwt_test(file, file->name[strlen(file->name) - 1] == 'l', why);
}

static int check(struct dbt_group *group)
{
	const bool wide = group->kind == KIND_LARGE;

	return dbt_ebwt_check(group, wide ? "ebwtl" : "ebwt", wide);
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.1.ebwt", .kind = KIND_SMALL },
	{ .pattern = "*.1.ebwtl", .kind = KIND_LARGE },
	{ 0 },
};

#define MEMBERS(end, kind)                                                                         \
	{ "*.1." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_CORE, kind },                    \
		{ "*.2." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.3." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.4." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.rev.1." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },    \
	{                                                                                          \
		"*.rev.2." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind         \
	}

static const struct dbt_rule rules[] = {
	MEMBERS("ebwt", KIND_SMALL),
	MEMBERS("ebwtl", KIND_LARGE),
	{ 0 },
};

const struct dbt_format dbt_format_bowtie = {
	.id = "bowtie",
	.name = "Bowtie 1 index",
	.tools = "bowtie",
	.members = "X.{1,2,3,4,rev.1,rev.2}.ebwt, or .ebwtl",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
