#include "support/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_WORDS = 32, MAX_DEVICES = 64, MAX_MOUNTS = 64 };

struct device {
	char name[64];
	char dir[512]; /* "sys/devices/..." */
};

struct building {
	int fd;
	struct device devices[MAX_DEVICES];
	size_t n_devices;
	char mounts[MAX_MOUNTS][256]; /* targets */
	size_t n_mounts;
};

/* No link that the text made leads us anywhere. */
static int open_inside(const struct building *b, const char *path, int flags, mode_t mode)
{
	struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC),
		                .mode = mode,
		                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, b->fd, path, &how, sizeof(how));
}

/* The directory part of path, made as needed; the last component goes to *ret_name. */
static int make_parent(const struct building *b, char *path, const char **ret_name)
{
	char *slash;
	int dir = open_inside(b, ".", O_PATH | O_DIRECTORY, 0), next;

	while (dir >= 0 && (slash = strchr(path, '/'))) {
		*slash = '\0';
		if (*path) {
			struct building below = { .fd = dir };

			if (strcmp(path, "..") == 0 || strcmp(path, ".") == 0) {
				(void)close(dir);
				return -1;
			}
			(void)mkdirat(dir, path, 0755);
			next = open_inside(&below, path, O_PATH | O_DIRECTORY, 0);
			(void)close(dir);
			dir = next;
		}
		path = slash + 1;
	}
	*ret_name = path;
	return dir;
}

static void put(const struct building *b, const char *path, const void *data, size_t len,
                bool append)
{
	char copy[PATH_MAX];
	const char *name;
	int dir, fd;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return;
	dir = make_parent(b, copy, &name);
	if (dir < 0)
		return;
	if (*name) {
		struct building below = { .fd = dir };

		fd = open_inside(&below, name, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC),
		                 0644);
		if (fd >= 0) {
			(void)!write(fd, data, len);
			(void)close(fd);
		}
	}
	(void)close(dir);
}

static void put_text(const struct building *b, const char *path, const char *text)
{
	char line[4096];

	put(b, path, line, (size_t)snprintf(line, sizeof(line), "%.4000s\n", text), false);
}

static void put_link(const struct building *b, const char *path, const char *text)
{
	char copy[PATH_MAX];
	const char *name;
	int dir;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return;
	dir = make_parent(b, copy, &name);
	if (dir < 0)
		return;
	/* A link that is there already is the same one: several files share directories. */
	if (*name && symlinkat(text, dir, name) < 0 && errno != EEXIST)
		perror(path);
	(void)close(dir);
}

static const char *dir_of(const struct building *b, const char *name)
{
	for (size_t i = 0; i < b->n_devices; i++)
		if (strcmp(b->devices[i].name, name) == 0)
			return b->devices[i].dir;
	return NULL;
}

/* ATTRIBUTE=VALUE of a device. */
static void put_attribute(const struct building *b, const char *dir, char *word)
{
	char path[PATH_MAX], *value = strchr(word, '=');

	if (!value)
		return;
	*value++ = '\0';
	for (char *p = value; *p; p++)
		if (*p == '_')
			*p = ' ';
	if (snprintf(path, sizeof(path), "%s/%s", dir, word) < (int)sizeof(path))
		put_text(b, path, value);
}

static void add_device(struct building *b, const char *name, const char *number, const char *dir)
{
	struct device *d;
	char path[PATH_MAX], text[PATH_MAX];

	if (b->n_devices == MAX_DEVICES)
		return;
	d = &b->devices[b->n_devices++];
	(void)snprintf(d->name, sizeof(d->name), "%.63s", name);
	(void)snprintf(d->dir, sizeof(d->dir), "%.511s", dir);
	(void)snprintf(path, sizeof(path), "%s/dev", d->dir);
	put_text(b, path, number);
	(void)snprintf(text, sizeof(text), "../../%s", d->dir + 4);
	(void)snprintf(path, sizeof(path), "sys/dev/block/%.64s", number);
	put_link(b, path, text);
	(void)snprintf(path, sizeof(path), "sys/class/block/%.64s", name);
	put_link(b, path, text);
	(void)snprintf(path, sizeof(path), "sys/block/%.64s", name);
	put_link(b, path, text + 3);
}

static void add_slaves(const struct building *b, const char *dir, char **words, size_t n)
{
	char path[PATH_MAX], text[PATH_MAX];

	for (size_t i = 0; i < n; i++) {
		const char *below = dir_of(b, words[i]);

		(void)snprintf(path, sizeof(path), "%s/slaves/%.64s", dir, words[i]);
		(void)snprintf(text, sizeof(text), "/%s", below ? below : "sys/nowhere");
		put_link(b, path, text);
	}
}

static void add_virtual(struct building *b, const char *name, const char *number, char **words,
                        size_t n)
{
	char dir[256];

	(void)snprintf(dir, sizeof(dir), "sys/devices/virtual/block/%.64s", name);
	add_device(b, name, number, dir);
	if (n > 1 && strcmp(words[0], "on") == 0)
		add_slaves(b, dir, words + 1, n - 1);
}

static void do_mount(struct building *b, char **w, size_t n)
{
	const char *root = "/", *opts = "rw";
	char line[2048];
	size_t parent = 1, best = 0;

	if (n < 4 || b->n_mounts == MAX_MOUNTS)
		return;
	for (size_t i = 4; i < n; i++) {
		if (strncmp(w[i], "root=", 5) == 0)
			root = w[i] + 5;
		if (strncmp(w[i], "opts=", 5) == 0)
			opts = w[i] + 5;
	}
	for (size_t i = 0; i < b->n_mounts; i++) {
		size_t len = strlen(b->mounts[i]);

		if (strncmp(b->mounts[i], w[0], len) == 0 && len >= best &&
		    (len == 1 || w[0][len] == '/' || w[0][len] == '\0')) {
			best = len;
			parent = 20 + i;
		}
	}
	(void)snprintf(b->mounts[b->n_mounts], sizeof(b->mounts[0]), "%.255s", w[0]);
	(void)snprintf(line, sizeof(line), "%zu %zu %.32s %.256s %.256s rw - %.64s %.512s %.768s\n",
	               20 + b->n_mounts++, parent, w[3], root, w[0], w[1], w[2], opts);
	put(b, "proc/self/mountinfo", line, strlen(line), true);
}

static void do_disk(struct building *b, char **w, size_t n)
{
	char dir[512], path[PATH_MAX];
	bool nvme;

	if (n < 3)
		return;
	nvme = strncmp(w[0], "nvme", 4) == 0;
	(void)snprintf(dir, sizeof(dir), "sys/devices/%.384s%s/%.64s", w[2], nvme ? "" : "/block",
	               w[0]);
	add_device(b, w[0], w[1], dir);
	(void)snprintf(path, sizeof(path), "%s/device", dir);
	put_link(b, path, nvme ? ".." : "../..");
	for (size_t i = 3; i < n; i++) {
		if (strncmp(w[i], "device/", 7) == 0) {
			(void)snprintf(path, sizeof(path), "sys/devices/%.384s", w[2]);
			put_attribute(b, path, w[i] + 7);
		} else {
			put_attribute(b, dir, w[i]);
		}
	}
}

static void do_part(struct building *b, char **w, size_t n)
{
	const char *disk = n == 4 ? dir_of(b, w[3]) : NULL;
	char dir[600], path[PATH_MAX];

	if (!disk)
		return;
	(void)snprintf(dir, sizeof(dir), "%s/%.64s", disk, w[0]);
	add_device(b, w[0], w[1], dir);
	(void)snprintf(path, sizeof(path), "%s/partition", dir);
	put_text(b, path, "1");
}

static void do_dm(struct building *b, char **w, size_t n)
{
	char path[PATH_MAX];

	if (n < 4)
		return;
	add_virtual(b, w[0], w[1], w + 4, n - 4);
	(void)snprintf(path, sizeof(path), "sys/devices/virtual/block/%.64s/dm/name", w[0]);
	put_text(b, path, w[2]);
	(void)snprintf(path, sizeof(path), "sys/devices/virtual/block/%.64s/dm/uuid", w[0]);
	put_text(b, path, w[3]);
}

static void do_md(struct building *b, char **w, size_t n)
{
	char path[PATH_MAX];

	if (n < 3)
		return;
	add_virtual(b, w[0], w[1], w + 3, n - 3);
	(void)snprintf(path, sizeof(path), "sys/devices/virtual/block/%.64s/md/level", w[0]);
	put_text(b, path, w[2]);
}

static void do_loop(struct building *b, char **w, size_t n)
{
	char path[PATH_MAX];

	if (n < 3)
		return;
	add_virtual(b, w[0], w[1], w + 3, 0);
	(void)snprintf(path, sizeof(path), "sys/devices/virtual/block/%.64s/loop/backing_file",
	               w[0]);
	for (char *p = w[2]; *p; p++)
		if (*p == '_')
			*p = ' ';
	put_text(b, path, w[2]);
}

static void do_virtual(struct building *b, char **w, size_t n)
{
	if (n >= 2)
		add_virtual(b, w[0], w[1], w + 2, n - 2);
}

static void do_attr(struct building *b, char **w, size_t n)
{
	const char *dir = n == 2 ? dir_of(b, w[0]) : NULL;

	if (dir)
		put_attribute(b, dir, w[1]);
}

static void do_driver(struct building *b, char **w, size_t n)
{
	char path[PATH_MAX], text[128];

	if (n != 2)
		return;
	(void)snprintf(path, sizeof(path), "sys/devices/%.512s/driver", w[0]);
	(void)snprintf(text, sizeof(text), "/sys/bus/any/drivers/%.64s", w[1]);
	put_link(b, path, text);
}

static void do_udev(struct building *b, char **w, size_t n)
{
	char path[128], line[512];

	if (n != 2)
		return;
	(void)snprintf(path, sizeof(path), "run/udev/data/b%.32s", w[0]);
	(void)snprintf(line, sizeof(line), "%s%.400s\n",
	               strncmp(w[1], "S:", 2) == 0 ? "" : "E:", w[1]);
	put(b, path, line, strlen(line), true);
}

static void do_btrfs(struct building *b, char **w, size_t n)
{
	char path[PATH_MAX], text[PATH_MAX];

	for (size_t i = 1; i < n; i++) {
		const char *dir = dir_of(b, w[i]);

		(void)snprintf(path, sizeof(path), "sys/fs/btrfs/%.64s/devices/%.64s", w[0], w[i]);
		(void)snprintf(text, sizeof(text), "/%s", dir ? dir : "sys/nowhere");
		put_link(b, path, text);
	}
}

static void put_words(struct building *b, char **w, size_t n, bool append)
{
	char text[2048] = "";

	for (size_t i = 1; i < n; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
		               i > 1 ? " " : "", w[i]);
	(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "\n");
	if (n > 0)
		put(b, w[0], text, strlen(text), append);
}

static void do_file(struct building *b, char **w, size_t n)
{
	put_words(b, w, n, false);
}

static void do_more(struct building *b, char **w, size_t n)
{
	put_words(b, w, n, true);
}

static void do_hex(struct building *b, char **w, size_t n)
{
	unsigned char bytes[256];
	size_t len = 0;

	for (const char *p = n == 2 ? w[1] : ""; p[0] && p[1] && len < sizeof(bytes); p += 2) {
		char one[3] = { p[0], p[1], '\0' };

		bytes[len++] = (unsigned char)strtoul(one, NULL, 16);
	}
	if (n == 2)
		put(b, w[0], bytes, len, false);
}

static void do_link(struct building *b, char **w, size_t n)
{
	if (n == 2)
		put_link(b, w[0], w[1]);
}

static const struct {
	const char *word;
	void (*run)(struct building *b, char **words, size_t n);
} verbs[] = {
	{ "mount", do_mount },     { "disk", do_disk },   { "part", do_part },
	{ "dm", do_dm },           { "md", do_md },       { "loop", do_loop },
	{ "virtual", do_virtual }, { "attr", do_attr },   { "driver", do_driver },
	{ "udev", do_udev },       { "btrfs", do_btrfs }, { "file", do_file },
	{ "more", do_more },       { "hex", do_hex },     { "link", do_link },
};

static void do_line(struct building *b, char *line)
{
	char *words[MAX_WORDS], *save = NULL;
	size_t n = 0;

	for (char *w = strtok_r(line, " \t", &save); w && n < MAX_WORDS;
	     w = strtok_r(NULL, " \t", &save))
		words[n++] = w;
	for (size_t i = 0; n > 0 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].word, words[0]) == 0)
			verbs[i].run(b, words + 1, n - 1);
}

char *machine_build(const char *dir, const char *text, size_t len)
{
	struct building *b = calloc(1, sizeof(*b));
	char *copy = strndup(text, len), *root = NULL, *save = NULL;

	if (b && copy && asprintf(&root, "%s/machine.XXXXXX", dir) > 0 && mkdtemp(root)) {
		b->fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		for (char *line = strtok_r(copy, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			do_line(b, line);
		(void)close(b->fd);
	} else {
		free(root);
		root = NULL;
	}
	free(copy);
	free(b);
	return root;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path);
	return 0;
}

void machine_remove(const char *root)
{
	(void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
