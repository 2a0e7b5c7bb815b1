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
	/* Is this link (absolute path) one that dbtier made? NULL: a link whose kept original
	 * stands beside it (.NAME.dbtier-original) counts as one. */
	bool (*is_ours)(void *data, const char *path);
	void *is_ours_data;
};

/* Something that could not be looked at; reported, never fatal. */
struct dbt_scan_trouble {
	char *path;
	int code; /* -errno */
};

struct dbt_scan_result {
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
