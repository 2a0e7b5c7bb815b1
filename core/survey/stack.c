#include "survey/stack.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "sys/at.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Real stacks have under ten layers and a few hundred disks; garbled ones must end. */
enum { MAX_DEPTH = 32, MAX_NODES = 4096, NO_NODE = -1 };

struct walk {
	const struct dbt_ctx *ctx;
	const struct dbt_mounts *mounts;
	struct dbt_stack *stack;
	unsigned depth;
};

static void node_release(struct dbt_node *node)
{
	free(node->fstype);
	free(node->source);
	free(node->target);
	free(node->uuid);
	free(node->below);
	free(node->trouble);
	dbt_blkdev_release(&node->blk);
}

void dbt_stack_release(struct dbt_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		node_release(&stack->items[i]);
	free(stack->items);
	*stack = (struct dbt_stack){ 0 };
}

/* The first reason stays: it is the nearest to the truth. */
static int trouble(struct walk *w, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int trouble(struct walk *w, size_t at, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (w->stack->items[at].trouble)
		return 0;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	w->stack->items[at].trouble = strdup(text);
	return w->stack->items[at].trouble ? 0 : -ENOMEM;
}

static int link_below(struct walk *w, size_t at, size_t below)
{
	struct dbt_node *node = &w->stack->items[at];
	size_t *grown = dbt_vec_grow(node->below, node->n_below, &node->cap_below, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	node->below = grown;
	node->below[node->n_below++] = below;
	return 0;
}

/* New node, or -errno. */
static ssize_t add_node(struct walk *w)
{
	if (w->stack->n >= MAX_NODES)
		return -E2BIG;
	if (!dbt_vec_push(w->stack))
		return -ENOMEM;
	w->stack->items[w->stack->n - 1].open = true;
	return (ssize_t)w->stack->n - 1;
}

static ssize_t find_device(const struct walk *w, uint64_t devno)
{
	for (size_t i = 0; i < w->stack->n; i++)
		if (!w->stack->items[i].is_fs && w->stack->items[i].blk.devno == devno)
			return (ssize_t)i;
	return NO_NODE;
}

/* The node of a filesystem that is already in the stack: the same superblock. */
static ssize_t find_fs(const struct walk *w, const struct dbt_mount *mount)
{
	for (size_t i = 0; i < w->stack->n; i++) {
		const struct dbt_node *node = &w->stack->items[i];

		if (node->is_fs && strcmp(node->target, mount->target) == 0 &&
		    strcmp(node->source, mount->source) == 0)
			return (ssize_t)i;
	}
	return NO_NODE;
}

static int walk_device(struct walk *w, size_t above, uint64_t devno);
static int walk_mount(struct walk *w, ssize_t above, const struct dbt_mount *mount, int fd);

/* Hangs a device that is already known below `above`, unless that closes a circle. */
static int join(struct walk *w, size_t above, size_t known)
{
	const struct dbt_node *node = &w->stack->items[known];

	if (node->open)
		return trouble(w, above, "the layers form a circle at %s", node->blk.name);
	return link_below(w, above, known);
}

static bool has_suffix(const char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix);

	return n >= m && strcmp(text + n - m, suffix) == 0;
}

static void mark_cache(struct dbt_stack *stack, size_t at)
{
	struct dbt_node *node = &stack->items[at];

	if (node->blk.kind == DBT_BLK_BCACHE && node->n_below > 1)
		node->cache = "bcache";
	if (node->blk.kind != DBT_BLK_LVM)
		return;
	/* LVM's names for the slow part below a cache (lvm2, lib/metadata/cache_manip.c and
	 * writecache_manip.c). */
	for (size_t i = 0; i < node->n_below; i++) {
		const char *name = stack->items[node->below[i]].blk.dm_name;

		if (name && has_suffix(name, "_wcorig"))
			node->cache = "dm-writecache";
		else if (name && has_suffix(name, "_corig"))
			node->cache = "dm-cache";
	}
}

/* --- loop: the file beneath, and the filesystem that holds it --- */

/* The mount that holds a path of the running system: by mount id, without following the last
 * component's automount. Also the descriptor, for an overlay's layer. */
static const struct dbt_mount *live_mount_of(const struct walk *w, const char *path, int *ret_fd)
{
	struct dbt_ident ident;
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (dbt_ident_fd(w->ctx, fd, &ident) < 0) {
		(void)close(fd);
		return NULL;
	}
	*ret_fd = fd;
	return dbt_mounts_by_id(w->mounts, ident.mnt_id);
}

static bool same_superblock(const struct walk *w, int fd, uint64_t devno)
{
	struct dbt_ident ident;

	return devno == 0 || (dbt_ident_fd(w->ctx, fd, &ident) == 0 && ident.dev == devno);
}

static const struct dbt_mount *mount_with_devno(const struct walk *w, uint64_t devno)
{
	for (size_t i = 0; i < dbt_mounts_count(w->mounts); i++)
		if (dbt_mounts_at(w->mounts, i)->devno == devno)
			return dbt_mounts_at(w->mounts, i);
	return NULL;
}

static int walk_loop(struct walk *w, size_t at)
{
	const struct dbt_blkdev *blk = &w->stack->items[at].blk;
	uint64_t devno = blk->loop_devno;
	const struct dbt_mount *mount = NULL;
	dbt_autoclose int fd = -1;

	if (!blk->loop_file)
		return trouble(w, at, "%s: the file beneath is not known", blk->name);
	if (w->ctx->root->live && !blk->loop_deleted)
		mount = live_mount_of(w, blk->loop_file, &fd);
	else if (!w->ctx->root->live && blk->loop_file[0] == '/')
		mount = dbt_mounts_by_path(w->mounts, blk->loop_file);
	/* Another file may stand at that path in this namespace. */
	if (mount && fd >= 0 && !same_superblock(w, fd, devno))
		mount = NULL;
	if (!mount && devno != 0)
		mount = mount_with_devno(w, devno);
	if (mount)
		return walk_mount(w, (ssize_t)at, mount, fd);
	if (devno != 0 && major(devno) != 0)
		return walk_device(w, at, devno);
	return trouble(w, at, "%s: the file beneath, '%s', cannot be seen from here", blk->name,
	               blk->loop_file);
}

/* --- devices --- */

static int walk_below(struct walk *w, size_t at)
{
	int r = 0;

	if (w->stack->items[at].blk.kind == DBT_BLK_LOOP)
		return walk_loop(w, at);
	/* The array may move while nodes are added: no pointer into it is kept. */
	for (size_t i = 0; r == 0 && i < w->stack->items[at].blk.n_below; i++)
		r = walk_device(w, at, w->stack->items[at].blk.below[i]);
	mark_cache(w->stack, at);
	return r;
}

static int walk_new_device(struct walk *w, ssize_t above, uint64_t devno)
{
	struct dbt_blkdev blk;
	ssize_t at;
	int r = dbt_blkdev_read(w->ctx, devno, true, &blk, NULL);

	if (r == -ENOMEM)
		return r;
	if (r < 0 && above < 0)
		return r;
	if (r < 0)
		return trouble(w, (size_t)above, "block device %u:%u is not in sysfs", major(devno),
		               minor(devno));
	at = add_node(w);
	if (at < 0) {
		dbt_blkdev_release(&blk);
		return at == -E2BIG && above >= 0
		               ? trouble(w, (size_t)above, "more than %d layers", MAX_NODES)
		               : (int)at;
	}
	w->stack->items[at].blk = blk;
	if (blk.trouble && trouble(w, (size_t)at, "%s", blk.trouble) < 0)
		return -ENOMEM;
	r = walk_below(w, (size_t)at);
	w->stack->items[at].open = false;
	return r == 0 && above >= 0 ? link_below(w, (size_t)above, (size_t)at) : r;
}

static int walk_device(struct walk *w, size_t above, uint64_t devno)
{
	ssize_t known = find_device(w, devno);
	int r;

	if (known >= 0)
		return join(w, above, (size_t)known);
	if (w->depth >= MAX_DEPTH)
		return trouble(w, above, "more than %d layers on each other", MAX_DEPTH);
	w->depth++;
	r = walk_new_device(w, (ssize_t)above, devno);
	w->depth--;
	return r;
}

/* --- filesystems --- */

static int walk_source(struct walk *w, size_t at, const char *source, uint64_t *ret_devno)
{
	int r = dbt_blkdev_find(w->ctx, source, ret_devno);

	if (r < 0)
		return trouble(w, at, "no block device could be found for its source '%s'",
		               *source ? source : "none");
	return walk_device(w, at, *ret_devno);
}

/* bcachefs names all members in the source: "/dev/sda:/dev/sdb". */
static int walk_source_list(struct walk *w, size_t at, const char *list)
{
	dbt_autofree char *copied = strdup(list);
	char *rest = copied, *one;
	uint64_t devno;
	int r = copied ? 0 : -ENOMEM;

	while (r == 0 && (one = strsep(&rest, ":")))
		r = walk_source(w, at, one, &devno);
	return r;
}

static int walk_btrfs(struct walk *w, size_t at, const struct dbt_mount *mount)
{
	struct dbt_btrfs_members members = { 0 };
	uint64_t devno;
	int r = dbt_blkdev_find(w->ctx, mount->source, &devno);

	if (r < 0)
		return trouble(w, at, "no block device could be found for its source '%s'",
		               mount->source);
	r = dbt_blkdev_btrfs_members(w->ctx, devno, &members);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		r = walk_device(w, at, devno);
		return r < 0 ? r : trouble(w, at, "sys/fs/btrfs does not list its members");
	}
	for (size_t i = 0; r >= 0 && i < members.n; i++)
		r = walk_device(w, at, members.devnos[i]);
	w->stack->items[at].missing = members.missing;
	w->stack->items[at].uuid = members.uuid;
	members.uuid = NULL;
	dbt_btrfs_members_release(&members);
	return r < 0 ? r : 0;
}

/* An XFS realtime device holds the data of the files marked so; the log device no data at all. */
static int walk_realtime(struct walk *w, size_t at, const struct dbt_mount *mount)
{
	dbt_autofree char *rtdev = NULL;
	uint64_t devno;
	int r = dbt_mount_option(mount->fs_options, "rtdev", 0, &rtdev);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : walk_source(w, at, rtdev, &devno);
}

static int walk_block_fs(struct walk *w, size_t at, const struct dbt_mount *mount)
{
	uint64_t devno;
	int r;

	if (strcmp(mount->fstype, "btrfs") == 0)
		return walk_btrfs(w, at, mount);
	if (strcmp(mount->fstype, "bcachefs") == 0)
		return walk_source_list(w, at, mount->source);
	/* mountinfo's number is the kernel's own word, the source only what mount(8) was told. */
	if (major(mount->devno) != 0)
		r = walk_device(w, at, mount->devno);
	else
		r = walk_source(w, at, mount->source, &devno);
	if (r == 0 && strcmp(mount->fstype, "xfs") == 0)
		r = walk_realtime(w, at, mount);
	return r;
}

/* --- overlay: the layer that holds the file --- */

/* Undoes the overlay's own escaping of ':' and '\' in layer paths. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*to = '\0';
}

/* The next layer from *at in a list separated by ':' that is not escaped; NULL at the end. "::"
 * begins data-only layers. */
static char *next_layer(char **at)
{
	char *start = *at, *p;

	while (start && *start == ':')
		start++;
	if (!start || !*start)
		return NULL;
	for (p = start; *p && *p != ':'; p++)
		if (*p == '\\' && p[1])
			p++;
	*at = *p ? p + 1 : p;
	*p = '\0';
	unescape(start);
	return start;
}

/* Is this layer's file the one that the overlay shows? Size and times are passed through. */
static bool is_same_file(const struct stat *shown, const struct stat *layer)
{
	return (shown->st_mode & S_IFMT) == (layer->st_mode & S_IFMT) &&
	       shown->st_size == layer->st_size && shown->st_mtim.tv_sec == layer->st_mtim.tv_sec &&
	       shown->st_mtim.tv_nsec == layer->st_mtim.tv_nsec;
}

/* Looks for the file in one layer. 1: found and walked. 0: not here. */
static int try_layer(struct walk *w, size_t at, const char *layer, const char *inner,
                     const struct stat *shown)
{
	dbt_autoclose int fd = -1;
	const struct dbt_mount *mount;
	struct stat st;
	char path[PATH_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s/%s", layer, inner) >= (int)sizeof(path))
		return 0;
	mount = live_mount_of(w, path, &fd);
	if (!mount || fstat(fd, &st) < 0 || !is_same_file(shown, &st))
		return 0;
	r = walk_mount(w, (ssize_t)at, mount, fd);
	return r < 0 ? r : 1;
}

/* One layer without a file to look for: every filesystem that holds a layer counts. */
static int walk_layer(struct walk *w, size_t at, const char *layer)
{
	dbt_autoclose int fd = -1;
	const struct dbt_mount *mount;
	ssize_t known;

	if (layer[0] != '/')
		return trouble(w, at,
		               "the layer '%s' is named relative to a directory nobody knows",
		               layer);
	mount = w->ctx->root->live ? live_mount_of(w, layer, &fd)
	                           : dbt_mounts_by_path(w->mounts, layer);
	if (!mount)
		return trouble(w, at, "its layer '%s' cannot be seen from here", layer);
	/* The paths of a container's layers are the host's; what this namespace has there, the
	 * overlay itself, is something else. */
	known = find_fs(w, mount);
	if (known >= 0 && w->stack->items[known].open)
		return trouble(w, at, "its layer '%s' cannot be seen from here", layer);
	return walk_mount(w, (ssize_t)at, mount, fd);
}

/* Calls try_layer for each layer until one has the file, or (inner NULL) walk_layer for all. */
static int each_layer(struct walk *w, size_t at, const struct dbt_mount *mount, const char *inner,
                      const struct stat *shown)
{
	static const char *const keys[] = { "upperdir", "lowerdir", "lowerdir+", "datadir+" };
	int r = 0;

	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		for (size_t nth = 0; r == 0; nth++) {
			dbt_autofree char *list = NULL;
			char *rest, *layer;

			r = dbt_mount_option(mount->fs_options, keys[k], nth, &list);
			if (r < 0)
				break;
			rest = list;
			while (r == 0 && (layer = next_layer(&rest)))
				r = inner ? try_layer(w, at, layer, inner, shown)
				          : walk_layer(w, at, layer);
		}
		if (r != -ENOENT)
			break;
		r = 0;
	}
	return r;
}

/* The file's path below the overlay's root, from its mount point; NULL when it cannot be told. */
static char *inner_path(const struct dbt_mount *mount, int fd)
{
	dbt_autofree char *path = NULL;
	size_t len = strlen(mount->target);

	if (strcmp(mount->root, "/") != 0 || dbt_fd_path(fd, &path) < 0)
		return NULL;
	if (len == 1)
		return strdup(path + 1);
	if (strncmp(path, mount->target, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return strdup(path[len] ? path + len + 1 : "");
}

static int walk_overlay(struct walk *w, size_t at, const struct dbt_mount *mount, int fd)
{
	dbt_autofree char *inner = NULL;
	struct stat shown;
	int r;

	if (fd >= 0 && w->ctx->root->live && fstat(fd, &shown) == 0 && !S_ISDIR(shown.st_mode)) {
		inner = inner_path(mount, fd);
		if (!inner)
			return trouble(w, at, "the file's path inside the overlay is not known");
		r = each_layer(w, at, mount, inner, &shown);
		if (r < 0)
			return r;
		return r == 1 ? 0
		              : trouble(w, at,
		                        "the layer that holds the file cannot be seen from "
		                        "here");
	}
	r = each_layer(w, at, mount, NULL, NULL);
	if (r == 0 && w->stack->items[at].n_below == 0)
		r = trouble(w, at, "its layers cannot be seen from here");
	return r < 0 ? r : 0;
}

static int walk_fs(struct walk *w, size_t at, const struct dbt_mount *mount, int fd)
{
	switch (w->stack->items[at].fs_kind) {
	case DBT_FS_BLOCK:
	case DBT_FS_CLUSTER:
		return walk_block_fs(w, at, mount);
	case DBT_FS_OVERLAY:
		return walk_overlay(w, at, mount, fd);
	case DBT_FS_NETWORK:
	case DBT_FS_RAM:
	case DBT_FS_USERSPACE:
	case DBT_FS_OPAQUE:
	case DBT_FS_PSEUDO:
	default:
		return 0;
	}
}

static int walk_mount(struct walk *w, ssize_t above, const struct dbt_mount *mount, int fd)
{
	ssize_t at = find_fs(w, mount);
	struct dbt_node *node;
	int r;

	if (at >= 0 && above >= 0) {
		if (w->stack->items[at].open)
			return trouble(w, (size_t)above, "the layers form a circle at %s",
			               mount->target);
		/* Two layers of an overlay on one filesystem: one edge says it. */
		for (size_t i = 0; i < w->stack->items[above].n_below; i++)
			if (w->stack->items[above].below[i] == (size_t)at)
				return 0;
		return link_below(w, (size_t)above, (size_t)at);
	}
	if (w->depth >= MAX_DEPTH)
		return above < 0 ? -E2BIG
		                 : trouble(w, (size_t)above, "more than %d layers on each other",
		                           MAX_DEPTH);
	at = add_node(w);
	if (at < 0)
		return (int)at;
	node = &w->stack->items[at];
	node->is_fs = true;
	node->fs_kind = dbt_fs_kind_of(mount->fstype);
	node->fstype = strdup(mount->fstype);
	node->source = strdup(mount->source);
	node->target = strdup(mount->target);
	if (!node->fstype || !node->source || !node->target)
		return -ENOMEM;
	w->depth++;
	r = walk_fs(w, (size_t)at, mount, fd);
	w->depth--;
	w->stack->items[at].open = false;
	return r == 0 && above >= 0 ? link_below(w, (size_t)above, (size_t)at) : r;
}

int dbt_stack_of_mount(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts,
                       const struct dbt_mount *mount, int fd, struct dbt_stack *ret,
                       struct dbt_err *err)
{
	struct dbt_stack stack = { 0 };
	struct walk w = { .ctx = ctx, .mounts = mounts, .stack = &stack };
	int r = walk_mount(&w, NO_NODE, mount, fd);

	if (r < 0) {
		dbt_stack_release(&stack);
		return dbt_err_sys(err, r, "cannot follow the layers below '%s'", mount->target);
	}
	*ret = stack;
	return 0;
}

int dbt_stack_of_device(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, uint64_t devno,
                        struct dbt_stack *ret, struct dbt_err *err)
{
	struct dbt_stack stack = { 0 };
	struct walk w = { .ctx = ctx, .mounts = mounts, .stack = &stack };
	int r = walk_new_device(&w, NO_NODE, devno);

	if (r < 0) {
		dbt_stack_release(&stack);
		return dbt_err_sys(err, r, "cannot follow the layers below block device %u:%u",
		                   major(devno), minor(devno));
	}
	*ret = stack;
	return 0;
}
