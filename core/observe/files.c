#include "observe/files.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/mounts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	MAX_FILES = 2000,
	MAX_POSITIONS = 200, /* descriptors whose position is followed */
	MAPS_BYTES = 1 << 20,
};

/* Smaller files are programs' own business: no database that makes anybody wait. */
static const uint64_t MIN_BYTES = 256 << 10;

struct position {
	size_t file;
	int fd; /* of the fdinfo file; -1: gone */
	int pid, number;
	bool known;
	uint64_t at;
};

struct dbt_files {
	const struct dbt_ctx *ctx;
	struct dbt_tasks_opts opts;
	int proc;
	struct dbt_observation *obs;
	unsigned hidden;
	int *hidden_pids;
	size_t n_hidden, cap_hidden;
	unsigned ticks;
	char *maps;
	struct {
		struct position *items;
		size_t n, cap;
	} positions;
};

int dbt_files_new(const struct dbt_ctx *ctx, const struct dbt_tasks_opts *opts, int proc,
                  struct dbt_observation *obs, struct dbt_files **ret)
{
	struct dbt_files *f = calloc(1, sizeof(*f));

	if (f)
		f->maps = malloc(MAPS_BYTES);
	if (!f || !f->maps) {
		free(f);
		return -ENOMEM;
	}
	f->ctx = ctx;
	f->opts = *opts;
	f->proc = proc;
	f->obs = obs;
	*ret = f;
	return 0;
}

void dbt_files_free(struct dbt_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->positions.n; i++)
		if (f->positions.items[i].fd >= 0)
			(void)close(f->positions.items[i].fd);
	free(f->positions.items);
	free(f->hidden_pids);
	free(f->maps);
	free(f);
}

unsigned dbt_files_hidden(const struct dbt_files *f)
{
	return f->hidden;
}

static int note_hidden(struct dbt_files *f, int pid)
{
	int *grown;

	for (size_t i = 0; i < f->n_hidden; i++)
		if (f->hidden_pids[i] == pid)
			return 0;
	grown = dbt_vec_grow(f->hidden_pids, f->n_hidden, &f->cap_hidden, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	f->hidden_pids = grown;
	f->hidden_pids[f->n_hidden++] = pid;
	f->hidden++;
	return 0;
}

/* --- one file --- */

/* The superblock's number, which trace events and mountinfo have: on btrfs, stat gives each subvolume another one. A
 * mount of another namespace is not in our table; its filesystem mostly is. */
static uint64_t superblock_of(const struct dbt_files *f, const struct statx *stx)
{
	const struct dbt_mount *m = f->opts.mounts && (stx->stx_mask & STATX_MNT_ID)
	                                    ? dbt_mounts_by_id(f->opts.mounts, stx->stx_mnt_id)
	                                    : NULL;

	return m ? m->devno : makedev(stx->stx_dev_major, stx->stx_dev_minor);
}

static bool lies_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (len > 0 && dir[len - 1] == '/')
		len--;
	return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static int name_it(struct dbt_files *f, struct dbt_obs_file *file, size_t process, const char *path)
{
	if (!file->path) {
		file->path = strdup(path);
		if (!file->path)
			return -ENOMEM;
	}
	for (size_t i = 0; i < f->opts.n_paths; i++)
		if (lies_below(path, f->opts.paths[i]))
			f->obs->processes.items[process].selected = true;
	return 0;
}

/* Adds the use of a file; *ret_index tells which file. */
static int add_use(struct dbt_files *f, size_t process, uint64_t devno, uint64_t ino, uint64_t size,
                   unsigned how, const char *path, size_t *ret_index)
{
	struct dbt_obs_file *file;
	struct dbt_obs_use *use;
	size_t index;

	if (f->obs->files.n >= MAX_FILES)
		return 0;
	file = dbt_observation_file(f->obs, devno, ino);
	if (!file)
		return -ENOMEM;
	index = (size_t)(file - f->obs->files.items);
	file->size_bytes = size > file->size_bytes ? size : file->size_bytes;
	file->how |= how;
	use = dbt_observation_use(f->obs, process, index);
	if (!use)
		return -ENOMEM;
	use->how |= how;
	*ret_index = index;
	return path && *path ? name_it(f, file, process, path) : 0;
}

/* --- descriptors --- */

static ssize_t read_link(const struct dbt_files *f, const char *what, char *text, size_t size)
{
	ssize_t len = readlinkat(f->proc, what, text, size - 1);

	text[len > 0 ? len : 0] = '\0';
	return len;
}

static unsigned how_of(const char *info)
{
	const char *at = strstr(info, "flags:");
	unsigned long flags = at ? strtoul(at + strlen("flags:"), NULL, 8) : 0;

	return (flags & O_ACCMODE) == O_RDONLY ? DBT_OBS_OPEN : DBT_OBS_OPEN | DBT_OBS_WRITES;
}

static bool is_followed(const struct dbt_files *f, int pid, int number)
{
	for (size_t i = 0; i < f->positions.n; i++)
		if (f->positions.items[i].pid == pid && f->positions.items[i].number == number &&
		    f->positions.items[i].fd >= 0)
			return true;
	return false;
}

static int follow_position(struct dbt_files *f, int pid, int number, int *info, size_t file)
{
	struct position *p;

	if (f->obs->traced || f->positions.n >= MAX_POSITIONS || is_followed(f, pid, number))
		return 0;
	p = dbt_vec_push(&f->positions);
	if (!p)
		return -ENOMEM;
	*p = (struct position){ .file = file, .fd = *info, .pid = pid, .number = number };
	*info = -1;
	return 0;
}

static int look_at_fd(struct dbt_files *f, size_t process, int pid, const char *name)
{
	struct statx stx = { 0 };
	char what[64], path[PATH_MAX + 1], text[512];
	dbt_autoclose int info = -1;
	size_t index = DBT_OBS_NONE;
	ssize_t len;
	int r;

	(void)snprintf(what, sizeof(what), "%d/fd/%.20s", pid, name);
	/* Sockets, pipes and the like are "TYPE:[NUMBER]". */
	if (read_link(f, what, path, sizeof(path)) <= 0 || path[0] != '/' ||
	    strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 ||
	    f->ctx->sys->statx(f->proc, what, AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
	                       STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MNT_ID, &stx) < 0 ||
	    !S_ISREG(stx.stx_mode))
		return 0;
	(void)snprintf(what, sizeof(what), "%d/fdinfo/%.20s", pid, name);
	info = openat(f->proc, what, O_RDONLY | O_CLOEXEC);
	len = info < 0 ? -1 : pread(info, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	if (stx.stx_size < MIN_BYTES && !(how_of(text) & DBT_OBS_WRITES))
		return 0;
	r = add_use(f, process, superblock_of(f, &stx), stx.stx_ino, stx.stx_size, how_of(text),
	            path, &index);
	if (r == 0 && index != DBT_OBS_NONE && info >= 0)
		r = follow_position(f, pid, (int)strtol(name, NULL, 10), &info, index);
	return r;
}

static int look_at_fds(struct dbt_files *f, size_t process, int pid)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dirent *de;
	char path[64];
	int fd, r = 0;

	(void)snprintf(path, sizeof(path), "%d/fd", pid);
	fd = openat(f->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = errno == ENOMEM ? -ENOMEM : -ESRCH; /* it ended just now */
		(void)close(fd);
		return r;
	}
	while (r == 0 && (de = readdir(dir)))
		if (isdigit((unsigned char)de->d_name[0]))
			r = look_at_fd(f, process, pid, de->d_name);
	return r;
}

/* --- mappings --- */

struct map {
	unsigned long start, end, offset;
	const char *perms, *path;
	uint64_t devno, ino;
};

/* "START-END PERMS OFFSET MAJOR:MINOR INODE      PATH": device and inode are the filesystem's own, as trace events
 * have them. */
static bool parse_map(const char *line, struct map *ret)
{
	unsigned long major_no, minor_no;
	char *at;

	ret->start = strtoul(line, &at, 16);
	if (*at != '-')
		return false;
	ret->end = strtoul(at + 1, &at, 16);
	if (*at != ' ' || strlen(at) < 6 || at[5] != ' ')
		return false;
	ret->perms = at + 1;
	ret->offset = strtoul(at + 6, &at, 16);
	major_no = strtoul(at, &at, 16);
	if (*at != ':')
		return false;
	minor_no = strtoul(at + 1, &at, 16);
	ret->devno = makedev((unsigned)major_no, (unsigned)minor_no);
	ret->ino = strtoull(at, &at, 10);
	ret->path = at + strspn(at, " ");
	return *ret->path == '/' && ret->end > ret->start;
}

static int look_at_map(struct dbt_files *f, size_t process, int pid, const char *line)
{
	struct statx stx = { 0 };
	char what[96];
	struct map m;
	size_t index;
	uint64_t size;

	/* Code is no database, nor is what belongs to a library. */
	if (!parse_map(line, &m) || m.ino == 0 || m.perms[2] == 'x' ||
	    m.end - m.start < MIN_BYTES || strstr(m.path, ".so"))
		return 0;
	size = m.offset + (m.end - m.start);
	(void)snprintf(what, sizeof(what), "%d/map_files/%lx-%lx", pid, m.start, m.end);
	if (f->ctx->sys->statx(f->proc, what, AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_SIZE,
	                       &stx) == 0)
		size = stx.stx_size;
	return add_use(f, process, m.devno, m.ino, size,
	               m.perms[1] == 'w' && m.perms[3] == 's' ? DBT_OBS_MAPPED | DBT_OBS_WRITES
	                                                      : DBT_OBS_MAPPED,
	               m.path, &index);
}

static int look_at_maps(struct dbt_files *f, size_t process, int pid)
{
	dbt_autoclose int fd = -1;
	char path[64], *line, *save = NULL;
	size_t have = 0;
	ssize_t got;
	int r = 0;

	(void)snprintf(path, sizeof(path), "%d/maps", pid);
	fd = openat(f->proc, path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && have < MAPS_BYTES - 1 &&
	       (got = read(fd, f->maps + have, MAPS_BYTES - 1 - have)) > 0)
		have += (size_t)got;
	f->maps[have] = '\0';
	for (line = strtok_r(f->maps, "\n", &save); r == 0 && line;
	     line = strtok_r(NULL, "\n", &save))
		r = look_at_map(f, process, pid, line);
	return r;
}

int dbt_files_look(struct dbt_files *f, size_t process)
{
	const int pid = f->obs->processes.items[process].pid;
	int r = look_at_fds(f, process, pid);

	if (r == -EACCES || r == -EPERM)
		return note_hidden(f, pid);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* gone */
	f->obs->processes.items[process].has_files = true;
	return look_at_maps(f, process, pid);
}

/* --- positions --- */

static void move(struct dbt_obs_file *file, struct position *p, uint64_t now)
{
	if (p->known && now != p->at) {
		file->moves++;
		if (now > p->at)
			file->moved_bytes += now - p->at;
		else
			file->moved_jumps++;
	}
	p->known = true;
	p->at = now;
}

void dbt_files_tick(struct dbt_files *f)
{
	/* They move on in between: now and then is enough. */
	if (f->ticks++ % 4 != 0)
		return;
	for (size_t i = 0; i < f->positions.n; i++) {
		struct position *p = &f->positions.items[i];
		char text[256];
		ssize_t len;

		if (p->fd < 0)
			continue;
		len = pread(p->fd, text, sizeof(text) - 1, 0);
		text[len > 0 ? len : 0] = '\0';
		if (len <= 0 || strncmp(text, "pos:", 4) != 0) {
			(void)close(p->fd);
			p->fd = -1;
			continue;
		}
		move(&f->obs->files.items[p->file], p, strtoull(text + 4, NULL, 10));
	}
}
