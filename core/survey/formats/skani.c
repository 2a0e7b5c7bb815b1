/* skani: markers.bin is loaded, a *.sketch is read for each hit; newer versions keep all sketches in
 * sketches.db with index.db. No magic: known by what stands together. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return file->size_bytes >= 8 ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static int check(struct dbt_group *group)
{
	if (!dbt_group_find(group, "markers.bin"))
		return -ENOENT;
	if (dbt_group_find(group, "sketches.db"))
		return dbt_group_find(group, "index.db")
		               ? 0
		               : dbt_group_incomplete(group, "'index.db' is missing");
	for (size_t i = 0; i < group->members.n; i++)
		if (group->members.items[i].hot &&
		    group->members.items[i].class == DBT_CLASS_RANDOM_PREAD)
			return 0;
	return -ENOENT;
}

static const struct dbt_lead leads[] = { { .pattern = "markers.bin" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "markers.bin", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ "*.sketch", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ "sketches.db", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ "index.db", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_skani = {
	.id = "skani",
	.name = "skani sketches",
	.tools = "skani, GTDB-Tk",
	.members = "directory with markers.bin and *.sketch, or sketches.db and index.db",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_DIRECTORY,
	.moves = DBT_MOVES_SET,
	.whole_directory = true,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
