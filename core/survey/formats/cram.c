/* CRAM with its index X.cram.crai. It also needs its reference, by path or from a cache. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

/* The index is a gzip file, or its text. */
static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return file->head_len >= 2 && (memcmp(file->head, "\x1f\x8b", 2) == 0 ||
	                               (file->head[0] >= '0' && file->head[0] <= '9'))
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

static int check(struct dbt_group *group)
{
	const struct dbt_file *data = dbt_group_find(group, group->base);
	unsigned char magic[4];

	if (!data || data->foreign_link || data->dangling)
		return 0;
	return dbt_group_read(group, data, magic, 4, 0) == 4 && memcmp(magic, "CRAM", 4) == 0
	               ? 0
	               : -ENOENT;
}

static const struct dbt_lead leads[] = { { .pattern = "*.crai" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "*.crai", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_cram = {
	.id = "cram",
	.name = "indexed CRAM",
	.tools = "samtools, GATK, IGV",
	.members = "X.cram with X.cram.crai",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
