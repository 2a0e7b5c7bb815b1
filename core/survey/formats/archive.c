/* Archives of databases, as they were downloaded: nothing reads them. An archive is one of a database when some of its
 * members would make one, as far as the peek goes; a compressed FASTA when it begins as one. */
#include "survey/formats/format.h"
#include "survey/group.h"
#include "survey/peek.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>

/* Where a compressed file is looked at for its first letter. */
enum { FIRST_BYTES = 65536 };

static bool begins_as_fasta(const struct dbt_candidate *file)
{
	unsigned char packed[FIRST_BYTES];
	const ssize_t got = dbt_candidate_read(file, packed, sizeof(packed), 0);
	struct archive *a = archive_read_new();
	struct archive_entry *entry;
	char first = 0;

	if (!a)
		return false;
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_bzip2(a);
	(void)archive_read_support_filter_xz(a);
	(void)archive_read_support_filter_zstd(a);
	(void)archive_read_support_format_raw(a);
	if (got > 0 && archive_read_open_memory(a, packed, (size_t)got) == ARCHIVE_OK &&
	    archive_read_next_header(a, &entry) == ARCHIVE_OK)
		(void)archive_read_data(a, &first, 1);
	(void)archive_read_free(a);
	return first == '>';
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
	if (!dbt_peek_magic(file) || (is_single(file->name) && !begins_as_fasta(file)))
		return DBT_MATCH_NO;
	return DBT_MATCH_YES;
}

static ssize_t read_lead(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off)
{
	const struct dbt_group *group = file->read_data;

	return dbt_group_read(group, group->lead, buf, len, off);
}

/* Not in the test: that is for what the head tells. */
static int check(struct dbt_group *group)
{
	static const struct dbt_peek_limits first = { .packed_bytes = DBT_PEEK_BYTES,
		                                      .ns = DBT_PEEK_NS };
	const struct dbt_candidate file = { .name = group->lead->name,
		                            .size_bytes = group->lead->size_bytes,
		                            .read = read_lead,
		                            .read_data = group };
	const bool deep = group->dir->opts->deep;
	struct dbt_peek peek;
	int r = is_single(file.name)
	                ? 0
	                : dbt_peek(group->dir->ctx, &file, deep ? &dbt_peek_all : &first, &peek);

	if (r < 0 || is_single(file.name))
		return r;
	if (!dbt_guess_any(&peek.guess))
		r = -ENOENT;
	if (r == 0)
		r = dbt_guess_say(&peek.guess, &group->holds);
	if (r == 0 && peek.damaged)
		r = dbt_group_incomplete(group, "'%s' is damaged or cut short", file.name);
	if (r == 0 && !peek.whole && !peek.damaged)
		r = dbt_buf_adds(&group->holds, "; more may follow: --deep reads all of it");
	dbt_guess_release(&peek.guess);
	return r;
}

/* Test data and packed genes are not worth a look. */
#define PACKED(end)                                                                                \
	{                                                                                          \
		.pattern = "*." end, .min_bytes = 16384                                            \
	}

static const struct dbt_lead leads[] = {
	PACKED("tar"),       PACKED("tar.lz4"),   PACKED("tzst"),
	PACKED("tbz"),       PACKED("7z"),        PACKED("tar.gz"),
	PACKED("tgz"),       PACKED("tar.xz"),    PACKED("txz"),
	PACKED("tar.zst"),   PACKED("tar.bz2"),   PACKED("tbz2"),
	PACKED("zip"),       PACKED("fasta.gz"),  PACKED("fasta.xz"),
	PACKED("fasta.zst"), PACKED("fasta.bz2"), PACKED("fa.gz"),
	PACKED("fa.xz"),     PACKED("fa.zst"),    PACKED("fa.bz2"),
	PACKED("faa.gz"),    PACKED("faa.xz"),    PACKED("faa.zst"),
	PACKED("faa.bz2"),   PACKED("fna.gz"),    PACKED("fna.xz"),
	PACKED("fna.zst"),   PACKED("fna.bz2"),   { 0 },
};

static const struct dbt_rule rules[] = { { "*", DBT_CLASS_COLD, 0, 0 }, { 0 } };

const struct dbt_format dbt_format_archive = {
	.id = "archive",
	.name = "archive of a database",
	.tools = "none: it is unpacked first, as by dbtier promote",
	.members = "one file: .tar, .tar.*, .zip, .7z, compressed FASTA",
	.proof = DBT_PROOF_TEXT,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.class = DBT_CLASS_COLD,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
