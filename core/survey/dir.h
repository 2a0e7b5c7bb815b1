/* A directory being looked at: the files the walk kept of it, and whatever else is asked for by name. */
#ifndef DBT_SURVEY_DIR_H
#define DBT_SURVEY_DIR_H

#include "survey/scan.h"
#include "survey/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_walk;

/* A name in a directory that may belong to a database. */
struct dbt_file {
	char *name;          /* owned by the directory */
	uint64_t size_bytes; /* of the bytes behind the name */
	uint64_t dev, ino;
	uint32_t nlink;
	unsigned hint;     /* of dbkind.h */
	bool directory;    /* a sub-directory whose name leads a format; found in dir->files only */
	bool foreign_link; /* a symbolic link that is not ours; size 0 */
	bool followed;     /* ... whose file is taken for its own, with --follow */
	bool promoted;     /* a link of ours */
	bool dangling;     /* ... that leads nowhere; size is the kept original's, if there */
	bool claimed;      /* a database has it already */
	bool tested;       /* content was looked at */
	bool passed;       /* ... and begins a database */
	bool unreadable;   /* ... but it could not be read */
	bool told;         /* that it is not what its name says was said */
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

enum dbt_look {
	DBT_LOOK_OTHER = 0,
	DBT_LOOK_FILE,      /* also a link to keep in mind */
	DBT_LOOK_DIRECTORY, /* a directory, or a link to one: see file->promoted and followed */
};

/* What a name whose own stat is known stands for; fills the file, whose name is set. */
enum dbt_look dbt_dir_look(const struct dbt_dir *dir, const struct dbt_stat *own,
                           struct dbt_file *file);

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

/* Is there a real directory of this name? */
bool dbt_dir_has_directory(const struct dbt_dir *dir, const char *name);

/* Frees what was found by name. */
void dbt_dir_forget(struct dbt_dir *dir);

/* Names that dbtier itself leaves beside or in place of databases. */
bool dbt_name_is_ours(const char *name);

#endif
