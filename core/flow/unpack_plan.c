#include "base/buf.h"
#include "base/cleanup.h"
#include "flow/checks.h"
#include "flow/measure.h"
#include "flow/unpack.h"
#include "flow/unpack_sums.h"
#include "flow/unpack_work.h"
#include "move/archive.h"
#include "survey/dbkind.h"
#include "survey/exports.h"
#include "survey/mounts.h"
#include "sys/io.h"
#include "sys/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int out_of_memory(struct dbt_err *err)
{
	return dbt_err_sys(err, -ENOMEM, "cannot plan");
}

/* --- what is an archive --------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The length of a name without the ending of an archive; 0 where it has none. */
static size_t stem_len(const char *name)
{
	static const char *const endings[] = { ".tar.gz",  ".tar.xz", ".tar.zst", ".tar.bz2",
		                               ".tar.lz4", ".tgz",    ".txz",     ".tzst",
		                               ".tbz2",    ".tbz",    ".tar",     ".zip",
		                               ".7z" };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t end = strlen(endings[i]);

		if (len > end && strcmp(name + len - end, endings[i]) == 0)
			return len - end;
	}
	return 0;
}

/* Opens it and asks for its first entry: packed files that hold no tar archive are none. */
static bool holds_entries(const struct dbt_ctx *ctx, int fd, const struct dbt_ident *ident,
                          const char *path)
{
	const struct dbt_archive_opts opts = { .packed.shown = path, .unpacker.threads = 1 };
	struct dbt_archive *archive = NULL;
	struct dbt_entry entry;
	bool yes = false;

	if (dbt_archive_new(ctx, fd, ident, &opts, &archive, NULL) == 0)
		yes = dbt_archive_next(archive, &entry, NULL) == 1;
	dbt_archive_free(archive);
	return yes;
}

static bool is_archive(const struct dbt_ctx *ctx, const char *path)
{
	dbt_autoclose int fd =
		ctx->sys->openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	unsigned char head[512];
	struct dbt_ident ident;
	ssize_t got;

	if (fd < 0 || dbt_ident_fd(ctx, fd, &ident) < 0 || !S_ISREG(ident.mode))
		return false;
	got = dbt_io_pread(ctx, fd, head, sizeof(head), 0);
	/* One that is damaged in its first bytes is an archive by its name. */
	return got > 0 && dbt_archive_magic(head, (size_t)got) &&
	       (stem_len(base_name(path)) > 0 || holds_entries(ctx, fd, &ident, path));
}

int dbt_unpack_is_archive(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
                          char **ret)
{
	dbt_autofree char *path = strdup(what);
	struct dbt_scan_names names = { 0 };
	struct dbt_ident ident;

	if (!path)
		return -ENOMEM;
	if (dbt_ident_of(ctx, AT_FDCWD, path, &ident) == -ENOENT && ledger && !strchr(what, '/') &&
	    dbt_ledger_find_names(ledger, what, &names, NULL) == 0 && names.n > 0) {
		free(path);
		path = strdup(names.items[0].path);
		for (size_t i = 1; path && i < names.n; i++)
			if (strcmp(names.items[i].path, path) != 0)
				path[0] = '\0'; /* several: dbt_select says so */
	}
	dbt_scan_names_release(&names);
	if (!path)
		return -ENOMEM;
	if (!is_archive(ctx, path))
		return 0;
	*ret = path;
	path = NULL;
	return 1;
}

/* --- names ---------------------------------------------------------------------------------------------- */

/* "nr.000.tar.gz" is "nr.000". */
static char *stem(const char *path)
{
	const char *name = base_name(path);
	size_t len = stem_len(name);

	return len > 0 ? strndup(name, len) : strdup(name);
}

/* The number of a volume at its end cut off: "nr.000" becomes "nr". True when there was one. */
static bool cut_number(char *name)
{
	char *dot = strrchr(name, '.');

	if (!dot || dot == name || strlen(dot + 1) < 2 ||
	    strspn(dot + 1, "0123456789") != strlen(dot + 1))
		return false;
	*dot = '\0';
	return true;
}

bool dbt_unpack_same_set(const char *a, const char *b)
{
	dbt_autofree char *x = stem(a), *y = stem(b);
	size_t dir_a = (size_t)(base_name(a) - a), dir_b = (size_t)(base_name(b) - b);

	return x && y && dir_a == dir_b && strncmp(a, b, dir_a) == 0 && cut_number(x) &&
	       cut_number(y) && strcmp(x, y) == 0;
}

/* --- the draft ------------------------------------------------------------------------------------------ */

struct dir {
	int fd;
	char *path; /* canonical */
	struct dbt_place place;
};

struct draft {
	const struct dbt_ctx *ctx;
	const struct dbt_unpack_opts *opts;
	struct dbt_at *archives;
	size_t n;
	char *name;
	struct dir hot, cold; /* cold.fd -1: there is none */
	struct dbt_mounts *mounts;
	struct dbt_promotion p;
};

static int open_dir(struct draft *d, const char *path, struct dir *ret, struct dbt_err *err)
{
	int r;

	ret->fd = d->ctx->sys->openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (ret->fd < 0)
		return dbt_err_sys(err, ret->fd, "cannot use '%s' as target directory", path);
	r = dbt_fd_path(ret->fd, &ret->path);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot resolve '%s'", path);
	if (faccessat(ret->fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return dbt_err_refuse(err, "the target directory '%s' is not writable: %s",
		                      ret->path, dbt_err_text(errno));
	r = dbt_check_target_dir(d->ctx, ret->fd, ret->path, err);
	if (r == 0)
		r = dbt_place_of_fd(d->ctx, d->mounts, ret->fd, NULL, &ret->place, err);
	return r;
}

static int open_dirs(struct draft *d, struct dbt_err *err)
{
	const char *cold = d->opts->cold_to;
	dbt_autofree char *beside = NULL;
	int r = dbt_mounts_new(d->ctx, &d->mounts, err);

	if (r == 0)
		r = open_dir(d, d->opts->plan.target, &d->hot, err);
	if (r < 0 || (d->opts->plan.all_files && !cold))
		return r;
	if (!cold) {
		r = dbt_fd_path(d->archives[0].dirfd, &beside);
		if (r < 0)
			return dbt_err_sys(err, r, "cannot resolve the directory of '%s'",
			                   d->archives[0].shown);
		cold = beside;
	}
	return open_dir(d, cold, &d->cold, err);
}

static int resolve_archives(struct draft *d, char *const *archives, size_t n, struct dbt_err *err)
{
	int r = 0;

	d->archives = calloc(n, sizeof(*d->archives));
	if (!d->archives)
		return out_of_memory(err);
	for (; r == 0 && d->n < n; d->n += r == 0)
		r = dbt_at_resolve(d->ctx, archives[d->n], &d->archives[d->n], err);
	if (r < 0)
		return r;
	d->name = stem(d->archives[0].shown);
	if (!d->name)
		return out_of_memory(err);
	if (n > 1)
		(void)cut_number(d->name);
	if (d->name[0] == '.' || d->name[0] == '\0')
		return dbt_err_refuse(
			err, "'%s' has no name that a database could be called by: rename it",
			d->archives[0].shown);
	return 0;
}

/* --- the intent ----------------------------------------------------------------------------------------- */

static int fill_member(struct dbt_pmember *m, enum dbt_role role, char *path, const char *part)
{
	m->role = role;
	m->path = path;
	m->copy = path ? strdup(path) : NULL;
	m->kept = strdup("");
	m->part = strdup(part);
	return m->path && m->copy && m->kept && m->part ? 0 : -ENOMEM;
}

static char *below(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) < 0 ? NULL : path;
}

void dbt_unpack_part(const struct dbt_promotion *p, unsigned number,
                     char out[DBT_UNPACK_PART_BYTES])
{
	(void)snprintf(out, DBT_UNPACK_PART_BYTES, ".dbtier-%s-%u.part", p->token, number);
}

static int fill_root(struct draft *d, const struct dir *dir, unsigned number, struct dbt_err *err)
{
	struct dbt_pmember *m = &d->p.members[d->p.n_members++];
	char part[DBT_UNPACK_PART_BYTES];
	struct dbt_ident there;
	int r;

	dbt_unpack_part(&d->p, number, part);
	r = fill_member(m, DBT_ROLE_ROOT, below(dir->path, d->name), part);
	if (r < 0)
		return out_of_memory(err);
	r = dbt_ident_of(d->ctx, dir->fd, d->name, &there);
	if (r == 0)
		return dbt_err_refuse(err, "'%s' exists: move it away, or choose another directory",
		                      m->path);
	return r == -ENOENT ? 0 : dbt_err_sys(err, r, "cannot look at '%s'", m->path);
}

static int fill_promotion(struct draft *d, struct dbt_err *err)
{
	struct dbt_promotion *p = &d->p;
	struct dbt_ident target = { 0 };
	int r = dbt_flow_token(d->ctx, p->token, err);

	if (r == 0 && (r = dbt_ident_fd(d->ctx, d->hot.fd, &target)) < 0)
		(void)dbt_err_sys(err, r, "cannot look at '%s'", d->hot.path);
	if (r < 0)
		return r;
	p->kind = DBT_KIND_ARCHIVE;
	p->state = DBT_STATE_PLANNED;
	p->name = strdup(d->name);
	p->format = strdup("archive");
	p->path = below(d->cold.fd >= 0 ? d->cold.path : d->hot.path, d->name);
	p->target = strdup(d->hot.path);
	p->target_mount = strdup(d->hot.place.mount);
	p->target_uuid = d->hot.place.fs_uuid ? strdup(d->hot.place.fs_uuid) : NULL;
	p->target_ino = target.ino;
	p->made_dir = below(d->hot.path, d->name);
	p->is_set = true;
	p->members = calloc(d->n + 2, sizeof(*p->members));
	if (!p->name || !p->format || !p->path || !p->target || !p->target_mount || !p->made_dir ||
	    !p->members)
		return out_of_memory(err);
	for (size_t i = 0; i < d->n; i++)
		if (fill_member(&p->members[p->n_members++], DBT_ROLE_ARCHIVE,
		                strdup(d->archives[i].shown), "") < 0)
			return out_of_memory(err);
	r = fill_root(d, &d->hot, 0, err);
	return r == 0 && d->cold.fd >= 0 ? fill_root(d, &d->cold, 2, err) : r;
}

/* --- checks --------------------------------------------------------------------------------------------- */

/* A regular file that nobody is still writing, by a name that is no link. */
static int check_archive(struct draft *d, size_t i, struct dbt_err *err)
{
	const struct dbt_at *at = &d->archives[i];
	struct dbt_pmember *m = &d->p.members[i];
	struct dbt_unpack_sums sums;
	int r = dbt_at_ident(d->ctx, at, &m->source);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", at->shown);
	if (!S_ISREG(m->source.mode))
		return dbt_err_refuse(err, "'%s' is no regular file: name the archive itself",
		                      at->shown);
	r = dbt_check_no_writer(d->ctx, at, err);
	return r == 0 ? dbt_unpack_sums_find(d->ctx, at, &sums, err) : r;
}

static int check_exports(struct draft *d, struct dbt_err *err)
{
	dbt_autofree char *line = NULL;
	int r = d->opts->plan.force ? 0 : dbt_exports_find(d->ctx, d->cold.path, &line);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot read the exports of this machine");
	if (r > 0)
		return dbt_err_refuse(
			err,
			"'%s' is exported to other machines (%s), which would see links that "
			"lead nowhere; --force does it all the same",
			d->cold.path, line);
	return 0;
}

/* Whoever may read the archive must get to what was unpacked. */
static int check_reach(struct draft *d, struct dbt_err *err)
{
	dbt_autofree char *problem = NULL;
	int r = dbt_reach_compare(d->ctx, &d->archives[0], d->hot.path, &problem, err);

	if (r == 0 && problem)
		r = dbt_err_refuse(err,
		                   "%s: choose a directory that all readers may enter, or give "
		                   "them permission",
		                   problem);
	return r;
}

/* The pair that matters is where the files would lie otherwise, and where the hot ones shall. */
static int check_places(struct draft *d, struct dbt_err *err)
{
	struct dbt_speeds from_speeds = { 0 }, to_speeds = { 0 };
	struct dbt_place from = { 0 };
	struct dbt_pair pair = { .from = &d->cold.place,
		                 .to = &d->hot.place,
		                 .from_speeds = &from_speeds,
		                 .to_speeds = &to_speeds,
		                 .source = d->cold.path,
		                 .target = d->hot.path,
		                 .force = d->opts->plan.force };
	int r = 0;

	if (d->cold.fd < 0) {
		r = dbt_place_of_fd(d->ctx, d->mounts, d->archives[0].dirfd, NULL, &from, err);
		from.network = false; /* no link will stand there */
		pair.from = &from;
		pair.source = d->archives[0].shown;
	}
	if (r == 0 && !d->opts->plan.force) {
		dbt_measure_files(d->ctx, d->opts->plan.state_dir, pair.from, NULL, 0, false,
		                  &from_speeds);
		dbt_measure_files(d->ctx, d->opts->plan.state_dir, pair.to, NULL, 0, false,
		                  &to_speeds);
	}
	if (r == 0)
		r = dbt_check_pair(d->ctx, &pair, err);
	dbt_place_release(&from);
	return r;
}

/* An archive with a directory at its end declares everything. The others tell while they are read. */
static int declared_bytes(struct draft *d, size_t i, uint64_t *hot, uint64_t *cold,
                          struct dbt_err *err)
{
	dbt_autoclose int fd = dbt_at_open(d->ctx, &d->archives[i], O_RDONLY | O_NONBLOCK, 0);
	const struct dbt_archive_opts opts = { .packed.shown = d->archives[i].shown,
		                               .unpacker.threads = 1 };
	struct dbt_archive *archive = NULL;
	struct dbt_entry entry;
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", d->archives[i].shown);
	r = dbt_archive_new(d->ctx, fd, &d->p.members[i].source, &opts, &archive, err);
	while (r == 0 && dbt_archive_has_directory(archive) &&
	       (r = dbt_archive_next(archive, &entry, err)) == 1) {
		uint64_t *sum = d->opts->plan.all_files || dbt_dbkind_moves(base_name(entry.name))
		                        ? hot
		                        : cold;

		r = __builtin_add_overflow(*sum, entry.size_bytes, sum)
		            ? dbt_err_refuse(err, "'%s' declares more bytes than there can be",
		                             d->archives[i].shown)
		            : 0;
	}
	dbt_archive_free(archive);
	return r;
}

static int check_space(struct draft *d, struct dbt_err *err)
{
	uint64_t hot = 0, cold = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++)
		r = declared_bytes(d, i, &hot, &cold, err);
	if (r == 0)
		r = dbt_check_space(d->ctx, d->hot.fd, d->hot.path, hot, 1,
		                    dbt_plan_reserve(&d->opts->plan, &d->hot.place), err);
	if (r == 0 && d->cold.fd >= 0)
		r = dbt_check_space(d->ctx, d->cold.fd, d->cold.path, cold, 1,
		                    dbt_default_reserve(&d->cold.place), err);
	return r;
}

static int make(struct draft *d, char *const *archives, size_t n, struct dbt_err *err)
{
	int r = resolve_archives(d, archives, n, err);

	if (r == 0)
		r = open_dirs(d, err);
	if (r == 0 && strpbrk(d->hot.path, "?#%"))
		r = dbt_err_refuse(
			err,
			"some databases are opened as a file: URI, which breaks on the '?', '#' or "
			"'%%' in '%s': choose another directory",
			d->hot.path);
	if (r == 0)
		r = fill_promotion(d, err);
	for (size_t i = 0; r == 0 && i < d->n; i++)
		r = check_archive(d, i, err);
	if (r == 0 && d->cold.fd >= 0)
		r = check_exports(d, err);
	if (r == 0)
		r = check_reach(d, err);
	/* Without a plain original to return to, a copy that a cleaner removes would be a path that leads nowhere. */
	if (r == 0)
		r = dbt_check_durable_target(d->ctx, d->hot.path, err);
	if (r == 0)
		r = check_places(d, err);
	return r == 0 ? check_space(d, err) : r;
}

static void release_dir(struct dir *dir)
{
	if (dir->fd >= 0)
		(void)close(dir->fd);
	free(dir->path);
	dbt_place_release(&dir->place);
}

int dbt_unpack_plan(const struct dbt_ctx *ctx, char *const *archives, size_t n,
                    const struct dbt_unpack_opts *opts, struct dbt_promotion *ret,
                    struct dbt_err *err)
{
	struct draft d = { .ctx = ctx, .opts = opts, .hot.fd = -1, .cold.fd = -1 };
	int r;

	if (opts->plan.reclaim)
		return dbt_err_refuse(
			err, "'%s' is an archive, which dbtier never deletes: leave out --reclaim",
			archives[0]);
	r = make(&d, archives, n, err);
	if (r == 0)
		*ret = d.p;
	else
		dbt_promotion_release(&d.p);
	for (size_t i = 0; i < d.n; i++)
		dbt_at_release(&d.archives[i]);
	free(d.archives);
	free(d.name);
	release_dir(&d.hot);
	release_dir(&d.cold);
	dbt_mounts_free(d.mounts);
	return r;
}
