/* HDF5: the signature at 0, 512, 1024, 2048 ...; the superblock tells where the file ends. Versions 0 and 1
 * have the end of file at 40 and 44, 2 and 3 at 28, for addresses of 8 bytes (HDF5 file format
 * specification). */
#include "survey/formats/format.h"

static const unsigned char signature[8] = { 0x89, 'H', 'D', 'F', 0x0d, 0x0a, 0x1a, 0x0a };

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	unsigned char sb[52];
	uint64_t end;
	size_t eof_at;

	for (uint64_t at = 0; at < file->size_bytes && at <= 1U << 20; at = at ? 2 * at : 512) {
		if (dbt_candidate_read(file, sb, sizeof(sb), at) != (ssize_t)sizeof(sb))
			return DBT_MATCH_NO;
		if (memcmp(sb, signature, sizeof(signature)) != 0)
			continue;
		if (sb[8] > 3 || (sb[8] <= 1 ? sb[13] : sb[9]) != 8)
			return sb[8] <= 3 ? DBT_MATCH_YES : DBT_MATCH_NO;
		eof_at = sb[8] == 0 ? 40 : sb[8] == 1 ? 44 : 28;
		end = dbt_le64(sb + eof_at);
		return end <= file->size_bytes ? DBT_MATCH_YES
		                               : dbt_match_cut(why, file->size_bytes, end);
	}
	return DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.h5" },
	{ .pattern = "*.hdf5" },
	{ .pattern = "*.h5ad" },
	{ .pattern = "*.loom" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_hdf5 = {
	.id = "hdf5",
	.name = "HDF5 file",
	.tools = "HDF5 tools; single-cell and annotation resources",
	.members = "one file",
	.note = "the library may lock it; on NFS set HDF5_USE_FILE_LOCKING=FALSE",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.leads = leads,
	.rules = rules,
	.test = test,
};
