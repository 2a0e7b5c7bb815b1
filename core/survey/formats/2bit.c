/* UCSC 2bit: a magic that tells the byte order, u32 version 0 or 1, u32 sequences. */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	const bool little = dbt_has_magic(file, "\x43\x27\x41\x1a", 4),
		   big = dbt_has_magic(file, "\x1a\x41\x27\x43", 4);
	uint32_t version, sequences;

	(void)why;
	if ((!little && !big) || file->head_len < 16)
		return DBT_MATCH_NO;
	version = little ? dbt_le32(file->head + 4) : dbt_be32(file->head + 4);
	sequences = little ? dbt_le32(file->head + 8) : dbt_be32(file->head + 8);
	return version <= 1 && sequences > 0 ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.2bit" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_2bit = {
	.id = "2bit",
	.name = "2bit genome",
	.tools = "BLAT, UCSC tools",
	.members = "one file",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".2bit",
	.leads = leads,
	.rules = rules,
	.test = test,
};
