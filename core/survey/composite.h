/* Databases made of databases: a composite takes in its parts, and, where its format says so, every file
 * below its directory. */
#ifndef DBT_SURVEY_COMPOSITE_H
#define DBT_SURVEY_COMPOSITE_H

#include "survey/group.h"
#include "survey/scan.h"

/* The path relative to dir: "" for dir itself, NULL for what is not below it. */
const char *dbt_path_below(const char *dir, const char *path);

/* Adds the files below the directories of composites that own them. result: partial is set when that was
 * cancelled. Returns 0 or -errno. */
int dbt_composites_fill(const struct dbt_ctx *ctx, const struct dbt_scan_opts *opts,
                        struct dbt_found_vec *found, struct dbt_scan_result *result);

/* Joins composites with their parts, which are left empty in found (path NULL). Returns 0 or -ENOMEM. */
int dbt_composites_join(struct dbt_found_vec *found);

#endif
