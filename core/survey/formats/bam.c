/* BAM with its index (X.bam.bai, X.bai or X.bam.csi). The index alone is opened: there may be thousands. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static bool is_bgzf(const unsigned char *head, size_t len)
{
	return len >= 16 && memcmp(head, "\x1f\x8b\x08\x04", 4) == 0 &&
	       memcmp(head + 12, "BC\x02\0", 4) == 0;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "BAI\1", 4) || is_bgzf(file->head, file->head_len)
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

/* The database is called by its data file, whatever the index is called by. */
static int collect(struct dbt_group *group, bool *use_rules)
{
	struct dbt_file *data = dbt_group_find(group, group->base);
	const size_t len = strlen(group->base);

	(void)use_rules;
	if (!data || len < 4 || strcmp(group->base + len - 4, ".bam") != 0)
		data = dbt_group_part(group, "*.bam");
	if (!data)
		return -ENOENT;
	group->base = data->name;
	return dbt_group_add(group, group->lead, DBT_CLASS_LOAD_ALL, false);
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.bai" },
	{ .pattern = "*.bam.csi" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ "*.bai", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.csi", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_bam = {
	.id = "bam",
	.name = "indexed BAM",
	.tools = "samtools, GATK, IGV",
	.members = "X.bam with X.bam.bai, X.bai or X.bam.csi",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.leads = leads,
	.rules = rules,
	.test = test,
	.collect = collect,
};
