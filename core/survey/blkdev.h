/* One block device as the kernel describes it: facts from sysfs, what libblkid (or udev's data)
 * finds on it. No judgement here: that is classify.h. The only user of libblkid. */
#ifndef DBT_SURVEY_BLKDEV_H
#define DBT_SURVEY_BLKDEV_H

#include "base/err.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dbt_blk_kind {
	DBT_BLK_DISK = 0, /* nothing known below: sd, nvme, vd, xvd, mmcblk, nbd, rbd, pmem ... */
	DBT_BLK_PART,
	DBT_BLK_CRYPT,
	DBT_BLK_LVM,
	DBT_BLK_MPATH,
	DBT_BLK_DM, /* device-mapper, but none of the three above */
	DBT_BLK_MD,
	DBT_BLK_LOOP,
	DBT_BLK_BCACHE,
	DBT_BLK_DRBD,
	DBT_BLK_ZRAM,
	DBT_BLK_RAMDISK,
};

/* Who said what lies on a device. */
enum dbt_blk_said {
	DBT_SAID_NOBODY = 0,
	DBT_SAID_BLKID, /* libblkid read the device */
	DBT_SAID_UDEV,
};

struct dbt_blkdev {
	uint64_t devno;
	char *name; /* the kernel's: "sda", "dm-0", "cciss!c0d0" as "cciss/c0d0" */
	enum dbt_blk_kind kind;
	uint64_t size_bytes; /* 0 unknown */

	char *dm_name, *dm_uuid;
	char *md_level;      /* "raid1" */
	char *loop_file;     /* the file beneath, as the kernel shows it */
	bool loop_deleted;   /* ... which has no name any more */
	uint64_t loop_devno; /* device number of the filesystem that holds it; 0 unknown */
	bool metadata_only;  /* holds an inner layer's metadata (thin pool, cache, raid), no data */

	int rota; /* queue/rotational: 0, 1, -1 unknown */
	int rpm;  /* what the drive itself says: 0 "not reported", 1 "does not rotate", above: rpm;
	                -1: nobody asked it */
	char *tran;   /* "pcie", "sata", "sas", "usb", "virtio", "iscsi", "fc", "tcp" ... */
	char *driver; /* of the controller: "ahci", "virtio_scsi", "megaraid_sas" */
	char *model, *vendor;
	char *zoned; /* "host-managed", "host-aware"; NULL for an ordinary disk */

	enum dbt_blk_said said;
	char *content; /* "crypto_LUKS", "LVM2_member", "ext4" */
	char *content_uuid;

	uint64_t *below; /* device numbers: slaves, or the disk of a partition; owned */
	size_t n_below, cap_below;
	char *trouble; /* what could not be followed, as a sentence part; NULL none */
};

/* -ENOENT when sysfs knows no such device. with_content: also ask libblkid (the running system
 * only) or udev what lies on it. */
int dbt_blkdev_read(const struct dbt_ctx *ctx, uint64_t devno, bool with_content,
                    struct dbt_blkdev *ret, struct dbt_err *err);
void dbt_blkdev_release(struct dbt_blkdev *dev);

/* The number of the device that a mount source ("/dev/mapper/x") or a kernel name ("sda") means.
 * -ENOENT when it is none. */
int dbt_blkdev_find(const struct dbt_ctx *ctx, const char *source, uint64_t *ret_devno);

/* All members of the btrfs that holds devno. Returns their count (ret is owned by the caller:
 * free()), -ENOENT when sysfs lists none. ret_missing: members that the filesystem misses. */
struct dbt_btrfs_members {
	uint64_t *devnos;
	size_t n;
	char *uuid;
	unsigned missing;
};
int dbt_blkdev_btrfs_members(const struct dbt_ctx *ctx, uint64_t devno,
                             struct dbt_btrfs_members *ret);
void dbt_btrfs_members_release(struct dbt_btrfs_members *members);

/* The device's own counters since boot. -ENOENT when it keeps none. */
struct dbt_blk_counters {
	uint64_t reads, read_sectors512;
	uint64_t writes, written_sectors512;
	uint64_t busy_ms; /* time with at least one request in flight */
};
int dbt_blkdev_counters(const struct dbt_ctx *ctx, uint64_t devno, struct dbt_blk_counters *ret);

#endif
