/* RocksDB: CURRENT names the MANIFEST in use; OPTIONS-* and *.sst stand beside it. LevelDB, which browsers
 * keep by the dozen, has no OPTIONS and is not meant. Tools write to it while it is open (LOG, MANIFEST,
 * CURRENT), and a writer through links to single files makes the two places differ: it moves as a
 * directory or not at all. */
#include "survey/dbkind.h"
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static bool is_hex(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* IDENTITY is a UUID in text: what is left to go by where CURRENT is not there. */
static bool is_identity(const struct dbt_candidate *file)
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	if (file->head_len < sizeof(shape) - 1 || file->size_bytes > sizeof(shape))
		return false;
	for (size_t i = 0; i < sizeof(shape) - 1; i++)
		if (shape[i] == 'x' ? !is_hex(file->head[i]) : file->head[i] != '-')
			return false;
	return true;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (strcmp(file->name, "IDENTITY") == 0)
		return is_identity(file) ? DBT_MATCH_YES : DBT_MATCH_NO;
	return dbt_has_magic(file, "MANIFEST-", 9) && file->size_bytes < 64 ? DBT_MATCH_YES
	                                                                    : DBT_MATCH_NO;
}

/* A table ends with a magic: of block based tables, of old ones, of plain and of cuckoo tables (RocksDB
 * table/block_based, plain, cuckoo). Of many tables the first are looked at: each costs a seek. */
static int check_tables(struct dbt_group *group)
{
	enum { MAX_TABLES = 64 };
	static const uint64_t magics[] = { 0x88e241b785f4cff7, 0xdb4775248b80fb57,
		                           0x8242229663bf9564, 0x4f3418eb7a8f13b8,
		                           0x926789d0c5f17873 };
	unsigned seen = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && seen < MAX_TABLES && i < group->members.n; i++) {
		const struct dbt_file *file = group->members.items[i].file;
		unsigned char end[8];
		bool known = false;

		if (!dbt_pattern_fits("#.sst", NULL, file->name) || file->foreign_link ||
		    file->size_bytes < sizeof(end))
			continue;
		seen++;
		if (dbt_group_read(group, file, end, sizeof(end), file->size_bytes - sizeof(end)) !=
		    (ssize_t)sizeof(end))
			continue;
		for (size_t m = 0; m < sizeof(magics) / sizeof(magics[0]); m++)
			known |= dbt_le64(end) == magics[m];
		if (!known)
			r = dbt_group_incomplete(group, "'%s' is cut short: it has no footer",
			                         file->name);
	}
	return r;
}

/* CURRENT is one line, the name of the manifest. */
static int check_manifest(struct dbt_group *group)
{
	const struct dbt_file *current = dbt_group_find(group, "CURRENT");
	char name[64];
	ssize_t got;

	if (!current || current->size_bytes == 0)
		return 0; /* the rules say so */
	got = dbt_group_read(group, current, name, sizeof(name) - 1, 0);
	if (got < 0)
		return 0;
	name[got] = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (strncmp(name, "MANIFEST-", 9) != 0)
		return dbt_group_incomplete(group, "'CURRENT' names no manifest");
	return dbt_group_find(group, name) ? 0
	                                   : dbt_group_incomplete(group, "'%s' is missing", name);
}

static int check(struct dbt_group *group)
{
	bool options = false;
	int r;

	for (size_t i = 0; i < group->members.n; i++)
		options |= strncmp(group->members.items[i].file->name, "OPTIONS-", 8) == 0;
	if (!options)
		return -ENOENT;
	r = check_manifest(group);
	return r < 0 ? r : check_tables(group);
}

static const struct dbt_lead leads[] = { { .pattern = "CURRENT" },
	                                 { .pattern = "IDENTITY" },
	                                 { 0 } };

static const struct dbt_rule rules[] = {
	{ "CURRENT", DBT_CLASS_COLD, DBT_RULE_REQUIRED, 0 },
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
