/* Kaiju index: i64 length, i32 sequences, i32 letters of the alphabet, and those letters (bwt.c). */
#include "survey/formats/format.h"

#include <ctype.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	uint64_t length;
	uint32_t sequences, letters;

	(void)why;
	if (file->head_len < 16)
		return DBT_MATCH_NO;
	length = dbt_le64(file->head);
	sequences = dbt_le32(file->head + 8);
	letters = dbt_le32(file->head + 12);
	if (length == 0 || length > 1ULL << 44 || sequences == 0 || sequences > INT32_MAX ||
	    letters < 20 || letters > 30 || file->head_len < 16 + letters)
		return DBT_MATCH_NO;
	for (uint32_t i = 0; i < letters; i++)
		if (!isgraph(file->head[16 + i]))
			return DBT_MATCH_NO;
	return DBT_MATCH_YES;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.fmi" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_kaiju = {
	.id = "kaiju",
	.name = "Kaiju index",
	.tools = "kaiju",
	.members = "X.fmi; nodes.dmp and names.dmp beside it",
	.note = "each process loads it again",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.strip = ".fmi",
	.leads = leads,
	.rules = rules,
	.test = test,
};
