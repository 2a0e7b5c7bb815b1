/* STAR genome directory. genomeParameters.txt (a first line with "### " and the command) tells the sizes
 * of Genome and SA. */
#include "survey/formats/format.h"
#include "survey/group.h"

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	if (!dbt_has_magic(file, "### ", 4) ||
	    !memmem(file->head, file->head_len, "versionGenome", 13))
		return DBT_MATCH_NO;
	return DBT_MATCH_YES;
}

static int check(struct dbt_group *group)
{
	char text[65536];
	uint64_t genome, sa;
	const char *at;
	ssize_t got = dbt_group_read(group, group->lead, text, sizeof(text) - 1, 0);
	int r;

	if (got < 0)
		return 0;
	text[got] = '\0';
	at = strstr(text, "\ngenomeFileSizes");
	if (!at)
		return 0; /* older versions do not tell */
	at += strlen("\ngenomeFileSizes\t");
	if (!dbt_read_number(&at, &genome) || *at++ != ' ' || !dbt_read_number(&at, &sa))
		return 0;
	r = dbt_group_expect(group, dbt_group_find(group, "Genome"), genome);
	return r < 0 ? r : dbt_group_expect(group, dbt_group_find(group, "SA"), sa);
}

static const struct dbt_lead leads[] = { { .pattern = "genomeParameters.txt" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "SA", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "SAindex", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "Genome", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "genomeParameters.txt", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "chrName.txt", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "chrStart.txt", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "chrLength.txt", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "chrNameLength.txt", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "exonInfo.tab", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "exonGeTrInfo.tab", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "geneInfo.tab", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "transcriptInfo.tab", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "sjdbInfo.txt", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "sjdbList.out.tab", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "sjdbList.fromGTF.out.tab", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "Log.out", DBT_CLASS_COLD, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_star = {
	.id = "star",
	.name = "STAR genome",
	.tools = "STAR",
	.members = "directory with SA, SAindex, Genome, genomeParameters.txt, chr*.txt",
	.note = "--genomeLoad LoadAndKeep loads it once for many runs",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_DIRECTORY,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
