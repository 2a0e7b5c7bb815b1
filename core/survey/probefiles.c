#include "survey/probefiles.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 256, MIN_BYTES = 4096 };

static int push_file(struct dbt_probe_files *files, const char *path)
{
	char **slot = dbt_vec_push(files);

	if (!slot)
		return -ENOMEM;
	*slot = strdup(path);
	return *slot ? 0 : -ENOMEM;
}

static int larger_first(const FTSENT **a, const FTSENT **b)
{
	off_t x = (*a)->fts_info == FTS_F ? (*a)->fts_statp->st_size : 0,
	      y = (*b)->fts_info == FTS_F ? (*b)->fts_statp->st_size : 0;

	return (x < y) - (x > y);
}

static int push_tree(const char *path, struct dbt_probe_files *files, struct dbt_err *err)
{
	dbt_autofree char *copied = strdup(path);
	char *roots[] = { copied, NULL };
	FTS *fts = copied ? fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_XDEV | FTS_NOCHDIR,
	                             larger_first)
	                  : NULL;
	FTSENT *entry;
	int r = 0;

	if (!fts)
		return dbt_err_sys(err, copied ? -errno : -ENOMEM, "cannot list '%s'", path);
	while (r == 0 && files->n < MAX_FILES && (entry = fts_read(fts)))
		if (entry->fts_info == FTS_F && entry->fts_statp->st_size >= MIN_BYTES)
			r = push_file(files, entry->fts_path);
	(void)fts_close(fts);
	if (r == 0 && files->n == 0)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA,
		                   "there is no file to measure on below '%s'", path);
	return r < 0 ? dbt_err_sys(err, r, "cannot list '%s'", path) : 0;
}

static int find(const char *path, struct dbt_probe_files *files, struct dbt_err *err)
{
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return dbt_err_sys(err, -errno, "cannot probe '%s'", path);
	if (S_ISDIR(st.st_mode))
		return push_tree(path, files, err);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return dbt_err_set(
			err, DBT_ERR_USAGE, -EINVAL,
			"cannot probe '%s': neither a file, a directory nor a block device", path);
	r = push_file(files, path);
	return r < 0 ? dbt_err_sys(err, r, "cannot probe '%s'", path) : 0;
}

int dbt_probe_files_find(const char *path, struct dbt_probe_files *ret, struct dbt_err *err)
{
	struct dbt_probe_files files = { 0 };
	int r = find(path, &files, err);

	if (r < 0)
		dbt_probe_files_release(&files);
	else
		*ret = files;
	return r;
}

void dbt_probe_files_release(struct dbt_probe_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->items[i]);
	free(files->items);
	*files = (struct dbt_probe_files){ 0 };
}
