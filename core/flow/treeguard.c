#include "base/cleanup.h"
#include "flow/tree.h"
#include "sys/lease.h"
#include "sys/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Open files that a process needs besides. */
enum { OTHER_FILES = 128, MAX_HELD = 65536 };

int dbt_tree_check_processes(const struct dbt_ctx *ctx, int fd, const char *path,
                             struct dbt_err *err)
{
	struct dbt_procs users = { 0 };
	struct dbt_ident ident;
	int r = dbt_ident_fd(ctx, fd, &ident);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", path);
	r = dbt_procs_users(ctx, &ident, path, &users, err);
	if (r < 0)
		return dbt_err_wrap(err, "'%s'", path);
	for (size_t i = 0; r == 0 && i < users.n; i++)
		if (users.items[i].how & DBT_PROC_WRITES)
			r = dbt_err_refuse(err,
			                   "process %d (%s) has a file in '%s' open for writing: "
			                   "wait for it to end",
			                   users.items[i].pid, users.items[i].name, path);
	dbt_procs_release(&users);
	return r;
}

/* --- leases --------------------------------------------------------------------------------------------- */

struct taker {
	struct dbt_tree_guard guard;
	const char *path;
	size_t room;  /* how many leases may be kept */
	bool granted; /* false: the filesystem grants none, or not to this user */
};

/* Leases cost an open file each: as many as this process may have. */
static size_t room_for_leases(void)
{
	struct rlimit limit;
	rlim_t most;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	most = limit.rlim_max < MAX_HELD ? limit.rlim_max : MAX_HELD;
	if (limit.rlim_cur < most) {
		limit.rlim_cur = most;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
			return 0;
	}
	if (limit.rlim_cur <= OTHER_FILES)
		return 0;
	return limit.rlim_cur > MAX_HELD ? MAX_HELD : (size_t)limit.rlim_cur - OTHER_FILES;
}

/* Takes a lease on an open file, and keeps it with the descriptor while there is room. */
static int take_one(struct taker *t, int fd, const char *inner, struct dbt_err *err)
{
	const char *why = NULL;
	int r = dbt_lease_take(t->guard.ctx, fd, &why);

	if (r == -EAGAIN)
		r = dbt_err_refuse(err, "'%s/%s' is open for writing: wait for the writer to end",
		                   t->path, inner);
	else if (r < 0)
		r = dbt_err_sys(err, r, "cannot take a lease on '%s/%s'", t->path, inner);
	else if (r == 0)
		t->granted = false;
	if (r == 1 && t->guard.fds && t->guard.n < t->room) {
		t->guard.fds[t->guard.n++] = fd;
		return 0;
	}
	if (r == 1)
		dbt_lease_drop(t->guard.ctx, fd);
	(void)close(fd);
	return r < 0 ? r : 0;
}

static int take_at(struct taker *t, int dirfd, const char *name, const char *inner,
                   struct dbt_err *err)
{
	int fd;

	if (!t->granted)
		return 0;
	fd = t->guard.ctx->sys->openat(
		dirfd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0);
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s/%s'", t->path, inner);
	return take_one(t, fd, inner, err);
}

static int visit(void *data, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	return S_ISREG(v->ident.mode) ? take_at(data, v->dirfd, v->name, v->path, err) : 0;
}

static int take_listed(struct taker *t, int fd, const char *list, struct dbt_err *err)
{
	struct dbt_tree_dirs dirs = { .ctx = t->guard.ctx, .root_fd = fd, .fd = -1 };
	struct dbt_tree_reader reader = { 0 };
	struct dbt_tree_entry e;
	int r = dbt_tree_reader_open(list, &reader, err);

	if (r == 0) {
		t->room = room_for_leases();
		if (t->room > reader.n_all)
			t->room = reader.n_all;
		t->guard.fds = calloc(t->room ? t->room : 1, sizeof(*t->guard.fds));
		if (!t->guard.fds)
			r = dbt_err_sys(err, -ENOMEM, "cannot guard '%s'", t->path);
	}
	while (r == 0 && (r = dbt_tree_reader_next(&reader, &e, err)) == 1) {
		const char *name;
		int dirfd;

		r = 0;
		if (e.kind != 'f')
			continue;
		dirfd = dbt_tree_dirs_of(&dirs, e.path, &name);
		r = dirfd < 0 ? dbt_err_sys(err, dirfd, "cannot open the directory of '%s/%s'",
		                            t->path, e.path)
		              : take_at(t, dirfd, name, e.path, err);
	}
	dbt_tree_dirs_release(&dirs);
	dbt_tree_reader_release(&reader);
	return r;
}

int dbt_tree_guard_take(const struct dbt_ctx *ctx, int fd, const char *path, const char *list,
                        struct dbt_tree_guard *ret, struct dbt_err *err)
{
	struct taker t = { .guard = { .ctx = ctx }, .path = path, .granted = true };
	const struct dbt_tree_walk walk = { .ctx = ctx, .shown = path, .visit = visit, .data = &t };
	int r = list ? take_listed(&t, fd, list, err) : dbt_tree_walk(&walk, fd, err);

	/* Leases see every writer, of whatever user; /proc names it, and sees those without a lease. */
	if (r == 0)
		r = dbt_tree_check_processes(ctx, fd, path, err);
	if (r < 0) {
		dbt_tree_guard_release(&t.guard);
		return r;
	}
	if (!t.granted)
		dbt_ctx_log(ctx, DBT_LOG_DETAIL,
		            "no leases on the files of '%s': looking for writers in /proc", path);
	*ret = t.guard;
	return 0;
}

bool dbt_tree_guard_is_unbroken(const struct dbt_tree_guard *guard)
{
	for (size_t i = 0; i < guard->n; i++)
		if (dbt_lease_broken(guard->ctx, guard->fds[i]))
			return false;
	return true;
}

void dbt_tree_guard_release(struct dbt_tree_guard *guard)
{
	for (size_t i = 0; i < guard->n; i++) {
		dbt_lease_drop(guard->ctx, guard->fds[i]);
		(void)close(guard->fds[i]);
	}
	free(guard->fds);
	*guard = (struct dbt_tree_guard){ 0 };
}
