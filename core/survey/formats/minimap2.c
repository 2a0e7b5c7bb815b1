/* minimap2 index: MMI 2, then five u32 (index.c): w, k, bucket bits, sequences, flags. A file may hold
 * several parts one after the other, each read again for every batch of reads. */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (!dbt_has_magic(file, "MMI\2", 4) || file->head_len < 24)
		return DBT_MATCH_NO;
	return dbt_le32(file->head + 4) >= 1 && dbt_le32(file->head + 4) <= 255 &&
	                       dbt_le32(file->head + 8) >= 1 && dbt_le32(file->head + 8) <= 28
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = { { .pattern = "*.mmi" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_minimap2 = {
	.id = "minimap2",
	.name = "minimap2 index",
	.tools = "minimap2",
	.members = "one file",
	.note = "a cut is not noticed: nothing tells how long the file is",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.class = DBT_CLASS_LOAD_ALL,
	.any_name = true,
	.strip = ".mmi",
	.leads = leads,
	.rules = rules,
	.test = test,
};
