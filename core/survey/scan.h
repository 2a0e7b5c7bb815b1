/* Walks directories and recognises databases by content. Reads names, sizes and headers; changes
 * nothing. */
#ifndef DBT_SURVEY_SCAN_H
#define DBT_SURVEY_SCAN_H

#include "base/err.h"
#include "survey/database.h"
#include "sys/ctx.h"

struct dbt_scan_opts {
	uint64_t min_size_bytes; /* a database smaller than this is left out */
	bool one_file_system;
	bool deep;   /* archives are read to their end, not only their first bytes */
	bool follow; /* links that are not ours: a file behind one is taken for its own, a directory
	                is walked where it really lies */
	uint64_t unknown_bytes; /* files of no known format from this size on are listed too, as
	                           "unknown"; 0: never */
	/* fnmatch patterns; what fits one by its name or its absolute path is passed over, a
	 * directory with everything below. Borrowed. */
	const char *const *exclude;
	size_t n_exclude;
	/* Ids of the catalogue; only these are listed, where there is one. Borrowed. */
	const char *const *formats;
	size_t n_formats;
	/* Is this link (absolute path) one that dbtier made? A link whose kept original stands
	 * beside it (.NAME.dbtier-original) counts as one in any case. May be NULL. */
	bool (*is_ours)(void *data, const char *path);
	void *is_ours_data;
};

/* Something that could not be looked at; reported, never fatal. */
struct dbt_scan_trouble {
	char *path;
	int code; /* -errno; -ENODATA: empty, called like a database; -EBADMSG: it is not what its name
	             and the files beside it say */
};

struct dbt_scan_result {
	char *root; /* what was walked, absolute and without links; NULL for a file */
	struct dbt_database *databases; /* sorted by path */
	size_t n_databases;
	struct dbt_scan_trouble *troubles; /* the first 100 */
	size_t n_troubles;
	uint64_t troubles_total;
	uint64_t files_seen;
	bool partial; /* cancelled: what was found until then */
};

/* path: a directory to walk, or one file (its siblings are looked at to find its set). Returns 0
 * also when parts could not be read; an error only when path itself cannot be opened. */
int dbt_scan(const struct dbt_ctx *ctx, const char *path, const struct dbt_scan_opts *opts,
             struct dbt_scan_result *ret, struct dbt_err *err);

/* The database that this file (absolute path) belongs to, found by looking at its directory and,
 * for composite sets, the ones above. -ENOENT when it is no database or member of one. */
int dbt_scan_owner(const struct dbt_ctx *ctx, const char *path, const struct dbt_scan_opts *opts,
                   struct dbt_database *ret, struct dbt_err *err);

void dbt_scan_result_release(struct dbt_scan_result *result);

#endif
