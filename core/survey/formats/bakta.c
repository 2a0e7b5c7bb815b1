/* Bakta database directory, full or light. version.json holds date, major, minor and type (db.py);
 * the files Bakta insists on are the same for schema 5 and 6. Databases of other formats in the
 * directory, also below it (AMRFinderPlus), are its parts. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>

enum { KIND_FULL = 'f', KIND_LIGHT = 'l' };

/* Finds "key": "value" in flat JSON; the value's first letter or 0. */
static char string_value(const unsigned char *text, size_t len, const char *key)
{
	const unsigned char *end = text + len, *at = memmem(text, len, key, strlen(key));

	if (!at)
		return 0;
	at += strlen(key);
	while (at < end && (*at == ' ' || *at == ':' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at + 1 < end && at[0] == '"' ? (char)at[1] : (char)0;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	static const char *const keys[] = { "\"date\"", "\"major\"", "\"minor\"" };

	(void)why;
	if (file->head_len == 0 || file->head_len == DBT_HEAD_BYTES)
		return DBT_MATCH_NO; /* a few lines, no more */
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!memmem(file->head, file->head_len, keys[i], strlen(keys[i])))
			return DBT_MATCH_NO;
	return DBT_MATCH_YES;
}

/* Says which of the two it is. A version.json alone is no database. */
static int collect(struct dbt_group *group, bool *use_rules)
{
	unsigned char head[DBT_HEAD_BYTES];
	ssize_t got = dbt_group_read(group, group->lead, head, sizeof(head), 0);
	const bool has_db = dbt_group_find(group, "bakta.db") != NULL,
		   has_full = dbt_group_find(group, "psc.dmnd") != NULL,
		   has_light = dbt_group_find(group, "pscc.dmnd") != NULL;

	(void)use_rules;
	if (!has_db && !dbt_group_find(group, "sorf.dmnd"))
		return -ENOENT;
	group->kind = string_value(head, got < 0 ? 0 : (size_t)got, "\"type\"");
	/* Schema 4 and older have no type: they are full. */
	if (group->kind != KIND_FULL && group->kind != KIND_LIGHT)
		group->kind = has_light && !has_full ? KIND_LIGHT : KIND_FULL;
	return 0;
}

static const struct dbt_lead leads[] = { { .pattern = "version.json" }, { 0 } };

#define PRESSED(x)                                                                                 \
	{ x ".h3f", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_REQUIRED, 0 },                            \
		{ x ".h3i", DBT_CLASS_RANDOM_PREAD, DBT_RULE_REQUIRED, 0 },                        \
		{ x ".h3m", DBT_CLASS_STREAM, DBT_RULE_REQUIRED, 0 },                              \
	{                                                                                          \
		x ".h3p", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_REQUIRED, 0                         \
	}

#define PRESSED_CM(x)                                                                              \
	{ x ".i1f", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_REQUIRED, 0 },                            \
		{ x ".i1i", DBT_CLASS_RANDOM_PREAD, DBT_RULE_REQUIRED, 0 },                        \
		{ x ".i1m", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_REQUIRED, 0 },                    \
	{                                                                                          \
		x ".i1p", DBT_CLASS_STREAM_PER_QUERY, DBT_RULE_REQUIRED, 0                         \
	}

static const struct dbt_rule rules[] = {
	/* Keyed by the MD5 of each protein: B-tree descents at random places, by ten threads. */
	{ "bakta.db", DBT_CLASS_RANDOM_PREAD, DBT_RULE_HOT | DBT_RULE_REQUIRED, 0 },
	{ "psc.dmnd", DBT_CLASS_STREAM, DBT_RULE_HOT | DBT_RULE_REQUIRED, KIND_FULL },
	{ "pscc.dmnd", DBT_CLASS_STREAM, DBT_RULE_HOT | DBT_RULE_REQUIRED, KIND_LIGHT },
	{ "expert-protein-sequences.dmnd", DBT_CLASS_STREAM, DBT_RULE_REQUIRED, 0 },
	{ "sorf.dmnd", DBT_CLASS_STREAM, DBT_RULE_REQUIRED, 0 },
	PRESSED("antifam"),
	PRESSED("pfam"),
	PRESSED_CM("ncRNA-genes"),
	PRESSED_CM("ncRNA-regions"),
	PRESSED_CM("rRNA"),
	{ "oric.fna", DBT_CLASS_STREAM, DBT_RULE_REQUIRED, 0 },
	{ "orit.fna", DBT_CLASS_STREAM, DBT_RULE_REQUIRED, 0 },
	{ "rfam-go.tsv", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "version.json", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ 0 },
};

static const char *const parts[] = { "*", NULL };

const struct dbt_format dbt_format_bakta = {
	.id = "bakta",
	.name = "Bakta database",
	.tools = "Bakta",
	.members =
		"bakta.db, psc.dmnd (light: pscc.dmnd), sorf.dmnd, expert-protein-sequences.dmnd, "
		"pressed HMMER and Infernal models, version.json, amrfinderplus-db/",
	.note = "bakta_db update deletes the directory with its links: roll back before",
	.proof = DBT_PROOF_DIRECTORY,
	.shape = DBT_SHAPE_COMPOSITE,
	.moves = DBT_MOVES_FILE,
	.uri_target = true,
	.leads = leads,
	.rules = rules,
	.parts = parts,
	.test = test,
	.collect = collect,
};
