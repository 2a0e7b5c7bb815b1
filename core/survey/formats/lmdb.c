/* LMDB: magic u32 0xbeefc0de at 16 and version 1 at 20 (mdb.c, struct MDB_meta), the same again one page
 * further; page size at 40, last page used at 136, transaction at 144. The map size in the header says
 * nothing about the file. An environment is a directory with data.mdb and lock.mdb; it can also be one
 * file with -lock beside it. The lock file is made beside the path given: readers by a link and writers
 * by the real path do not see each other's locks. */
#include "survey/formats/format.h"

enum { META_AT = 16, PAGE_SIZE_AT = 40, LAST_PAGE_AT = 136, TXN_AT = 144, META_END = 152 };

static const unsigned char magic[8] = { 0xde, 0xc0, 0xef, 0xbe, 1, 0, 0, 0 };

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	unsigned char second[META_END];
	uint64_t last, end;
	uint32_t page;

	if (file->head_len < META_END || memcmp(file->head + META_AT, magic, sizeof(magic)) != 0)
		return DBT_MATCH_NO;
	page = dbt_le32(file->head + PAGE_SIZE_AT);
	if (page < 256 || page > 65536 || (page & (page - 1)) != 0)
		return DBT_MATCH_NO;
	last = dbt_le64(file->head + LAST_PAGE_AT);
	if (dbt_candidate_read(file, second, sizeof(second), page) != (ssize_t)sizeof(second))
		return dbt_match_cut(why, file->size_bytes, 2ULL * page);
	if (memcmp(second + META_AT, magic, sizeof(magic)) != 0)
		return DBT_MATCH_NO;
	/* The newer of the two counts. */
	if (dbt_le64(second + TXN_AT) > dbt_le64(file->head + TXN_AT))
		last = dbt_le64(second + LAST_PAGE_AT);
	end = last >= UINT64_MAX / page ? UINT64_MAX : (last + 1) * page;
	return end <= file->size_bytes ? DBT_MATCH_YES : dbt_match_cut(why, file->size_bytes, end);
}

enum { KIND_DIRECTORY = 'd' };

static const struct dbt_lead leads[] = {
	{ .pattern = "data.mdb", .kind = KIND_DIRECTORY },
	{ .pattern = "*.mdb", .alone = true },
	{ .pattern = "*.lmdb", .alone = true },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "data.mdb", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, KIND_DIRECTORY },
	{ "lock.mdb", DBT_CLASS_COLD, 0, KIND_DIRECTORY },
	{ "*", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*-lock", DBT_CLASS_COLD, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_lmdb = {
	.id = "lmdb",
	.name = "LMDB environment",
	.tools = "LMDB; inside BLAST+ v5, deep-learning data sets",
	.members = "directory with data.mdb and lock.mdb, or one file with X-lock",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_DIRECTORY,
	.moves = DBT_MOVES_DIRECTORY,
	.class = DBT_CLASS_RANDOM_MMAP,
	.any_name = true,
	.leads = leads,
	.rules = rules,
	.test = test,
};
