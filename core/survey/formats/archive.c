/* Archives of databases, as they were downloaded: nothing reads them. Known by their names (a compressed read
 * file is no archive of a database) and their magic. */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	static const struct {
		const char *magic;
		size_t len;
	} magics[] = {
		{ "\xfd"
		  "7zXZ\0",
		  6 },
		{ "\x28\xb5\x2f\xfd", 4 },
		{ "\x1f\x8b\x08", 3 },
		{ "PK\3\4", 4 },
	};

	(void)why;
	if (file->size_bytes < 64) /* less than the headers of anything packed */
		return DBT_MATCH_NO;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (dbt_has_magic(file, magics[i].magic, magics[i].len))
			return DBT_MATCH_YES;
	if (dbt_has_magic(file, "BZh", 3) && file->head_len >= 10 &&
	    memcmp(file->head + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0)
		return DBT_MATCH_YES;
	return file->head_len >= 262 && memcmp(file->head + 257, "ustar", 5) == 0 ? DBT_MATCH_YES
	                                                                          : DBT_MATCH_NO;
}

/* Packed FASTA files of a few genes are not worth a look. */
#define PACKED(end)                                                                                \
	{                                                                                          \
		.pattern = "*." end, .min_bytes = 16384                                            \
	}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.tar" },
	{ .pattern = "*.tar.gz" },
	{ .pattern = "*.tgz" },
	{ .pattern = "*.tar.xz" },
	{ .pattern = "*.txz" },
	{ .pattern = "*.tar.zst" },
	{ .pattern = "*.tar.bz2" },
	{ .pattern = "*.tbz2" },
	{ .pattern = "*.zip" },
	PACKED("fasta.gz"),
	PACKED("fasta.xz"),
	PACKED("fasta.zst"),
	PACKED("fasta.bz2"),
	PACKED("fa.gz"),
	PACKED("fa.xz"),
	PACKED("fa.zst"),
	PACKED("fa.bz2"),
	PACKED("faa.gz"),
	PACKED("faa.xz"),
	PACKED("faa.zst"),
	PACKED("faa.bz2"),
	PACKED("fna.gz"),
	PACKED("fna.xz"),
	PACKED("fna.zst"),
	PACKED("fna.bz2"),
	{ 0 },
};

static const struct dbt_rule rules[] = { { "*", DBT_CLASS_COLD, 0, 0 }, { 0 } };

const struct dbt_format dbt_format_archive = {
	.id = "archive",
	.name = "archive of a database",
	.tools = "none: it is unpacked first",
	.members = "one file: .tar, .tar.*, .zip, compressed FASTA",
	.proof = DBT_PROOF_TEXT,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.class = DBT_CLASS_COLD,
	.leads = leads,
	.rules = rules,
	.test = test,
};
