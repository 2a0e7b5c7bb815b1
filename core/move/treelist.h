/* The list of what is in a promoted directory: what each entry was on the slow side (its source) and is on the fast
 * side (its copy), and the hash of its bytes. A file beside the ledger, written once and read as a stream, so that a
 * million entries take no memory. What a directory holds comes before it: in this order it can be deleted.
 *
 * A line of text for each, numbers divided by blanks:
 *
 *	f 1301 65536 MTIME CTIME BTIME 100644 0 0 77 MTIME CTIME BTIME HASH 0 PATH
 *
 * kind (f file, l link, d directory), of the source: inode, size, mtime, ctime, birth time in ns, mode (octal), uid,
 * gid; of the copy: inode, mtime, ctime, birth time; XXH3-128 of the bytes, or of a link's text, "-" for a directory;
 * the number of a directory's entries; the path relative to the directory ("." for itself), which ends with a NUL
 * before the newline. The last line is "end", the number of entries, and the XXH3-128 of all bytes before it: a
 * damaged list is an error, never believed. */
#ifndef DBT_MOVE_TREELIST_H
#define DBT_MOVE_TREELIST_H

#include "base/buf.h"
#include "base/err.h"
#include "move/digest.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dbt_tree_entry {
	char kind;               /* 'f', 'l' or 'd' */
	struct dbt_ident source; /* inode, size, times, mode, owner */
	struct dbt_ident copied; /* inode, times; ino 0: not known yet */
	struct dbt_digest digest;
	uint64_t n_entries; /* of a directory, without what dbt_tree_is_volatile names */
	const char *path;   /* borrowed; of the reader: until the next call */
};

/* --- writing --- */

struct dbt_tree_writer {
	FILE *file;
	char *path; /* the final one; until dbt_tree_writer_commit the file has ".new" behind it */
	struct dbt_hasher *hasher;
	struct dbt_buf line;
	uint64_t n;
	bool draft;
};

/* Errors are of kind LEDGER: the state directory cannot take the list. */
int dbt_tree_writer_open(const char *path, struct dbt_tree_writer *ret, struct dbt_err *err);
int dbt_tree_writer_add(struct dbt_tree_writer *w, const struct dbt_tree_entry *e,
                        struct dbt_err *err);

/* Ends the list, flushes it and its directory. Under the final name there is from then on the whole list. */
int dbt_tree_writer_commit(const struct dbt_ctx *ctx, struct dbt_tree_writer *w,
                           struct dbt_err *err);
void dbt_tree_writer_release(struct dbt_tree_writer *w); /* an uncommitted list is removed */

/* A list for this process alone, in a file without a name in the directory of path. */
int dbt_tree_draft_open(const char *path, struct dbt_tree_writer *ret, struct dbt_err *err);

/* --- reading --- */

struct dbt_tree_reader {
	FILE *file;
	char *path;
	char *line;
	size_t cap;
	uint64_t n, n_all;
};

/* Reads the whole list once to see that it is undamaged. Error LEDGER; its code is -ENOENT when there is none. */
int dbt_tree_reader_open(const char *path, struct dbt_tree_reader *ret, struct dbt_err *err);

/* Reads a draft, which is released by that. */
int dbt_tree_reader_of_draft(struct dbt_tree_writer *draft, struct dbt_tree_reader *ret,
                             struct dbt_err *err);

/* 1 an entry, 0 the end, below 0 an error. */
int dbt_tree_reader_next(struct dbt_tree_reader *r, struct dbt_tree_entry *ret,
                         struct dbt_err *err);
void dbt_tree_reader_release(struct dbt_tree_reader *r);

/* --- the hash of a whole --- */

/* Adds one entry (path, kind, digest) to the hash of a tree, which does not depend on their order. What may come and
 * go (dbt_tree_is_volatile) is left out. 0 or -ENOMEM. */
int dbt_tree_digest_add(struct dbt_digest *sum, const struct dbt_tree_entry *e);

#endif
