#include "sys/procs.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAPS_CHUNK_BYTES = 65536,
	CMDLINE_MAX_BYTES = 4 << 20, /* a longer one is searched up to here */
	MAX_ANCESTORS = 64,
};

/* One walk. `how` collects what the process at hand does with each file. */
struct walk {
	const struct dbt_ctx *ctx;
	const struct dbt_procs_file *files;
	size_t n_files;
	char **map_paths; /* paths as /proc/PID/maps prints them; NULL entries where no path */
	bool any_dir;
	int proc_fd;
	int ancestors[MAX_ANCESTORS];
	size_t n_ancestors;
	int pid;
	unsigned *how;
	struct dbt_buf buf;
	char *maps_buf;
	struct dbt_procs out;
};

static bool is_dir(const struct dbt_procs_file *file)
{
	return S_ISDIR(file->ident->mode);
}

/* text lies below the directory path. */
static bool lies_below(const char *text, const char *path)
{
	size_t len = strlen(path);

	return strncmp(text, path, len) == 0 && text[len] == '/';
}

static bool names_it(const struct dbt_procs_file *file, const char *text)
{
	if (!file->path)
		return false;
	return strcmp(text, file->path) == 0 || (is_dir(file) && lies_below(text, file->path));
}

static int open_of(const struct walk *w, const char *what)
{
	char name[320];

	(void)snprintf(name, sizeof(name), "%d/%s", w->pid, what);
	return openat(w->proc_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static ssize_t readlink_of(const struct walk *w, const char *what, char *text, size_t size)
{
	char name[320];
	ssize_t len;

	(void)snprintf(name, sizeof(name), "%d/%s", w->pid, what);
	len = readlinkat(w->proc_fd, name, text, size - 1);
	text[len < 0 ? 0 : len] = '\0';
	return len;
}

/* A small file of the process, at most size - 1 bytes of it. */
static ssize_t read_of(const struct walk *w, const char *what, char *text, size_t size)
{
	dbt_autoclose int fd = open_of(w, what);
	ssize_t len;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	do
		len = read(fd, text, size - 1);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	return len;
}

/* The number behind "\nKEY:" in a small /proc text, in the base given; -1 when there is none. */
static long long field_of(const char *text, const char *key, int base)
{
	size_t len = strlen(key);
	const char *line = text;

	for (;; line++) {
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			return strtoll(line + len + 1, NULL, base);
		line = strchr(line, '\n');
		if (!line)
			return -1;
	}
}

/* What a magic link of /proc leads to. DONT_SYNC: take what the kernel has in memory, so that a
 * server that does not answer is not asked. */
static bool statx_of(const struct walk *w, const char *what, uint64_t *ret_dev, uint64_t *ret_ino)
{
	struct statx stx = { 0 };
	char name[320];

	(void)snprintf(name, sizeof(name), "%d/%s", w->pid, what);
	if (w->ctx->sys->statx(w->proc_fd, name, AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_INO,
	                       &stx) < 0)
		return false;
	*ret_dev = ((uint64_t)stx.stx_dev_major << 32) | stx.stx_dev_minor;
	*ret_ino = stx.stx_ino;
	return true;
}

static unsigned how_of_flags(long long flags)
{
	if (flags < 0)
		return DBT_PROC_FD_READ;
	switch (flags & O_ACCMODE) {
	case O_WRONLY:
		return DBT_PROC_FD_WRITE;
	case O_RDWR:
		return DBT_PROC_FD_READ | DBT_PROC_FD_WRITE;
	default:
		return DBT_PROC_FD_READ;
	}
}

/* One open descriptor. fdinfo (its `ino` since Linux 5.14) rules out nearly all without touching
 * the file behind. The inode number there is the filesystem's own, which an overlay does not show
 * to stat: on the file's own mount the question is always asked. */
static void look_at_fd(struct walk *w, const char *fd_name)
{
	char what[300], link[PATH_MAX + 1] = "", info[512];
	uint64_t dev = 0, ino = 0;
	long long flags, mnt_id, fd_ino;
	bool ask = false, known;

	(void)snprintf(what, sizeof(what), "fdinfo/%s", fd_name);
	if (read_of(w, what, info, sizeof(info)) < 0)
		return;
	flags = field_of(info, "flags", 8);
	mnt_id = field_of(info, "mnt_id", 10);
	fd_ino = field_of(info, "ino", 10);
	for (size_t i = 0; i < w->n_files && !ask; i++) {
		const struct dbt_ident *id = w->files[i].ident;

		ask = fd_ino < 0 || (uint64_t)fd_ino == id->ino ||
		      (id->mnt_id != 0 && (uint64_t)mnt_id == id->mnt_id);
	}
	if (!ask && !w->any_dir)
		return;
	(void)snprintf(what, sizeof(what), "fd/%s", fd_name);
	if ((w->any_dir || fd_ino < 0) &&
	    (readlink_of(w, what, link, sizeof(link)) <= 0 || link[0] != '/'))
		return; /* sockets, pipes, anonymous inodes */
	known = ask && statx_of(w, what, &dev, &ino);
	for (size_t i = 0; i < w->n_files; i++) {
		const struct dbt_ident *id = w->files[i].ident;

		if ((known && dev == id->dev && ino == id->ino) ||
		    (is_dir(&w->files[i]) && names_it(&w->files[i], link)))
			w->how[i] |= how_of_flags(flags);
	}
}

/* Returns 0, or -errno when the process does not let us look. */
static int look_at_fds(struct walk *w)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dirent *de;
	int fd = open_of(w, "fd");

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	while ((de = readdir(dir)))
		if (isdigit((unsigned char)de->d_name[0]))
			look_at_fd(w, de->d_name);
	return 0;
}

/* One line of /proc/PID/maps:
 *
 *	START-END PERMS OFFSET MAJOR:MINOR INODE      PATH
 *
 * Device and inode are the filesystem's own: on btrfs the device is not the one statx gives, on an
 * overlay (before Linux 6.9) both are the lower file's. So the inode number or the path makes a
 * candidate, and map_files, which leads to the very file, decides. Where that is not allowed, path
 * and numbers have to do. */
struct map {
	const char *range, *perms, *path;
	uint64_t dev, ino;
};

/* Ends the word that at stands on and moves behind it. */
static char *word(char **at)
{
	char *start = *at + strspn(*at, " ");

	*at = start + strcspn(start, " ");
	if (**at != '\0')
		*(*at)++ = '\0';
	return start;
}

static bool parse_map(char *line, struct map *ret)
{
	char *dev, *ino, *end;

	ret->range = word(&line);
	ret->perms = word(&line);
	(void)word(&line);
	dev = word(&line);
	ino = word(&line);
	ret->path = line + strspn(line, " ");
	ret->dev = (uint64_t)strtoul(dev, &end, 16) << 32;
	if (*end != ':' || strlen(ret->perms) < 4 || strlen(ret->range) > 40)
		return false;
	ret->dev |= strtoul(end + 1, NULL, 16);
	ret->ino = strtoull(ino, NULL, 10);
	return true;
}

static bool map_names_it(const struct walk *w, size_t i, const char *path)
{
	const char *mine = w->map_paths[i];

	return mine &&
	       (strcmp(path, mine) == 0 || (is_dir(&w->files[i]) && lies_below(path, mine)));
}

static void look_at_map(struct walk *w, char *line)
{
	char what[96];
	struct map map;
	uint64_t dev = 0, ino = 0;
	bool ask = false, known;

	if (!parse_map(line, &map))
		return;
	for (size_t i = 0; i < w->n_files && !ask; i++)
		ask = map.ino == w->files[i].ident->ino || map_names_it(w, i, map.path);
	if (!ask)
		return;
	(void)snprintf(what, sizeof(what), "map_files/%s", map.range);
	known = statx_of(w, what, &dev, &ino);
	for (size_t i = 0; i < w->n_files; i++) {
		const struct dbt_ident *id = w->files[i].ident;
		bool hit = known ? dev == id->dev && ino == id->ino
		                 : map.dev == id->dev && map.ino == id->ino;

		if (!hit && (!known || is_dir(&w->files[i])))
			hit = map_names_it(w, i, map.path);
		if (hit)
			w->how[i] |= map.perms[1] == 'w' && map.perms[3] == 's'
			                     ? DBT_PROC_MAPPED_READ | DBT_PROC_MAPPED_WRITE
			                     : DBT_PROC_MAPPED_READ;
	}
}

/* Most lines are anonymous memory: their inode is 0, with no path or one in brackets behind. */
static bool is_file_map(const char *line)
{
	const char *p = line;

	for (int blanks = 0; blanks < 4; blanks++) {
		p = strchr(p, ' ');
		if (!p)
			return false;
		p++;
	}
	return *p != '0';
}

static void look_at_maps(struct walk *w)
{
	dbt_autoclose int fd = open_of(w, "maps");
	size_t have = 0;

	if (fd < 0)
		return;
	for (;;) {
		ssize_t got = read(fd, w->maps_buf + have, MAPS_CHUNK_BYTES - 1 - have);
		char *line = w->maps_buf, *end;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		have += (size_t)got;
		w->maps_buf[have] = '\0';
		while ((end = memchr(line, '\n', have - (size_t)(line - w->maps_buf)))) {
			*end = '\0';
			if (is_file_map(line))
				look_at_map(w, line);
			line = end + 1;
		}
		have -= (size_t)(line - w->maps_buf);
		if (have == MAPS_CHUNK_BYTES - 1)
			have = 0; /* no line is that long (a path has at most 4 KiB, escaped 16) */
		memmove(w->maps_buf, line, have);
	}
}

/* The working directory: of interest only when a directory is asked about. */
static void look_at_cwd(struct walk *w)
{
	char link[PATH_MAX + 1];
	uint64_t dev = 0, ino = 0;

	if (readlink_of(w, "cwd", link, sizeof(link)) <= 0)
		return;
	for (size_t i = 0; i < w->n_files; i++) {
		const struct dbt_procs_file *file = &w->files[i];

		if (is_dir(file) &&
		    (names_it(file, link) || (statx_of(w, "cwd", &dev, &ino) &&
		                              dev == file->ident->dev && ino == file->ident->ino)))
			w->how[i] |= DBT_PROC_CWD;
	}
}

static bool is_boundary(char c)
{
	return c == '\0' || strchr(" \t\n'\"=:,;()@&|<>", c) != NULL;
}

/* The path stands in the argument as a word of its own: alone, as --db=PATH or -dPATH, or inside
 * the script of `sh -c`. */
static bool arg_has_path(const char *arg, const char *path, bool dir)
{
	size_t len = strlen(path);
	const char *at = arg;

	while ((at = strstr(at, path))) {
		bool starts = at == arg || is_boundary(at[-1]) || (arg[0] == '-' && at == arg + 2);

		if (starts && (is_boundary(at[len]) || (dir && at[len] == '/')))
			return true;
		at++;
	}
	return false;
}

/* A relative argument, seen from the process's working directory. */
static bool arg_leads_to(const struct walk *w, const char *arg, const char *path)
{
	const char *base = strrchr(path, '/') + 1;
	char cwd[PATH_MAX + 1];
	size_t cwd_len, arg_len = strlen(arg), base_len = strlen(base);

	if (arg[0] == '/' || arg_len < base_len || strcmp(arg + arg_len - base_len, base) != 0)
		return false;
	if (readlink_of(w, "cwd", cwd, sizeof(cwd)) <= 0)
		return false;
	if (strncmp(arg, "./", 2) == 0)
		arg += 2;
	cwd_len = strcmp(cwd, "/") == 0 ? 0 : strlen(cwd);
	return strncmp(path, cwd, cwd_len) == 0 && path[cwd_len] == '/' &&
	       strcmp(path + cwd_len + 1, arg) == 0;
}

static void look_at_cmdline(struct walk *w)
{
	char name[64];
	const char *arg, *end;
	int r;

	for (size_t i = 0; i < w->n_ancestors; i++)
		if (w->ancestors[i] == w->pid)
			return;
	(void)snprintf(name, sizeof(name), "proc/%d/cmdline", w->pid);
	r = dbt_root_read(w->ctx->root, name, CMDLINE_MAX_BYTES, &w->buf);
	if ((r < 0 && r != -EFBIG) || w->buf.len == 0)
		return;
	end = w->buf.data + w->buf.len;
	for (arg = w->buf.data; arg < end; arg += strlen(arg) + 1)
		for (size_t i = 0; i < w->n_files; i++) {
			const char *path = w->files[i].path;

			if (path && (arg_has_path(arg, path, is_dir(&w->files[i])) ||
			             arg_leads_to(w, arg, path)))
				w->how[i] |= DBT_PROC_CMDLINE;
		}
}

static uint32_t effective_uid(const struct walk *w)
{
	char status[4096], *at;

	if (read_of(w, "status", status, sizeof(status)) <= 0)
		return UINT32_MAX;
	at = strstr(status, "\nUid:");
	if (!at)
		return UINT32_MAX;
	(void)strtoul(at + strlen("\nUid:"), &at, 10); /* the real one */
	return (uint32_t)strtoul(at, NULL, 10);
}

static int report(struct walk *w)
{
	ssize_t len;

	for (size_t i = 0; i < w->n_files; i++) {
		struct dbt_proc *p;

		if (w->how[i] == 0)
			continue;
		p = dbt_vec_push(&w->out);
		if (!p)
			return -ENOMEM;
		p->pid = w->pid;
		p->how = w->how[i];
		p->file = i;
		p->uid = effective_uid(w);
		len = read_of(w, "comm", p->name, sizeof(p->name));
		if (len > 0 && p->name[len - 1] == '\n')
			p->name[len - 1] = '\0';
	}
	return 0;
}

static int look_at_process(struct walk *w)
{
	int r;

	memset(w->how, 0, w->n_files * sizeof(*w->how));
	r = look_at_fds(w);
	if (r == -EACCES || r == -EPERM) {
		w->out.blind = true;
		w->out.n_hidden++;
	} else if (r == -ENOENT || r == -ESRCH) {
		return 0; /* gone meanwhile */
	} else if (r < 0) {
		return r;
	} else {
		look_at_maps(w);
		if (w->any_dir)
			look_at_cwd(w);
	}
	look_at_cmdline(w);
	return report(w);
}

static void find_ancestors(struct walk *w)
{
	int pid = (int)getpid();

	while (pid > 0 && w->n_ancestors < MAX_ANCESTORS) {
		w->ancestors[w->n_ancestors++] = pid;
		pid = dbt_procs_parent(w->ctx, pid);
	}
}

/* /proc/PID/maps writes a newline in a path as \012 and nothing else in another way. */
static int escape_for_maps(const char *path, char **ret)
{
	struct dbt_buf buf = { 0 };
	int r = 0;

	for (; *path && r == 0; path++)
		r = *path == '\n' ? dbt_buf_adds(&buf, "\\012") : dbt_buf_addc(&buf, *path);
	if (r < 0) {
		dbt_buf_release(&buf);
		return r;
	}
	*ret = dbt_buf_take(&buf);
	return *ret ? 0 : -ENOMEM;
}

static int walk_init(struct walk *w)
{
	w->how = calloc(w->n_files, sizeof(*w->how));
	w->map_paths = calloc(w->n_files, sizeof(*w->map_paths));
	w->maps_buf = malloc(MAPS_CHUNK_BYTES);
	if (!w->how || !w->map_paths || !w->maps_buf)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_files; i++) {
		w->any_dir |= is_dir(&w->files[i]);
		if (w->files[i].path && w->files[i].path[0] != '/')
			return -EINVAL;
		if (w->files[i].path && escape_for_maps(w->files[i].path, &w->map_paths[i]) < 0)
			return -ENOMEM;
	}
	if (w->ctx->root->live)
		find_ancestors(w);
	return 0;
}

static void walk_release(struct walk *w)
{
	for (size_t i = 0; w->map_paths && i < w->n_files; i++)
		free(w->map_paths[i]);
	free(w->map_paths);
	free(w->how);
	free(w->maps_buf);
	dbt_buf_release(&w->buf);
}

static int walk_proc(struct walk *w)
{
	dbt_autoclosedir DIR *proc = NULL;
	struct dirent *de;
	int r = dbt_root_opendir(w->ctx->root, "proc", &proc);

	if (r < 0)
		return r;
	w->proc_fd = dirfd(proc);
	while (r == 0 && (de = readdir(proc))) {
		w->pid = (int)strtol(de->d_name, NULL, 10);
		if (!isdigit((unsigned char)de->d_name[0]) ||
		    (w->ctx->root->live && w->pid == (int)getpid()))
			continue;
		r = dbt_ctx_cancelled(w->ctx) ? -ECANCELED : look_at_process(w);
	}
	/* hidepid: who may not see others does not even see their numbers, that of init included */
	if (r == 0 && faccessat(w->proc_fd, "1", F_OK, 0) < 0 && w->ctx->root->live)
		w->out.blind = true;
	return r;
}

int dbt_procs_users_of(const struct dbt_ctx *ctx, const struct dbt_procs_file *files,
                       size_t n_files, struct dbt_procs *ret, struct dbt_err *err)
{
	struct walk w = { .ctx = ctx, .files = files, .n_files = n_files, .proc_fd = -1 };
	int r = 0;

	if (n_files > 0) {
		r = walk_init(&w);
		if (r == 0)
			r = walk_proc(&w);
		walk_release(&w);
	}
	if (r < 0) {
		dbt_procs_release(&w.out);
		return dbt_err_sys(err, r, "cannot look for processes that use a file");
	}
	*ret = w.out;
	return 0;
}

int dbt_procs_users(const struct dbt_ctx *ctx, const struct dbt_ident *file, const char *path,
                    struct dbt_procs *ret, struct dbt_err *err)
{
	const struct dbt_procs_file one = { .ident = file, .path = path };

	return dbt_procs_users_of(ctx, &one, 1, ret, err);
}

void dbt_procs_release(struct dbt_procs *procs)
{
	free(procs->items);
	*procs = (struct dbt_procs){ 0 };
}

size_t dbt_procs_count(const struct dbt_procs *procs, unsigned how)
{
	size_t n = 0;

	for (size_t i = 0; i < procs->n; i++)
		n += (procs->items[i].how & how) != 0;
	return n;
}

const char *dbt_proc_how_text(unsigned how, char out[DBT_PROC_HOW_TEXT_BYTES])
{
	static const struct {
		unsigned how;
		const char *text;
	} words[] = {
		{ DBT_PROC_FD_WRITE, "open for writing" },
		{ DBT_PROC_FD_READ, "open" },
		{ DBT_PROC_MAPPED_WRITE, "mapped for writing" },
		{ DBT_PROC_MAPPED_READ, "mapped" },
		{ DBT_PROC_CWD, "working directory" },
		{ DBT_PROC_CMDLINE, "on its command line" },
	};
	size_t used = 0;

	out[0] = '\0';
	if (how & DBT_PROC_FD_WRITE)
		how &= ~(unsigned)DBT_PROC_FD_READ;
	if (how & DBT_PROC_MAPPED_WRITE)
		how &= ~(unsigned)DBT_PROC_MAPPED_READ;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (how & words[i].how)
			used += (size_t)snprintf(out + used, DBT_PROC_HOW_TEXT_BYTES - used, "%s%s",
			                         used > 0 ? ", " : "", words[i].text);
	return out;
}
