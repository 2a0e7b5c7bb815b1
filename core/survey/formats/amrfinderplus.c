/* AMRFinderPlus: a dated directory with AMR.LIB (HMMER), AMRProt* and AMR_CDS* (BLAST) and small tables. A
 * link `latest` beside it leads to the one in use; releases until October 2022 made that link absolute, so
 * that moving the directory above broke it. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "HMMER3/", 7) || dbt_has_magic(file, "\xf3\xe6", 2)
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

/* Two leads, one database. */
static int collect(struct dbt_group *group, bool *use_rules)
{
	static const char *const proteins[] = { "AMRProt", "AMRProt.fa", "AMRProt.psq",
		                                "AMRProt.pin", "AMRProt.fa.psq" };
	bool any = false;

	(void)use_rules;
	if (strcmp(group->lead->name, "AMR.LIB.h3f") == 0 && dbt_group_find(group, "AMR.LIB"))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(proteins) / sizeof(proteins[0]); i++)
		any |= dbt_group_find(group, proteins[i]) != NULL;
	return any ? 0 : -ENOENT;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "AMR.LIB" },
	{ .pattern = "AMR.LIB.h3f" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "AMR.LIB.h3f", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT, 0 },
	{ "AMR.LIB.h3p", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT, 0 },
	{ "AMRProt.psq", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, 0 },
	{ "AMRProt.fa.psq", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, 0 },
	{ 0 },
};

static const char *const parts[] = { "*", NULL };

const struct dbt_format dbt_format_amrfinderplus = {
	.id = "amrfinderplus",
	.name = "AMRFinderPlus database",
	.tools = "AMRFinderPlus; inside Bakta",
	.members = "directory with AMR.LIB*, AMRProt*, AMR_CDS*, version.txt",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_FILE,
	.whole_directory = true,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.test = test,
	.collect = collect,
};
