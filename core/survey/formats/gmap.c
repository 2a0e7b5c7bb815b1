/* GMAP/GSNAP genome: a directory D with D.*; D.version holds the name in its first line. Offsets are read at
 * start, positions and the genome are mapped. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	const size_t base = strlen(file->name) - strlen(".version");

	(void)why;
	return file->head_len > base && file->head_len < DBT_HEAD_BYTES &&
	                       memcmp(file->head, file->name, base) == 0 && file->head[base] == '\n'
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

static int check(struct dbt_group *group)
{
	static const char *const needed[] = { "chromosome", "genomecomp" };
	const int base = (int)(strlen(group->lead->name) - strlen(".version"));

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!dbt_group_findf(group, "%.*s.%s", base, group->lead->name, needed[i]))
			return -ENOENT;
	return 0;
}

static const struct dbt_lead leads[] = { { .pattern = "*.version" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*positions", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*.genomecomp", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*.genomebits128", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*offsets64meta", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*offsets64strm", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_gmap = {
	.id = "gmap",
	.name = "GMAP genome",
	.tools = "gmap, gsnap",
	.members = "directory D with D.version, D.chromosome, D.genomecomp, D.ref*positions ...",
	.note = "a cut in one of its files is not noticed: nothing tells how long they are",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_DIRECTORY,
	.moves = DBT_MOVES_SET,
	.whole_directory = true,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
