/* eggNOG-mapper data directory: eggnog.db (SQLite) with eggnog_proteins.dmnd beside it; taxa database, and
 * the sets of its other search modes (eggnog-mapper, eggnogmapper/common.py). */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "SQLite format 3", 16) ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = { { .pattern = "eggnog.db" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "eggnog.db", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "eggnog_proteins.dmnd", DBT_CLASS_STREAM, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "eggnog.taxa.db", DBT_CLASS_RANDOM_PREAD, DBT_RULE_REQUIRED, 0 },
	{ "eggnog.taxa.db.traverse.pkl", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

static const char *const parts[] = {
	"eggnog*", "novel_fams*", "mmseqs/*", "pfam/*", "hmmer/*", NULL
};

const struct dbt_format dbt_format_eggnog = {
	.id = "eggnog",
	.name = "eggNOG-mapper data",
	.tools = "eggNOG-mapper",
	.members = "eggnog.db, eggnog_proteins.dmnd, eggnog.taxa.db, mmseqs/, pfam/, hmmer/",
	.note = "opened for writing: a dangling link leaves an empty database behind",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_FILE,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.test = test,
};
