/* FASTA (or FASTQ) with an index: X.fai has five tab-separated columns (six for FASTQ), all numbers but the
 * first. Without an index a FASTA is an input like any other, unless it is as large as a reference database
 * that jackhmmer reads from end to end. */
#include "survey/formats/format.h"
#include "survey/group.h"
#include "survey/seqdict.h"

#include <ctype.h>
#include <errno.h>

enum { KIND_INDEXED = 'i', KIND_PLAIN = 'p' };

/* UniRef, MGnify, nt are far above, single genomes below or near; an index shows those. */
#define PLAIN_BYTES (2ULL << 30)

static bool is_index_line(const unsigned char *line, size_t len)
{
	unsigned columns = 1;

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '\t')
			columns++;
		else if (columns > 1 && !isdigit(line[i]))
			return false;
	}
	return columns == 5 || columns == 6;
}

static bool is_plain(const struct dbt_candidate *file)
{
	return file->head_len > 2 && file->head[0] == '>' && isgraph(file->head[1]) &&
	       !memchr(file->head, '\0', file->head_len);
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	const size_t len = strlen(file->name);
	const unsigned char *end;

	(void)why;
	if (len < 4 || strcmp(file->name + len - 4, ".fai") != 0)
		return is_plain(file) ? DBT_MATCH_YES : DBT_MATCH_NO;
	end = memchr(file->head, '\n', file->head_len);
	return end && is_index_line(file->head, (size_t)(end - file->head)) ? DBT_MATCH_YES
	                                                                    : DBT_MATCH_NO;
}

/* X.gz with .fai and .gzi is bgzf's. */
static int check(struct dbt_group *group)
{
	const struct dbt_file *data = dbt_group_find(group, group->base);
	unsigned char first;

	if (data && dbt_group_read(group, data, &first, 1, 0) == 1 && first != '>' && first != '@')
		return -ENOENT;
	return group->kind == KIND_INDEXED ? dbt_seqdict_add(group) : 0;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.fai", .kind = KIND_INDEXED },
	{ .pattern = "*.fasta", .kind = KIND_PLAIN, .alone = true, .min_bytes = PLAIN_BYTES },
	{ .pattern = "*.fa", .kind = KIND_PLAIN, .alone = true, .min_bytes = PLAIN_BYTES },
	{ .pattern = "*.fna", .kind = KIND_PLAIN, .alone = true, .min_bytes = PLAIN_BYTES },
	{ .pattern = "*.faa", .kind = KIND_PLAIN, .alone = true, .min_bytes = PLAIN_BYTES },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT | DBT_RULE_CORE, KIND_INDEXED },
	{ "*.fai", DBT_CLASS_LOAD_ALL, 0, KIND_INDEXED },
	{ "*.dict", DBT_CLASS_LOAD_ALL, 0, KIND_INDEXED },
	{ "*", DBT_CLASS_STREAM, DBT_RULE_HOT, KIND_PLAIN },
	{ "*.ssi", DBT_CLASS_RANDOM_PREAD, 0, KIND_PLAIN },
	{ 0 },
};

const struct dbt_format dbt_format_fasta = {
	.id = "fasta",
	.name = "FASTA",
	.tools = "samtools, GATK, VEP, BLAST+; jackhmmer, phmmer, nhmmer",
	.members = "X with X.fai, X.dict (ref.dict of ref.fa); without an index from 2G on",
	.note = "some tools look for the index beside the file that a link leads to: move both",
	.proof = DBT_PROOF_TEXT,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
