/* Archives of databases, as they were downloaded: nothing reads them. An archive is one of a database when
 * one of its first members would be part of one by its name; a compressed FASTA when it begins as one. Only
 * the first megabytes are unpacked, by libarchive. */
#include "survey/dbkind.h"
#include "survey/formats/format.h"

#include <archive.h>
#include <archive_entry.h>

enum { BLOCK_BYTES = 65536, MOST_BYTES = 2 << 20, MOST_MEMBERS = 16 };

/* What a few packed megabytes may unpack to: some pack a thousandfold. */
enum { MOST_UNPACKED_BYTES = 64 << 20 };

struct source {
	const struct dbt_candidate *file;
	uint64_t off;
	unsigned char block[BLOCK_BYTES];
};

static la_ssize_t read_block(struct archive *a, void *data, const void **ret_block)
{
	struct source *source = data;
	ssize_t got;

	(void)a;
	if (source->off >= MOST_BYTES)
		return 0;
	got = dbt_candidate_read(source->file, source->block, sizeof(source->block), source->off);
	if (got < 0)
		return -1;
	source->off += (uint64_t)got;
	*ret_block = source->block;
	return got;
}

static bool tells_database(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	return (dbt_dbkind_hint(name) & (DBT_HINT_LEAD | DBT_HINT_MEMBER)) != 0;
}

/* Steps over a member's data; false where that would be too much. */
static bool skip_data(struct archive *a, uint64_t *left)
{
	const void *block;
	la_int64_t off;
	size_t len;
	int r;

	while ((r = archive_read_data_block(a, &block, &len, &off)) == ARCHIVE_OK) {
		if (len > *left)
			return false;
		*left -= len;
	}
	return r == ARCHIVE_EOF;
}

static bool members_tell(struct archive *a)
{
	uint64_t left = MOST_UNPACKED_BYTES;
	struct archive_entry *entry;

	for (unsigned n = 0; n < MOST_MEMBERS && archive_read_next_header(a, &entry) == ARCHIVE_OK;
	     n++) {
		const char *path = archive_entry_pathname(entry);

		if (path && tells_database(path))
			return true;
		if (!skip_data(a, &left))
			return false;
	}
	return false;
}

static bool is_fasta(struct archive *a)
{
	struct archive_entry *entry;
	char first;

	return archive_read_next_header(a, &entry) == ARCHIVE_OK &&
	       archive_read_data(a, &first, 1) == 1 && first == '>';
}

static bool holds_database(const struct dbt_candidate *file, bool single)
{
	struct source source = { .file = file };
	struct archive *a = archive_read_new();
	bool yes = false;

	if (!a)
		return false;
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_bzip2(a);
	(void)archive_read_support_filter_xz(a);
	(void)archive_read_support_filter_zstd(a);
	if (single) {
		(void)archive_read_support_format_raw(a);
	} else {
		(void)archive_read_support_format_tar(a);
		(void)archive_read_support_format_zip_streamable(a);
	}
	if (archive_read_open(a, &source, NULL, read_block, NULL) == ARCHIVE_OK)
		yes = single ? is_fasta(a) : members_tell(a);
	(void)archive_read_free(a);
	return yes;
}

static bool has_magic(const struct dbt_candidate *file)
{
	static const struct {
		const char *magic;
		size_t len;
	} magics[] = {
		{ "\xfd\x37zXZ\0", 6 }, { "\x28\xb5\x2f\xfd", 4 },
		{ "\x1f\x8b\x08", 3 },  { "PK\3\4", 4 },
		{ "BZh", 3 },
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (dbt_has_magic(file, magics[i].magic, magics[i].len))
			return true;
	return file->head_len >= 262 && memcmp(file->head + 257, "ustar", 5) == 0;
}

/* x.fasta.gz and not x.tar.gz. */
static bool is_single(const char *name)
{
	static const char *const kinds[] = { ".fasta.", ".fa.", ".faa.", ".fna." };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strstr(name, kinds[i]))
			return true;
	return false;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return has_magic(file) && holds_database(file, is_single(file->name)) ? DBT_MATCH_YES
	                                                                      : DBT_MATCH_NO;
}

/* Test data and packed genes are not worth a look. */
#define PACKED(end)                                                                                \
	{                                                                                          \
		.pattern = "*." end, .min_bytes = 16384                                            \
	}

static const struct dbt_lead leads[] = {
	PACKED("tar"),       PACKED("tar.gz"),
	PACKED("tgz"),       PACKED("tar.xz"),
	PACKED("txz"),       PACKED("tar.zst"),
	PACKED("tar.bz2"),   PACKED("tbz2"),
	PACKED("zip"),       PACKED("fasta.gz"),
	PACKED("fasta.xz"),  PACKED("fasta.zst"),
	PACKED("fasta.bz2"), PACKED("fa.gz"),
	PACKED("fa.xz"),     PACKED("fa.zst"),
	PACKED("fa.bz2"),    PACKED("faa.gz"),
	PACKED("faa.xz"),    PACKED("faa.zst"),
	PACKED("faa.bz2"),   PACKED("fna.gz"),
	PACKED("fna.xz"),    PACKED("fna.zst"),
	PACKED("fna.bz2"),   { 0 },
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
