/* RocksDB: CURRENT names the MANIFEST in use; OPTIONS-* and *.sst stand beside it. LevelDB, which browsers
 * keep by the dozen, has no OPTIONS and is not meant. Tools write to it while it is open (LOG, MANIFEST,
 * CURRENT), and a writer through links to single files makes the two places differ: it moves as a
 * directory or not at all. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "MANIFEST-", 9) && file->size_bytes < 64 ? DBT_MATCH_YES
	                                                                    : DBT_MATCH_NO;
}

static int check(struct dbt_group *group)
{
	char name[64];
	ssize_t got = dbt_group_read(group, group->lead, name, sizeof(name) - 1, 0);
	bool options = false;

	for (size_t i = 0; i < group->members.n; i++)
		options |= strncmp(group->members.items[i].file->name, "OPTIONS-", 8) == 0;
	if (!options)
		return -ENOENT;
	name[got < 0 ? 0 : got] = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (!dbt_group_find(group, name))
		return dbt_group_incomplete(group, "'%s' is missing", name);
	return 0;
}

static const struct dbt_lead leads[] = { { .pattern = "CURRENT" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "#.sst", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ "#.blob", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_rocksdb = {
	.id = "rocksdb",
	.name = "RocksDB database",
	.tools = "sourmash, branchwater, vg",
	.members = "directory with CURRENT, MANIFEST-*, OPTIONS-*, *.sst",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_DIRECTORY,
	.moves = DBT_MOVES_DIRECTORY,
	.class = DBT_CLASS_RANDOM_PREAD,
	.whole_directory = true,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
