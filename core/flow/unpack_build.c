#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "flow/unpack_work.h"
#include "move/below.h"
#include "move/copy.h"
#include "move/mark.h"
#include "survey/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int out_of_memory(const struct dbt_unpack_work *w, struct dbt_err *err)
{
	return dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", w->p->path);
}

/* The entry's path below the roots, where the one directory that everything lies in is left out. */
static const char *below_top(const char *path, const char *top)
{
	size_t len = top ? strlen(top) : 0;

	if (!top)
		return path;
	return strncmp(path, top, len) == 0 && path[len] == '/' ? path + len + 1 : "";
}

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strndup(path, slash ? (size_t)(slash - path) : 0);
}

static unsigned depth_of(const char *path)
{
	unsigned depth = 0;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

/* ---- leaving out the top ---- */

/* TEMP/top becomes TEMP: the temporary directory steps aside, its only child takes its name. */
static int lift_one(struct dbt_unpack_work *w, struct dbt_unpack_root *root, unsigned aside_number,
                    const char *top, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = w->flow->ctx;
	const char *part = root->member->part;
	char aside[DBT_UNPACK_PART_BYTES];
	int dirfd = root->at.dirfd, r, fd;

	dbt_unpack_part(w->p, aside_number, aside);
	/* Nothing went there: then there is an empty one. */
	fd = dbt_below_open(ctx, root->fd, top, true);
	r = fd < 0 ? fd : ctx->sys->renameat2(dirfd, part, dirfd, aside, RENAME_NOREPLACE);
	if (r == 0)
		r = ctx->sys->renameat2(root->fd, top, dirfd, part, RENAME_NOREPLACE);
	if (r == 0)
		r = ctx->sys->unlinkat(dirfd, aside, AT_REMOVEDIR);
	if (r < 0) {
		if (fd >= 0)
			(void)close(fd);
		return dbt_err_sys(err, r, "cannot move what was unpacked for '%s'",
		                   root->at.shown);
	}
	(void)close(root->fd);
	root->fd = fd;
	return 0;
}

static int lift(struct dbt_unpack_work *w, const char *top, struct dbt_err *err)
{
	int r = top ? lift_one(w, &w->hot, 1, top, err) : 0;

	return r == 0 && top && w->cold.fd >= 0 ? lift_one(w, &w->cold, 3, top, err) : r;
}

/* ---- directories and links ---- */

static int make_link(struct dbt_unpack_work *w, const char *path, const char *text,
                     struct dbt_err *err)
{
	const struct dbt_ctx *ctx = w->flow->ctx;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	dbt_autofree char *dir = dir_of(path);
	dbt_autoclose int fd =
		dir ? dbt_below_open(ctx, dbt_unpack_visible(w)->fd, dir, true) : -ENOMEM;
	int r = fd < 0 ? fd : ctx->sys->symlinkat(text, fd, name);

	if (r == 0)
		(void)ctx->sys->fchownat(fd, name, w->uid, w->gid, AT_SYMLINK_NOFOLLOW);
	return r < 0 ? dbt_err_sys(err, r, "cannot make the link '%s' in '%s'", path, w->p->path)
	             : 0;
}

/* Links to the files of the hot root, which is or will be called hot_root. */
static int make_hot_links(struct dbt_unpack_work *w, const char *top, const char *hot_root,
                          struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && w->cold.fd >= 0 && i < w->entries.n; i++) {
		const struct dbt_unpack_entry *e = w->entries.items[i];
		const char *path = below_top(e->path, top);
		dbt_autofree char *text = NULL;

		if (e->type != DBT_ENTRY_FILE || !e->hot)
			continue;
		if (asprintf(&text, "%s/%s", hot_root, path) < 0) {
			text = NULL;
			return out_of_memory(w, err);
		}
		if (strlen(text) >= PATH_MAX)
			return dbt_err_refuse(err, "the path '%s' would be too long", text);
		r = make_link(w, path, text, err);
	}
	return r;
}

static int remove_hot_links(struct dbt_unpack_work *w, const char *top, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = w->flow->ctx;
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->entries.n; i++) {
		const struct dbt_unpack_entry *e = w->entries.items[i];
		const char *path = below_top(e->path, top);
		const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
		dbt_autofree char *dir = dir_of(path);
		dbt_autoclose int fd = -1;

		if (e->type != DBT_ENTRY_FILE || !e->hot)
			continue;
		fd = dir ? dbt_below_open(ctx, w->cold.fd, dir, false) : -ENOMEM;
		r = fd < 0 ? fd : ctx->sys->unlinkat(fd, name, 0);
	}
	return r < 0 ? dbt_err_sys(err, r, "cannot replace a link in '%s'", w->p->path) : 0;
}

static int make_dirs_and_links(struct dbt_unpack_work *w, const char *top, struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->entries.n; i++) {
		const struct dbt_unpack_entry *e = w->entries.items[i];
		const char *path = below_top(e->path, top);

		if (e->type == DBT_ENTRY_DIRECTORY) {
			int fd =
				dbt_below_open(w->flow->ctx, dbt_unpack_visible(w)->fd, path, true);

			if (fd < 0)
				return dbt_err_sys(err, fd,
				                   "cannot make the directory '%s' in '%s'", path,
				                   w->p->path);
			(void)close(fd);
		} else if (e->type == DBT_ENTRY_LINK) {
			/* It was judged where the archive has it; without the top it may lead out. */
			if (!dbt_unpack_link_stays(e->link, depth_of(path)))
				return dbt_err_refuse(
					err, "'%s' is a link that leads out of the archive",
					e->path);
			r = make_link(w, path, e->link, err);
		}
	}
	return r;
}

/* ---- was the guess right ---- */

struct look {
	struct dbt_unpack_work *w;
	const char *top, *prefix; /* of the cold root as it is called now, with a slash */
};

static struct dbt_unpack_entry *entry_at(const struct look *look, const char *path)
{
	size_t len = strlen(look->prefix);
	dbt_autofree char *full = NULL;

	if (strncmp(path, look->prefix, len) != 0 ||
	    asprintf(&full, "%s%s%s", look->top ? look->top : "", look->top ? "/" : "",
	             path + len) < 0) {
		full = NULL;
		return NULL;
	}
	return dbt_unpack_find(&look->w->entries, full);
}

static bool is_ours(void *data, const char *path)
{
	const struct dbt_unpack_entry *e = entry_at(data, path);

	return e && e->type == DBT_ENTRY_FILE;
}

/* Copies a file of the cold root to the hot one, with the same proof as any copy, and removes it. */
static int heat(struct dbt_unpack_work *w, struct dbt_unpack_entry *e, const char *path,
                struct dbt_err *err)
{
	const struct dbt_ctx *ctx = w->flow->ctx;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const struct dbt_copy_opts opts = { .shown_src = e->path, .shown_dst = e->path };
	dbt_autofree char *dir = dir_of(path);
	dbt_autoclose int from = dir ? dbt_below_open(ctx, w->cold.fd, dir, false) : -ENOMEM;
	dbt_autoclose int to = from < 0 ? from : dbt_below_open(ctx, w->hot.fd, dir, true);
	dbt_autoclose int src =
		to < 0 ? to : ctx->sys->openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct dbt_copy_result result;
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		                           { .tv_sec = e->result.ident.mtime_ns / 1000000000,
		                             .tv_nsec = e->result.ident.mtime_ns % 1000000000 } };
	int dst = src < 0 ? src
	                  : ctx->sys->openat(to, name,
	                                     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	                                     0600);
	int r;

	if (dst < 0)
		return dbt_err_sys(err, dst, "cannot move '%s' to '%s'", e->path, w->hot.at.shown);
	r = dbt_mark_set(ctx, dst, w->p->token);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot mark '%s'", e->path);
	else
		r = dbt_copy_file(ctx, src, &e->result.ident, dst, &opts, &result, err);
	if (r == 0 && !dbt_digest_equal(&result.digest, &e->result.digest))
		r = dbt_err_set(err, DBT_ERR_VERIFY, -EIO,
		                "'%s' reads other bytes than were unpacked", e->path);
	if (r == 0) {
		(void)ctx->sys->fchownat(dst, "", w->uid, w->gid, AT_EMPTY_PATH);
		r = ctx->sys->fchmod(dst, e->result.ident.mode & 0777);
		if (r == 0)
			r = ctx->sys->utimensat(dst, "", times, AT_EMPTY_PATH);
		if (r == 0)
			r = ctx->sys->fsync(dst);
		if (r == 0)
			r = dbt_ident_fd(ctx, dst, &e->result.ident);
		if (r == 0)
			r = ctx->sys->unlinkat(from, name, 0);
		if (r < 0)
			(void)dbt_err_sys(err, r, "cannot move '%s' to '%s'", e->path,
			                  w->hot.at.shown);
	}
	e->result.from_device = r == 0 && result.from_device;
	e->hot = r == 0;
	(void)ctx->sys->close(dst);
	return r;
}

static int look_at_database(struct look *look, const struct dbt_database *db, struct dbt_err *err)
{
	int r = 0;

	if (db->moves == DBT_MOVES_DIRECTORY)
		return dbt_err_refuse(
			err,
			"it holds a %s directory, which must lie on one tier as a whole: give "
			"--all-files and no --cold-to",
			db->format);
	if (!db->complete)
		dbt_ctx_log(look->w->flow->ctx, DBT_LOG_WARNING,
		            "the %s database in '%s' is not complete: %s", db->format,
		            look->w->p->path,
		            db->incomplete ? db->incomplete : "files are missing");
	for (size_t i = 0; r == 0 && i < db->n_members; i++) {
		struct dbt_unpack_entry *e = entry_at(look, db->members[i].path);

		if (!e || e->type != DBT_ENTRY_FILE || e->hot || db->members[i].size_bytes == 0 ||
		    (!db->members[i].hot && db->moves != DBT_MOVES_SET))
			continue;
		r = heat(look->w, e, below_top(e->path, look->top), err);
	}
	return r;
}

/* Where a file goes is guessed from its name while it comes. Now everything is there, and the catalogue tells what a
 * database it is: what was not sent to the fast tier but should have been goes there now. */
static int check_guess(struct dbt_unpack_work *w, const char *top, struct dbt_err *err)
{
	dbt_autofree char *hot = NULL, *cold = NULL, *prefix = NULL;
	struct look look = { .w = w, .top = top };
	const struct dbt_scan_opts opts = { .is_ours = is_ours, .is_ours_data = &look };
	struct dbt_scan_result found = { 0 };
	size_t n_hot = 0;
	int r = dbt_fd_path(w->hot.fd, &hot);

	if (r == 0)
		r = dbt_fd_path(w->cold.fd, &cold);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at what was unpacked for '%s'", w->p->path);
	if (asprintf(&prefix, "%s/", cold) < 0) {
		prefix = NULL;
		return out_of_memory(w, err);
	}
	look.prefix = prefix;
	r = make_hot_links(w, top, hot, err);
	if (r == 0)
		r = dbt_scan(w->flow->ctx, cold, &opts, &found, err);
	if (r == 0)
		r = remove_hot_links(w, top, err);
	for (size_t i = 0; r == 0 && i < found.n_databases; i++)
		r = look_at_database(&look, &found.databases[i], err);
	dbt_scan_result_release(&found);
	for (size_t i = 0; i < w->entries.n; i++)
		n_hot += w->entries.items[i]->hot;
	if (r == 0 && n_hot == 0)
		r = dbt_err_refuse(
			err,
			"no database is recognised in '%s': --all-files unpacks everything to the "
			"fast tier",
			w->p->members[0].path);
	return r;
}

/* ---- flushing and recording ---- */

struct list {
	struct dbt_unpack_work *w;
	const struct dbt_unpack_root *root;
	const char *top;
	size_t cap;
	struct dbt_err *err;
};

static struct dbt_pmember *add_member(struct list *list)
{
	struct dbt_promotion *p = list->w->p;
	struct dbt_pmember *grown =
		dbt_vec_grow(p->members, p->n_members, &list->cap, sizeof(*grown));

	if (!grown)
		return NULL;
	p->members = grown;
	grown[p->n_members] = (struct dbt_pmember){ 0 };
	return &grown[p->n_members++];
}

static int fill_member(struct list *list, const struct dbt_below_item *item,
                       const struct dbt_unpack_entry *e)
{
	struct dbt_unpack_work *w = list->w;
	struct dbt_pmember *m = add_member(list);
	bool leads_to_hot = e && e->type == DBT_ENTRY_FILE && S_ISLNK(item->ident.mode);

	if (!m)
		return -ENOMEM;
	m->kept = strdup("");
	m->part = strdup("");
	m->source = item->ident;
	if (asprintf(&m->path, "%s/%s", list->root->at.shown, item->path) < 0)
		m->path = NULL;
	if (asprintf(&m->copy, "%s/%s", leads_to_hot ? w->hot.at.shown : list->root->at.shown,
	             item->path) < 0)
		m->copy = NULL;
	if (leads_to_hot)
		m->copied = e->result.ident;
	if (e && e->type == DBT_ENTRY_FILE) {
		(void)dbt_digest_hex(&e->result.digest, m->xxh128);
		m->from_device = e->result.from_device;
	}
	return m->kept && m->part && m->path && m->copy ? 0 : -ENOMEM;
}

/* Owner, mode and the flush of a directory, once everything is in it. */
static int settle_dir(struct dbt_unpack_work *w, int fd)
{
	const struct dbt_sys *sys = w->flow->ctx->sys;
	int r;

	(void)sys->fchownat(fd, "", w->uid, w->gid, AT_EMPTY_PATH);
	r = sys->fchmod(fd, 0755 & w->mode_mask);
	return r == 0 ? sys->fsync(fd) : r;
}

/* Everything in the roots must be what was made there, and nothing else. */
static int list_item(void *data, const struct dbt_below_item *item)
{
	struct list *list = data;
	struct dbt_unpack_work *w = list->w;
	dbt_autofree char *full = NULL;
	const struct dbt_unpack_entry *e;
	bool as_made;
	int r = 0;

	if (asprintf(&full, "%s%s%s", list->top ? list->top : "", list->top ? "/" : "",
	             item->path) < 0) {
		full = NULL;
		return -ENOMEM;
	}
	e = dbt_unpack_find(&w->entries, full);
	if (S_ISDIR(item->ident.mode)) {
		dbt_autoclose int fd = w->flow->ctx->sys->openat(
			item->dirfd, item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			0);

		as_made = e && e->type == DBT_ENTRY_DIRECTORY;
		r = fd < 0 ? fd : settle_dir(w, fd);
	} else if (S_ISLNK(item->ident.mode)) {
		as_made = e && (e->type == DBT_ENTRY_LINK || (e->type == DBT_ENTRY_FILE && e->hot));
	} else {
		as_made = e && e->type == DBT_ENTRY_FILE &&
		          dbt_ident_same_content(&item->ident, &e->result.ident, true, false);
	}
	if (r == 0 && !as_made)
		return dbt_err_set(list->err, DBT_ERR_CHANGED, -ESTALE,
		                   "somebody else changed '%s' while it was unpacked for '%s'",
		                   item->path, list->root->at.shown);
	/* A hot file has its member by the link that leads to it. */
	if (r == 0 && !(list->root == &w->hot && w->cold.fd >= 0 && S_ISREG(item->ident.mode)))
		r = fill_member(list, item, e);
	return r;
}

static int list_root(struct dbt_unpack_work *w, struct dbt_unpack_root *root, size_t index,
                     const char *top, size_t *cap, struct dbt_err *err)
{
	struct dbt_err why = { 0 };
	struct list list = { .w = w, .root = root, .top = top, .cap = *cap, .err = &why };
	int r = dbt_below_walk(w->flow->ctx, root->fd, true, list_item, &list);

	*cap = list.cap;
	if (r == 0)
		r = settle_dir(w, root->fd);
	if (r == 0)
		r = dbt_ident_fd(w->flow->ctx, root->fd, &w->p->members[index].source);
	if (r < 0 && why.kind == DBT_ERR_NONE)
		return dbt_err_sys(err, r, "cannot flush what was unpacked for '%s'",
		                   root->at.shown);
	if (r < 0 && err)
		*err = why;
	return r;
}

static void tell_changes(const struct dbt_unpack_work *w)
{
	if (w->entries.hard_links > 0)
		dbt_ctx_log(w->flow->ctx, DBT_LOG_NOTE,
		            "%zu hard links of the archive became symbolic ones in '%s'",
		            w->entries.hard_links, w->p->path);
	if (w->entries.set_bits > 0)
		dbt_ctx_log(w->flow->ctx, DBT_LOG_WARNING,
		            "%zu files of the archive had set-user-id, set-group-id or sticky "
		            "bits: they have none in '%s'",
		            w->entries.set_bits, w->p->path);
}

int dbt_unpack_build(struct dbt_unpack_work *w, struct dbt_err *err)
{
	dbt_autofree char *top = dbt_unpack_top(&w->entries);
	size_t cap = w->p->n_members;
	int r = lift(w, top, err);

	if (r == 0)
		r = make_dirs_and_links(w, top, err);
	if (r == 0 && w->cold.fd >= 0)
		r = check_guess(w, top, err);
	if (r == 0)
		r = make_hot_links(w, top, w->hot.at.shown, err);
	/* The roots' members move when the list grows: by their numbers. */
	if (r == 0)
		r = list_root(w, &w->hot, w->n_archives, top, &cap, err);
	if (r == 0 && w->cold.fd >= 0)
		r = list_root(w, &w->cold, w->n_archives + 1, top, &cap, err);
	w->hot.member = &w->p->members[w->n_archives];
	w->cold.member = w->cold.fd >= 0 ? &w->p->members[w->n_archives + 1] : NULL;
	if (r == 0)
		tell_changes(w);
	return r;
}
