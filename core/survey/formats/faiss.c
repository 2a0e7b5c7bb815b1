/* faiss index: a tag of four letters, u32 dimension, u64 vectors, and u64 1048576 twice
 * (index_write.cpp). Of a flat index the size follows. Inverted lists may lie in a second file, which is mapped; the
 * index names it by its absolute path. */
#include "survey/formats/format.h"
#include "survey/group.h"

#include <ctype.h>
#include <errno.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	uint32_t dimension;
	uint64_t vectors, end;

	if (file->head_len < 45 || dbt_le64(file->head + 16) != 1U << 20 ||
	    dbt_le64(file->head + 24) != 1U << 20)
		return DBT_MATCH_NO;
	for (unsigned i = 0; i < 4; i++)
		if (!isalnum(file->head[i]))
			return DBT_MATCH_NO;
	dimension = dbt_le32(file->head + 4);
	vectors = dbt_le64(file->head + 8);
	if (dimension < 1 || dimension > 65536)
		return DBT_MATCH_NO;
	if (memcmp(file->head, "IxF2", 4) == 0 || memcmp(file->head, "IxFI", 4) == 0) {
		end = dbt_size_of(vectors, 4ULL * dimension, 45);
		if (end > file->size_bytes)
			return dbt_match_cut(why, file->size_bytes, end);
	}
	return DBT_MATCH_YES;
}

/* With lists on disk the index ends with u64 length, that path, and u64 bytes of the lists. Returns the path in
 * tail, or NULL. */
static const char *lists_path(unsigned char *tail, size_t n)
{
	for (size_t len = 2; len + 16 <= n; len++) {
		unsigned char *path = tail + n - 8 - len;

		if (*path < ' ')
			return NULL;
		if (*path == '/' && dbt_le64(path - 8) == len) {
			path[len] = '\0';
			return (const char *)path;
		}
	}
	return NULL;
}

static int add_lists(struct dbt_group *group, const char *path)
{
	const char *name = strrchr(path, '/') + 1, *dir = group->dir->path;
	const size_t dir_len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
	struct dbt_file *file;

	if (dbt_buf_addf(&group->note,
	                 "it names '%s' by that absolute path: something must stay there",
	                 path) < 0)
		return -ENOMEM;
	if (*name == '\0' || (size_t)(name - 1 - path) != dir_len ||
	    strncmp(path, dir, dir_len) != 0)
		return 0; /* the index was moved here, or the lists always lay elsewhere */
	file = dbt_group_find(group, name);
	return file ? dbt_group_add(group, file, DBT_CLASS_RANDOM_MMAP, true)
	            : dbt_group_incomplete(group, "'%s' is missing", name);
}

static int check(struct dbt_group *group)
{
	const uint64_t size = group->lead->size_bytes;
	unsigned char tail[4096 + 16];
	const size_t n = size < sizeof(tail) ? (size_t)size : sizeof(tail);
	const char *path;

	if (dbt_group_read(group, group->lead, tail, n, size - n) != (ssize_t)n)
		return 0;
	path = lists_path(tail, n);
	return path ? add_lists(group, path) : 0;
}

static const struct dbt_lead leads[] = {
	{ .pattern = "*.faiss" },
	{ .pattern = "*.index" },
	{ .pattern = "*.faissindex" },
	{ 0 },
};

static const struct dbt_rule rules[] = {
	{ "*", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_faiss = {
	.id = "faiss",
	.name = "faiss index",
	.tools = "faiss",
	.members = "one file; lists kept on disk (*.ivfdata)",
	.note = "a cut is noticed in flat indexes only: nothing tells how long the others are",
	.proof = DBT_PROOF_MAGIC,
	.shape = DBT_SHAPE_FILE,
	.moves = DBT_MOVES_FILE,
	.any_name = true,
	.strip = ".faiss",
	.leads = leads,
	.rules = rules,
	.test = test,
	.check = check,
};
