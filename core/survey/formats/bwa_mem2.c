/* bwa-mem2. X.bwt.2bit.64 (FMI_search.cpp): i64 reference length (both strands and one), five i64
 * counts, then 64 bytes a block of 64 bases, then a suffix array of one in eight as i8 and u32 arrays, and
 * the i64 sentinel. X.0123 holds one byte a base of both strands. */
#include "survey/formats/format.h"
#include "survey/group.h"

static uint64_t expected(uint64_t length)
{
	uint64_t blocks = length / 64 + 1, samples = length / 8 + 1;

	return 8 + 5 * 8 + blocks * 64 + samples * 5 + 8;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	uint64_t length, before = 0, end;

	if (file->head_len < 48)
		return DBT_MATCH_NO;
	length = dbt_le64(file->head);
	if (length < 2 || length > UINT64_MAX / 128)
		return DBT_MATCH_NO;
	for (unsigned i = 1; i <= 5; i++) {
		if (dbt_le64(file->head + (size_t)8 * i) < before ||
		    dbt_le64(file->head + (size_t)8 * i) > length)
			return DBT_MATCH_NO;
		before = dbt_le64(file->head + (size_t)8 * i);
	}
	end = expected(length);
	return end <= file->size_bytes ? DBT_MATCH_YES : dbt_match_cut(why, file->size_bytes, end);
}

static int check(struct dbt_group *group)
{
	unsigned char length[8];

	if (dbt_group_read(group, group->lead, length, sizeof(length), 0) !=
	    (ssize_t)sizeof(length))
		return 0;
	return dbt_group_expect(group, dbt_group_part(group, "*.0123"), dbt_le64(length) - 1);
}

static const struct dbt_lead leads[] = { { .pattern = "*.bwt.2bit.64" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.bwt.2bit.64", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "*.0123", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.pac", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.ann", DBT_CLASS_LOAD_ALL, DBT_RULE_CORE, 0 },
	{ "*.amb", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "*.alt", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*", DBT_CLASS_COLD, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_bwa_mem2 = {
	.id = "bwa-mem2",
	.name = "BWA-MEM2 index",
	.tools = "bwa-mem2",
	.members = "X.{bwt.2bit.64,0123,pac,ann,amb}, X.alt, the FASTA X",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
