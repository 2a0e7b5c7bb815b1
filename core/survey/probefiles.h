/* What a probe of a path reads: the file itself, the block device, or the files below a directory
 * on one filesystem. */
#ifndef DBT_SURVEY_PROBEFILES_H
#define DBT_SURVEY_PROBEFILES_H

#include "base/err.h"

#include <stddef.h>

struct dbt_probe_files {
	char **items; /* owned, as is each path */
	size_t n, cap;
};

/* Of a directory at most 256 files of at least 4 KiB, the larger ones of each directory first.
 * -ENODATA when there is none below it. On success the caller releases. */
int dbt_probe_files_find(const char *path, struct dbt_probe_files *ret, struct dbt_err *err);
void dbt_probe_files_release(struct dbt_probe_files *files);

#endif
