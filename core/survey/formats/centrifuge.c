/* Centrifuge: X.1.cf with the header of a large Bowtie 2 index, X.2.cf, X.3.cf, in newer versions X.4.cf.
 */
#include "survey/ebwt.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	return dbt_ebwt_test(file, true, why);
}

static const struct dbt_lead leads[] = { { .pattern = "*.1.cf" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.1.cf", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "*.2.cf", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.3.cf", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.4.cf", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_centrifuge = {
	.id = "centrifuge",
	.name = "Centrifuge index",
	.tools = "centrifuge",
	.members = "X.{1,2,3}.cf, X.4.cf",
	.note = "a cut in X.2.cf or X.3.cf is not noticed: nothing tells how long they are",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
};
