/* VEP cache: SPECIES/VERSION_ASSEMBLY/info.txt and a directory a chromosome with thousands of small files:
 * bound by metadata, moved as a directory. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return (dbt_has_magic(file, "species\t", 8) ||
	        memmem(file->head, file->head_len, "\nspecies\t", 9)) &&
	                       memmem(file->head, file->head_len, "\nassembly\t", 10)
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

/* Called by species and version: "110_GRCh38" alone says little. */
static int collect(struct dbt_group *group, bool *use_rules)
{
	const char *version = strrchr(group->dir->path, '/'), *species = version;

	(void)use_rules;
	if (!version || version == group->dir->path)
		return 0;
	while (species > group->dir->path && species[-1] != '/')
		species--;
	return dbt_buf_adds(&group->name, species);
}

static const struct dbt_lead leads[] = { { .pattern = "info.txt" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "info.txt", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*/all_vars.gz", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ "*/all_vars.gz.csi", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

static const char *const parts[] = { "*", NULL };

const struct dbt_format dbt_format_vep = {
	.id = "vep",
	.name = "VEP cache",
	.tools = "Ensembl VEP",
	.members = "SPECIES/VERSION_ASSEMBLY with info.txt and a directory a chromosome",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_DIRECTORY,
	.class = DBT_CLASS_RANDOM_PREAD,
	.subtree = true,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.test = test,
	.collect = collect,
};
