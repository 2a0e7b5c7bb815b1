/* sourmash: a zip whose members include SOURMASH-MANIFEST.csv (written last), or a JSON of signatures. Its SQLite
 * and RocksDB indices are those formats' own. */
#include "survey/formats/format.h"

#include <stdlib.h>

/* The directory of a zip is at its end. */
static bool has_manifest(const struct dbt_candidate *file)
{
	enum { TAIL_BYTES = 65536 };
	const size_t size = file->size_bytes < TAIL_BYTES ? (size_t)file->size_bytes : TAIL_BYTES;
	unsigned char *tail = malloc(size ? size : 1);
	ssize_t got = tail ? dbt_candidate_read(file, tail, size, file->size_bytes - size) : -1;
	bool found = got > 0 && memmem(tail, (size_t)got, "SOURMASH-MANIFEST.csv", 21);

	free(tail);
	return found;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (dbt_has_magic(file, "PK\3\4", 4))
		return has_manifest(file) ? DBT_MATCH_YES : DBT_MATCH_NO;
	return dbt_has_magic(file, "[{\"class\":\"sourmash_signature\"", 31) ? DBT_MATCH_YES
	                                                                     : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = { { .pattern = "*.zip" }, { .pattern = "*.sig" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_sourmash = {
	.id = "sourmash",
	.name = "sourmash collection",
	.tools = "sourmash",
	.members = "X.zip with a manifest, X.sbt.zip, X.sig",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.leads = leads,
	.rules = rules,
	.test = test,
};
