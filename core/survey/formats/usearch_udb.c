/* UDB database of USEARCH and VSEARCH: "FBDU", u32 32 at 8, the word length at 16, sequences at 52, and
 * "fBDU" again at 196 (vsearch udb.cc). */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (!dbt_has_magic(file, "FBDU", 4) || file->head_len < 200 ||
	    dbt_le32(file->head + 8) != 32 || memcmp(file->head + 196, "fBDU", 4) != 0)
		return DBT_MATCH_NO;
	return DBT_MATCH_YES;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.udb" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_usearch_udb = {
	.id = "usearch-udb",
	.name = "USEARCH database",
	.tools = "vsearch, usearch",
	.members = "one file",
	.note = "a cut is not noticed: nothing tells how long the file is",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".udb",
	.leads = leads,
	.rules = rules,
	.test = test,
};
