/* MetaPhlAn: a Bowtie 2 index mpa_vXXX with its marker table mpa_vXXX.pkl (bzip2). */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return strncmp(file->name, "mpa_v", 5) == 0 && dbt_has_magic(file, "BZh", 3) ? DBT_MATCH_YES
	                                                                             : DBT_MATCH_NO;
}

static int check(struct dbt_group *group)
{
	static const char *const ends[] = { "1", "2", "3", "4", "rev.1", "rev.2" };
	unsigned found = 0;
	int r = 0;

	for (size_t i = 0; i < 6; i++)
		found += dbt_group_findf(group, "%s.%s.bt2l", group->base, ends[i]) ||
		         dbt_group_findf(group, "%s.%s.bt2", group->base, ends[i]);
	if (found == 0)
		return -ENOENT;
	if (found < 6)
		r = dbt_group_incomplete(group, "%u of 6 files of its Bowtie 2 index are missing",
		                         6 - found);
	return r;
}

static const struct dbt_lead leads[] = { { .pattern = "*.pkl" }, { 0 } };

#define INDEX(end)                                                                                 \
	{ "*.1." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },                                       \
		{ "*.2." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },                               \
		{ "*.3." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },                               \
		{ "*.4." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },                               \
		{ "*.rev.1." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },                           \
	{                                                                                          \
		"*.rev.2." end, DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0                                \
	}

static const struct dbt_rule rules[] = {
	{ "*.pkl", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	INDEX("bt2l"),
	INDEX("bt2"),
	{ "*_SGB.fna.bz2", DBT_CLASS_COLD, 0, 0 },
	{ "*_VSG.fna", DBT_CLASS_COLD, 0, 0 },
	{ "*_VINFO.csv", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.nwk", DBT_CLASS_COLD, 0, 0 },
	{ "*.md5", DBT_CLASS_COLD, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_metaphlan = {
	.id = "metaphlan",
	.name = "MetaPhlAn database",
	.tools = "MetaPhlAn, HUMAnN",
	.members = "mpa_vX.pkl with the Bowtie 2 index mpa_vX.*.bt2l",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
