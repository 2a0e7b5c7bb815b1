/* DIAMOND: sequences in input order and a table of their offsets; no seed index. Layout from the
 * DIAMOND source, src/legacy/dmnd/dmnd.h: u64 magic, u32 build, u32 version, u64 sequences, u64
 * letters, u64 offset of the position array (16 bytes a sequence and one at the end); a second
 * header follows at 40. All little-endian. */
#include "survey/formats/format.h"

static const unsigned char magic[8] = { 0x6d, 0x18, 0xee, 0x15, 0xa4, 0xf8, 0x4a, 0x02 };

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	enum { SEQUENCES_AT = 16, POS_ARRAY_AT = 32, HEADER_BYTES = 40, ENTRY_BYTES = 16 };
	uint64_t sequences, end;

	if (!dbt_has_magic(file, magic, sizeof(magic)))
		return DBT_MATCH_NO;
	if (file->head_len < HEADER_BYTES)
		return dbt_match_cut(why, file->size_bytes, HEADER_BYTES);
	sequences = dbt_le64(file->head + SEQUENCES_AT);
	if (sequences == 0)
		return DBT_MATCH_NO;
	end = dbt_size_of(ENTRY_BYTES, sequences, ENTRY_BYTES);
	end = dbt_size_of(1, end, dbt_le64(file->head + POS_ARRAY_AT));
	return end <= file->size_bytes ? DBT_MATCH_YES : dbt_match_cut(why, file->size_bytes, end);
}

static const struct dbt_lead leads[] = { { .pattern = "*.dmnd" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ .pattern = "*", .class = DBT_CLASS_STREAM, .flags = DBT_RULE_HOT },
	/* Read with --target-indexed only, then mapped (src/data/index.cpp). */
	{ .pattern = "*.seed_idx", .class = DBT_CLASS_RANDOM_MMAP },
	{ 0 },
};

const struct dbt_format dbt_format_diamond = {
	.id = "diamond",
	.name = "DIAMOND database",
	.tools = "DIAMOND; inside Bakta, eggNOG-mapper, CheckM2, HUMAnN, CAT/BAT, antiSMASH",
	.members = "NAME.dmnd, optional NAME.dmnd.seed_idx",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".dmnd",
	.leads = leads,
	.rules = rules,
	.test = test,
};
