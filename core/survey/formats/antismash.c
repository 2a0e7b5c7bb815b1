/* antiSMASH databases directory: clusterblast/ with proteins.fasta and proteins.dmnd, pfam/, and others
 * (antismash, download_databases.py). */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static int collect(struct dbt_group *group, bool *use_rules)
{
	*use_rules = false;
	return dbt_group_has_directory(group, "pfam") &&
	                       (dbt_group_has_directory(group, "knownclusterblast") ||
	                        dbt_group_has_directory(group, "clustercompare") ||
	                        dbt_group_has_directory(group, "resfam"))
	               ? 0
	               : -ENOENT;
}

static const struct dbt_lead leads[] = { { .pattern = "clusterblast/" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "clusterblast/proteins.dmnd", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "clusterblast/proteins.fasta", DBT_CLASS_COLD, 0, 0 },
	{ "pfam/*/Pfam-A.hmm.h3f", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT, 0 },
	{ "pfam/*/Pfam-A.hmm.h3p", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_HOT, 0 },
	{ 0 },
};

static const char *const parts[] = { "*", NULL };

const struct dbt_format dbt_format_antismash = {
	.id = "antismash",
	.name = "antiSMASH databases",
	.tools = "antiSMASH",
	.members = "clusterblast/, knownclusterblast/, clustercompare/, pfam/, tigrfam/, resfam/",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_FILE,
	.subtree = true,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.collect = collect,
};
