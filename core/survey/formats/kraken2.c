/* Kraken 2. hash.k2d: four u64 LE (capacity, size, key bits, value bits), then capacity cells of
 * (key+value)/8 bytes; the tool's own check in compact_hash.h LoadTable is the same equation.
 * taxo.k2d begins with K2TAXDAT. opts.k2d: k and l as u64 LE, 56 to 64 bytes. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	enum { HEADER_BYTES = 32 };
	uint64_t capacity, used, key, value, end;

	if (file->head_len < HEADER_BYTES)
		return DBT_MATCH_NO;
	capacity = dbt_le64(file->head);
	used = dbt_le64(file->head + 8);
	key = dbt_le64(file->head + 16);
	value = dbt_le64(file->head + 24);
	if (key == 0 || value == 0 || key > 64 || value > 64 || capacity == 0 || used > capacity ||
	    (key + value != 32 && key + value != 40))
		return DBT_MATCH_NO;
	end = dbt_size_of(capacity, (key + value) / 8, HEADER_BYTES);
	if (end < file->size_bytes)
		return DBT_MATCH_NO;
	return end == file->size_bytes ? DBT_MATCH_YES : dbt_match_cut(why, file->size_bytes, end);
}

/* After the magic three u64: nodes of 56 bytes, bytes of names, bytes of ranks (taxonomy.cc). */
static int check_taxonomy(struct dbt_group *group, const struct dbt_file *taxo)
{
	enum { HEADER_BYTES = 32, NODE_BYTES = 56 };
	unsigned char head[HEADER_BYTES];
	uint64_t end;

	if (!taxo || taxo->foreign_link || taxo->size_bytes == 0)
		return 0;
	if (dbt_group_read(group, taxo, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head, "K2TAXDAT", 8) != 0)
		return dbt_group_incomplete(group, "'taxo.k2d' is no taxonomy of Kraken 2");
	end = dbt_size_of(dbt_le64(head + 8), NODE_BYTES, HEADER_BYTES);
	end = dbt_size_of(1, end, dbt_le64(head + 16));
	return dbt_group_expect(group, taxo, dbt_size_of(1, end, dbt_le64(head + 24)));
}

static int check(struct dbt_group *group)
{
	const struct dbt_file *taxo = dbt_group_find(group, "taxo.k2d"),
			      *opts = dbt_group_find(group, "opts.k2d");

	if (check_taxonomy(group, taxo) < 0)
		return -ENOMEM;
	if (opts && !opts->foreign_link &&
	    ((opts->size_bytes > 0 && opts->size_bytes < 56) || opts->size_bytes > 64) &&
	    dbt_group_incomplete(group, "'opts.k2d' has an odd size") < 0)
		return -ENOMEM;
	return 0;
}

static const struct dbt_lead leads[] = { { .pattern = "hash.k2d" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ .pattern = "hash.k2d",
	  .class = DBT_CLASS_LOAD_ALL,
	  .flags = DBT_RULE_HOT | DBT_RULE_CORE },
	{ .pattern = "taxo.k2d", .class = DBT_CLASS_LOAD_ALL, .flags = DBT_RULE_REQUIRED },
	{ .pattern = "opts.k2d", .class = DBT_CLASS_LOAD_ALL, .flags = DBT_RULE_REQUIRED },
	{ .pattern = "database*mers.kmer_distrib", .class = DBT_CLASS_LOAD_ALL }, /* Bracken */
	{ .pattern = "database*mers.kraken", .class = DBT_CLASS_COLD },
	{ .pattern = "seqid2taxid.map", .class = DBT_CLASS_COLD },
	{ .pattern = "inspect.txt", .class = DBT_CLASS_COLD },
	{ .pattern = "ktaxonomy.tsv", .class = DBT_CLASS_COLD },
	{ .pattern = "unmapped.txt", .class = DBT_CLASS_COLD },
	{ 0 },
};

const struct dbt_format dbt_format_kraken2 = {
	.id = "kraken2",
	.name = "Kraken 2 database",
	.tools = "Kraken 2, Bracken",
	.members = "hash.k2d, opts.k2d, taxo.k2d; database*mers.kmer_distrib, seqid2taxid.map",
	.note = "read whole into memory at start; with --memory-mapping hash.k2d is read at random",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_DIRECTORY,
	.moves = DBT_MOVES_FILE,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
