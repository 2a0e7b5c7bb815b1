/* Salmon index directory (pufferfish): versionInfo.json beside info.json and the tables. Built with --sparse, it
 * has sample_pos.bin and some more instead of pos.bin. */
#include "survey/formats/format.h"
#include "survey/group.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return memmem(file->head, file->head_len, "\"indexVersion\"", 14) &&
	                       memmem(file->head, file->head_len, "\"salmonVersion\"", 15)
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

static int check(struct dbt_group *group)
{
	return dbt_group_find(group, "pos.bin") || dbt_group_find(group, "sample_pos.bin")
	               ? 0
	               : dbt_group_incomplete(group, "'pos.bin' is missing");
}

static const struct dbt_lead leads[] = { { .pattern = "versionInfo.json" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "info.json", DBT_CLASS_LOAD_ALL, DBT_RULE_CORE, 0 },
	{ "pos.bin", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "sample_pos.bin", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "mphf.bin", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "seq.bin", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "ctable.bin", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.bin", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "versionInfo.json", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_salmon = {
	.id = "salmon",
	.name = "Salmon index",
	.tools = "salmon, alevin",
	.members = "directory with versionInfo.json, info.json, pos.bin, mphf.bin, seq.bin, "
		   "ctable.bin",
	.note = "a cut in one of its files is not noticed: nothing tells how long they are",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_DIRECTORY,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.whole_directory = true,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
