/* The files of a tree, copied many at a time: so they share flushes. Entries are kept in their order meanwhile, those of
 * links and directories among them, since a list has to name what is in a directory before the directory. */
#ifndef DBT_FLOW_TREEFILES_H
#define DBT_FLOW_TREEFILES_H

#include "flow/tree.h"

struct dbt_tree_batch_item {
	struct dbt_tree_entry e; /* e.path is path */
	char *path, *shown_src, *shown_dst;
};

struct dbt_tree_batch {
	const struct dbt_tree_copy *c;
	int root; /* of the new tree, whose directories are made already */
	struct {
		struct dbt_tree_batch_item *items;
		size_t n, cap;
	} items;
	struct {
		size_t *items; /* which of the items are files */
		size_t n, cap;
	} files;
	uint64_t done_bytes;
	bool all_from_device;
};

enum { DBT_TREE_BATCH_MAX = 4096 };

/* Remembers an entry; its path is copied. */
int dbt_tree_batch_add(struct dbt_tree_batch *b, const struct dbt_tree_entry *e,
                       struct dbt_err *err);

/* Copies the files among the entries and fills in their digests and what their copies are. */
int dbt_tree_batch_copy(struct dbt_tree_batch *b, struct dbt_err *err);
void dbt_tree_batch_clear(struct dbt_tree_batch *b); /* forgets the entries */
void dbt_tree_batch_release(struct dbt_tree_batch *b);

#endif
