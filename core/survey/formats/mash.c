/* Mash sketch: a Cap'n Proto message: u32 segments-1, u32 words of each, padded to 8 bytes, then the
 * segments; the file is exactly that long. Weak, so only under its own name. */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	uint64_t words = 0, table, end;
	uint32_t segments;

	if (file->head_len < 16)
		return DBT_MATCH_NO;
	segments = dbt_le32(file->head);
	if (segments > 512)
		return DBT_MATCH_NO;
	segments++;
	table = ((uint64_t)segments + 2) / 2;
	for (uint32_t i = 0; i < segments; i++) {
		if ((size_t)4 * i + 8 > file->head_len)
			return DBT_MATCH_NO;
		words += dbt_le32(file->head + 4 + (size_t)4 * i);
	}
	end = 8 * (table + words);
	if (words == 0 || end < file->size_bytes)
		return DBT_MATCH_NO;
	return end == file->size_bytes ? DBT_MATCH_YES : dbt_match_cut(why, file->size_bytes, end);
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.msh" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_mash = {
	.id = "mash",
	.name = "Mash sketch",
	.tools = "mash",
	.members = "one file",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.strip = ".msh",
	.leads = leads,
	.rules = rules,
	.test = test,
};
