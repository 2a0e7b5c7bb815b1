/* Where a file's bytes really live: the mount, the chain of layers below it, the disks at the
 * bottom, and the tier that follows, each with the evidence. The one header of the device side that
 * other modules need: mounts.h (libmount), blkdev.h (sysfs, libblkid, udev), classify.h (pure)
 * stand behind it. */
#ifndef DBT_SURVEY_PLACE_H
#define DBT_SURVEY_PLACE_H

#include "base/err.h"
#include "survey/tier.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a measurement of one pattern gave; see probe.h. */
struct dbt_speed {
	bool proved; /* the device's own counters saw the reads */
	double iops;
	uint64_t lat_p50_ns; /* 0 where latency was not measured */
	uint64_t rate_bytes_s;
};

/* The measurements of one filesystem, each with its own "have" by iops or rate > 0. */
struct dbt_speeds {
	struct dbt_speed random1;  /* random 4k reads, one job */
	struct dbt_speed random4;  /* ... four jobs */
	struct dbt_speed stream1;  /* one stream of 1 MiB reads */
	struct dbt_speed stream4;  /* four interleaved streams: the sum */
	uint64_t measured_wall_ns; /* 0: never */
	uint64_t span_bytes;       /* how much data the random reads were spread over; 0 unknown */
	/* The share of the time, 0 to 1, that others took from the random reads by one job: other work of
	 * the disks, or our waiting for a processor. The device alone is as fast as measured or faster. */
	double load;
};

/* Above this load a figure is one of the moment: it is told with the load and not remembered. */
#define DBT_LOADED 0.25

struct dbt_disk {
	char *name;     /* "sda", "nvme0n1" */
	uint64_t devno; /* makedev() */
	enum dbt_tier tier;
	int rota;    /* what the kernel says: 0, 1, or -1 unknown */
	char *tran;  /* "pcie", "sata", "scsi", "usb", "virtio", "iscsi", "tcp" ...; NULL unknown */
	char *model; /* NULL unknown */
};

/* Of a bare block device mount, mount_root, source, fstype and options are "", mnt_id is 0. */
struct dbt_place {
	uint64_t mnt_id;
	uint64_t fs_devno; /* of the superblock, as in mountinfo: the same for all its mounts */
	char *mount;       /* mount point */
	char *mount_root;  /* the directory of the filesystem mounted there ("/" mostly) */
	char *source;      /* as in mountinfo: "/dev/mapper/cryptstore", "host:/export", "tmpfs" */
	char *fstype;
	char *options; /* mount and superblock options */
	char *fs_uuid; /* NULL unknown */
	bool read_only;
	uint64_t size_bytes; /* of the filesystem; 0 unknown */
	uint64_t free_bytes; /* for an ordinary user (f_bavail) */
	enum dbt_tier tier;  /* slowest member decides */
	bool mixed;          /* the members differ */
	bool by_probe;       /* a proved measurement decided, not flags and drivers */
	bool network, ram, overlay, userspace; /* the kind of filesystem, whatever the tier */
	char *stack;            /* "ext4 < crypt cryptstore < part sda1 < disk sda" */
	struct dbt_disk *disks; /* those that can hold the data, sorted by name */
	size_t n_disks;
	uint64_t *layers; /* device numbers of all block devices in the stack, topmost first */
	size_t n_layers;
	char *device;    /* the kernel's name of the topmost block device, "dm-1"; NULL none */
	char **evidence; /* sentences a person can check, most decisive first */
	size_t n_evidence;
	char *note; /* "mixed: as slow as sdd", "no device could be found: ..."; NULL none */
};

struct dbt_mounts; /* a snapshot of the mount table; mounts.h */

/* The place of an open file or directory (its mount id leads the way), or of an open block device.
 * speeds may be NULL: then flags, drivers and transports decide. With proved speeds the probe
 * decides and evidence shows both. */
int dbt_place_of_fd(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, int fd,
                    const struct dbt_speeds *speeds, struct dbt_place *ret, struct dbt_err *err);

/* The same for the mount with this id. */
int dbt_place_of_mount(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, uint64_t mnt_id,
                       const struct dbt_speeds *speeds, struct dbt_place *ret, struct dbt_err *err);

/* The place of a bare block device. */
int dbt_place_of_device(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, uint64_t devno,
                        const struct dbt_speeds *speeds, struct dbt_place *ret,
                        struct dbt_err *err);

/* Both lie on the same filesystem / have a disk in common. */
bool dbt_place_same_filesystem(const struct dbt_place *a, const struct dbt_place *b);
bool dbt_place_share_disk(const struct dbt_place *a, const struct dbt_place *b);

void dbt_place_release(struct dbt_place *place);

#endif
