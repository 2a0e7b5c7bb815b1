/* Walks a tree: one pass, by directory descriptors, each directory's names looked at in inode order.
 * Keeps of each directory only what may belong to a database (by name or by size), so that memory
 * does not grow with the tree. Links are not followed, except those that dbtier made. */
#ifndef DBT_SURVEY_WALK_H
#define DBT_SURVEY_WALK_H

#include "survey/scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file of an odd name is opened from this size on. */
enum { DBT_ODD_NAME_BYTES = 64 * 1024 };

/* A name in a directory that may belong to a database. */
struct dbt_file {
	char *name;          /* owned by the directory */
	uint64_t size_bytes; /* of the bytes behind the name */
	uint64_t dev, ino;
	uint32_t nlink;
	unsigned hint;     /* of dbkind.h */
	bool foreign_link; /* a symbolic link that is not ours; size 0 */
	bool promoted;     /* a link of ours */
	bool dangling;     /* ... that leads nowhere; size is the kept original's, if there */
	bool claimed;      /* a database has it already */
	bool tested;       /* content was looked at */
};

struct dbt_file_list; /* files found by name only later */

struct dbt_dir {
	const struct dbt_ctx *ctx;
	const struct dbt_scan_opts *opts;
	int fd;
	const char *path; /* absolute */
	uint64_t dev, ino;
	bool promoted;          /* reached through a link of ours */
	struct dbt_file *files; /* sorted by name */
	size_t n_files;
	struct dbt_file_list *later;
	bool all_listed;       /* later holds everything that is not in files */
	struct dbt_walk *walk; /* for troubles and progress */
};

struct dbt_walk {
	const struct dbt_ctx *ctx;
	const struct dbt_scan_opts *opts;
	struct dbt_scan_result *result; /* troubles, files_seen and partial are filled in */
	/* Called once a directory, while it is open. Returns 0 or -errno, which ends the walk. */
	int (*visit)(void *data, struct dbt_dir *dir);
	void *data;
	bool flat; /* do not descend */
	/* private */
	uint64_t bytes_seen, last_progress_ns;
};

/* Walks below the open directory fd (borrowed) of this absolute path. Returns 0 (also when parts
 * could not be read), what visit returned, or -ENOMEM. */
int dbt_walk_tree(struct dbt_walk *walk, int fd, const char *path);

/* The file of this name; the directory itself is asked when the walk did not keep it. NULL: there is
 * none, or it is no file. */
struct dbt_file *dbt_dir_find(struct dbt_dir *dir, const char *name);

/* Calls visit for each file, in no order: for those the walk kept, and, with all, for every other file of
 * the directory too. A negative value ends it and is returned. */
int dbt_dir_each(struct dbt_dir *dir, bool all, int (*visit)(void *data, struct dbt_file *file),
                 void *data);

/* Reads the bytes behind a file's name; those of the kept original where the link dangles. */
ssize_t dbt_dir_read(const struct dbt_dir *dir, const struct dbt_file *file, void *buf, size_t len,
                     uint64_t off);

/* Notes that path could not be looked at. */
void dbt_walk_trouble(struct dbt_walk *walk, const char *dir, const char *name, int code);

/* Names that dbtier itself leaves beside or in place of databases. */
bool dbt_name_is_ours(const char *name);

#endif
