/* bigWig: magic, u16 version 1 to 4 (bbiFile.h of the UCSC tools). */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (!dbt_has_magic(file, "\x26\xfc\x8f\x88", 4) || file->head_len < 64)
		return DBT_MATCH_NO;
	return file->head[4] >= 1 && file->head[4] <= 4 && file->head[5] == 0 ? DBT_MATCH_YES
	                                                                      : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.bw" },
	{ .pattern = "*.bigWig" },
	{ .pattern = "*.bigwig" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_bigwig = {
	.id = "bigwig",
	.name = "bigWig signal",
	.tools = "UCSC tools, deepTools, genome browsers",
	.members = "one file",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.leads = leads,
	.rules = rules,
	.test = test,
};
