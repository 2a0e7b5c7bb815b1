#include "flow/wal.h"

#include "base/cleanup.h"
#include "sys/at.h"
#include "sys/io.h"
#include "sys/journal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Byte 18 is the format's version for writers, 19 for readers: 2 is WAL (sqlite.org/fileformat2.html, 1.3). */
static bool is_in_wal_mode(const struct dbt_ctx *ctx, const struct dbt_at *at)
{
	enum { VERSIONS_AT = 18, WAL = 2 };
	dbt_autoclose int fd = dbt_at_open(ctx, at, O_RDONLY | O_NONBLOCK, 0);
	unsigned char version[2];

	return fd >= 0 && dbt_journal_is_sqlite(fd) &&
	       dbt_io_pread(ctx, fd, version, sizeof(version), VERSIONS_AT) == 2 &&
	       (version[0] == WAL || version[1] == WAL);
}

/* Whom a directory lets write, by its mode. ACLs show in the group's bits, as their mask. */
static const char *who_loses(const struct stat *from, const struct stat *to)
{
	if (to->st_mode & S_IWOTH)
		return NULL;
	if (from->st_mode & S_IWOTH)
		return "everybody";
	if ((from->st_mode & S_IWGRP) && !((to->st_mode & S_IWGRP) && from->st_gid == to->st_gid))
		return "its group";
	if ((from->st_mode & S_IWUSR) && from->st_uid != 0 &&
	    !((to->st_mode & S_IWUSR) && from->st_uid == to->st_uid))
		return "its owner";
	return NULL;
}

/* Who may write beside the source and not in the target; NULL: nobody, or it is no such database. */
static const char *find_loser(const struct dbt_ctx *ctx, const char *source, const char *target,
                              struct dbt_err *err)
{
	struct stat from, to;
	struct dbt_at at;
	const char *who = NULL;

	if (dbt_at_resolve_strict(ctx, source, &at, err) < 0) {
		dbt_err_clear(err);
		return NULL; /* whoever plans to move it will say so */
	}
	if (is_in_wal_mode(ctx, &at) && fstat(at.dirfd, &from) == 0 && stat(target, &to) == 0)
		who = who_loses(&from, &to);
	dbt_at_release(&at);
	return who;
}

int dbt_wal_check_readers(const struct dbt_ctx *ctx, const char *source, const char *target,
                          bool force, struct dbt_err *err)
{
	const char *who = find_loser(ctx, source, target, err);

	if (!who)
		return 0;
	if (force) {
		dbt_ctx_log(ctx, DBT_LOG_WARNING,
		            "'%s' is in WAL mode, and %s may write in its directory but not in "
		            "'%s': readers may fail there",
		            source, who, target);
		return 0;
	}
	return dbt_err_refuse(
		err,
		"'%s' is in WAL mode: its readers write beside it, and %s may do that in its "
		"directory but not in '%s'; choose a directory of the same owner, group and mode, "
		"or "
		"run 'PRAGMA journal_mode=DELETE' in sqlite3; --force does it all the same",
		source, who, target);
}
