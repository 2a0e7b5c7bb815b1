/* A database as the survey finds it: one dataset that a tool opens under one name. */
#ifndef DBT_SURVEY_DATABASE_H
#define DBT_SURVEY_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a tool reads it: the finer classes, which decide the forecast. */
enum dbt_class {
	DBT_CLASS_UNKNOWN = 0,
	DBT_CLASS_RANDOM_PREAD,
	DBT_CLASS_RANDOM_MMAP,
	DBT_CLASS_SCAN_MMAP,
	DBT_CLASS_STREAM,
	DBT_CLASS_STREAM_PER_QUERY,
	DBT_CLASS_LOAD_ALL,
	DBT_CLASS_COLD,
};

const char *dbt_class_name(enum dbt_class class); /* "random-pread"; static */
const char *dbt_class_word(
	enum dbt_class class); /* "random", "mapped", "stream", "loaded", "cold"; static */
int dbt_class_parse(const char *name, enum dbt_class *ret);

/* What may be moved by itself. */
enum dbt_moves {
	DBT_MOVES_FILE = 0,  /* any member alone */
	DBT_MOVES_SET,       /* all members or none */
	DBT_MOVES_DIRECTORY, /* the directory as one name */
};

struct dbt_member {
	char *path;          /* absolute; the name as found, a promoted one being a link now */
	char *name;          /* relative to the database's directory: "psc.dmnd",
	                        "amrfinderplus-db/latest/AMR.LIB.h3f" */
	uint64_t size_bytes; /* of the bytes behind the name */
	enum dbt_class class;
	bool hot;
	bool observed;         /* class is what was seen, not what the catalogue declares */
	bool link_of_database; /* a symbolic link that the database ships itself: stays a link */
	bool promoted;         /* a link of ours */
	bool followed;         /* a link of someone else whose file was looked at all the same */
	uint64_t dev, ino;     /* of the bytes, by st_dev; 0 for a link of the database */
	uint32_t nlink;
};

struct dbt_database {
	char *name;
	const char *format; /* id of the catalogue entry: "diamond", "bakta" ...; static */
	char *path; /* what a user gives the tool: file, base name (BLAST, HMMER) or directory */
	char *dir;  /* the directory that holds the members; names are relative to it */
	uint64_t size_bytes;        /* all members, and more_bytes */
	struct dbt_member *members; /* sorted by name; at least one */
	size_t n_members;
	uint64_t more_bytes; /* of files that belong to it but are too many and too small to list */
	uint64_t more_files;
	enum dbt_class class; /* of the hot bytes; UNKNOWN with mixed true where they differ */
	bool mixed;
	bool complete;
	char *incomplete; /* why not complete; NULL */
	enum dbt_moves moves;
	bool promoted;    /* at least one hot member is a link of ours */
	bool followed;    /* at least one hot member is a link that was followed */
	char *note;       /* what a user should know before moving it; NULL */
	char *holds;      /* of an archive: the databases that seem to be in it, in words; NULL */
	bool uri_target;  /* its tool builds a file: URI: no ? # % in the target's path */
	bool busy_sqlite; /* a non-empty -wal or a -journal stands beside a member */
};

/* "random", "mapped", "stream", "loaded", "cold", "mixed"; static */
const char *dbt_database_access(const struct dbt_database *db);

void dbt_database_release(struct dbt_database *db);

#endif
