/* Parquet: "PAR1" at both ends ("PARE" at the end where the footer is encrypted), the length of the footer
 * as u32 before the last. */
#include "survey/formats/format.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	unsigned char tail[8];

	if (!dbt_has_magic(file, "PAR1", 4) || file->size_bytes < 12)
		return DBT_MATCH_NO;
	if (dbt_candidate_read(file, tail, 8, file->size_bytes - 8) != 8 ||
	    (memcmp(tail + 4, "PAR1", 4) != 0 && memcmp(tail + 4, "PARE", 4) != 0)) {
		(void)dbt_buf_adds(why, "cut short: its footer is missing");
		return DBT_MATCH_CUT;
	}
	return dbt_le32(tail) + 12ULL <= file->size_bytes ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.parquet" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_parquet = {
	.id = "parquet",
	.name = "Parquet table",
	.tools = "pyarrow, DuckDB, Spark",
	.members = "one file",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".parquet",
	.leads = leads,
	.rules = rules,
	.test = test,
};
