/* The layers below a mount or a device, as a graph of facts: filesystems and block devices, each
 * with what lies directly below it. Walking reads; judging it is classify.h. A device that is
 * reached twice is one node; nothing lies below itself (cycles are cut and noted). */
#ifndef DBT_SURVEY_STACK_H
#define DBT_SURVEY_STACK_H

#include "base/err.h"
#include "survey/blkdev.h"
#include "survey/mounts.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>

enum dbt_fs_kind {
	DBT_FS_BLOCK = 0, /* on block devices of this machine */
	DBT_FS_NETWORK,   /* NFS, SMB, 9p, virtiofs, Lustre ... */
	DBT_FS_CLUSTER,   /* on a block device that other machines mount too: GFS2, OCFS2 */
	DBT_FS_RAM,       /* tmpfs, ramfs */
	DBT_FS_OVERLAY,
	DBT_FS_USERSPACE, /* FUSE: what is behind it cannot be seen */
	DBT_FS_OPAQUE,    /* has disks, but no way to them is known: ZFS */
	DBT_FS_PSEUDO,    /* proc, sysfs, cgroup: no files of anybody */
};

enum dbt_fs_kind dbt_fs_kind_of(const char *fstype);

struct dbt_node {
	bool is_fs;
	/* A filesystem: */
	enum dbt_fs_kind fs_kind;
	char *fstype, *source, *target;
	char *uuid;       /* btrfs: of the filesystem; NULL unknown */
	unsigned missing; /* members that are absent */
	/* A block device: */
	struct dbt_blkdev blk;
	const char *cache; /* "dm-cache", "dm-writecache", "bcache"; NULL; static */

	size_t *below; /* indices in the stack */
	size_t n_below, cap_below;
	char *trouble; /* why what lies below is not, or not fully, known; NULL */
	bool open;     /* being walked: meeting it again is a cycle */
};

struct dbt_stack {
	struct dbt_node *items; /* [0] is the top */
	size_t n, cap;
};

/* The stack below a mount. fd (or -1): a file on it, which on an overlay tells the layer. */
int dbt_stack_of_mount(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts,
                       const struct dbt_mount *mount, int fd, struct dbt_stack *ret,
                       struct dbt_err *err);

/* The stack that a block device is the top of. */
int dbt_stack_of_device(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, uint64_t devno,
                        struct dbt_stack *ret, struct dbt_err *err);

void dbt_stack_release(struct dbt_stack *stack);

#endif
