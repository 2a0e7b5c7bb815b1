/* Jellyfish 2: nine decimal digits, the length of the JSON header that follows. */
#include "survey/formats/format.h"

#include <ctype.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (file->head_len < 10 || file->head[9] != '{')
		return DBT_MATCH_NO;
	for (unsigned i = 0; i < 9; i++)
		if (!isdigit(file->head[i]))
			return DBT_MATCH_NO;
	return DBT_MATCH_YES;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.jf" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_jellyfish = {
	.id = "jellyfish",
	.name = "Jellyfish k-mer counts",
	.tools = "jellyfish",
	.members = "one file",
	.note = "a cut is not noticed: nothing tells how long the file is",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".jf",
	.leads = leads,
	.rules = rules,
	.test = test,
};
