/* Bowtie 2: X.1.bt2 and five more; .bt2l for genomes beyond 4 Gbp. --mm maps the files instead. */
#include "survey/ebwt.h"

enum { KIND_SMALL = 's', KIND_LARGE = 'l' };

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	return dbt_ebwt_test(file, file->name[strlen(file->name) - 1] == 'l', why);
}

static int check(struct dbt_group *group)
{
	const bool wide = group->kind == KIND_LARGE;

	return dbt_ebwt_check(group, wide ? "bt2l" : "bt2", wide);
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.1.bt2", .kind = KIND_SMALL },
	{ .pattern = "*.1.bt2l", .kind = KIND_LARGE },
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
	MEMBERS("bt2", KIND_SMALL),
	MEMBERS("bt2l", KIND_LARGE),
	{ 0 },
};

const struct dbt_format dbt_format_bowtie2 = {
	.id = "bowtie2",
	.name = "Bowtie 2 index",
	.tools = "bowtie2, MetaPhlAn, KneadData",
	.members = "X.{1,2,3,4,rev.1,rev.2}.bt2, or .bt2l",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
