#include "survey/scan.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/composite.h"
#include "survey/dbkind.h"
#include "survey/group.h"
#include "survey/recognise.h"
#include "survey/walk.h"
#include "sys/at.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* How far above a file the directory of a composite is looked for: bakta_db/amrfinderplus-db/DATE/
 * needs two. */
enum { MAX_ABOVE = 5 };

static const struct dbt_scan_opts no_opts;

static int visit_directory(void *data, struct dbt_dir *dir)
{
	return dbt_recognise(dir, data);
}

static int survey(const struct dbt_ctx *ctx, int fd, const char *path,
                  const struct dbt_scan_opts *opts, bool flat, struct dbt_scan_result *result,
                  struct dbt_found_vec *found)
{
	struct dbt_walk walk = { .ctx = ctx,
		                 .opts = opts ? opts : &no_opts,
		                 .result = result,
		                 .visit = visit_directory,
		                 .data = found,
		                 .flat = flat };

	return dbt_walk_tree(&walk, fd, path);
}

/* ---- one inode, several names ---- */

struct inode_use {
	uint64_t dev, ino;
	bool followed;
	size_t db; /* index, in the order of paths */
};

static int by_use(const void *a, const void *b)
{
	const struct inode_use *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	if (x->followed != y->followed) /* a file goes before the links to it */
		return x->followed ? 1 : -1;
	return (x->db > y->db) - (x->db < y->db);
}

static int add_note(struct dbt_database *db, const char *text, const char *path)
{
	char *note;

	if (asprintf(&note, "%s%s%s '%s'", db->note ? db->note : "", db->note ? "; " : "", text,
	             path) < 0)
		return -ENOMEM;
	free(db->note);
	db->note = note;
	return 0;
}

struct uses {
	struct inode_use *items;
	size_t n, cap;
};

/* Every member that may have another name, sorted by inode. */
static int collect_uses(const struct dbt_found_vec *found, bool follow, struct uses *uses)
{
	for (size_t i = 0; i < found->n; i++)
		for (size_t m = 0; m < found->items[i].db.n_members; m++) {
			const struct dbt_member *member = &found->items[i].db.members[m];
			struct inode_use *use;

			if (member->nlink < 2 && (!follow || member->ino == 0))
				continue;
			use = dbt_vec_push(uses);
			if (!use)
				return -ENOMEM;
			*use = (struct inode_use){ .dev = member->dev,
				                   .ino = member->ino,
				                   .followed = member->followed,
				                   .db = i };
		}
	if (uses->n > 1)
		qsort(uses->items, uses->n, sizeof(uses->items[0]), by_use);
	return 0;
}

/* How many members of a database are names for those of another one, and of which. */
struct shared {
	size_t members, with;
};

static void count_shared(const struct uses *uses, struct shared *shared)
{
	for (size_t i = 1, first = 0; i < uses->n; i++) {
		const struct inode_use *a = &uses->items[first], *b = &uses->items[i];

		if (a->dev != b->dev || a->ino != b->ino) {
			first = i;
		} else if (a->db != b->db) {
			shared[b->db].members++;
			shared[b->db].with = a->db;
		}
	}
}

/* Drops databases that consist of other names for the files of another one. */
static int drop_second_names(struct dbt_found_vec *found, bool follow)
{
	struct shared *shared = calloc(found->n ? found->n : 1, sizeof(*shared));
	struct uses uses = { 0 };
	int r = shared ? collect_uses(found, follow, &uses) : -ENOMEM;

	if (r == 0)
		count_shared(&uses, shared);
	for (size_t i = 0; r == 0 && i < found->n; i++) {
		struct dbt_database *db = &found->items[i].db;

		if (shared[i].members == 0 || shared[i].members < db->n_members)
			continue;
		r = add_note(&found->items[shared[i].with].db,
		             db->followed ? "linked also as" : "hard-linked also as", db->path);
		dbt_database_release(db);
	}
	free(shared);
	free(uses.items);
	return r;
}

/* ---- the result ---- */

static int by_path(const void *a, const void *b)
{
	const struct dbt_found *x = a, *y = b;

	if (!x->db.path || !y->db.path) /* absorbed ones last */
		return (x->db.path == NULL) - (y->db.path == NULL);
	if (strcmp(x->db.path, y->db.path) != 0)
		return strcmp(x->db.path, y->db.path);
	return strcmp(x->db.format, y->db.format);
}

static bool is_wanted(const struct dbt_database *db, const struct dbt_scan_opts *opts)
{
	if (!opts)
		return true;
	if (db->size_bytes < opts->min_size_bytes)
		return false;
	for (size_t i = 0; i < opts->n_formats; i++)
		if (strcmp(opts->formats[i], db->format) == 0)
			return true;
	return opts->n_formats == 0;
}

/* Joins, sorts and hands over the databases; found keeps what was left out. */
static int settle(struct dbt_found_vec *found, const struct dbt_scan_opts *opts,
                  struct dbt_scan_result *result)
{
	int r = dbt_composites_join(found);

	if (r < 0)
		return r;
	if (found->n > 1)
		qsort(found->items, found->n, sizeof(found->items[0]), by_path);
	while (found->n > 0 && !found->items[found->n - 1].db.path)
		found->n--;
	r = drop_second_names(found, opts && opts->follow);
	if (r < 0)
		return r;
	result->databases = calloc(found->n ? found->n : 1, sizeof(*result->databases));
	if (!result->databases)
		return -ENOMEM;
	for (size_t i = 0; i < found->n; i++) {
		struct dbt_database *db = &found->items[i].db;

		if (!db->path || !is_wanted(db, opts))
			continue;
		result->databases[result->n_databases++] = *db;
		*db = (struct dbt_database){ 0 };
	}
	return 0;
}

static int scan_tree(const struct dbt_ctx *ctx, int fd, const char *path, bool flat,
                     const struct dbt_scan_opts *opts, struct dbt_scan_result *result)
{
	struct dbt_found_vec found = { 0 };
	int r = survey(ctx, fd, path, opts, flat, result, &found);

	if (r == 0)
		r = dbt_composites_fill(ctx, opts ? opts : &no_opts, &found, result);
	if (r == 0)
		r = settle(&found, opts, result);
	dbt_found_release(&found);
	return r;
}

void dbt_scan_result_release(struct dbt_scan_result *result)
{
	for (size_t i = 0; i < result->n_databases; i++)
		dbt_database_release(&result->databases[i]);
	free(result->databases);
	for (size_t i = 0; i < result->n_troubles; i++)
		free(result->troubles[i].path);
	free(result->troubles);
	free(result->root);
	*result = (struct dbt_scan_result){ 0 };
}

/* ---- whose file is it ---- */

static bool owns(const struct dbt_database *db, const char *path)
{
	if (strcmp(db->path, path) == 0)
		return true;
	for (size_t i = 0; i < db->n_members; i++)
		if (strcmp(db->members[i].path, path) == 0)
			return true;
	return false;
}

/* Scans the directory and takes the database of this path out of the result. */
static int owner_in(const struct dbt_ctx *ctx, int fd, const char *dir, bool flat, const char *path,
                    const struct dbt_scan_opts *opts, struct dbt_database *ret)
{
	struct dbt_scan_opts all = opts ? *opts : no_opts;
	struct dbt_scan_result result = { 0 };
	int r;

	all.min_size_bytes = 0;
	all.n_formats = all.n_exclude = 0;
	all.follow = false; /* promote moves what is there, not what a link leads to */
	r = scan_tree(ctx, fd, dir, flat, &all, &result);
	if (r == 0) {
		r = result.partial ? -ECANCELED : -ENOENT;
		for (size_t i = 0; i < result.n_databases; i++) {
			if (!owns(&result.databases[i], path))
				continue;
			*ret = result.databases[i];
			result.databases[i] = (struct dbt_database){ 0 };
			r = 0;
			break;
		}
	}
	dbt_scan_result_release(&result);
	return r;
}

/* Is this the directory of a composite that path is part of? Only its own files are looked at. */
static int composite_at(const struct dbt_ctx *ctx, int fd, const char *dir, const char *path,
                        const struct dbt_scan_opts *opts)
{
	struct dbt_scan_result result = { 0 };
	struct dbt_found_vec found = { 0 };
	const char *rel = dbt_path_below(dir, path);
	bool maybe = false, is = false;
	int r = 0;

	for (const struct dbt_format *const *f = dbt_formats; *f && !maybe; f++) {
		struct statx stx;

		if ((*f)->shape != DBT_SHAPE_COMPOSITE)
			continue;
		for (const struct dbt_lead *lead = (*f)->leads; lead->pattern; lead++)
			maybe |= strpbrk(lead->pattern, "*#") ||
			         ctx->sys->statx(fd, lead->pattern, 0, STATX_TYPE, &stx) == 0;
	}
	if (!maybe || !rel)
		return 0;
	r = survey(ctx, fd, dir, opts, true, &result, &found);
	for (size_t i = 0; r == 0 && i < found.n; i++) {
		struct dbt_found *f = &found.items[i];

		if (f->format->shape != DBT_SHAPE_COMPOSITE)
			continue;
		is |= owns(&f->db, path);
		for (const char *const *p = f->format->parts; p && *p; p++)
			is |= fnmatch(*p, rel, 0) == 0;
	}
	dbt_found_release(&found);
	dbt_scan_result_release(&result);
	return r < 0 ? r : is;
}

/* Looks in the directories from the given one upwards; the topmost composite wins. dir is cut
 * shorter in the process. */
static int owner_above(const struct dbt_ctx *ctx, char *dir, const char *path,
                       const struct dbt_scan_opts *opts, struct dbt_database *ret)
{
	dbt_autofree char *best = NULL;
	dbt_autoclose int fd = -1;

	for (unsigned up = 0; up <= MAX_ABOVE && strcmp(dir, "/") != 0; up++) {
		dbt_autoclose int at = ctx->sys->openat(
			AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
		int r = at < 0 ? 0 : composite_at(ctx, at, dir, path, opts);
		char *slash;

		if (r < 0)
			return r;
		if (r == 1) {
			free(best);
			best = strdup(dir);
			if (!best)
				return -ENOMEM;
		}
		slash = strrchr(dir, '/');
		if (!slash || slash == dir)
			break;
		*slash = '\0';
	}
	if (!best)
		return -ENOENT;
	fd = ctx->sys->openat(AT_FDCWD, best, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? fd : owner_in(ctx, fd, best, false, path, opts, ret);
}

int dbt_scan_owner(const struct dbt_ctx *ctx, const char *path, const struct dbt_scan_opts *opts,
                   struct dbt_database *ret, struct dbt_err *err)
{
	struct dbt_at at = { .dirfd = -1 };
	dbt_autofree char *dir = NULL;
	dbt_autoclose int self = -1;
	int r = dbt_at_resolve(ctx, path, &at, err);

	if (r < 0)
		return r;
	/* A directory may be a database itself. */
	self = ctx->sys->openat(at.dirfd, at.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
	                        0);
	dir = strdup(at.shown);
	if (!dir) {
		r = -ENOMEM;
	} else {
		if (self < 0 && strrchr(dir, '/') != dir)
			*strrchr(dir, '/') = '\0';
		r = owner_above(ctx, dir, at.shown, opts, ret);
	}
	if (r == -ENOENT && self >= 0)
		r = owner_in(ctx, self, at.shown, true, at.shown, opts, ret);
	if (r == -ENOENT) {
		free(dir);
		dir = NULL;
		r = dbt_fd_path(at.dirfd, &dir);
		if (r == 0)
			r = owner_in(ctx, at.dirfd, dir, true, at.shown, opts, ret);
	}
	if (r == -ENOENT)
		(void)dbt_err_set(err, DBT_ERR_UNKNOWN, r,
		                  "'%s' is no database that is known here, nor a member of one",
		                  at.shown);
	else if (r < 0)
		(void)dbt_err_sys(err, r, "cannot look at '%s'", at.shown);
	dbt_at_release(&at);
	return r;
}

static int scan_file(const struct dbt_ctx *ctx, const char *path, const struct dbt_scan_opts *opts,
                     struct dbt_scan_result *result, struct dbt_err *err)
{
	dbt_autofree char *real = opts && opts->follow ? realpath(path, NULL) : NULL;
	int r;

	result->databases = calloc(1, sizeof(*result->databases));
	if (!result->databases)
		return dbt_err_sys(err, -ENOMEM, "cannot scan '%s'", path);
	r = dbt_scan_owner(ctx, real ? real : path, opts, &result->databases[0], err);
	if (r == 0 && !is_wanted(&result->databases[0], opts))
		dbt_database_release(&result->databases[0]);
	else if (r == 0)
		result->n_databases = 1;
	result->files_seen = 1;
	if (r == -ENOENT) { /* a file that is none is an answer, not a failure */
		dbt_err_clear(err);
		r = 0;
	}
	return r;
}

int dbt_scan(const struct dbt_ctx *ctx, const char *path, const struct dbt_scan_opts *opts,
             struct dbt_scan_result *ret, struct dbt_err *err)
{
	struct dbt_scan_result result = { 0 };
	dbt_autoclose int fd = ctx->sys->openat(AT_FDCWD, path,
	                                        O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
	struct statx stx;
	int r = 0;

	if (fd == -ENOTDIR &&
	    ctx->sys->statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx) == 0) {
		r = scan_file(ctx, path, opts, &result, err);
	} else if (fd < 0) {
		return dbt_err_sys(err, fd, "cannot open '%s'", path);
	} else {
		r = dbt_fd_path(fd, &result.root);
		if (r == 0)
			r = scan_tree(ctx, fd, result.root, false, opts, &result);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot scan '%s'", path);
	}
	if (r < 0) {
		dbt_scan_result_release(&result);
		return r;
	}
	*ret = result;
	return 0;
}
