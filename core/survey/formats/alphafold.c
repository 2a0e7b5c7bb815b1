/* AlphaFold 2 data directory: params/ beside the databases, each in a directory of its own. hhblits reads bfd
 * and uniref30 at random, jackhmmer streams the FASTA files, templates are 200,000 small files. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static int collect(struct dbt_group *group, bool *use_rules)
{
	*use_rules = false;
	return dbt_group_has_directory(group, "uniref90") &&
	                       (dbt_group_has_directory(group, "mgnify") ||
	                        dbt_group_has_directory(group, "bfd") ||
	                        dbt_group_has_directory(group, "small_bfd"))
	               ? 0
	               : -ENOENT;
}

static const struct dbt_lead leads[] = { { .pattern = "pdb_mmcif/" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "bfd/*_cs219.ffdata", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, 0 },
	{ "bfd/*_a3m.ffdata", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "bfd/*_hhm.ffdata", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "uniref30/*_cs219.ffdata", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, 0 },
	{ "uniref30/*_a3m.ffdata", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "uniref30/*_hhm.ffdata", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "uniref90/*.fasta", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "mgnify/*.fa", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "uniprot/*.fasta", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "small_bfd/*.fasta", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "pdb_seqres/*.txt", DBT_CLASS_STREAM, 0, 0 },
	{ "params/*", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

static const char *const parts[] = { "*", NULL };

const struct dbt_format dbt_format_alphafold = {
	.id = "alphafold",
	.name = "AlphaFold 2 databases",
	.tools = "AlphaFold 2",
	.members = "uniref90/, mgnify/, bfd/ or small_bfd/, uniref30/, pdb70/, pdb_mmcif/, params/",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_FILE,
	.subtree = true,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.collect = collect,
};
