/* CheckM2: a DIAMOND database of one fixed name. Its path is stored, absolute, in a JSON file of the package:
 * a link at the old path keeps it valid (CheckM2, fileManager.py). */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "\x6d\x18\xee\x15\xa4\xf8\x4a\x02", 8) ? DBT_MATCH_YES
	                                                                  : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = { { .pattern = "uniref100.KO.1.dmnd" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "uniref100.KO.1.dmnd", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ 0 },
};

static const char *const parts[] = { "uniref100.KO.1.dmnd", NULL };

const struct dbt_format dbt_format_checkm2 = {
	.id = "checkm2",
	.name = "CheckM2 database",
	.tools = "CheckM2",
	.members = "CheckM2_database/uniref100.KO.1.dmnd",
	.note = "its path is stored in CheckM2: keep a link there",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_FILE,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.test = test,
};
