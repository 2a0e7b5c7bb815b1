/* LAST: text X.prj (version=, alphabet=) and tables that are mapped. Large databases have volumes: then
 * X.prj says volumes=N and the tables are X0.suf, X1.suf and so on, each with its own .prj. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_has_magic(file, "version=", 8) &&
	                       memmem(file->head, file->head_len, "\nalphabet=", 10)
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

static unsigned volumes_of(struct dbt_group *group)
{
	char text[DBT_HEAD_BYTES + 1];
	ssize_t got = dbt_group_read(group, group->lead, text, DBT_HEAD_BYTES, 0);
	const char *at;

	text[got < 0 ? 0 : got] = '\0';
	at = strstr(text, "\nvolumes=");
	return at ? (unsigned)strtoul(at + 9, NULL, 10) : 0;
}

/* X.prj tells how many bytes X.tis has. */
static int check_letters(struct dbt_group *group, const char *base)
{
	static const char key[] = "\ntotallength=";
	const struct dbt_file *project = dbt_group_findf(group, "%s.prj", base);
	char text[DBT_HEAD_BYTES + 1];
	ssize_t got = project ? dbt_group_read(group, project, text, DBT_HEAD_BYTES, 0) : 0;
	const char *at;
	uint64_t bytes;

	text[got < 0 ? 0 : got] = '\0';
	at = strstr(text, key);
	if (!at)
		return 0;
	at += strlen(key);
	return dbt_read_number(&at, &bytes)
	               ? dbt_group_expect(group, dbt_group_findf(group, "%s.tis", base), bytes)
	               : 0;
}

/* The tables of X, or of its volume N. */
static int check_tables(struct dbt_group *group, const char *base, bool *ret_any)
{
	static const char *const tables[] = { "suf", "bck", "tis", "des", "ssp", "sds" };
	unsigned missing = 0;
	int r = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!dbt_group_findf(group, "%s.%s", base, tables[i]))
			missing++;
	*ret_any = missing < sizeof(tables) / sizeof(tables[0]);
	if (*ret_any)
		r = check_letters(group, base);
	for (size_t i = 0; *ret_any && r == 0 && i < 3; i++)
		if (!dbt_group_findf(group, "%s.%s", base, tables[i]))
			r = dbt_group_incomplete(group, "'%s.%s' is missing", base, tables[i]);
	return r;
}

static int check(struct dbt_group *group)
{
	unsigned volumes = volumes_of(group);
	bool any;
	int r = 0;

	if (volumes == 0) {
		r = check_tables(group, group->base, &any);
		return r == 0 && !any ? -ENOENT : r;
	}
	for (unsigned v = 0; r == 0 && v < volumes && v < 10000; v++) {
		char *base;

		if (asprintf(&base, "%s%u", group->base, v) < 0)
			return -ENOMEM;
		r = check_tables(group, base, &any);
		if (r == 0 && !any)
			r = dbt_group_incomplete(group, "volume '%s' is missing", base);
		free(base);
	}
	return r;
}

static const struct dbt_lead leads[] = { { .pattern = "*.prj" }, { 0 } };

#define TABLES(x)                                                                                  \
	{ x ".suf", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },                                      \
		{ x ".bck", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },                              \
		{ x ".tis", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },                              \
		{ x ".des", DBT_CLASS_RANDOM_MMAP, 0, 0 },                                         \
		{ x ".ssp", DBT_CLASS_RANDOM_MMAP, 0, 0 },                                         \
		{ x ".sds", DBT_CLASS_RANDOM_MMAP, 0, 0 },                                         \
		{ x ".qua", DBT_CLASS_RANDOM_MMAP, 0, 0 },                                         \
	{                                                                                          \
		x ".prj", DBT_CLASS_LOAD_ALL, 0, 0                                                 \
	}

static const struct dbt_rule rules[] = {
	TABLES("*"),
	TABLES("*#"),
	{ 0 },
};

const struct dbt_format dbt_format_last = {
	.id = "last",
	.name = "LAST database",
	.tools = "lastal",
	.members = "X.prj, X.{suf,bck,tis,des,ssp,sds}; volumes X0.*, X1.*",
	.proof = DBT_PROOF_TEXT,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_RANDOM_MMAP,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
