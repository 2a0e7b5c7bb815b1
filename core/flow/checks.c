#include "flow/checks.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "flow/measure.h"
#include "survey/mounts.h"
#include "survey/tmpfiles.h"
#include "sys/io.h"
#include "sys/journal.h"
#include "sys/lease.h"
#include "sys/procs.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* --- the file ------------------------------------------------------------------------------------------- */

static int check_inode(const struct dbt_at *at, const struct dbt_ident *i, struct dbt_err *err)
{
	if (S_ISLNK(i->mode))
		return dbt_err_refuse(err, "'%s' is a link already", at->shown);
	if (!S_ISREG(i->mode))
		return dbt_err_refuse(err, "'%s' is not a regular file: only files can be promoted",
		                      at->shown);
	if (i->size_bytes == 0)
		return dbt_err_refuse(err, "'%s' is empty: there is nothing to gain", at->shown);
	if (i->nlink > 1)
		return dbt_err_refuse(
			err,
			"'%s' has %u names (hard links): the others would stay on the slow file "
			"and miss every update; remove them first ('find DIR -samefile FILE')",
			at->shown, i->nlink);
	if (i->attrs & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		return dbt_err_refuse(err, "'%s' is %s: 'chattr %s' lifts that", at->shown,
		                      i->attrs & STATX_ATTR_IMMUTABLE ? "immutable" : "append-only",
		                      i->attrs & STATX_ATTR_IMMUTABLE ? "-i" : "-a");
	if (i->mount_root)
		return dbt_err_refuse(
			err, "'%s' is a mount point: unmount what is bound there first", at->shown);
	return 0;
}

static int check_directory(const struct dbt_ctx *ctx, const struct dbt_at *at,
                           const struct dbt_ident *file, struct dbt_err *err)
{
	uid_t me = geteuid();
	struct dbt_ident dir;
	int r;

	if (faccessat(at->dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return dbt_err_refuse(
			err,
			"the directory of '%s' is not writable (%s): the link could not be put "
			"in place; run it as a user who may write there",
			at->shown, dbt_err_text(errno));
	r = dbt_ident_fd(ctx, at->dirfd, &dir);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at the directory of '%s'", at->shown);
	if ((dir.mode & S_ISVTX) && me != 0 && me != file->uid && me != dir.uid)
		return dbt_err_refuse(
			err,
			"'%s' belongs to another user and its directory is sticky: only its owner "
			"or root may replace it",
			at->shown);
	if (dir.attrs & STATX_ATTR_IMMUTABLE)
		return dbt_err_refuse(err,
		                      "the directory of '%s' is immutable: 'chattr -i' lifts that",
		                      at->shown);
	return 0;
}

static int check_kept_name(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_err *err)
{
	char kept[NAME_MAX + 32];
	struct dbt_ident i;

	(void)snprintf(kept, sizeof(kept), ".%s.dbtier-original", at->name);
	if (strlen(kept) > NAME_MAX)
		return dbt_err_refuse(
			err,
			"the name '%s' is too long to keep the original beside it as '.NAME."
			"dbtier-original': a name of at most %d bytes would do",
			at->shown, NAME_MAX - (int)strlen("..dbtier-original"));
	if (dbt_ident_of(ctx, at->dirfd, kept, &i) == 0)
		return dbt_err_refuse(
			err,
			"'%s' stands beside '%s', from an earlier promotion perhaps: look at it, "
			"then move it away",
			kept, at->shown);
	return 0;
}

int dbt_check_no_journal(const struct dbt_at *at, int fd, struct dbt_err *err)
{
	char name[DBT_JOURNAL_NAME_BYTES];

	if (!dbt_journal_is_sqlite(fd) || !dbt_journal_beside(at->dirfd, at->name, name))
		return 0;
	return dbt_err_refuse(
		err,
		"the SQLite file '%s' has a live '%s' beside it, whose changes would be lost: let "
		"its writer end, or run 'PRAGMA wal_checkpoint(TRUNCATE)' in sqlite3",
		at->shown, name);
}

static int check_writers(const struct dbt_ctx *ctx, const struct dbt_at *at, int fd,
                         const struct dbt_ident *ident, struct dbt_err *err)
{
	struct dbt_procs users = { 0 };
	const char *why = NULL;
	int r = dbt_lease_take(ctx, fd, &why);

	if (r > 0)
		dbt_lease_drop(ctx, fd);
	if (r == -EAGAIN)
		return dbt_err_refuse(err, "'%s' is open for writing: wait for the writer to end",
		                      at->shown);
	if (r != 0)
		return r < 0 ? dbt_err_sys(err, r, "cannot take a lease on '%s'", at->shown) : 0;
	r = dbt_procs_users(ctx, ident, NULL, &users, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < users.n; i++)
		if (users.items[i].how & DBT_PROC_WRITES)
			r = dbt_err_refuse(
				err,
				"'%s' is open for writing by process %d (%s): wait for it to end",
				at->shown, users.items[i].pid, users.items[i].name);
	if (r == 0 && users.blind)
		dbt_ctx_log(ctx, DBT_LOG_NOTE,
		            "whether others write to '%s' could not be seen: %s, and processes of "
		            "other users are "
		            "hidden; size and times are compared instead",
		            at->shown, why ? why : "no lease");
	dbt_procs_release(&users);
	return r;
}

int dbt_check_no_writer(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_err *err)
{
	dbt_autoclose int fd = dbt_at_open(ctx, at, O_RDONLY | O_NONBLOCK, 0);
	struct dbt_ident ident;
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", at->shown);
	r = dbt_ident_fd(ctx, fd, &ident);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", at->shown);
	return check_writers(ctx, at, fd, &ident, err);
}

int dbt_check_source(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_ident *ret,
                     struct dbt_err *err)
{
	dbt_autoclose int fd = -1;
	struct dbt_ident ident;
	int r = dbt_at_ident(ctx, at, &ident);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", at->shown);
	r = check_inode(at, &ident, err);
	if (r == 0)
		r = check_directory(ctx, at, &ident, err);
	if (r == 0)
		r = check_kept_name(ctx, at, err);
	if (r < 0)
		return r;
	fd = dbt_at_open(ctx, at, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", at->shown);
	r = dbt_check_no_journal(at, fd, err);
	if (r == 0)
		r = check_writers(ctx, at, fd, &ident, err);
	if (r == 0)
		*ret = ident;
	return r;
}

int dbt_check_source_dir(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_ident *ret,
                         struct dbt_err *err)
{
	struct dbt_ident ident, parent;
	int r = dbt_at_ident(ctx, at, &ident);

	if (r == 0)
		r = dbt_ident_fd(ctx, at->dirfd, &parent);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", at->shown);
	if (!S_ISDIR(ident.mode))
		return dbt_err_refuse(err, "'%s' is not a directory", at->shown);
	if (ident.mount_root || ident.mnt_id != parent.mnt_id)
		return dbt_err_refuse(
			err,
			"'%s' is a mount point: a link cannot take its place; unmount it, or "
			"move the directory into an ordinary one",
			at->shown);
	if (ident.dev != parent.dev)
		return dbt_err_refuse(err,
		                      "'%s' is a subvolume: a link cannot take its place; copy it "
		                      "into an ordinary directory first",
		                      at->shown);
	if (ident.attrs & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		return dbt_err_refuse(err,
		                      "'%s' is immutable or append-only: 'chattr -ia' lifts "
		                      "that",
		                      at->shown);
	r = check_directory(ctx, at, &ident, err);
	if (r == 0)
		r = check_kept_name(ctx, at, err);
	if (r == 0)
		*ret = ident;
	return r;
}

/* --- the two filesystems -------------------------------------------------------------------------------- */

static int check_kinds(const struct dbt_pair *pair, struct dbt_err *err)
{
	const struct dbt_place *from = pair->from, *to = pair->to;

	if (dbt_place_same_filesystem(from, to))
		return dbt_err_refuse(
			err,
			"'%s' is on the same filesystem as '%s' (%s): nothing would move; choose a "
			"directory on another disk",
			pair->target, pair->source, to->mount);
	if (to->network)
		return dbt_err_refuse(
			err, "'%s' is on a network filesystem (%s): choose a local directory",
			pair->target, to->fstype);
	if (to->overlay)
		return dbt_err_refuse(
			err,
			"'%s' is inside an overlay (%s), which goes with its container: choose a "
			"directory on a disk",
			pair->target, to->fstype);
	if (to->userspace)
		return dbt_err_refuse(
			err,
			"'%s' is on a filesystem in user space (%s), whose device nobody knows: "
			"choose a directory on a disk",
			pair->target, to->fstype);
	if (to->read_only)
		return dbt_err_refuse(err,
		                      "'%s' is on a filesystem mounted read-only (%s): 'mount -o "
		                      "remount,rw' lifts "
		                      "that, or choose another directory",
		                      pair->target, to->mount);
	if (from->read_only)
		return dbt_err_refuse(
			err,
			"'%s' is on a filesystem mounted read-only (%s): the link could not be "
			"put in place; 'mount -o remount,rw' lifts that",
			pair->source, from->mount);
	if (from->overlay && !pair->force)
		return dbt_err_refuse(
			err,
			"'%s' is inside an overlay (%s): promote it where its layer lies, outside "
			"of the container; --force tries it all the same",
			pair->source, from->fstype);
	if (to->ram && pair->reclaim)
		return dbt_err_refuse(
			err,
			"'%s' is in memory (%s) and gone after a reboot: --reclaim needs a disk",
			pair->target, to->fstype);
	if (to->ram && !pair->force)
		return dbt_err_refuse(
			err,
			"'%s' is in memory (%s): the copy would take RAM from the jobs and be gone "
			"after a reboot, when the path leads nowhere until 'dbtier recover'; "
			"--force does it all the same",
			pair->target, to->fstype);
	if (from->network && !pair->force)
		return dbt_err_refuse(
			err,
			"'%s' is on a network filesystem (%s): other machines would see a link "
			"that leads nowhere; --force does it all the same",
			pair->source, from->fstype);
	return 0;
}

static int check_by_class(const struct dbt_ctx *ctx, const struct dbt_pair *pair,
                          struct dbt_err *err)
{
	int from = dbt_tier_rank(pair->from->tier), to = dbt_tier_rank(pair->to->tier);

	if (from >= 0 && to >= 0 && to >= from)
		return dbt_err_refuse(
			err,
			"'%s' is on %s (%s), no faster than %s under '%s' (%s), judged by the "
			"kind of device; --force does it all the same",
			pair->target, dbt_tier_name(pair->to->tier), pair->to->stack,
			dbt_tier_name(pair->from->tier), pair->source, pair->from->stack);
	if (from < 0 || to < 0)
		dbt_ctx_log(ctx, DBT_LOG_WARNING,
		            "that '%s' is faster is a guess: %s has no known class and nothing on "
		            "it was measured",
		            pair->target, from < 0 ? pair->source : pair->target);
	return 0;
}

int dbt_check_pair(const struct dbt_ctx *ctx, const struct dbt_pair *pair, struct dbt_err *err)
{
	double gain = dbt_measured_gain(pair->from_speeds, pair->to_speeds);
	int r = check_kinds(pair, err);

	if (r < 0 || pair->force)
		return r;
	if (dbt_place_share_disk(pair->from, pair->to) && gain < 1.5)
		return dbt_err_refuse(
			err,
			"'%s' and '%s' are on the same disk (%s): nothing shows a gain; --force "
			"does it all the same",
			pair->source, pair->target,
			pair->to->n_disks ? pair->to->disks[0].name : pair->to->stack);
	if (gain > 0 && gain < 1.2)
		return dbt_err_refuse(
			err,
			"'%s' was measured and is not faster than where '%s' is (%.1fx); --force "
			"does it all the same",
			pair->target, pair->source, gain);
	return gain > 0 ? 0 : check_by_class(ctx, pair, err);
}

/* --- directories that hold copies ----------------------------------------------------------------------- */

int dbt_check_set_dir(const struct dbt_ctx *ctx, const struct dbt_at *dir,
                      const struct dbt_ident *like, struct dbt_err *err)
{
	struct dbt_ident i;
	int r = dbt_at_ident(ctx, dir, &i);
	/* The group may write where it may write to the original's directory as well. */
	uint32_t others =
		(like->mode & S_IWGRP) && like->gid == i.gid ? S_IWOTH : S_IWGRP | S_IWOTH;

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", dir->shown);
	if (!S_ISDIR(i.mode))
		return dbt_err_refuse(err, "'%s' is in the way: it is no directory; move it away",
		                      dir->shown);
	if ((i.uid != geteuid() && i.uid != 0 && i.uid != like->uid) || (i.mode & others))
		return dbt_err_refuse(
			err,
			"the directory '%s' is there already and another user could replace the "
			"copies "
			"in it (owner %u, mode %04o): remove it, or choose another directory",
			dir->shown, i.uid, i.mode & 07777);
	return 0;
}

/* Inside a mount namespace of its own (a container, a service with a private /tmp) the target may be invisible for
 * everybody else. */
static void warn_of_namespace(const struct dbt_ctx *ctx, const char *target)
{
	struct dbt_buf ours = { 0 }, first = { 0 };

	if (dbt_root_readlink(ctx->root, "proc/self/ns/mnt", &ours) == 0 &&
	    dbt_root_readlink(ctx->root, "proc/1/ns/mnt", &first) == 0 &&
	    strcmp(dbt_buf_str(&ours), dbt_buf_str(&first)) != 0)
		dbt_ctx_log(ctx, DBT_LOG_WARNING,
		            "this runs in a mount namespace of its own: where others do not see "
		            "'%s', the link leads "
		            "nowhere for them",
		            target);
	dbt_buf_release(&ours);
	dbt_buf_release(&first);
}

int dbt_check_target_dir(const struct dbt_ctx *ctx, int target_fd, const char *target,
                         struct dbt_err *err)
{
	struct dbt_ident i;
	int r = dbt_ident_fd(ctx, target_fd, &i);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", target);
	if ((i.mode & S_IWOTH) && !(i.mode & S_ISVTX))
		return dbt_err_refuse(err,
		                      "anybody may replace files in the target directory '%s' "
		                      "(mode %04o): 'chmod +t' "
		                      "it, or choose another directory",
		                      target, i.mode & 07777);
	warn_of_namespace(ctx, target);
	return 0;
}

/* --- space ---------------------------------------------------------------------------------------------- */

uint64_t dbt_default_reserve(const struct dbt_place *place)
{
	const uint64_t cap = 10ULL << 30;
	uint64_t reserve = place->size_bytes / 20;

	if (reserve > cap)
		reserve = cap;
	return strcmp(place->mount, "/") == 0 ? reserve * 2 : reserve;
}

int dbt_check_space(const struct dbt_ctx *ctx, int target_fd, const char *target, uint64_t bytes,
                    uint64_t files, uint64_t reserve_bytes, struct dbt_err *err)
{
	char need_text[DBT_UNITS_TEXT_BYTES], free_text[DBT_UNITS_TEXT_BYTES],
		keep_text[DBT_UNITS_TEXT_BYTES];
	struct statvfs vfs;
	uint64_t free_bytes;

	(void)ctx;
	if (fstatvfs(target_fd, &vfs) < 0)
		return dbt_err_sys(err, -errno, "cannot ask for the space of '%s'", target);
	/* f_bavail: without what is reserved for root. */
	free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (free_bytes < bytes || free_bytes - bytes < reserve_bytes)
		return dbt_err_refuse(
			err,
			"not enough space in '%s': %s needed and %s to be left free, %s there are; "
			"--reserve changes what is left free",
			target, dbt_units_size(bytes, need_text),
			dbt_units_size(reserve_bytes, keep_text),
			dbt_units_size(free_bytes, free_text));
	/* Filesystems without a fixed number of inodes say 0 of 0. */
	if (vfs.f_files > 0 && vfs.f_favail < files + 16)
		return dbt_err_refuse(
			err,
			"not enough inodes in '%s': %llu needed, %llu there are; remove "
			"files there, or choose another directory",
			target, (unsigned long long)files + 16, (unsigned long long)vfs.f_favail);
	return 0;
}

/* What systemd-tmpfiles would do to a file directly below the target. */
static int find_cleaner(const struct dbt_ctx *ctx, const char *target, struct dbt_tmpfiles_hit *ret,
                        struct dbt_err *err)
{
	dbt_autofree char *path = NULL;
	int r;

	if (asprintf(&path, "%s/database", strcmp(target, "/") == 0 ? "" : target) < 0) {
		path = NULL;
		return dbt_err_sys(err, -ENOMEM, "cannot check '%s'", target);
	}
	r = dbt_tmpfiles_find(ctx, path, ret);
	return r < 0 ? dbt_err_sys(err, r, "cannot read the rules of 'tmpfiles.d'") : r;
}

int dbt_check_cleaner(const struct dbt_ctx *ctx, const char *target, bool must_last,
                      struct dbt_err *err)
{
	struct dbt_tmpfiles_hit hit = { 0 };
	int r = find_cleaner(ctx, target, &hit, err);
	bool at_boot = hit.when == DBT_TMPFILES_AT_BOOT;

	if (r <= 0)
		return r;
	if (must_last)
		r = dbt_err_refuse(err,
		                   "'%s' is emptied %s%s by systemd-tmpfiles (%s line %u: %s): the "
		                   "original stays; "
		                   "a directory of its own on that filesystem would do",
		                   target, at_boot ? "at boot" : "by age, after ",
		                   at_boot ? "" : hit.age, hit.file, hit.line, hit.text);
	else
		dbt_ctx_log(ctx, DBT_LOG_WARNING,
		            "'%s' is emptied %s%s by systemd-tmpfiles (%s line %u: %s): the path "
		            "then leads "
		            "nowhere until 'dbtier recover' returns to the kept original; a "
		            "directory of its own "
		            "on that filesystem is safer",
		            target, at_boot ? "at boot" : "by age, after ", at_boot ? "" : hit.age,
		            hit.file, hit.line, hit.text);
	dbt_tmpfiles_hit_release(&hit);
	return r < 0 ? r : 0;
}

static int check_not_ram(const struct dbt_ctx *ctx, const char *target, int fd, struct dbt_err *err)
{
	struct dbt_mounts *mounts = NULL;
	struct dbt_place place = { 0 };
	int r = dbt_mounts_new(ctx, &mounts, err);

	if (r == 0 && dbt_place_of_fd(ctx, mounts, fd, NULL, &place, err) < 0)
		r = dbt_err_wrap(err, "'%s'", target);
	if (r == 0 && place.ram)
		r = dbt_err_refuse(err,
		                   "'%s' is in memory (%s) and gone after a reboot: the original "
		                   "stays; promote it to "
		                   "a disk to reclaim it",
		                   target, place.fstype);
	dbt_place_release(&place);
	dbt_mounts_free(mounts);
	return r;
}

int dbt_check_durable_target(const struct dbt_ctx *ctx, const char *target, struct dbt_err *err)
{
	dbt_autoclose int fd =
		ctx->sys->openat(AT_FDCWD, target, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return dbt_err_refuse(err, "the target directory '%s' cannot be opened: %s", target,
		                      dbt_err_text(fd));
	r = check_not_ram(ctx, target, fd, err);
	return r == 0 ? dbt_check_cleaner(ctx, target, true, err) : r;
}
