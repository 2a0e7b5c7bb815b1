/* GTDB-Tk reference data: its sub-directories (GTDB-Tk config/common.py). pplacer loads the reference package
 * into memory, or into a --scratch_dir file, which is what belongs on fast storage; genomes are many small
 * files. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static int collect(struct dbt_group *group, bool *use_rules)
{
	static const char *const signature[] = { "markers", "msa", "pplacer", "taxonomy" },
				 *const expected[] = { "masks", "metadata", "radii" };
	int r = 0;

	*use_rules = false;
	for (size_t i = 0; i < sizeof(signature) / sizeof(signature[0]); i++)
		if (!dbt_group_has_directory(group, signature[i]))
			return -ENOENT;
	for (size_t i = 0; r == 0 && i < sizeof(expected) / sizeof(expected[0]); i++)
		if (!dbt_group_has_directory(group, expected[i]))
			r = dbt_group_incomplete(group, "'%s' is missing", expected[i]);
	return r;
}

static const struct dbt_lead leads[] = { { .pattern = "mrca_red/" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "pplacer/*/*", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "skani/*.db", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ 0 },
};

static const char *const parts[] = { "*", NULL };

const struct dbt_format dbt_format_gtdbtk = {
	.id = "gtdbtk",
	.name = "GTDB-Tk reference data",
	.tools = "GTDB-Tk",
	.members = "directory with markers/, msa/, pplacer/, skani/, taxonomy/, mrca_red/ ...",
	.note = "pplacer loads its part whole; put --scratch_dir on fast storage instead",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_DIRECTORY,
	.subtree = true,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.collect = collect,
};
