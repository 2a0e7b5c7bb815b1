/* faiss index: a tag of four letters, u32 dimension, u64 vectors, and u64 1048576 twice
 * (index_write.cpp). Of a flat index the size follows. */
#include "survey/formats/format.h"

#include <ctype.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	uint32_t dimension;
	uint64_t vectors, end;

	if (file->head_len < 45 || dbt_le64(file->head + 16) != 1U << 20 ||
	    dbt_le64(file->head + 24) != 1U << 20)
		return DBT_MATCH_NO;
	for (unsigned i = 0; i < 4; i++)
		if (!isalnum(file->head[i]))
			return DBT_MATCH_NO;
	dimension = dbt_le32(file->head + 4);
	vectors = dbt_le64(file->head + 8);
	if (dimension < 1 || dimension > 65536)
		return DBT_MATCH_NO;
	if (memcmp(file->head, "IxF2", 4) == 0 || memcmp(file->head, "IxFI", 4) == 0) {
		end = dbt_size_of(vectors, 4ULL * dimension, 45);
		if (end > file->size_bytes)
			return dbt_match_cut(why, file->size_bytes, end);
	}
	return DBT_MATCH_YES;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.faiss" },
	{ .pattern = "*.index" },
	{ .pattern = "*.faissindex" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_faiss = {
	.id = "faiss",
	.name = "faiss index",
	.tools = "faiss",
	.members = "one file",
	.note = "lists kept on disk (*.ivfdata) are named by absolute path inside: leave those "
		"where they are",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".faiss",
	.leads = leads,
	.rules = rules,
	.test = test,
};
