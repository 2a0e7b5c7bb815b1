#include "survey/place.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "survey/classify.h"
#include "survey/mounts.h"
#include "survey/stack.h"
#include "sys/at.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void disk_release(struct dbt_disk *disk)
{
	free(disk->name);
	free(disk->tran);
	free(disk->model);
}

void dbt_place_release(struct dbt_place *place)
{
	free(place->mount);
	free(place->mount_root);
	free(place->source);
	free(place->fstype);
	free(place->options);
	free(place->fs_uuid);
	free(place->stack);
	for (size_t i = 0; i < place->n_disks; i++)
		disk_release(&place->disks[i]);
	free(place->disks);
	free(place->layers);
	free(place->device);
	for (size_t i = 0; i < place->n_evidence; i++)
		free(place->evidence[i]);
	free(place->evidence);
	free(place->note);
	*place = (struct dbt_place){ 0 };
}

/* A copy of text, or NULL for NULL; -ENOMEM is told apart by *failed. */
static char *copy(const char *text, bool *failed)
{
	char *new = text ? strdup(text) : NULL;

	*failed = *failed || (text && !new);
	return new;
}

/* --- disks --- */

/* A device at the bottom: no other block device lies below it, if only beneath a file. */
static bool leads_to_device(const struct dbt_stack *stack, size_t at, bool *seen)
{
	const struct dbt_node *node = &stack->items[at];

	for (size_t i = 0; i < node->n_below; i++) {
		size_t below = node->below[i];

		if (seen[below])
			continue;
		seen[below] = true;
		if (!stack->items[below].is_fs || leads_to_device(stack, below, seen))
			return true;
	}
	return false;
}

static bool is_bottom(const struct dbt_stack *stack, size_t at)
{
	dbt_autofree bool *seen = calloc(stack->n, sizeof(*seen));

	return seen && !stack->items[at].is_fs && !leads_to_device(stack, at, seen);
}

static int fill_disk(const struct dbt_blkdev *blk, enum dbt_tier tier, struct dbt_disk *disk)
{
	bool failed = false;

	disk->devno = blk->devno;
	disk->tier = tier;
	disk->rota = blk->rota;
	disk->name = copy(blk->name, &failed);
	disk->tran = copy(blk->tran, &failed);
	disk->model = copy(blk->model, &failed);
	return failed ? -ENOMEM : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct dbt_disk *)a)->name, ((const struct dbt_disk *)b)->name);
}

/* Marks what data can lie on: not what is reached through an inner layer's metadata only. */
static void mark_data(const struct dbt_stack *stack, size_t at, bool *holds_data)
{
	if (holds_data[at] || stack->items[at].blk.metadata_only)
		return;
	holds_data[at] = true;
	for (size_t i = 0; i < stack->items[at].n_below; i++)
		mark_data(stack, stack->items[at].below[i], holds_data);
}

static int fill_devices(const struct dbt_stack *stack, const struct dbt_judgement *j,
                        struct dbt_place *place)
{
	dbt_autofree bool *holds_data = calloc(stack->n, sizeof(*holds_data));
	bool failed = !holds_data;

	if (holds_data)
		mark_data(stack, 0, holds_data);
	place->disks = calloc(stack->n, sizeof(*place->disks));
	place->layers = calloc(stack->n, sizeof(*place->layers));
	if (!place->disks || !place->layers || failed)
		return -ENOMEM;
	for (size_t i = 0; i < stack->n; i++) {
		const struct dbt_node *node = &stack->items[i];

		if (node->is_fs)
			continue;
		if (place->n_layers == 0)
			place->device = copy(node->blk.name, &failed);
		place->layers[place->n_layers++] = node->blk.devno;
		if (!holds_data[i] || !is_bottom(stack, i))
			continue;
		place->n_disks++;
		if (fill_disk(&node->blk, j->tiers[i], &place->disks[place->n_disks - 1]) < 0)
			return -ENOMEM;
	}
	qsort(place->disks, place->n_disks, sizeof(*place->disks), by_name);
	return failed ? -ENOMEM : 0;
}

/* --- the whole --- */

/* The UUID of the filesystem: btrfs has it in sysfs, others where the top device was read. */
static const char *uuid_of(const struct dbt_stack *stack)
{
	const struct dbt_node *top = &stack->items[0];

	if (!top->is_fs)
		return top->blk.content_uuid;
	if (top->uuid || top->n_below == 0 || stack->items[top->below[0]].is_fs)
		return top->uuid;
	return stack->items[top->below[0]].blk.content_uuid;
}

static int judge(const struct dbt_ctx *ctx, const struct dbt_stack *stack,
                 const struct dbt_speeds *speeds, struct dbt_place *place)
{
	struct dbt_overrides overrides = { 0 };
	struct dbt_judgement j = { 0 };
	bool failed = false;
	int r = dbt_overrides_load(ctx, false, &overrides);

	if (r == 0)
		r = dbt_classify(stack, speeds, &overrides, &j);
	dbt_overrides_release(&overrides);
	if (r < 0)
		return r;
	place->tier = j.tier;
	place->mixed = j.mixed;
	place->by_probe = j.by_probe;
	place->fs_uuid = copy(uuid_of(stack), &failed);
	r = failed ? -ENOMEM : fill_devices(stack, &j, place);
	/* The texts change their owner. */
	place->stack = j.stack;
	place->note = j.note;
	place->evidence = j.evidence.items;
	place->n_evidence = j.evidence.n;
	free(j.tiers);
	return r;
}

static char *join_options(const struct dbt_mount *mount, bool *failed)
{
	struct dbt_buf text = { 0 };
	char *joined;

	if (dbt_buf_addf(&text, "%s%s%s", mount->vfs_options, *mount->fs_options ? "," : "",
	                 mount->fs_options) < 0) {
		dbt_buf_release(&text);
		*failed = true;
		return NULL;
	}
	joined = dbt_buf_take(&text);
	*failed = *failed || !joined;
	return joined;
}

static int fill_mount(const struct dbt_mount *mount, struct dbt_place *place)
{
	enum dbt_fs_kind kind = dbt_fs_kind_of(mount->fstype);
	bool failed = false;

	place->mnt_id = mount->id;
	place->fs_devno = mount->devno;
	place->mount = copy(mount->target, &failed);
	place->mount_root = copy(mount->root, &failed);
	place->source = copy(mount->source, &failed);
	place->fstype = copy(mount->fstype, &failed);
	place->options = join_options(mount, &failed);
	place->read_only = mount->read_only;
	place->network = kind == DBT_FS_NETWORK || kind == DBT_FS_CLUSTER;
	place->ram = kind == DBT_FS_RAM;
	place->overlay = kind == DBT_FS_OVERLAY;
	place->userspace = strncmp(mount->fstype, "fuse", 4) == 0;
	return failed ? -ENOMEM : 0;
}

static void fill_space(int fd, struct dbt_place *place)
{
	struct statvfs vfs;

	if (fstatvfs(fd, &vfs) < 0)
		return;
	place->size_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize;
	place->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
}

/* fd: a file on the mount or -1. */
static int place_of(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts,
                    const struct dbt_mount *mount, int fd, const struct dbt_speeds *speeds,
                    struct dbt_place *ret, struct dbt_err *err)
{
	struct dbt_place place = { 0 };
	struct dbt_stack stack = { 0 };
	int r = dbt_stack_of_mount(ctx, mounts, mount, fd, &stack, err);

	if (r < 0)
		return r;
	r = fill_mount(mount, &place);
	if (r == 0)
		r = judge(ctx, &stack, speeds, &place);
	dbt_stack_release(&stack);
	if (r < 0) {
		dbt_place_release(&place);
		return dbt_err_sys(err, r, "cannot tell what '%s' lies on", mount->target);
	}
	if (fd >= 0)
		fill_space(fd, &place);
	*ret = place;
	return 0;
}

int dbt_place_of_device(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, uint64_t devno,
                        const struct dbt_speeds *speeds, struct dbt_place *ret, struct dbt_err *err)
{
	struct dbt_place place = { 0 };
	struct dbt_stack stack = { 0 };
	bool failed = false;
	int r = dbt_stack_of_device(ctx, mounts, devno, &stack, err);

	if (r < 0)
		return r;
	place.mount = copy("", &failed);
	place.mount_root = copy("", &failed);
	place.source = copy("", &failed);
	place.fstype = copy("", &failed);
	place.options = copy("", &failed);
	place.size_bytes = stack.items[0].blk.size_bytes;
	r = failed ? -ENOMEM : judge(ctx, &stack, speeds, &place);
	dbt_stack_release(&stack);
	if (r < 0) {
		dbt_place_release(&place);
		return dbt_err_sys(err, r, "cannot tell what the block device lies on");
	}
	*ret = place;
	return 0;
}

int dbt_place_of_fd(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, int fd,
                    const struct dbt_speeds *speeds, struct dbt_place *ret, struct dbt_err *err)
{
	const struct dbt_mount *mount;
	struct dbt_ident ident;
	struct stat st;
	int r;

	if (fstat(fd, &st) == 0 && S_ISBLK(st.st_mode))
		return dbt_place_of_device(ctx, mounts, st.st_rdev, speeds, ret, err);
	r = dbt_ident_fd(ctx, fd, &ident);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot tell which mount a file is on");
	mount = dbt_mounts_by_id(mounts, ident.mnt_id);
	if (!mount)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODEV,
		                   "the mount %lu of a file is not in the mount table (mounted "
		                   "just now, or in another namespace)",
		                   (unsigned long)ident.mnt_id);
	return place_of(ctx, mounts, mount, fd, speeds, ret, err);
}

/* The root of a mount of the running system, or -1: a mount may be hidden by another, and a server
 * or program behind it may not answer, which would hang us. */
static int open_root(const struct dbt_ctx *ctx, const struct dbt_mount *mount)
{
	enum dbt_fs_kind kind = dbt_fs_kind_of(mount->fstype);
	struct dbt_ident ident;
	int fd;

	if (!ctx->root->live || kind == DBT_FS_NETWORK || kind == DBT_FS_USERSPACE ||
	    kind == DBT_FS_PSEUDO)
		return -1;
	fd = open(mount->target, O_PATH | O_CLOEXEC);
	if (fd >= 0 && (dbt_ident_fd(ctx, fd, &ident) < 0 || ident.mnt_id != mount->id)) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

int dbt_place_of_mount(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, uint64_t mnt_id,
                       const struct dbt_speeds *speeds, struct dbt_place *ret, struct dbt_err *err)
{
	const struct dbt_mount *mount = dbt_mounts_by_id(mounts, mnt_id);
	dbt_autoclose int fd = -1;

	if (!mount)
		return dbt_err_set(err, DBT_ERR_UNKNOWN, -ENOENT,
		                   "no mount with the number %lu is in the mount table",
		                   (unsigned long)mnt_id);
	fd = open_root(ctx, mount);
	return place_of(ctx, mounts, mount, fd, speeds, ret, err);
}

bool dbt_place_same_filesystem(const struct dbt_place *a, const struct dbt_place *b)
{
	if (*a->mount == '\0' || *b->mount == '\0')
		return false;
	return a->mnt_id == b->mnt_id || a->fs_devno == b->fs_devno;
}

bool dbt_place_share_disk(const struct dbt_place *a, const struct dbt_place *b)
{
	for (size_t i = 0; i < a->n_disks; i++)
		for (size_t k = 0; k < b->n_disks; k++)
			if (a->disks[i].devno == b->disks[k].devno)
				return true;
	return false;
}
