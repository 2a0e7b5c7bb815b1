/* kallisto index: u64 version (8 to 12), then k as u32 (odd, at most 31), the number of targets and their
 * lengths as u32 (KmerIndex.cpp). From version 13 on (0.50) a Bifrost graph follows, its size as u64. */
#include "survey/formats/format.h"

enum { FIRST = 8, LAST_OLD = 12, BIFROST = 13 };

static bool is_old(const struct dbt_candidate *file)
{
	uint32_t k, targets;

	if (file->head_len < 24)
		return false;
	k = dbt_le32(file->head + 8);
	targets = dbt_le32(file->head + 12);
	if (k < 3 || k > 31 || k % 2 == 0 || targets == 0 ||
	    (uint64_t)targets * 4 + 16 > file->size_bytes)
		return false;
	/* The first lengths are those of transcripts or genomes, never 0. */
	for (uint32_t i = 0; i < targets && 20 + (size_t)4 * i <= file->head_len; i++)
		if (dbt_le32(file->head + 16 + (size_t)4 * i) == 0 ||
		    dbt_le32(file->head + 16 + (size_t)4 * i) > INT32_MAX)
			return false;
	return true;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	uint64_t version, graph;

	if (file->head_len < 24)
		return DBT_MATCH_NO;
	version = dbt_le64(file->head);
	if (version >= FIRST && version <= LAST_OLD)
		return is_old(file) ? DBT_MATCH_YES : DBT_MATCH_NO;
	graph = dbt_le64(file->head + 8);
	if (version != BIFROST || graph < 16 || graph > 1ULL << 42)
		return DBT_MATCH_NO;
	return graph + 16 <= file->size_bytes ? DBT_MATCH_YES
	                                      : dbt_match_cut(why, file->size_bytes, graph + 16);
}

static const struct dbt_lead leads[] = { { .pattern = "*.idx" }, { .pattern = "*.kidx" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_kallisto = {
	.id = "kallisto",
	.name = "kallisto index",
	.tools = "kallisto",
	.members = "one file",
	.note = "a cut is not noticed: nothing tells how long the file is",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.class = DBT_CLASS_LOAD_ALL,
	.strip = ".idx",
	.leads = leads,
	.rules = rules,
	.test = test,
};
