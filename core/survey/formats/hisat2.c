/* HISAT2: X.1.ht2 to X.8.ht2, .ht2l for genomes beyond 4 Gbp. The first file begins with u32 1, the
 * version (2.2.1 is 0x02020100), three lengths of which the second is the first plus one, and the small
 * numbers of Bowtie 2. */
#include "survey/formats/format.h"

enum { KIND_SMALL = 's', KIND_LARGE = 'l' };

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	const bool wide = file->name[strlen(file->name) - 1] == 'l';
	const size_t width = wide ? 8 : 4;
	const unsigned char *p = file->head;
	uint64_t length, with_end;

	(void)why;
	if (file->head_len < 8 + 3 * width + 16 || dbt_le32(p) != 1 || p[7] != 2)
		return DBT_MATCH_NO;
	length = wide ? dbt_le64(p + 8) : dbt_le32(p + 8);
	with_end = wide ? dbt_le64(p + 8 + width) : dbt_le32(p + 8 + width);
	p += 8 + 3 * width;
	if (length == 0 || with_end != length + 1 || dbt_le32(p) < 5 || dbt_le32(p) > 8 ||
	    dbt_le32(p + 4) < 1 || dbt_le32(p + 4) > 2 || dbt_le32(p + 8) > 16 ||
	    dbt_le32(p + 12) < 1 || dbt_le32(p + 12) > 16)
		return DBT_MATCH_NO;
	return file->size_bytes > (width << (2 * dbt_le32(p + 12))) ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.1.ht2", .kind = KIND_SMALL },
	{ .pattern = "*.1.ht2l", .kind = KIND_LARGE },
	{ 0 },
};

#define MEMBERS(end, kind)                                                                         \
	{ "*.1." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_CORE, kind },                    \
		{ "*.2." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.3." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.4." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.5." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.6." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.7." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
		{ "*.8." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, kind },        \
	{                                                                                          \
		"*.rep.#." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, kind                             \
	}

static const struct dbt_rule rules[] = {
	MEMBERS("ht2", KIND_SMALL),
	MEMBERS("ht2l", KIND_LARGE),
	{ 0 },
};

const struct dbt_format dbt_format_hisat2 = {
	.id = "hisat2",
	.name = "HISAT2 index",
	.tools = "hisat2",
	.members = "X.{1..8}.ht2, or .ht2l; X.rep.*",
	.note = "X.1 tells its own least size; a cut in the others is not noticed: nothing in them "
		"tells how long they are",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
};
