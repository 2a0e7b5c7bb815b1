/* InterProScan: interproscan.properties beside data/, which holds each member database with its pressed
 * HMMs. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return memmem(file->head, file->head_len, "data.directory=", 15) ||
	                       memmem(file->head, file->head_len, "interpro", 8)
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

static int collect(struct dbt_group *group, bool *use_rules)
{
	(void)use_rules;
	return dbt_group_has_directory(group, "data") ? 0 : -ENOENT;
}

static const struct dbt_lead leads[] = { { .pattern = "interproscan.properties" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "data/*/*/*.h3f", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT, 0 },
	{ "data/*/*/*.h3p", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT, 0 },
	{ "interproscan.properties", DBT_CLASS_COLD, 0, 0 },
	{ 0 },
};

static const char *const parts[] = { "data/*", NULL };

const struct dbt_format dbt_format_interproscan = {
	.id = "interproscan",
	.name = "InterProScan data",
	.tools = "InterProScan",
	.members = "interproscan.properties, data/ with pfam, panther, gene3d ...",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_FILE,
	.subtree = true,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.test = test,
	.collect = collect,
};
