#include "sys/containers.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOUNTINFO_MAX_BYTES = 16 << 20,
	FIRST_ORDINARY_UID = 1000, /* UID_MIN of Debian's login.defs */
};

/* One line of mountinfo. All point into the table's text. */
struct mount {
	const char *dev;   /* "8:1": of the filesystem, the same in every namespace */
	const char *root;  /* the directory of the filesystem that is mounted */
	const char *point; /* where, seen from the process's root */
};

struct mounts {
	struct dbt_buf text;
	struct mount *items;
	size_t n, cap;
};

/* A place that does not depend on the namespace. */
struct spot {
	const char *dev;
	char *path; /* inside the filesystem; owned */
};

struct seen {
	char **items; /* texts of ns/mnt links */
	size_t n, cap;
};

/* --- mountinfo (proc(5)) --- */

static void mounts_release(struct mounts *mounts)
{
	dbt_buf_release(&mounts->text);
	free(mounts->items);
	*mounts = (struct mounts){ 0 };
}

/* Blanks, newlines and backslashes are written as \ooo. Works in place. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++, out++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*out = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*out = *s;
		}
	}
	*out = '\0';
}

/* Fields: id parent dev root point ... */
static int add_mount(struct mounts *mounts, char *line)
{
	char *field[5], *save = NULL;
	struct mount *place;

	for (size_t i = 0; i < 5; i++) {
		field[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (!field[i])
			return 0;
	}
	unescape(field[3]);
	unescape(field[4]);
	place = dbt_vec_push(mounts);
	if (!place)
		return -ENOMEM;
	*place = (struct mount){ .dev = field[2], .root = field[3], .point = field[4] };
	return 0;
}

static int mounts_read(const struct dbt_ctx *ctx, const char *pid, struct mounts *mounts)
{
	char name[320], *line, *save = NULL;
	int r;

	(void)snprintf(name, sizeof(name), "proc/%s/mountinfo", pid);
	r = dbt_root_read(ctx->root, name, MOUNTINFO_MAX_BYTES, &mounts->text);
	if (r < 0 || mounts->text.len == 0)
		return r;
	for (line = strtok_r(mounts->text.data, "\n", &save); r == 0 && line;
	     line = strtok_r(NULL, "\n", &save))
		r = add_mount(mounts, line);
	return r;
}

/* What follows dir in path: "" when they are the same, "/..." below; NULL: path is elsewhere. */
static const char *below(const char *path, const char *dir)
{
	size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	if (strncmp(path, dir, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return strcmp(path + len, "/") == 0 ? "" : path + len;
}

/* Where a path leads: the mount with the longest mount point above it, the last of equals, since
 * later ones lie on top. Returns 1, 0 when no mount is above, -ENOMEM. */
static int locate(const struct mounts *mounts, const char *path, struct spot *ret)
{
	const struct mount *best = NULL;

	for (size_t i = 0; i < mounts->n; i++) {
		const struct mount *m = &mounts->items[i];

		if (below(path, m->point) && (!best || strlen(m->point) >= strlen(best->point)))
			best = m;
	}
	if (!best)
		return 0;
	ret->dev = best->dev;
	if (asprintf(&ret->path, "%s%s", strcmp(best->root, "/") == 0 ? "" : best->root,
	             below(path, best->point)) < 0) {
		ret->path = NULL;
		return -ENOMEM;
	}
	return 1;
}

static bool same_spot(const struct spot *a, const struct spot *b)
{
	return a->path && b->path && strcmp(a->dev, b->dev) == 0 && strcmp(a->path, b->path) == 0;
}

/* The spot lies in what some mount shows. */
static bool is_shown(const struct mounts *mounts, const struct spot *spot)
{
	for (size_t i = 0; i < mounts->n; i++)
		if (strcmp(mounts->items[i].dev, spot->dev) == 0 &&
		    below(spot->path, mounts->items[i].root))
			return true;
	return false;
}

/* --- processes --- */

struct question {
	const struct dbt_ctx *ctx;
	const char *source_dir, *target;
	char own_ns[64];
	struct spot source, target_spot, root;
	struct seen seen;
	/* the answer: the first process for which the link would lead astray, and how many
	 * namespaces there are like it */
	char pid[32], name[64];
	unsigned n_astray;
};

static int read_ns(const struct dbt_ctx *ctx, const char *pid, char out[64])
{
	struct dbt_buf text = { 0 };
	char name[320];
	int r;

	(void)snprintf(name, sizeof(name), "proc/%s/ns/mnt", pid);
	r = dbt_root_readlink(ctx->root, name, &text);
	if (r == 0 && text.len < 64)
		(void)snprintf(out, 64, "%s", text.data);
	else if (r == 0)
		r = -EINVAL;
	dbt_buf_release(&text);
	return r;
}

static bool seen_has(const struct seen *seen, const char *ns)
{
	for (size_t i = 0; i < seen->n; i++)
		if (strcmp(seen->items[i], ns) == 0)
			return true;
	return false;
}

static int seen_add(struct seen *seen, const char *ns)
{
	char *copy = strdup(ns), **place = copy ? dbt_vec_push(seen) : NULL;

	if (!place) {
		free(copy);
		return -ENOMEM;
	}
	*place = copy;
	return 0;
}

static bool is_ordinary_user(const struct dbt_ctx *ctx, const char *pid)
{
	struct dbt_buf text = { 0 };
	char name[320];
	const char *uid = NULL;
	bool ordinary;

	(void)snprintf(name, sizeof(name), "proc/%s/status", pid);
	if (dbt_root_read(ctx->root, name, 65536, &text) == 0)
		uid = strstr(dbt_buf_str(&text), "\nUid:");
	ordinary = uid && strtoul(uid + strlen("\nUid:"), NULL, 10) >= FIRST_ORDINARY_UID;
	dbt_buf_release(&text);
	return ordinary;
}

enum view {
	VIEW_FINE,
	VIEW_ASTRAY,
	VIEW_NOT_ASKED, /* a service in a corner of our own tree; another process there may count */
};

/* How the link looks from this process's namespace. -errno: gone, or not for us to read. */
static int view_of(const struct question *q, const char *pid)
{
	struct mounts mounts = { 0 };
	struct spot root = { 0 }, target = { 0 };
	int view = VIEW_FINE, r = mounts_read(q->ctx, pid, &mounts);

	if (r == 0)
		r = locate(&mounts, "/", &root);
	if (r == 1 && is_shown(&mounts, &q->source)) {
		if (same_spot(&root, &q->root) && !is_ordinary_user(q->ctx, pid)) {
			view = VIEW_NOT_ASKED;
		} else {
			r = locate(&mounts, q->target, &target);
			if (!same_spot(&target, &q->target_spot))
				view = VIEW_ASTRAY;
		}
	}
	free(root.path);
	free(target.path);
	mounts_release(&mounts);
	return r < 0 ? r : view;
}

static int look_at(struct question *q, const char *pid)
{
	struct dbt_buf name = { 0 };
	char ns[64], path[320];
	int r;

	if (read_ns(q->ctx, pid, ns) < 0 || strcmp(ns, q->own_ns) == 0 || seen_has(&q->seen, ns))
		return 0;
	r = view_of(q, pid);
	if (r < 0 || r == VIEW_NOT_ASKED)
		return r == -ENOMEM ? r : 0;
	if (r == VIEW_ASTRAY && q->n_astray++ == 0) {
		(void)snprintf(q->pid, sizeof(q->pid), "%.*s", (int)sizeof(q->pid) - 1, pid);
		(void)snprintf(path, sizeof(path), "proc/%s/comm", pid);
		if (dbt_root_read_line(q->ctx->root, path, &name) == 0)
			(void)snprintf(q->name, sizeof(q->name), "%s", dbt_buf_str(&name));
		dbt_buf_release(&name);
	}
	return seen_add(&q->seen, ns);
}

static int look_at_processes(struct question *q)
{
	dbt_autoclosedir DIR *proc = NULL;
	struct dirent *de;
	int r = dbt_root_opendir(q->ctx->root, "proc", &proc);

	while (r == 0 && (de = readdir(proc)))
		if (isdigit((unsigned char)de->d_name[0]))
			r = look_at(q, de->d_name);
	return r;
}

/* --- runtimes --- */

struct runtime {
	const char *name, *option;
	bool binds_tmp; /* /tmp and /var/tmp by default (Apptainer user guide, bind paths) */
};

static const struct runtime *installed_runtime(const struct dbt_ctx *ctx, const char *target)
{
	static const struct runtime known[] = {
		{ "docker", "-v", false },
		{ "podman", "-v", false },
		{ "apptainer", "--bind", true },
		{ "singularity", "--bind", true },
		{ "singularity-ce", "--bind", true },
		{ "udocker", "-v", false },
		{ "ch-run", "-b", false },
		{ "enroot", "-m", false },
	};
	static const char *const dirs[] = { "usr/bin", "usr/local/bin", "opt/bin" };
	bool in_tmp = below(target, "/tmp") || below(target, "/var/tmp");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (size_t d = 0; d < sizeof(dirs) / sizeof(dirs[0]); d++) {
			char path[128];

			(void)snprintf(path, sizeof(path), "%s/%s", dirs[d], known[i].name);
			if (!(known[i].binds_tmp && in_tmp) && dbt_root_exists(ctx->root, path))
				return &known[i];
		}
	return NULL;
}

static int word_it(const struct question *q, char **ret)
{
	const struct runtime *runtime;
	const char *slash = strrchr(q->target, '/');
	int dir_len = slash > q->target ? (int)(slash - q->target) : 1;
	char others[64] = "";

	if (q->n_astray > 0) {
		if (q->n_astray > 1)
			(void)snprintf(others, sizeof(others), " (and %u more)", q->n_astray - 1);
		return asprintf(ret,
		                "process %s '%s'%s sees '%s', but '%s' is missing or something "
		                "else in its mount namespace: bind '%.*s' there too",
		                q->pid, q->name, others, q->source_dir, q->target, dir_len,
		                q->target) < 0
		               ? -ENOMEM
		               : 0;
	}
	runtime = installed_runtime(q->ctx, q->target);
	if (!runtime) {
		*ret = NULL;
		return 0;
	}
	return asprintf(ret,
	                "a container (%s is installed) that uses '%s' must bind '%.*s' as well: %s "
	                "'%.*s:%.*s'",
	                runtime->name, q->source_dir, dir_len, q->target, runtime->option, dir_len,
	                q->target, dir_len, q->target) < 0
	               ? -ENOMEM
	               : 0;
}

/* Where source, target and root are for us. 1, 0: cannot be told, -errno. */
static int locate_ours(struct question *q, struct mounts *own)
{
	int r = read_ns(q->ctx, "self", q->own_ns);

	if (r == 0)
		r = mounts_read(q->ctx, "self", own);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = locate(own, q->source_dir, &q->source);
	if (r == 1)
		r = locate(own, q->target, &q->target_spot);
	return r == 1 ? locate(own, "/", &q->root) : r;
}

int dbt_containers_check(const struct dbt_ctx *ctx, const char *source_dir, const char *target,
                         char **ret_text, struct dbt_err *err)
{
	struct question q = { .ctx = ctx, .source_dir = source_dir, .target = target };
	struct mounts own = { 0 };
	int r = locate_ours(&q, &own);

	if (r == 1)
		r = look_at_processes(&q);
	if (r >= 0)
		r = word_it(&q, ret_text);
	for (size_t i = 0; i < q.seen.n; i++)
		free(q.seen.items[i]);
	free(q.seen.items);
	free(q.source.path);
	free(q.target_spot.path);
	free(q.root.path);
	mounts_release(&own);
	return r < 0 ? dbt_err_sys(err, r, "cannot look for containers") : 0;
}
