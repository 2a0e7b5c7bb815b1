/* BGZF (htslib): gzip members with a BC field, an index beside: .tbi, .csi (BGZF themselves) or .gzi (u64 n,
 * then 16 bytes each). VCF, BCF, BED, FASTA; alignments are bam's and cram's. */
#include "survey/formats/format.h"
#include "survey/group.h"
#include "survey/seqdict.h"

#include <errno.h>

static bool is_bgzf(const unsigned char *head, size_t len)
{
	return len >= 18 && memcmp(head, "\x1f\x8b\x08\x04", 4) == 0 &&
	       memcmp(head + 12, "BC\x02\0", 4) == 0;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	const size_t len = strlen(file->name);

	(void)why;
	if (len > 4 && strcmp(file->name + len - 4, ".gzi") == 0)
		return file->head_len >= 8 &&
		                       dbt_size_of(dbt_le64(file->head), 16, 8) == file->size_bytes
		               ? DBT_MATCH_YES
		               : DBT_MATCH_NO;
	return is_bgzf(file->head, file->head_len) ? DBT_MATCH_YES : DBT_MATCH_NO;
}

/* BGZF ends with an empty member of 28 bytes; without it the file was cut. */
static int check(struct dbt_group *group)
{
	static const unsigned char last[28] = { 0x1f, 0x8b, 8,   4,   0, 0, 0,    0, 0, 0xff,
		                                6,    0,    'B', 'C', 2, 0, 0x1b, 0, 3, 0,
		                                0,    0,    0,   0,   0, 0, 0,    0 };
	const struct dbt_file *data = dbt_group_find(group, group->base);
	const size_t len = strlen(group->base);
	unsigned char head[18], end[28];

	if (!data || (len > 4 && strcmp(group->base + len - 4, ".bam") == 0))
		return -ENOENT;
	if (data->foreign_link || data->dangling)
		return 0;
	if (dbt_group_read(group, data, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    !is_bgzf(head, sizeof(head)))
		return -ENOENT;
	if (data->size_bytes < sizeof(end) ||
	    dbt_group_read(group, data, end, sizeof(end), data->size_bytes - sizeof(end)) !=
	            (ssize_t)sizeof(end) ||
	    memcmp(end, last, sizeof(last)) != 0)
		return dbt_group_incomplete(group, "'%s' is cut short: its last block is missing",
		                            data->name);
	/* A .gzi says that it is FASTA. */
	return dbt_group_part(group, "*.gzi") ? dbt_seqdict_add(group) : 0;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.tbi" },
	{ .pattern = "*.csi" },
	{ .pattern = "*.gzi" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "*.tbi", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.csi", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.gzi", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.fai", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.dict", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_bgzf = {
	.id = "bgzf",
	.name = "indexed BGZF file",
	.tools = "tabix, bcftools, samtools, VEP, GATK",
	.members = "X.gz (or X.bcf) with .tbi, .csi, .gzi, .fai",
	.note = "keep the index newer than the data; some tools look for it beside the file that a "
		"link "
		"leads to",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
