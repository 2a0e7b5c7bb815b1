#include "survey/walk.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/dbkind.h"
#include "survey/follow.h"
#include "survey/names.h"
#include "survey/stats.h"
#include "sys/at.h"
#include "sys/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Names are looked at in inode order, a portion at a time: an inode table is then read forwards,
 * and a directory of millions of names needs no more memory than a portion. */
enum { PORTION = 16384, STATS_AT_ONCE = 4096, WORTH_HELPERS = 64, DENTS_BYTES = 64 * 1024 };

/* Open directories held at a time; the ones above are opened again through "..". */
enum { MAX_OPEN_LEVELS = 200 };

enum { MAX_TROUBLES = 100, PROGRESS_NS = 50000000 };

/* Superblock magics that linux/magic.h of older systems lacks. */
enum { FUSECTL_MAGIC = 0x65735543, CONFIGFS_MAGIC = 0x62656570, RPC_PIPEFS_MAGIC = 0x67596969 };

/* A directory on the way down. */
struct level {
	int fd; /* -1: closed for now */
	uint64_t dev, ino;
	size_t path_len; /* of the path, up to and with this directory */
	bool promoted;
	bool pinned; /* a link below it was followed: ".." would not come back here */
	struct dbt_names subdirs;
	size_t next;
};

struct walker {
	struct dbt_walk *walk;
	struct dbt_buf path;
	struct {
		struct level *items;
		size_t n, cap;
	} levels;
	char *dents; /* DENTS_BYTES, for getdents64 */
	uint64_t root_dev;
	struct dbt_follow follow;
	struct dbt_names portion; /* reused */
	struct {
		struct dbt_stat *items;
		size_t n, cap;
	} stats; /* of the portion; reused */
	struct dbt_stats *helpers;
	bool helpers_tried;
	struct {
		struct dbt_file *items;
		size_t n, cap;
	} files; /* of the directory being listed; reused */
};

/* ---- small things ---- */

void dbt_walk_trouble(struct dbt_walk *walk, const char *dir, const char *name, int code)
{
	struct dbt_scan_result *result = walk->result;
	struct dbt_scan_trouble *items, *t;

	result->troubles_total++;
	if (result->n_troubles == MAX_TROUBLES)
		return;
	items = realloc(result->troubles, (result->n_troubles + 1) * sizeof(*items));
	if (!items)
		return; /* counted all the same */
	result->troubles = items;
	t = &items[result->n_troubles];
	if (asprintf(&t->path, "%s%s%s", dir, name && strcmp(dir, "/") != 0 ? "/" : "",
	             name ? name : "") < 0)
		return;
	t->code = code;
	result->n_troubles++;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct dbt_file *)a)->name, ((const struct dbt_file *)b)->name);
}

static uint64_t device_of(const struct statx *stx)
{
	return makedev(stx->stx_dev_major, stx->stx_dev_minor);
}

static void progress(struct dbt_walk *walk, const char *path)
{
	struct dbt_progress p = { .phase = "scan", .name = path, .done_bytes = walk->bytes_seen };
	uint64_t now;

	if (!walk->ctx->progress)
		return;
	now = walk->ctx->sys->now_ns();
	if (now - walk->last_progress_ns < PROGRESS_NS)
		return;
	walk->last_progress_ns = now;
	walk->ctx->progress(walk->ctx->progress_data, &p);
}

/* ---- one directory ---- */

static int keep(struct walker *w, const struct dbt_file *file)
{
	struct dbt_file *kept = dbt_vec_push(&w->files);

	if (!kept)
		return -ENOMEM;
	*kept = *file;
	kept->name = strdup(file->name);
	if (!kept->name) {
		w->files.n--;
		return -ENOMEM;
	}
	return 0;
}

/* Threads are made when the first large directory comes. */
static struct dbt_stats *helpers_for(struct walker *w, size_t n)
{
	if (!w->helpers && !w->helpers_tried && n >= WORTH_HELPERS) {
		w->helpers_tried = true;
		w->helpers = dbt_stats_new(w->walk->ctx);
	}
	return w->helpers;
}

/* w->path is that of the directory. */
static bool is_excluded(const struct walker *w, const char *name)
{
	const struct dbt_scan_opts *opts = w->walk->opts;
	dbt_autofree char *path = NULL;

	if (opts->n_exclude == 0)
		return false;
	if (asprintf(&path, "%s/%s", w->path.len == 1 ? "" : w->path.data, name) < 0)
		path = NULL;
	for (size_t i = 0; i < opts->n_exclude; i++)
		if (fnmatch(opts->exclude[i], name, 0) == 0 ||
		    (path && fnmatch(opts->exclude[i], path, FNM_PATHNAME) == 0))
			return true;
	return false;
}

/* A sub-directory; one that leads a format is kept among the files as well. 0 or -ENOMEM. */
static int one_directory(struct walker *w, struct level *level, char *name, uint64_t ino)
{
	struct dbt_file file = { .name = name, .ino = ino, .directory = true };
	char slashed[NAME_MAX + 2];

	(void)snprintf(slashed, sizeof(slashed), "%s/", name);
	file.hint = dbt_dbkind_hint(slashed);
	if ((file.hint & DBT_HINT_LEAD) && keep(w, &file) < 0)
		return -ENOMEM;
	return dbt_names_add(&level->subdirs, name, ino, DT_DIR);
}

/* Is a look at this name's inode needed? Directories are noted at once. 1, 0 or -ENOMEM. */
static int sort_out_one(struct walker *w, struct level *level, char *name,
                        const struct dbt_name_at *at, unsigned *ret_hint)
{
	const unsigned char type = at->type;

	/* The kept original of a directory that was promoted is none of its own. */
	if (type == DT_DIR)
		return dbt_name_is_ours(name) || is_excluded(w, name)
		               ? 0
		               : one_directory(w, level, name, at->ino);
	if ((type != DT_REG && type != DT_LNK && type != DT_UNKNOWN) || dbt_name_is_ours(name) ||
	    is_excluded(w, name))
		return 0;
	if (type != DT_UNKNOWN)
		w->walk->result->files_seen++;
	*ret_hint = dbt_dbkind_hint(name);
	return type != DT_REG || *ret_hint != DBT_HINT_EVERYDAY || w->walk->opts->unknown_bytes > 0;
}

static int sort_out(struct walker *w, struct level *level)
{
	const struct dbt_names *names = &w->portion;

	w->stats.n = 0;
	for (size_t i = 0; i < names->at.n; i++) {
		char *name = names->text.data + names->at.items[i].off;
		struct dbt_stat *st;
		unsigned hint = 0;
		int r = sort_out_one(w, level, name, &names->at.items[i], &hint);

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		st = dbt_vec_push(&w->stats);
		if (!st)
			return -ENOMEM;
		st->name = name;
		st->hint = hint;
		st->type = names->at.items[i].type;
	}
	return 0;
}

static bool is_worth_keeping(const struct dbt_scan_opts *opts, const struct dbt_file *file)
{
	return (file->hint & (DBT_HINT_LEAD | DBT_HINT_MEMBER)) || file->promoted ||
	       file->size_bytes >= DBT_ODD_NAME_BYTES ||
	       (opts->unknown_bytes > 0 && file->size_bytes >= opts->unknown_bytes);
}

static int one_name(struct walker *w, const struct dbt_dir *dir, struct level *level,
                    const struct dbt_stat *st)
{
	struct dbt_file file = { .name = st->name, .hint = st->hint };
	enum dbt_look what;

	if (st->code < 0) {
		dbt_walk_trouble(w->walk, dir->path, st->name, st->code);
		return 0;
	}
	what = dbt_dir_look(dir, st, &file);
	w->walk->result->files_seen += st->type == DT_UNKNOWN && what == DBT_LOOK_FILE ? 1 : 0;
	w->walk->bytes_seen += file.size_bytes;
	if (what == DBT_LOOK_FILE && is_worth_keeping(w->walk->opts, &file))
		return keep(w, &file);
	if (what != DBT_LOOK_DIRECTORY)
		return 0;
	if (file.followed)
		return dbt_follow_add(&w->follow, dir, &file);
	return file.promoted ? dbt_names_add(&level->subdirs, st->name, st->ino, DT_LNK)
	                     : one_directory(w, level, st->name, st->ino);
}

static int one_portion(struct walker *w, const struct dbt_dir *dir, struct level *level)
{
	struct dbt_names *names = &w->portion;
	int r;

	dbt_names_sort(names);
	r = sort_out(w, level);
	for (size_t done = 0; r == 0 && done < w->stats.n;) {
		size_t n = w->stats.n - done < STATS_AT_ONCE ? w->stats.n - done : STATS_AT_ONCE;

		if (dbt_ctx_cancelled(dir->ctx))
			return -ECANCELED;
		progress(w->walk, dir->path);
		dbt_stats_run(helpers_for(w, n), dir->ctx, dir->fd, w->stats.items + done, n);
		for (size_t end = done + n; r == 0 && done < end; done++)
			r = one_name(w, dir, level, &w->stats.items[done]);
	}
	dbt_names_clear(names);
	return r;
}

static int list(struct walker *w, const struct dbt_dir *dir, struct level *level)
{
	ssize_t got, at;
	int r;

	dbt_names_clear(&w->portion);
	while ((got = getdents64(dir->fd, w->dents, DENTS_BYTES)) > 0)
		for (at = 0; at < got;) {
			struct dirent64 *d = (struct dirent64 *)(void *)(w->dents + at);

			at += d->d_reclen;
			if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
				continue;
			r = dbt_names_add(&w->portion, d->d_name, d->d_ino, d->d_type);
			if (r == 0 && w->portion.at.n == PORTION)
				r = one_portion(w, dir, level);
			if (r < 0)
				return r;
		}
	if (got < 0) /* what was listed until then still counts */
		dbt_walk_trouble(w->walk, dir->path, NULL, -errno);
	return one_portion(w, dir, level);
}

static void files_clear(struct walker *w, struct dbt_dir *dir)
{
	for (size_t i = 0; i < w->files.n; i++)
		free(w->files.items[i].name);
	w->files.n = 0;
	dbt_dir_forget(dir);
}

/* Lists the top level's directory and hands it to visit. */
static int visit(struct walker *w, struct level *level)
{
	struct dbt_dir dir = { .ctx = w->walk->ctx,
		               .opts = w->walk->opts,
		               .fd = level->fd,
		               .path = dbt_buf_str(&w->path),
		               .dev = level->dev,
		               .ino = level->ino,
		               .promoted = level->promoted,
		               .walk = w->walk };
	int r;

	progress(w->walk, dir.path);
	r = list(w, &dir, level);
	if (r == 0) {
		if (w->files.n > 1)
			qsort(w->files.items, w->files.n, sizeof(w->files.items[0]), by_name);
		dir.files = w->files.items;
		dir.n_files = w->files.n;
		r = w->walk->visit(w->walk->data, &dir);
	}
	files_clear(w, &dir);
	return r;
}

/* ---- the tree ---- */

/* File systems that hold no files of anyone: kernel tables under the names of files. */
static bool is_pseudo(int fd)
{
	static const unsigned long magics[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,         CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		DEBUGFS_MAGIC,    TRACEFS_MAGIC,       SECURITYFS_MAGIC,   DEVPTS_SUPER_MAGIC,
		BPF_FS_MAGIC,     PSTOREFS_MAGIC,      EFIVARFS_MAGIC,     FUSECTL_MAGIC,
		CONFIGFS_MAGIC,   RPC_PIPEFS_MAGIC,    BINFMTFS_MAGIC,     SELINUX_MAGIC,
		NSFS_MAGIC,       ANON_INODE_FS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if ((unsigned long)fs.f_type == magics[i])
			return true;
	return false;
}

static int level_stat(const struct walker *w, int fd, struct level *level)
{
	struct statx stx;
	int r = w->walk->ctx->sys->statx(fd, "", AT_EMPTY_PATH, STATX_INO, &stx);

	if (r < 0)
		return r;
	level->fd = fd;
	level->dev = device_of(&stx);
	level->ino = stx.stx_ino;
	return 0;
}

/* Another filesystem than that of the directory above, and not wanted; or walked already. */
static bool is_left_out(const struct walker *w, const struct level *level, int fd)
{
	const bool below = w->levels.n > 0;
	const uint64_t dev = below ? w->levels.items[w->levels.n - 1].dev : w->root_dev;

	if (level->dev != dev && !level->promoted &&
	    (w->walk->opts->one_file_system || is_pseudo(fd)))
		return true;
	return below && dbt_follow_walked(&w->follow, level->dev, level->ino);
}

/* Takes fd. Returns 1 when the directory is to be walked, 0 when not, -errno. */
static int enter(struct walker *w, int fd, bool promoted)
{
	struct level level = { .fd = -1, .path_len = w->path.len, .promoted = promoted }, *slot;
	const struct level *top = w->levels.n ? &w->levels.items[w->levels.n - 1] : NULL;
	int r = level_stat(w, fd, &level);

	if (r == 0 && w->root_dev == 0)
		w->root_dev = level.dev;
	if (r == 0 && is_left_out(w, &level, fd)) {
		(void)close(fd);
		return 0;
	}
	/* A directory mounted below itself, or a link of ours that leads upwards. */
	for (size_t i = 0; r == 0 && top && i < w->levels.n; i++)
		if (w->levels.items[i].dev == level.dev && w->levels.items[i].ino == level.ino)
			r = -ELOOP;
	if (r == 0) {
		slot = dbt_vec_push(&w->levels);
		if (slot)
			*slot = level;
		else
			r = -ENOMEM;
	}
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	return 1;
}

static void leave(struct walker *w)
{
	struct level *level = &w->levels.items[--w->levels.n];

	if (level->fd >= 0)
		(void)close(level->fd);
	dbt_names_release(&level->subdirs);
}

/* Comes back to the parent of the top level, which may have been closed on the way down. */
static int reopen_parent(struct walker *w)
{
	struct level *child = &w->levels.items[w->levels.n - 1], *parent = child - 1, seen = { 0 };
	int fd, r;

	if (parent->fd >= 0)
		return 0;
	fd = w->walk->ctx->sys->openat(child->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	r = level_stat(w, fd, &seen);
	if (r == 0 && (seen.dev != parent->dev || seen.ino != parent->ino))
		r = -ESTALE; /* moved elsewhere meanwhile */
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	parent->fd = fd;
	return 0;
}

static void close_far_level(struct walker *w)
{
	struct level *far;

	if (w->levels.n <= MAX_OPEN_LEVELS)
		return;
	far = &w->levels.items[w->levels.n - MAX_OPEN_LEVELS];
	if (far->fd < 0 || far->pinned)
		return;
	(void)close(far->fd);
	far->fd = -1;
}

/* Opens the next sub-directory of the top level and makes it the top. Returns 1 when there is a new
 * top, 0 when this one was passed over, -errno for the end of the walk. */
static int descend(struct walker *w)
{
	struct level *top = &w->levels.items[w->levels.n - 1];
	size_t i = top->next++, parent_len = top->path_len;
	bool link = top->subdirs.at.items[i].type == DT_LNK;
	int fd, r;

	r = parent_len == 1 && w->path.data[0] == '/' ? 0 : dbt_buf_addc(&w->path, '/');
	if (r == 0)
		r = dbt_buf_adds(&w->path, dbt_names_text(&top->subdirs, i));
	if (r < 0)
		return r;
	fd = w->walk->ctx->sys->openat(
		top->fd, dbt_names_text(&top->subdirs, i),
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (link ? 0 : O_NOFOLLOW), 0);
	if (link)
		top->pinned = true;
	r = fd < 0 ? fd : enter(w, fd, link || top->promoted);
	if (r == 1) {
		close_far_level(w);
		return 1;
	}
	if (r < 0 && r != -ENOMEM)
		dbt_walk_trouble(w->walk, dbt_buf_str(&w->path), NULL, r);
	w->path.len = parent_len;
	w->path.data[parent_len] = '\0';
	return r == -ENOMEM ? r : 0;
}

/* Leaves the top level for its parent. */
static void ascend(struct walker *w)
{
	int r = w->levels.n > 1 ? reopen_parent(w) : 0;

	leave(w);
	if (w->levels.n == 0)
		return;
	w->path.len = w->levels.items[w->levels.n - 1].path_len;
	w->path.data[w->path.len] = '\0';
	if (r < 0) {
		struct level *parent = &w->levels.items[w->levels.n - 1];

		dbt_walk_trouble(w->walk, dbt_buf_str(&w->path), NULL, r);
		parent->next = parent->subdirs.at.n;
	}
}

static int walk_levels(struct walker *w)
{
	int r = visit(w, &w->levels.items[0]);

	while (r == 0 && w->levels.n > 0) {
		struct level *top = &w->levels.items[w->levels.n - 1];

		if (dbt_ctx_cancelled(w->walk->ctx))
			return -ECANCELED;
		if (w->walk->flat || top->next >= top->subdirs.at.n || top->fd < 0) {
			ascend(w);
			continue;
		}
		r = descend(w);
		if (r == 1)
			r = visit(w, &w->levels.items[w->levels.n - 1]);
	}
	return r;
}

/* Walks from a directory that nothing leads down to: takes fd. path is absolute. 0, or the end of the walk. */
static int walk_from(struct walker *w, int fd, const char *path)
{
	int r;

	dbt_buf_clear(&w->path);
	r = dbt_buf_adds(&w->path, path);
	if (r < 0)
		(void)close(fd);
	else
		r = enter(w, fd, false);
	if (r == 1 && w->walk->opts->follow) {
		r = dbt_follow_begin(&w->follow, path, w->levels.items[0].dev,
		                     w->levels.items[0].ino);
		r = r < 0 ? r : 1;
	}
	return r == 1 ? walk_levels(w) : r;
}

/* The directories that links led to. */
static int walk_followed(struct walker *w)
{
	char *path;
	int r = 0;

	while (r == 0 && (path = dbt_follow_next(&w->follow)) != NULL) {
		const char *name = strrchr(path, '/');
		int fd = -1;

		/* A pattern may fit the real path as well as the link's. */
		dbt_buf_clear(&w->path);
		r = dbt_buf_add(&w->path, path, name > path ? (size_t)(name - path) : 1);
		if (r == 0 && !is_excluded(w, name + 1)) {
			fd = w->walk->ctx->sys->openat(
				AT_FDCWD, path,
				O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0);
			if (fd < 0)
				dbt_walk_trouble(w->walk, path, NULL, fd);
		}
		if (fd >= 0)
			r = walk_from(w, fd, path);
		if (r < 0 && r != -ENOMEM && r != -ECANCELED) {
			dbt_walk_trouble(w->walk, path, NULL, r);
			r = 0;
		}
		free(path);
	}
	return r;
}

int dbt_walk_tree(struct dbt_walk *walk, int fd, const char *path)
{
	struct walker w = { .walk = walk, .dents = malloc(DENTS_BYTES) };
	int r = w.dents ? 0 : -ENOMEM;

	if (r == 0) {
		/* Not a duplicate: that would share the caller's position in the directory. */
		int own = walk->ctx->sys->openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

		r = own < 0 ? own : walk_from(&w, own, path);
	}
	if (r == 0 && !walk->flat)
		r = walk_followed(&w);
	if (r == -ECANCELED) {
		walk->result->partial = true;
		r = 0;
	}
	while (w.levels.n > 0)
		leave(&w);
	free(w.levels.items);
	dbt_stats_free(w.helpers);
	dbt_follow_release(&w.follow);
	free(w.stats.items);
	free(w.files.items);
	dbt_names_release(&w.portion);
	dbt_buf_release(&w.path);
	free(w.dents);
	return r;
}
