/* KMA: X.comp.b (no magic: u32 templates, u32 k), X.length.b (the same count first), X.seq.b, X.name;
 * believed because they stand together and agree. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (file->head_len < 16 || dbt_le32(file->head) == 0 || dbt_le32(file->head + 4) < 1 ||
	    dbt_le32(file->head + 4) > 32)
		return DBT_MATCH_NO;
	return DBT_MATCH_YES;
}

static int check(struct dbt_group *group)
{
	const struct dbt_file *lengths = dbt_group_part(group, "*.length.b");
	unsigned char own[4], other[4];

	if (dbt_group_read(group, group->lead, own, 4, 0) != 4 || !lengths ||
	    dbt_group_read(group, lengths, other, 4, 0) != 4)
		return 0;
	if (memcmp(own, other, 4) != 0)
		return -ENOENT;
	/* A count, then at least one u32 each. */
	return dbt_group_expect(group, lengths, 4 + 4ULL * dbt_le32(own));
}

static const struct dbt_lead leads[] = { { .pattern = "*.comp.b" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.comp.b", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "*.length.b", DBT_CLASS_LOAD_ALL, DBT_RULE_CORE, 0 },
	{ "*.seq.b", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.index.b", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "*.name", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_kma = {
	.id = "kma",
	.name = "KMA database",
	.tools = "kma, ResFinder",
	.members = "X.comp.b, X.length.b, X.seq.b, X.name, X.index.b",
	.note = "a cut in one of its files is not noticed: nothing tells how long they are",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
