/* HUMAnN data directory: chocophlan/ (a gzip FASTA a species) beside uniref/ (a DIAMOND database). */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static int collect(struct dbt_group *group, bool *use_rules)
{
	*use_rules = false;
	return dbt_group_has_directory(group, "uniref") ? 0 : -ENOENT;
}

static const struct dbt_lead leads[] = { { .pattern = "chocophlan/" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "uniref/*.dmnd", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ 0 },
};

static const char *const parts[] = { "chocophlan/*", "uniref/*", "utility_mapping/*", NULL };

const struct dbt_format dbt_format_humann = {
	.id = "humann",
	.name = "HUMAnN databases",
	.tools = "HUMAnN",
	.members = "uniref/*.dmnd, chocophlan/, utility_mapping/",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_FILE,
	.subtree = true,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.collect = collect,
};
