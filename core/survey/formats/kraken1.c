/* Kraken 1: database.kdb (JFLISTDN, a Jellyfish 1 list) and database.idx (KRAKIDX or KRAKIX2) in one
 * directory; both are mapped. KrakenUniq has the same files. */
#include "survey/formats/format.h"
#include "survey/group.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "JFLISTDN", 8) ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static int check(struct dbt_group *group)
{
	const struct dbt_file *index = dbt_group_find(group, "database.idx");
	unsigned char magic[7];

	if (!index || index->foreign_link)
		return 0;
	if (dbt_group_read(group, index, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	    (memcmp(magic, "KRAKIDX", 7) == 0 || memcmp(magic, "KRAKIX2", 7) == 0))
		return 0;
	return dbt_group_incomplete(group, "'database.idx' is no index of Kraken");
}

static const struct dbt_lead leads[] = { { .pattern = "database.kdb" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "database.kdb", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "database.idx", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "database.kdb.counts", DBT_CLASS_COLD, 0, 0 },
	{ "database.jdb", DBT_CLASS_COLD, 0, 0 },
	{ "taxDB", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "seqid2taxid.map", DBT_CLASS_COLD, 0, 0 },
	{ "database*mers.kmer_distrib", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_kraken1 = {
	.id = "kraken1",
	.name = "Kraken 1 database",
	.tools = "Kraken 1, KrakenUniq",
	.members = "database.kdb, database.idx; taxDB, seqid2taxid.map",
	.note = "--preload reads it whole into memory first",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_DIRECTORY,
	.moves = DBT_MOVES_FILE,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
