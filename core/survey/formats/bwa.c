/* BWA. Layouts from bwa's bwt.c and bntseq.c, all little-endian:
 *	.bwt  u64 primary, four u64 cumulative counts, then 32 bytes a block of 128 bases and 4 bytes a
 *	      word of 16
 *	.sa   the same five, u64 interval, u64 N, then N/interval u64
 *	.pac  four bases a byte, a last byte with length mod 4 */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

enum { COUNTS_BYTES = 40 };

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	uint64_t n, before = 0, end;

	if (file->head_len < COUNTS_BYTES)
		return DBT_MATCH_NO;
	for (unsigned i = 1; i <= 4; i++) {
		if (dbt_le64(file->head + (size_t)8 * i) < before)
			return DBT_MATCH_NO;
		before = dbt_le64(file->head + (size_t)8 * i);
	}
	n = before;
	if (n == 0 || n > UINT64_MAX / 64 || dbt_le64(file->head) > n)
		return DBT_MATCH_NO;
	end = COUNTS_BYTES + 4 * ((n + 15) / 16) + 32 * ((n + 127) / 128 + 1);
	if (file->size_bytes > end)
		return DBT_MATCH_NO;
	return file->size_bytes == end ? DBT_MATCH_YES : dbt_match_cut(why, file->size_bytes, end);
}

static int check(struct dbt_group *group)
{
	unsigned char counts[COUNTS_BYTES], sa[56];
	const struct dbt_file *file = dbt_group_part(group, "*.sa");
	uint64_t n;
	int r = 0;

	if (dbt_group_read(group, group->lead, counts, sizeof(counts), 0) != COUNTS_BYTES)
		return 0;
	n = dbt_le64(counts + 32); /* of both strands */
	if (file && dbt_group_read(group, file, sa, sizeof(sa), 0) == (ssize_t)sizeof(sa) &&
	    dbt_le64(sa + 40) > 0)
		r = dbt_group_expect(group, file, 56 + 8 * (n / dbt_le64(sa + 40)));
	if (r == 0)
		r = dbt_group_expect(group, dbt_group_part(group, "*.pac"),
		                     n / 2 / 4 + (n / 2 % 4 == 0) + 1);
	return r;
}

static const struct dbt_lead leads[] = { { .pattern = "*.bwt" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.bwt", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "*.sa", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.pac", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.ann", DBT_CLASS_LOAD_ALL, DBT_RULE_CORE, 0 },
	{ "*.amb", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "*.alt", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*", DBT_CLASS_COLD, 0, 0 }, /* the FASTA */
	{ "*.fai", DBT_CLASS_COLD, 0, 0 },
	{ "*.dict", DBT_CLASS_COLD, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_bwa = {
	.id = "bwa",
	.name = "BWA index",
	.tools = "bwa",
	.members = "X.{bwt,sa,pac,ann,amb}, X.alt, the FASTA X",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
