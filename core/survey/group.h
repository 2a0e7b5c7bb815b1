/* A database put together: members collected around a lead, completeness checked. */
#ifndef DBT_SURVEY_GROUP_H
#define DBT_SURVEY_GROUP_H

#include "survey/formats/format.h"
#include "survey/walk.h"

/* A database and the entry of the catalogue it was found by. */
struct dbt_found {
	struct dbt_database db;
	const struct dbt_format *format;
};

struct dbt_found_vec {
	struct dbt_found *items;
	size_t n, cap;
};

struct dbt_group {
	const struct dbt_format *format;
	struct dbt_dir *dir;
	const char *base; /* what '*' stands for in the rules; NULL in a directory: anything */
	char kind;
	bool alone;   /* of one file: base is its name, in a format of sets or directories too */
	bool remains; /* recognised by names alone: no core member has to be there */
	struct dbt_file *lead;
	struct {
		struct dbt_group_member {
			struct dbt_file *file;
			enum dbt_class class;
			bool hot, needed;
		} * items;
		size_t n, cap;
	} members;
	struct dbt_buf incomplete; /* reasons, "; " between them */
	unsigned n_reasons;
	struct dbt_buf note;
	struct dbt_buf holds; /* what is in an archive */
	struct dbt_buf name;  /* of the database, where it is not that of its path */
	bool busy_sqlite;
};

/* A file that passed a format's test. */
struct dbt_passed {
	const struct dbt_format *format;
	const struct dbt_lead *lead; /* NULL: found by content under any name */
	unsigned order;
	struct dbt_file *file;
	char *cut; /* why it is not complete; NULL */
};

/* Forms the group around a lead and appends its database. Returns 0 (also when it came to nothing) or
 * -errno. */
int dbt_group_form(struct dbt_dir *dir, const struct dbt_passed *passed,
                   struct dbt_found_vec *found);

/* Forms the group of a format (as the leads of this kind begin it) whose lead is not there or cannot be read, around
 * another file. base: NULL in a directory. Returns as dbt_group_form. */
int dbt_group_form_remains(struct dbt_dir *dir, const struct dbt_format *format,
                           const struct dbt_lead *lead, struct dbt_file *file, const char *base,
                           struct dbt_found_vec *found);

/* For the collect and check of formats. */

/* The file of this name in the group's directory; NULL where there is none (or it could not be
 * looked at). Not only files the walk has kept: the directory is asked. */
struct dbt_file *dbt_group_find(struct dbt_group *group, const char *name);
struct dbt_file *dbt_group_findf(struct dbt_group *group, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for a pattern of the rules ("*.h3i") and the group's base. */
struct dbt_file *dbt_group_part(struct dbt_group *group, const char *pattern);

/* Is there a sub-directory of this name? */
bool dbt_group_has_directory(const struct dbt_group *group, const char *name);

/* Notes it when a file has less than these bytes. A missing one, or a link of someone else, passes. */
int dbt_group_expect(struct dbt_group *group, const struct dbt_file *file, uint64_t bytes);

/* Adds a member once; a second time changes nothing. Returns 0 or -ENOMEM. */
int dbt_group_add(struct dbt_group *group, struct dbt_file *file, enum dbt_class class, bool hot);

/* Applies the format's rules of the group's kind for this base name. Returns 0, -ENOENT when a core
 * member is missing, or -ENOMEM. */
int dbt_group_apply(struct dbt_group *group, const char *base);

/* One more reason why the database is not complete; at most a handful are kept. 0 or -ENOMEM. */
int dbt_group_incomplete(struct dbt_group *group, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Bytes of a member; as dbt_candidate_read. A link of someone else cannot be read. */
ssize_t dbt_group_read(const struct dbt_group *group, const struct dbt_file *file, void *buf,
                       size_t len, uint64_t off);

void dbt_found_release(struct dbt_found_vec *found);

/* Sets size, class, mixed and promoted from the members, which it sorts by name. */
void dbt_database_settle(struct dbt_database *db, enum dbt_class format_class);

#endif
