/* HH-suite (ffindex): X_cs219 is scanned for every iteration's prefilter, X_a3m and X_hhm are fetched entry by
 * entry. Each is an .ffdata with an .ffindex of name, offset and length. A part may be linked away alone:
 * the maintainers advise to keep just _cs219 on fast storage where the whole does not fit. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <errno.h>
#include <stdlib.h>

/* The largest offset + length of the complete lines. */
static bool largest_end(const char *text, uint64_t *ret)
{
	uint64_t largest = 0;
	unsigned lines = 0;

	for (const char *at = text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		const char *tab = memchr(at, '\t', (size_t)(end - at));
		uint64_t off, len;

		if (tab)
			tab++;
		if (!tab || !dbt_read_number(&tab, &off) || *tab++ != '\t' ||
		    !dbt_read_number(&tab, &len) || off + len < off)
			return false;
		largest = off + len > largest ? off + len : largest;
		lines++;
	}
	*ret = largest;
	return lines > 0;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	char text[DBT_HEAD_BYTES + 1];
	uint64_t end;

	(void)why;
	if (memchr(file->head, '\0', file->head_len))
		return DBT_MATCH_NO;
	memcpy(text, file->head, file->head_len);
	text[file->head_len] = '\0';
	return largest_end(text, &end) ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static int check_part(struct dbt_group *group, const char *part)
{
	enum { WHOLE_BYTES = 1 << 20 };
	const struct dbt_file *index = dbt_group_findf(group, "%s%s.ffindex", group->base, part),
			      *data = dbt_group_findf(group, "%s%s.ffdata", group->base, part);
	uint64_t end;
	size_t size;
	ssize_t got;
	char *text;
	int r = 0;

	if (!index && !data)
		return 0;
	if (!index || !data)
		return dbt_group_incomplete(group, "'%s%s.%s' is missing", group->base, part,
		                            index ? "ffdata" : "ffindex");
	size = index->size_bytes < WHOLE_BYTES ? (size_t)index->size_bytes : WHOLE_BYTES;
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	got = dbt_group_read(group, index, text, size, 0);
	text[got < 0 ? 0 : got] = '\0';
	if (largest_end(text, &end))
		r = dbt_group_expect(group, data, end);
	free(text);
	return r;
}

static int check(struct dbt_group *group)
{
	static const char *const parts[] = { "_cs219", "_a3m",      "_hhm",
		                             "_ca3m",  "_sequence", "_header" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		r = check_part(group, parts[i]);
	return r;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*_cs219.ffindex" },
	{ .pattern = "*_a3m.ffindex" },
	{ .pattern = "*_hhm.ffindex" },
	{ .pattern = "*_ca3m.ffindex" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*_cs219.ffdata", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, 0 },
	{ "*_cs219.ffindex", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*_a3m.ffdata", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*_a3m.ffindex", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*_hhm.ffdata", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*_hhm.ffindex", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*_ca3m.ffdata", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*_ca3m.ffindex", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*_sequence.ffdata", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*_sequence.ffindex", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*_header.ffdata", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*_header.ffindex", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*_a3m_db", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 }, /* old style */
	{ "*_a3m_db.index", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*_hhm_db", DBT_CLASS_RANDOM_MMAP, DBT_RULE_HOT, 0 },
	{ "*_hhm_db.index", DBT_CLASS_RANDOM_MMAP, 0, 0 },
	{ "*.cs219", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_hhsuite = {
	.id = "hhsuite",
	.name = "HH-suite database",
	.tools = "hhblits, hhsearch; inside AlphaFold",
	.members = "X_cs219, X_a3m, X_hhm, X_ca3m, X_sequence, X_header, each .ffdata and .ffindex",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_FILE,
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
