/* Easel's binary sequence database (esl_dsqdata.c): a text stub X and X.dsqi, X.dsqm, X.dsqs. Each binary
 * part begins with the magic and the tag number they share. */
#include "survey/formats/format.h"
#include "survey/group.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "\xb1\xd1\xd3\xc4", 4) && file->head_len >= 8 ? DBT_MATCH_YES
	                                                                         : DBT_MATCH_NO;
}

static int check(struct dbt_group *group)
{
	static const char *const parts[] = { "*.dsqm", "*.dsqs" };
	unsigned char own[8], other[8];
	int r = 0;

	if (dbt_group_read(group, group->lead, own, sizeof(own), 0) != (ssize_t)sizeof(own))
		return 0;
	for (size_t i = 0; r == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct dbt_file *part = dbt_group_part(group, parts[i]);

		if (part && !part->foreign_link &&
		    (dbt_group_read(group, part, other, sizeof(other), 0) !=
		             (ssize_t)sizeof(other) ||
		     memcmp(own + 4, other + 4, 4) != 0))
			r = dbt_group_incomplete(group, "'%s' belongs to another build",
			                         part->name);
	}
	return r;
}

static const struct dbt_lead leads[] = { { .pattern = "*.dsqi" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.dsqi", DBT_CLASS_STREAM, DBT_RULE_HOT, 0 },
	{ "*.dsqm", DBT_CLASS_STREAM, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "*.dsqs", DBT_CLASS_STREAM, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "*", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_dsqdata = {
	.id = "dsqdata",
	.name = "Easel sequence database",
	.tools = "HMMER 4, Infernal",
	.members = "X, X.dsqi, X.dsqm, X.dsqs",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
