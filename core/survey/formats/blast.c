/* BLAST+ v4 and v5. An index (.pin protein, .nin nucleotide) has no magic, but its arithmetic is
 * exact: u32 BE version and type (1 protein, 0 nucleotide), in v5 a volume number, then title, in v5
 * the name of the LMDB file, and the date as u32 BE length + text; u32 BE sequences, u64 LE letters,
 * u32 BE longest; then arrays of sequences+1 u32 BE offsets into the header file and the sequence
 * file, whose last entries are the sizes of those files.
 *
 * Large databases are volumes BASE.00, BASE.01 ... under a text BASE.pal or .nal that lists them;
 * what v5 keeps once (BASE.pdb and the like) lies under BASE. */
#include "survey/dbkind.h"
#include "survey/formats/format.h"
#include "survey/group.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

enum { KIND_PROTEIN = 'p', KIND_NUCLEOTIDE = 'n' };

struct index {
	uint32_t version, sequences;
	uint64_t arrays_at; /* offset of the first array */
	char lmdb[256];     /* v5; "" */
};

/* Steps over a text with its length before it; 0 where that leads out of the head. */
static size_t skip_text(const unsigned char *head, size_t len, size_t at, char *ret_text,
                        size_t text_bytes)
{
	uint32_t n;

	if (at == 0 || at + 4 > len)
		return 0;
	n = dbt_be32(head + at);
	at += 4;
	if (n > len - at)
		return 0;
	if (ret_text && n < text_bytes) {
		memcpy(ret_text, head + at, n);
		ret_text[n] = '\0';
	}
	return at + n;
}

static bool parse(const unsigned char *head, size_t len, struct index *ret)
{
	struct index index = { 0 };
	size_t at = 8;

	if (len < 16)
		return false;
	index.version = dbt_be32(head);
	if ((index.version != 4 && index.version != 5) || dbt_be32(head + 4) > 1)
		return false;
	if (index.version == 5)
		at += 4;
	at = skip_text(head, len, at, NULL, 0);
	if (index.version == 5)
		at = skip_text(head, len, at, index.lmdb, sizeof(index.lmdb));
	at = skip_text(head, len, at, NULL, 0);
	if (at == 0 || at + 16 > len)
		return false;
	index.sequences = dbt_be32(head + at);
	index.arrays_at = at + 16;
	*ret = index;
	return true;
}

static bool is_alias(const struct dbt_candidate *file)
{
	size_t len = strlen(file->name);

	return len > 2 && file->name[len - 2] == 'a' && file->name[len - 1] == 'l';
}

static const void *find(const unsigned char *text, size_t len, const char *word)
{
	return memmem(text, len, word, strlen(word));
}

static enum dbt_match test_alias(const struct dbt_candidate *file)
{
	static const char *const lists[] = { "\nDBLIST ", "\nGILIST ", "\nTAXIDLIST ",
		                             "\nSEQIDLIST ", "\nOIDLIST " };

	if (!find(file->head, file->head_len, "TITLE"))
		return DBT_MATCH_NO;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (find(file->head, file->head_len, lists[i]))
			return DBT_MATCH_YES;
	return DBT_MATCH_NO;
}

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	const size_t name_len = strlen(file->name);
	struct index index;
	uint64_t arrays, end;
	bool protein;

	if (is_alias(file))
		return test_alias(file);
	if (!parse(file->head, file->head_len, &index))
		return DBT_MATCH_NO;
	protein = dbt_be32(file->head + 4) == 1;
	if (protein != (name_len > 3 && file->name[name_len - 3] == 'p'))
		return DBT_MATCH_NO;
	/* Nucleotides have a third array, of ambiguities. */
	arrays = protein ? 2 : 3;
	end = dbt_size_of(arrays * 4, (uint64_t)index.sequences + 1, index.arrays_at);
	return end <= file->size_bytes ? DBT_MATCH_YES : dbt_match_cut(why, file->size_bytes, end);
}

/* ---- a volume ---- */

/* Compares a data file's size with the last entry of its array. */
static int check_data(struct dbt_group *group, const struct dbt_file *pin, const char *volume,
                      const char *suffix, uint64_t last_at)
{
	const struct dbt_file *file = dbt_group_findf(group, "%s%s", volume, suffix);
	unsigned char last[4];
	uint32_t expected;

	if (!file || file->foreign_link)
		return 0; /* a missing one is reported by the rules */
	if (dbt_group_read(group, pin, last, 4, last_at) != 4)
		return 0; /* so is an index cut short */
	expected = dbt_be32(last);
	if (file->size_bytes < expected)
		return dbt_group_incomplete(group, "'%s' is cut short: %llu of %u bytes",
		                            file->name, (unsigned long long)file->size_bytes,
		                            expected);
	return 0;
}

static int check_volume(struct dbt_group *group, const char *volume)
{
	const struct dbt_file *pin = dbt_group_findf(group, "%s.%cin", volume, group->kind);
	unsigned char head[DBT_HEAD_BYTES];
	char suffix[8] = ".phr";
	struct index index;
	uint64_t array_bytes;
	ssize_t got;
	int r;

	if (!pin || pin->foreign_link)
		return 0;
	got = dbt_group_read(group, pin, head, sizeof(head), 0);
	if (got < 0 || !parse(head, (size_t)got, &index))
		return dbt_group_incomplete(group, "'%s' is no index of BLAST", pin->name);
	array_bytes = ((uint64_t)index.sequences + 1) * 4;
	suffix[1] = group->kind;
	r = dbt_group_expect(
		group, pin,
		dbt_size_of(group->kind == KIND_PROTEIN ? 2 : 3, array_bytes, index.arrays_at));
	if (r == 0)
		r = check_data(group, pin, volume, suffix, index.arrays_at + array_bytes - 4);
	memcpy(suffix + 2, "sq", 2);
	if (r == 0)
		r = check_data(group, pin, volume, suffix, index.arrays_at + 2 * array_bytes - 4);
	if (r == 0 && index.lmdb[0]) {
		const struct dbt_file *lmdb = dbt_group_find(group, index.lmdb);

		if (!lmdb || (lmdb->size_bytes == 0 && !lmdb->foreign_link))
			r = dbt_group_incomplete(group, "'%s' is %s", index.lmdb,
			                         lmdb ? "empty" : "missing");
	}
	return r;
}

/* ---- an alias ---- */

/* The next word of the list, in place: "a", "multi.00" or "with blank"; NULL at the end. */
static char *next_word(char **at)
{
	char *word, *end;

	while (**at == ' ' || **at == '\t')
		(*at)++;
	if (**at == '\0' || **at == '\n' || **at == '\r')
		return NULL;
	word = *at;
	if (*word == '"') {
		word++;
		end = strchr(word, '"');
		if (!end)
			return NULL;
	} else {
		end = word + strcspn(word, " \t\r\n");
	}
	*at = *end ? end + 1 : end;
	if (*end == '\n' || *end == '\r') /* the list ends with its line */
		*at = end + strlen(end);
	*end = '\0';
	return word;
}

/* One name of DBLIST: a volume of this base, or another database that the alias only refers to. */
static int one_listed(struct dbt_group *group, const char *word, struct dbt_buf *others)
{
	const size_t len = strlen(group->base);
	const char kind = group->kind;
	int r;

	if (strncmp(word, group->base, len) != 0 || word[len] != '.' ||
	    !dbt_pattern_fits("#", NULL, word + len + 1)) {
		if (dbt_buf_addf(others, "%s'%s'", others->len ? ", " : "", word) < 0)
			return -ENOMEM;
		return 0;
	}
	r = dbt_group_apply(group, word);
	if (r == -ENOENT)
		r = dbt_group_incomplete(group, "volume '%s' lacks its .%cin or .%csq", word, kind,
		                         kind);
	return r < 0 ? r : check_volume(group, word);
}

/* What v5 keeps once for all volumes, and the alias itself. */
static int add_shared(struct dbt_group *group)
{
	static const char *const shared[] = { "db", "os", "ot", "tf", "to", "js" };
	int r = dbt_group_add(group, group->lead, DBT_CLASS_COLD, false);

	for (size_t i = 0; r == 0 && i < sizeof(shared) / sizeof(shared[0]); i++) {
		struct dbt_file *file =
			dbt_group_findf(group, "%s.%c%s", group->base, group->kind, shared[i]);

		if (file)
			r = dbt_group_add(group, file, DBT_CLASS_RANDOM_MMAP, false);
	}
	return r;
}

static int collect_alias(struct dbt_group *group)
{
	enum { MAX_ALIAS_BYTES = 256 * 1024 };
	struct dbt_buf others = { 0 };
	char *text = malloc(MAX_ALIAS_BYTES + 1), *at, *word;
	ssize_t got;
	int r = text ? add_shared(group) : -ENOMEM;

	if (r == 0) {
		got = dbt_group_read(group, group->lead, text, MAX_ALIAS_BYTES, 0);
		if (got < 0)
			got = 0;
		text[got] = '\0';
		at = strstr(text, "\nDBLIST ");
		if (at)
			at += strlen("\nDBLIST ");
		while (r == 0 && at && (word = next_word(&at)) != NULL)
			r = one_listed(group, word, &others);
	}
	if (r == 0 && others.len > 0 &&
	    dbt_buf_addf(&group->note, "an alias over %s", dbt_buf_str(&others)) < 0)
		r = -ENOMEM;
	free(text);
	dbt_buf_release(&others);
	return r;
}

static bool lead_is_alias(const struct dbt_group *group)
{
	const struct dbt_candidate file = { .name = group->lead->name };

	return is_alias(&file);
}

static int collect(struct dbt_group *group, bool *use_rules)
{
	if (!lead_is_alias(group))
		return 0;
	*use_rules = false;
	return collect_alias(group);
}

/* The profiles of RPS-BLAST and their lookup table go together. */
static int check_profiles(struct dbt_group *group)
{
	const bool rps = dbt_group_part(group, "*.rps") != NULL,
		   loo = dbt_group_part(group, "*.loo") != NULL;

	if (group->kind != KIND_PROTEIN || rps == loo)
		return 0;
	return dbt_group_incomplete(group, "'%s.%s' is missing", group->base, rps ? "loo" : "rps");
}

static int check(struct dbt_group *group)
{
	int r = lead_is_alias(group) ? 0 : check_volume(group, group->base);

	return r < 0 ? r : check_profiles(group);
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.pal", .kind = KIND_PROTEIN },
	{ .pattern = "*.nal", .kind = KIND_NUCLEOTIDE },
	{ .pattern = "*.pin", .kind = KIND_PROTEIN },
	{ .pattern = "*.nin", .kind = KIND_NUCLEOTIDE },
	{ 0 },
};

/* The members of one kind; k is its first letter. Sequences are walked in order for every batch of
 * queries, headers are read for reported hits only; all are mapped. */
#define MEMBERS(k, K)                                                                              \
	{ "*." k "sq", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT | DBT_RULE_CORE, K },                     \
		{ "*." k "in", DBT_CLASS_RANDOM_MMAP, DBT_RULE_CORE, K },                          \
		{ "*." k "hr", DBT_CLASS_RANDOM_MMAP, DBT_RULE_REQUIRED, K },                      \
		{ "*." k "og", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "sd", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "si", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "ni", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "nd", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "pi", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "pd", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "ti", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "td", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "hi", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "hd", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "db", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "ot", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "tf", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "to", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
		{ "*." k "os", DBT_CLASS_RANDOM_MMAP, 0, K },                                      \
	{                                                                                          \
		"*." k "js", DBT_CLASS_COLD, 0, K                                                  \
	}

static const struct dbt_rule rules[] = {
	MEMBERS("p", KIND_PROTEIN),
	MEMBERS("n", KIND_NUCLEOTIDE),
	{ "*.rps", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, KIND_PROTEIN }, /* RPS-BLAST profiles */
	{ "*.loo", DBT_CLASS_SCAN_MMAP, DBT_RULE_HOT, KIND_PROTEIN },
	{ "*.aux", DBT_CLASS_COLD, 0, KIND_PROTEIN },
	{ "*.freq", DBT_CLASS_RANDOM_MMAP, 0, KIND_PROTEIN },
	{ "*.#.idx", DBT_CLASS_SCAN_MMAP, 0, KIND_NUCLEOTIDE }, /* megablast index */
	{ "*.shd", DBT_CLASS_COLD, 0, KIND_NUCLEOTIDE },
	{ 0 },
};

const struct dbt_format dbt_format_blast = {
	.id = "blast",
	.name = "BLAST database, v4 or v5",
	.tools = "BLAST+, rpsblast, DIAMOND; inside AMRFinderPlus, Bakta",
	.members = "BASE.pin .psq .phr (.nin .nsq .nhr) and the other BASE.p* or BASE.n*; volumes "
		   "BASE.NN.* under BASE.pal (.nal)",
	.note = "update_blastdb.pl puts new files in place of links: roll back before",
	.proof = DBT_PROOF_ARITHMETIC,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.leads = leads,
	.rules = rules,
	.test = test,
	.collect = collect,
	.check = check,
};
