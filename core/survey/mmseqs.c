#include "survey/mmseqs.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* An index up to this size is read whole; of a larger one the first and the last lines. */
enum { WHOLE_INDEX_BYTES = 1 << 20, SOME_INDEX_BYTES = 4096, MAX_PARTS = 100000 };

enum dbt_match dbt_mmseqs_test(const struct dbt_candidate *file)
{
	/* Flags in the upper half: compressed, needs source, context, GPU, set. */
	enum { MAX_TYPE = 20, FLAGS = 1 | 2 | 4 | 8 | 16 };
	uint32_t type;

	if (file->size_bytes != 4 || file->head_len != 4)
		return DBT_MATCH_NO;
	type = dbt_le32(file->head);
	return (type & 0xffff) <= MAX_TYPE && (type >> 16 & 0x7fff & ~(uint32_t)FLAGS) == 0
	               ? DBT_MATCH_YES
	               : DBT_MATCH_NO;
}

bool dbt_mmseqs_is_derived(struct dbt_group *group, const char *stem)
{
	static const char *const ends[] = {
		"_h",    "_seq",     "_seq_h",   "_aln",    "_clu",    "_ss",
		"_ss_h", "_ca",      "_seq_ss",  "_seq_ca", "_id",     "_pad",
		".idx",  "_aln.idx", "_seq.idx", "_ss.idx", "_ca.idx",
	};
	size_t len = strlen(stem);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t n = strlen(ends[i]);

		if (len > n && strcmp(stem + len - n, ends[i]) == 0 &&
		    dbt_group_findf(group, "%.*s.dbtype", (int)(len - n), stem))
			return true;
	}
	return false;
}

static int add_data(struct dbt_group *group, const char *stem, enum dbt_class class, bool hot)
{
	struct dbt_file *file = dbt_group_find(group, stem);
	int r = file ? dbt_group_add(group, file, class, hot) : 0, n = file ? 1 : 0;

	for (unsigned part = 0; r == 0 && part < MAX_PARTS; part++, n++) {
		file = dbt_group_findf(group, "%s.%u", stem, part);
		if (!file)
			break;
		r = dbt_group_add(group, file, class, hot);
	}
	return r < 0 ? r : n;
}

int dbt_mmseqs_add(struct dbt_group *group, const char *stem, enum dbt_class class, bool hot)
{
	static const struct {
		const char *end;
		enum dbt_class class;
	} companions[] = {
		{ ".index", DBT_CLASS_RANDOM_MMAP },
		{ ".dbtype", DBT_CLASS_COLD },
		{ ".lookup", DBT_CLASS_COLD },
		{ ".source", DBT_CLASS_COLD },
	};
	int n = add_data(group, stem, class, hot), r = n < 0 ? n : 0;

	for (size_t i = 0; r == 0 && i < sizeof(companions) / sizeof(companions[0]); i++) {
		struct dbt_file *file = dbt_group_findf(group, "%s%s", stem, companions[i].end);

		if (file)
			r = dbt_group_add(group, file, companions[i].class, false);
	}
	return r < 0 ? r : n;
}

/* The entry that lies last in the data. */
struct entry {
	uint64_t off, len;
};

/* Looks through the complete lines of text for an entry that lies behind *last; three numbers a line with tabs
 * between. */
static void look_for_last(const char *text, size_t len, struct entry *last)
{
	const char *at = text, *end = text + len;

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		uint64_t key, off, n;

		if (!line_end)
			break;
		if (dbt_read_number(&at, &key) && *at++ == '\t' && dbt_read_number(&at, &off) &&
		    *at++ == '\t' && dbt_read_number(&at, &n) && off + n >= off &&
		    (off > last->off || (off == last->off && n > last->len)))
			*last = (struct entry){ .off = off, .len = n };
		at = line_end + 1;
	}
}

static int last_entry(struct dbt_group *group, const struct dbt_file *index, struct entry *ret)
{
	const bool whole = index->size_bytes <= WHOLE_INDEX_BYTES;
	size_t size = whole ? (size_t)index->size_bytes : SOME_INDEX_BYTES;
	dbt_autofree char *text = malloc(size + 1);
	ssize_t got;

	*ret = (struct entry){ 0 };
	if (!text)
		return -ENOMEM;
	got = dbt_group_read(group, index, text, size, 0);
	if (got > 0) {
		text[got] = '\0';
		look_for_last(text, (size_t)got, ret);
	}
	if (!whole && got > 0) {
		const char *line;

		got = dbt_group_read(group, index, text, size, index->size_bytes - size);
		text[got < 0 ? 0 : got] = '\0';
		line = strchr(text, '\n'); /* the first one is not complete */
		if (line)
			look_for_last(line + 1, strlen(line + 1), ret);
	}
	return 0;
}

/* Where the last entry ends. In a compressed database the index has the length before compression; an entry is
 * then u32 LE length, that many bytes and a NUL (MMseqs2 DBWriter.cpp). */
static uint64_t end_of(struct dbt_group *group, const char *stem, const struct dbt_file *data,
                       const struct entry *last)
{
	const struct dbt_file *type = dbt_group_findf(group, "%s.dbtype", stem);
	unsigned char bytes[4];

	if (!type || dbt_group_read(group, type, bytes, 4, 0) != 4 || !(bytes[3] & 0x80))
		return last->off + last->len;
	if (!data || dbt_group_read(group, data, bytes, 4, last->off) != 4)
		return dbt_size_of(1, last->off, 4);
	return dbt_size_of(1, dbt_size_of(1, last->off, 4), (uint64_t)dbt_le32(bytes) + 1);
}

int dbt_mmseqs_check(struct dbt_group *group, const char *stem)
{
	const struct dbt_file *index = dbt_group_findf(group, "%s.index", stem),
			      *data = dbt_group_find(group, stem);
	uint64_t total = 0, end;
	bool foreign = false;
	struct entry last;
	int r;

	if (!index || index->foreign_link)
		return 0;
	if (data) {
		total = data->size_bytes;
		foreign = data->foreign_link;
	}
	for (unsigned part = 0; part < MAX_PARTS; part++) {
		const struct dbt_file *file = dbt_group_findf(group, "%s.%u", stem, part);

		if (!file)
			break;
		total += file->size_bytes;
		foreign |= file->foreign_link;
	}
	r = last_entry(group, index, &last);
	if (r < 0 || foreign)
		return r;
	end = end_of(group, stem, data, &last);
	if (end <= total)
		return 0;
	return dbt_group_incomplete(group, "'%s' is cut short: %llu of %llu bytes", stem,
	                            (unsigned long long)total, (unsigned long long)end);
}
