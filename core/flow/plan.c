#include "flow/plan.h"

#include "base/cleanup.h"
#include "flow/checks.h"
#include "flow/measure.h"
#include "flow/select.h"
#include "flow/tree.h"
#include "flow/wal.h"
#include "move/mark.h"
#include "survey/exports.h"
#include "survey/mounts.h"
#include "sys/journal.h"
#include "sys/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Everything that is looked at on the way to a plan. */
struct draft {
	const struct dbt_ctx *ctx;
	struct dbt_ledger *ledger;
	const struct dbt_plan_opts *opts;
	struct dbt_selection sel;
	int target_fd;
	char *target; /* canonical */
	struct dbt_mounts *mounts;
	struct dbt_place from, to;
	struct dbt_speeds from_speeds, to_speeds;
	struct dbt_promotions known; /* of the ledger */
	struct dbt_tree_facts tree;  /* of a directory */
	struct dbt_promotion p;
};

static int out_of_memory(struct dbt_err *err)
{
	return dbt_err_sys(err, -ENOMEM, "cannot plan");
}

/* --- the target ----------------------------------------------------------------------------------------- */

static int open_target(struct draft *d, struct dbt_err *err)
{
	const char *target = d->opts->target;
	int r;

	d->target_fd = d->ctx->sys->openat(AT_FDCWD, target, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (d->target_fd == -ENOENT)
		return dbt_err_sys(err, d->target_fd, "the target directory '%s' does not exist",
		                   target);
	if (d->target_fd < 0)
		return dbt_err_sys(err, d->target_fd, "cannot use '%s' as target directory",
		                   target);
	r = dbt_fd_path(d->target_fd, &d->target);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot resolve '%s'", target);
	if (faccessat(d->target_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return dbt_err_refuse(
			err,
			"the target directory '%s' is not writable (%s): choose another, or "
			"run it as a user who may write there",
			d->target, dbt_err_text(errno));
	return dbt_check_target_dir(d->ctx, d->target_fd, d->target, err);
}

static int find_places(struct draft *d, struct dbt_err *err)
{
	dbt_autoclose int fd = d->ctx->sys->openat(AT_FDCWD, d->sel.paths[0],
	                                           O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", d->sel.paths[0]);
	r = dbt_mounts_new(d->ctx, &d->mounts, err);
	if (r < 0)
		return r;
	r = dbt_place_of_fd(d->ctx, d->mounts, fd, NULL, &d->from, err);
	if (r < 0)
		return dbt_err_wrap(err, "'%s'", d->sel.paths[0]);
	r = dbt_place_of_fd(d->ctx, d->mounts, d->target_fd, NULL, &d->to, err);
	return r < 0 ? dbt_err_wrap(err, "'%s'", d->target) : 0;
}

/* A new verdict on a place, with what was measured. */
static int judge_again(struct draft *d, int fd, const struct dbt_speeds *speeds,
                       struct dbt_place *place, struct dbt_err *err)
{
	struct dbt_place judged;
	int r = dbt_place_of_fd(d->ctx, d->mounts, fd, speeds, &judged, err);

	if (r < 0)
		return dbt_err_wrap(err, "'%s'", d->sel.path);
	dbt_place_release(place);
	*place = judged;
	return 0;
}

/* Where the kind of device says nothing, the source is measured now; the target has nothing to measure yet, but
 * may be remembered. */
static int measure(struct draft *d, struct dbt_err *err)
{
	dbt_autoclose int fd = d->ctx->sys->openat(AT_FDCWD, d->sel.paths[0],
	                                           O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	bool probe = !d->opts->no_probe && !d->opts->force && d->from.tier == DBT_TIER_UNKNOWN;
	int r = 0;

	if (d->opts->force || fd < 0)
		return 0;
	dbt_measure_files(d->ctx, d->opts->state_dir, &d->from,
	                  (const char *const *)d->sel.paths + (d->sel.is_tree ? 1 : 0),
	                  d->sel.is_tree ? d->sel.n_probes : d->sel.n, probe, &d->from_speeds);
	dbt_measure_files(d->ctx, d->opts->state_dir, &d->to, NULL, 0, false, &d->to_speeds);
	if (d->from_speeds.measured_wall_ns)
		r = judge_again(d, fd, &d->from_speeds, &d->from, err);
	if (r == 0 && d->to_speeds.measured_wall_ns)
		r = judge_again(d, d->target_fd, &d->to_speeds, &d->to, err);
	return r;
}

/* Other machines would resolve the link on their own side. */
static int check_exports(struct draft *d, struct dbt_err *err)
{
	const char *shown = d->sel.is_tree ? d->sel.path : d->sel.dir;
	dbt_autofree char *line = NULL;
	int r = d->opts->force ? 0 : dbt_exports_find(d->ctx, shown, &line);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot read the exports of this machine");
	if (r > 0)
		return dbt_err_refuse(err,
		                      "'%s' is exported to other machines (%s), which would see a "
		                      "link that leads "
		                      "nowhere; --force does it all the same",
		                      shown, line);
	return 0;
}

static int check_reach(struct draft *d, const struct dbt_at *at, struct dbt_err *err)
{
	dbt_autofree char *problem = NULL;
	int r = dbt_reach_compare(d->ctx, at, d->target, &problem, err);

	if (r == 0 && problem)
		r = dbt_err_refuse(
			err,
			"%s: choose a directory that all readers may enter, or give them "
			"permission",
			problem);
	return r;
}

static int check_places(struct draft *d, struct dbt_err *err)
{
	const struct dbt_pair pair = {
		.from = &d->from,
		.to = &d->to,
		.from_speeds = &d->from_speeds,
		.to_speeds = &d->to_speeds,
		.source = d->sel.path,
		.target = d->target,
		.force = d->opts->force,
		.reclaim = d->opts->reclaim,
	};

	if (d->sel.uri_target && strpbrk(d->target, "?#%"))
		return dbt_err_refuse(err,
		                      "'%s' is opened by its tool as a file: URI, which breaks on "
		                      "the '?', '#' or "
		                      "'%%' in '%s': choose another directory",
		                      d->sel.path, d->target);
	/* The directories of a set are made like those that they stand for. */
	if (!d->sel.is_set &&
	    dbt_wal_check_readers(d->ctx, d->sel.path, d->target, d->opts->force, err) < 0)
		return err ? err->code : -EPERM;
	if (dbt_check_cleaner(d->ctx, d->target, d->opts->reclaim, err) < 0)
		return err ? err->code : -EPERM;
	return dbt_check_pair(d->ctx, &pair, err);
}

/* --- one file ------------------------------------------------------------------------------------------- */

static int fill_names(struct draft *d, size_t i, struct dbt_pmember *m, struct dbt_err *err)
{
	const char *base = strrchr(d->sel.names[i], '/');

	base = base ? base + 1 : d->sel.names[i];
	m->path = strdup(d->sel.paths[i]);
	if (asprintf(&m->kept, ".%s.dbtier-original", base) < 0)
		m->kept = NULL;
	if (asprintf(&m->part, ".dbtier-%s-%zu.part", d->p.token, i) < 0)
		m->part = NULL;
	if (asprintf(&m->copy, "%s/%s%s%s", strcmp(d->target, "/") == 0 ? "" : d->target,
	             d->sel.is_set ? d->sel.name : "", d->sel.is_set ? "/" : "",
	             d->sel.names[i]) < 0)
		m->copy = NULL;
	if (!m->path || !m->kept || !m->part || !m->copy)
		return out_of_memory(err);
	if (strlen(m->copy) >= PATH_MAX)
		return dbt_err_refuse(
			err,
			"the path of the copy of '%s' would be too long: choose a directory "
			"with a shorter path",
			m->path);
	return 0;
}

/* A copy of ours that waits for its removal is ours again, with what was recorded of it. */
static const struct dbt_pmember *find_waiting(const struct draft *d, const char *copy)
{
	for (size_t i = 0; i < d->known.n; i++)
		for (size_t j = 0; j < d->known.items[i].n_members; j++) {
			const struct dbt_pmember *m = &d->known.items[i].members[j];

			if (m->copy_left && strcmp(m->copy, copy) == 0)
				return m;
		}
	return NULL;
}

static int check_takeover(const struct dbt_pmember *m, const struct dbt_ident *there,
                          struct dbt_err *err)
{
	if (!S_ISREG(there->mode))
		return dbt_err_refuse(
			err,
			"'%s' exists and is not a regular file: move it away, or choose another "
			"directory",
			m->copy);
	if (dbt_ident_same_inode(there, &m->source, false))
		return dbt_err_refuse(
			err,
			"'%s' is the very file that is to be promoted: choose another "
			"directory",
			m->copy);
	if (there->nlink != 1)
		return dbt_err_refuse(
			err, "'%s' exists and has other names (hard links): move it away", m->copy);
	if ((there->mode & 022) ||
	    (there->uid != geteuid() && there->uid != m->source.uid && there->uid != 0))
		return dbt_err_refuse(err, "'%s' exists and others could write to it: move it away",
		                      m->copy);
	if (there->size_bytes != m->source.size_bytes)
		return dbt_err_refuse(
			err,
			"'%s' exists with another size: move it away, or choose another directory",
			m->copy);
	return 0;
}

/* A copy of a promotion in another ledger may be removed there at any time. */
static int check_mark(const struct draft *d, const struct dbt_pmember *m, const struct dbt_at *at,
                      struct dbt_err *err)
{
	dbt_autoclose int fd = dbt_at_open(d->ctx, at, O_RDONLY | O_NONBLOCK, 0);
	char token[DBT_MARK_BYTES];

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", m->copy);
	if (!dbt_mark_get(fd, token) ||
	    (d->ledger && dbt_ledger_has_token(d->ledger, token, NULL) == 1))
		return 0;
	return dbt_err_refuse(
		err,
		"'%s' is the copy of a promotion that another ledger records: choose another "
		"directory, or roll that one back",
		m->copy);
}

/* SQLite would replay what lies beside the copy into it. */
static int check_copy_journal(const struct draft *d, const struct dbt_pmember *m,
                              const struct dbt_at *at, struct dbt_err *err)
{
	dbt_autoclose int fd = d->ctx->sys->openat(
		AT_FDCWD, m->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	char name[DBT_JOURNAL_NAME_BYTES];

	if (fd < 0 || !dbt_journal_is_sqlite(fd) || !dbt_journal_beside(at->dirfd, at->name, name))
		return 0;
	return dbt_err_refuse(
		err,
		"'%s%s' lies where the copy shall stand, and SQLite would replay it into the copy: "
		"remove it, or choose another directory",
		m->copy, name + strlen(at->name));
}

/* What stands under the copy's name already is compared later, byte by byte. */
static int check_name_free(struct draft *d, struct dbt_pmember *m, struct dbt_err *err)
{
	const struct dbt_pmember *waiting;
	struct dbt_ident there;
	struct dbt_at at;
	int r = dbt_at_resolve_strict(d->ctx, m->copy, &at, err);

	if (r == -ENOENT) { /* the set's directory is not there yet */
		dbt_err_clear(err);
		return 0;
	}
	if (r < 0)
		return r;
	r = check_copy_journal(d, m, &at, err);
	if (r == 0) {
		r = dbt_at_ident(d->ctx, &at, &there);
		if (r == -ENOENT) {
			dbt_at_release(&at);
			return 0;
		}
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot look at '%s'", m->copy);
	}
	if (r == 0)
		r = check_takeover(m, &there, err);
	if (r == 0)
		r = check_mark(d, m, &at, err);
	dbt_at_release(&at);
	if (r < 0)
		return r;
	waiting = find_waiting(d, m->copy);
	m->taken_over = !(waiting && dbt_ident_same_content(&there, &waiting->copied, true, true));
	m->copied = there;
	return 0;
}

/* --- one directory -------------------------------------------------------------------------------------- */

static bool lies_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* What is promoted already within it, or what it is a part of. */
static int check_nested(const struct draft *d, const char *path, struct dbt_err *err)
{
	for (size_t i = 0; i < d->known.n; i++) {
		const struct dbt_promotion *p = &d->known.items[i];

		for (size_t j = 0; dbt_state_is_active(p->state) && j < p->n_members; j++) {
			const struct dbt_pmember *m = &p->members[j];

			if (d->sel.is_tree && lies_below(m->path, path))
				return dbt_err_refuse(
					err,
					"'%s' in it is promoted by itself (promotion %lld): roll "
					"that back first",
					m->path, (long long)p->id);
			if (dbt_promotion_is_tree(p) &&
			    (lies_below(path, m->copy) || lies_below(path, m->path)))
				return dbt_err_refuse(
					err,
					"'%s' is in the promoted directory '%s' (promotion %lld) "
					"and moved with it",
					path, m->path, (long long)p->id);
		}
	}
	return 0;
}

/* Nothing may stand under the name of the copy: a tree is not taken over. */
static int check_tree_name_free(struct draft *d, const struct dbt_pmember *m, struct dbt_err *err)
{
	struct dbt_ident there;
	struct dbt_at at;
	int r = dbt_at_resolve_strict(d->ctx, m->copy, &at, err);

	if (r < 0)
		return r;
	r = dbt_at_ident(d->ctx, &at, &there);
	if (r == 0)
		r = dbt_err_refuse(
			err,
			find_waiting(d, m->copy)
				? "'%s' is the copy of an earlier promotion that waits "
				  "for its readers to end: run 'dbtier recover' then, "
				  "or choose another directory"
				: "'%s' exists: move it away, or choose another directory",
			m->copy);
	else if (r == -ENOENT)
		r = 0;
	else
		r = dbt_err_sys(err, r, "cannot look at '%s'", m->copy);
	dbt_at_release(&at);
	return r;
}

static int check_tree(struct draft *d, const struct dbt_at *at, struct dbt_pmember *m,
                      struct dbt_err *err)
{
	dbt_autoclose int fd = -1;
	struct dbt_tree_guard guard = { 0 };
	int r = dbt_check_source_dir(d->ctx, at, &m->source, err);

	if (r < 0)
		return r;
	fd = dbt_at_open(d->ctx, at, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", at->shown);
	r = dbt_tree_check(d->ctx, fd, at->shown, &d->tree, err);
	if (r == 0 && d->tree.size_bytes == 0)
		r = dbt_err_refuse(err, "'%s' holds no bytes: there is nothing to gain", at->shown);
	if (r == 0)
		r = dbt_tree_guard_take(d->ctx, fd, at->shown, NULL, &guard, err);
	dbt_tree_guard_release(&guard);
	m->source.size_bytes = d->tree.size_bytes;
	return r;
}

static int plan_tree(struct draft *d, struct dbt_err *err)
{
	struct dbt_pmember *m = &d->p.members[0];
	struct dbt_at at;
	int r = fill_names(d, 0, m, err);

	if (r == 0)
		r = check_nested(d, m->path, err);
	if (r == 0)
		r = dbt_at_resolve_strict(d->ctx, m->path, &at, err);
	if (r < 0)
		return r;
	r = check_tree(d, &at, m, err);
	if (r == 0)
		r = check_reach(d, &at, err);
	dbt_at_release(&at);
	return r == 0 ? check_tree_name_free(d, m, err) : r;
}

static int plan_file(struct draft *d, size_t i, struct dbt_err *err)
{
	struct dbt_pmember *m = &d->p.members[i];
	struct dbt_at at;
	int r = fill_names(d, i, m, err);

	if (r == 0)
		r = check_nested(d, m->path, err);
	if (r == 0)
		r = dbt_at_resolve_strict(d->ctx, m->path, &at, err);
	if (r < 0)
		return r;
	r = dbt_check_source(d->ctx, &at, &m->source, err);
	if (r == 0)
		r = check_reach(d, &at, err);
	dbt_at_release(&at);
	return r == 0 ? check_name_free(d, m, err) : r;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

uint64_t dbt_plan_reserve(const struct dbt_plan_opts *opts, const struct dbt_place *place)
{
	if (!opts->reserve_set)
		return dbt_default_reserve(place);
	if (opts->reserve.percent > 0)
		return (uint64_t)((double)place->size_bytes * opts->reserve.percent / 100);
	return opts->reserve.bytes;
}

/* The bytes of a file that are not in holes. What is compressed counts in full: so it will be written. */
static uint64_t data_bytes(const struct dbt_ctx *ctx, const struct dbt_pmember *m)
{
	dbt_autoclose int fd = ctx->sys->openat(AT_FDCWD, m->path,
	                                        O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	uint64_t sum = 0, size = m->source.size_bytes;
	off_t at = 0;

	if (fd < 0 || m->source.blocks512 * 512 >= size)
		return size;
	while ((uint64_t)at < size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0)
			return errno == ENXIO ? sum : size;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole <= data)
			return size;
		sum += (uint64_t)(hole - data);
		at = hole;
	}
	return sum;
}

/* What an interrupted copy of the same file takes already: it is continued, or removed before this one begins. */
static uint64_t half_copy_bytes(const struct draft *d, const struct dbt_pmember *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < d->known.n; i++)
		for (size_t j = 0; d->known.items[i].state == DBT_STATE_COPYING &&
		                   j < d->known.items[i].n_members;
		     j++) {
			const struct dbt_pmember *half = &d->known.items[i].members[j];
			struct dbt_ident ident;
			struct dbt_at at;

			if (strcmp(half->copy, m->copy) != 0 ||
			    dbt_at_resolve_strict(d->ctx, half->copy, &at, NULL) < 0)
				continue;
			if (dbt_ident_of(d->ctx, at.dirfd, half->part, &ident) == 0)
				sum += ident.blocks512 * 512;
			dbt_at_release(&at);
		}
	return sum;
}

/* Only what is not there yet and not in holes takes space. */
static uint64_t bytes_needed(const struct draft *d)
{
	uint64_t sum = 0, there = 0;

	if (d->sel.is_tree)
		return d->tree.need_bytes;
	for (size_t i = 0; i < d->p.n_members; i++)
		if (d->p.members[i].copied.ino == 0) {
			sum += data_bytes(d->ctx, &d->p.members[i]);
			there += half_copy_bytes(d, &d->p.members[i]);
		}
	return sum > there ? sum - there : 0;
}

/* The directory of a set: to be made, or there already in trusted hands. */
static int note_set_dir(struct draft *d, struct dbt_err *err)
{
	struct dbt_ident like;
	struct dbt_at at;
	char *path = NULL;
	int r;

	if (!d->sel.is_set)
		return 0;
	if (asprintf(&path, "%s/%s", strcmp(d->target, "/") == 0 ? "" : d->target, d->sel.name) < 0)
		return out_of_memory(err);
	r = dbt_at_resolve_strict(d->ctx, path, &at, err);
	if (r == 0) {
		struct dbt_ident there;

		if (dbt_at_ident(d->ctx, &at, &there) == -ENOENT) {
			d->p.made_dir = path;
			path = NULL;
		} else {
			r = dbt_ident_of(d->ctx, AT_FDCWD, d->sel.dir, &like);
			if (r < 0)
				(void)dbt_err_sys(err, r, "cannot look at '%s'", d->sel.dir);
			else
				r = dbt_check_set_dir(d->ctx, &at, &like, err);
		}
		dbt_at_release(&at);
	}
	free(path);
	return r;
}

static int fill_promotion(struct draft *d, struct dbt_err *err)
{
	struct dbt_promotion *p = &d->p;
	struct dbt_ident target = { 0 };
	int r = dbt_flow_token(d->ctx, p->token, err);

	if (r == 0)
		r = dbt_ident_fd(d->ctx, d->target_fd, &target);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", d->target);
	p->name = strdup(d->sel.name);
	p->format = strdup(d->sel.format);
	p->path = strdup(d->sel.path);
	p->target = strdup(d->target);
	p->target_mount = strdup(d->to.mount);
	p->target_uuid = d->to.fs_uuid ? strdup(d->to.fs_uuid) : NULL;
	p->target_ino = target.ino;
	p->is_set = d->sel.is_set;
	p->reclaim = d->opts->reclaim;
	p->by_link = false;
	p->state = DBT_STATE_PLANNED;
	p->members = calloc(d->sel.n, sizeof(*p->members));
	p->n_members = p->members ? d->sel.n : 0;
	if (!p->name || !p->format || !p->path || !p->target || !p->target_mount || !p->members)
		return out_of_memory(err);
	return note_set_dir(d, err);
}

static int make(struct draft *d, const char *what, struct dbt_err *err)
{
	int r = dbt_select(d->ctx, d->ledger, what, d->opts->all_files, &d->sel, err);

	if (r == 0 && d->ledger)
		r = dbt_ledger_load(d->ledger, &d->known, err);
	if (r == 0)
		r = open_target(d, err);
	if (r == 0)
		r = find_places(d, err);
	if (r == 0)
		r = measure(d, err);
	if (r == 0)
		r = check_exports(d, err);
	if (r == 0)
		r = check_places(d, err);
	if (r == 0)
		r = fill_promotion(d, err);
	for (size_t i = 0; r == 0 && i < d->sel.n; i++)
		r = d->sel.is_tree ? plan_tree(d, err) : plan_file(d, i, err);
	if (r == 0)
		r = dbt_check_space(d->ctx, d->target_fd, d->target, bytes_needed(d),
		                    d->sel.is_tree ? d->tree.n_entries : d->p.n_members,
		                    dbt_plan_reserve(d->opts, &d->to), err);
	return r;
}

int dbt_plan_make(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
                  const struct dbt_plan_opts *opts, struct dbt_promotion *ret, struct dbt_err *err)
{
	struct draft d = { .ctx = ctx, .ledger = ledger, .opts = opts, .target_fd = -1 };
	int r = make(&d, what, err);

	if (r == 0 && d.sel.note)
		dbt_ctx_log(ctx, DBT_LOG_NOTE, "'%s': %s", d.sel.name, d.sel.note);
	if (r == 0)
		*ret = d.p;
	else
		dbt_promotion_release(&d.p);
	dbt_selection_release(&d.sel);
	dbt_place_release(&d.from);
	dbt_place_release(&d.to);
	dbt_mounts_free(d.mounts);
	dbt_promotions_release(&d.known);
	free(d.target);
	if (d.target_fd >= 0)
		(void)close(d.target_fd);
	return r;
}
