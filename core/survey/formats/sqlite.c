/* SQLite. Header from sqlite.org/fileformat2.html: 16 bytes of magic, page size u16 BE at 16 (1 is
 * 65536), change counter at 24, pages u32 BE at 28, valid only when the counter at 92 equals the one
 * at 24 (writers before 3.7.0 did not keep it). */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	enum { PAGE_SIZE_AT = 16, COUNTER_AT = 24, PAGES_AT = 28, VALID_FOR_AT = 92 };
	enum { HEADER_BYTES = 100, MIN_PAGE = 512 };
	uint64_t page, end;

	if (!dbt_has_magic(file, "SQLite format 3", 16) || file->size_bytes < MIN_PAGE ||
	    file->head_len < HEADER_BYTES)
		return DBT_MATCH_NO;
	page = dbt_be16(file->head + PAGE_SIZE_AT);
	if (page == 1)
		page = 65536;
	if (page < MIN_PAGE || (page & (page - 1)) != 0)
		return DBT_MATCH_NO;
	end = page;
	if (dbt_be32(file->head + COUNTER_AT) == dbt_be32(file->head + VALID_FOR_AT))
		end = dbt_size_of(page, dbt_be32(file->head + PAGES_AT), 0);
	return end <= file->size_bytes ? DBT_MATCH_YES : dbt_match_cut(why, file->size_bytes, end);
}

/* A hot journal, or rows that are only in the write-ahead log: the main file alone is not the
 * database. SQLite keeps both beside the real file, so for a promoted one they are looked for there
 * by whoever moves it. */
static int check(struct dbt_group *group)
{
	enum { VERSION_AT = 18 };
	const struct dbt_file *wal = dbt_group_findf(group, "%s-wal", group->base);
	const struct dbt_file *journal = dbt_group_findf(group, "%s-journal", group->base);
	unsigned char version;

	if ((wal && wal->size_bytes > 0) || (journal && journal->size_bytes > 0)) {
		group->busy_sqlite = true;
		if (dbt_buf_addf(&group->note,
		                 "has a live %s: someone writes to it, or died doing so",
		                 wal && wal->size_bytes > 0 ? "-wal" : "-journal") < 0)
			return -ENOMEM;
	}
	/* Version 2 of the file format is WAL. */
	if (dbt_group_read(group, group->lead, &version, 1, VERSION_AT) == 1 && version == 2 &&
	    dbt_buf_addf(&group->note, "%sin WAL mode: its readers write in its directory",
	                 group->note.len ? "; " : "") < 0)
		return -ENOMEM;
	return 0;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.db" },      { .pattern = "*.sqlite" },
	{ .pattern = "*.sqlite3" }, { .pattern = "*.sqlitedb" },
	{ .pattern = "*.sqldb" },   { .pattern = "*.db3" },
	{ .pattern = "*.gpkg" },    { 0 },
};

static const struct dbt_rule rules[] = {
	{ .pattern = "*", .class = DBT_CLASS_RANDOM_PREAD, .flags = DBT_RULE_HOT },
	{ .pattern = "*-wal", .class = DBT_CLASS_COLD },
	{ .pattern = "*-shm", .class = DBT_CLASS_COLD },
	{ .pattern = "*-journal", .class = DBT_CLASS_COLD },
	{ 0 },
};

const struct dbt_format dbt_format_sqlite = {
	.id = "sqlite",
	.name = "SQLite database",
	.tools = "SQLite; inside Bakta, eggNOG-mapper, BLAST+ (taxonomy), DRAM, gapseq, sourmash, "
		 "ete3",
	.members = "the file, with -wal, -shm or -journal beside it while it is written to",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	/* The main file alone: siblings with anything in them forbid a move, those without belong to
	 * whoever has it open and would be looked for beside the copy. */
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
