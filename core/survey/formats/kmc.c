/* KMC 3: X.kmc_pre begins and ends with KMCP, X.kmc_suf with KMCS (kmc_file.cpp). */
#include "survey/formats/format.h"
#include "survey/group.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	unsigned char end[4];

	if (!dbt_has_magic(file, "KMCP", 4))
		return DBT_MATCH_NO;
	if (file->size_bytes < 8 || dbt_candidate_read(file, end, 4, file->size_bytes - 4) != 4 ||
	    memcmp(end, "KMCP", 4) != 0) {
		(void)dbt_buf_adds(why, "cut short: it does not end as it begins");
		return DBT_MATCH_CUT;
	}
	return DBT_MATCH_YES;
}

static int check(struct dbt_group *group)
{
	const struct dbt_file *suf = dbt_group_part(group, "*.kmc_suf");
	unsigned char end[4];

	if (!suf || suf->foreign_link || suf->dangling)
		return 0;
	if (suf->size_bytes >= 8 && dbt_group_read(group, suf, end, 4, suf->size_bytes - 4) == 4 &&
	    memcmp(end, "KMCS", 4) == 0)
		return 0;
	return dbt_group_incomplete(group, "'%s' is cut short: it does not end as it begins",
	                            suf->name);
}

static const struct dbt_lead leads[] = { { .pattern = "*.kmc_pre" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.kmc_pre", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "*.kmc_suf", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_kmc = {
	.id = "kmc",
	.name = "KMC k-mer counts",
	.tools = "kmc, kmc_tools",
	.members = "X.kmc_pre, X.kmc_suf",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
