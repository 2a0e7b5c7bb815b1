/* What one disk is, from the kernel's facts about it. */
#include "survey/classify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum dbt_tier because(char *why, size_t size, const struct dbt_blkdev *d, enum dbt_tier tier,
                             const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static enum dbt_tier because(char *why, size_t size, const struct dbt_blkdev *d, enum dbt_tier tier,
                             const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)snprintf(why, size, "disk %s: %s%s%s%s%s", d->name, text, d->model ? ", model " : "",
	               d->model ? d->model : "", d->zoned ? ", zoned (SMR or ZNS): " : "",
	               d->zoned ? d->zoned : "");
	return tier;
}

static bool is(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

static bool contains(const char *text, const char *part)
{
	return text && strstr(text, part);
}

/* PCIe controllers that present a network volume as an NVMe disk. The local disks of the same
 * clouds have other models ("Amazon EC2 NVMe Instance Storage", "nvme_card", "Microsoft NVMe Direct
 * Disk"). */
static const char *cloud_volume(const char *model)
{
	if (contains(model, "Amazon Elastic Block Store"))
		return "an Amazon EBS volume";
	if (contains(model, "nvme_card-pd") || contains(model, "PersistentDisk"))
		return "a Google persistent disk";
	if (contains(model, "MSFT NVMe Accelerator"))
		return "an Azure remote disk";
	return NULL;
}

static enum dbt_tier judge_nvme(const struct dbt_blkdev *d, char *why, size_t size)
{
	const char *volume = cloud_volume(d->model);

	if (volume)
		return because(why, size, d, DBT_TIER_NETWORK, "NVMe, but %s: behind a network",
		               volume);
	if (is(d->tran, "pcie") || is(d->tran, "apple-nvme"))
		return because(why, size, d, DBT_TIER_NVME, "NVMe on a local bus (transport %s)",
		               d->tran);
	if (is(d->tran, "tcp") || is(d->tran, "rdma") || is(d->tran, "fc"))
		return because(why, size, d, DBT_TIER_NETWORK,
		               "NVMe over fabrics (transport %s): behind a network", d->tran);
	if (is(d->tran, "fabrics"))
		return because(
			why, size, d, DBT_TIER_NETWORK,
			"NVMe over fabrics (which transport was not recorded): behind a network");
	if (d->tran)
		return because(why, size, d, DBT_TIER_UNKNOWN,
		               "NVMe with transport %s: what is behind it cannot be seen", d->tran);
	return because(why, size, d, DBT_TIER_UNKNOWN,
	               "NVMe, but the controller's transport could not be read");
}

static enum dbt_tier by_flag(const struct dbt_blkdev *d, char *why, size_t size)
{
	const char *tran = d->tran ? d->tran : "unknown transport";

	if (d->rota == 1)
		return because(why, size, d, DBT_TIER_HDD, "the kernel says it rotates (%s)", tran);
	if (d->rota == 0)
		return because(why, size, d, DBT_TIER_SSD,
		               "the kernel says it does not rotate (%s)", tran);
	return because(why, size, d, DBT_TIER_UNKNOWN,
	               "the kernel does not say whether it rotates (%s)", tran);
}

/* Drivers of controllers and hypervisors that present volumes: a rotating volume may be flash
 * behind it and the other way round. */
static const char *const volume_drivers[] = {
	"megaraid_sas", "megaraid", "hpsa",     "cciss",         "smartpqi",   "aacraid",
	"arcmsr",       "3w-9xxx",  "3w-sas",   "3w-xxxx",       "ips",        "hptiop",
	"mvumi",        "stex",     "esas2r",   "hv_storvsc",    "storvsc",    "storvsc_host_t",
	"vmw_pvscsi",   "mptspi",   "BusLogic", "xen-scsifront", "scsi_debug", "pmcraid",
};

static bool presents_volumes(const char *driver)
{
	for (size_t i = 0; driver && i < sizeof(volume_drivers) / sizeof(volume_drivers[0]); i++)
		if (strcmp(volume_drivers[i], driver) == 0)
			return true;
	return false;
}

static enum dbt_tier judge_scsi(const struct dbt_blkdev *d, char *why, size_t size)
{
	if (is(d->tran, "iscsi") || is(d->tran, "fc") || is(d->tran, "srp"))
		return because(why, size, d, DBT_TIER_NETWORK, "a SCSI disk behind a network (%s)",
		               d->tran);
	/* The rotation rate is the drive's own answer (0: it gave none). */
	if (d->rpm > 1)
		return because(why, size, d, DBT_TIER_HDD,
		               "says itself that it turns at %d rpm (%s)", d->rpm, d->tran);
	if (d->rpm == 1)
		return because(why, size, d, DBT_TIER_SSD,
		               "says itself that it does not rotate (%s)", d->tran);
	if (presents_volumes(d->driver))
		return because(
			why, size, d, DBT_TIER_UNKNOWN,
			"a volume of the controller (%s), whose flag \"rotational = %d\" says "
			"nothing about the medium: only a measurement can",
			d->driver, d->rota);
	if (is(d->tran, "usb") && d->rota != 0)
		return because(why, size, d, DBT_TIER_UNKNOWN,
		               "USB: every bridge claims to rotate, only a measurement can tell");
	return by_flag(d, why, size);
}

/* Disks whose driver decides, whatever the flag. */
static const struct {
	const char *tran;
	enum dbt_tier tier;
	const char *reason;
} by_tran[] = {
	{ "virtio", DBT_TIER_UNKNOWN,
	  "a virtual disk (virtio): its flag says nothing about the medium, only a measurement "
	  "can" },
	{ "xen", DBT_TIER_UNKNOWN,
	  "a virtual disk (Xen): its flag says nothing about the medium, only a measurement can" },
	{ "ublk", DBT_TIER_UNKNOWN, "served by a program (ublk): only a measurement can tell" },
	{ "zvol", DBT_TIER_UNKNOWN,
	  "a ZFS volume: the disks behind it are not shown, only a measurement can tell" },
	{ "null", DBT_TIER_UNKNOWN, "a test device (null_blk): it holds no real data" },
	{ "mtd", DBT_TIER_UNKNOWN, "raw flash (mtd): only a measurement can tell" },
	{ "ubi", DBT_TIER_UNKNOWN, "raw flash (ubi): only a measurement can tell" },
	{ "mmc", DBT_TIER_SSD, "a flash card or chip (MMC): no seeks, but slow" },
	{ "nvdimm", DBT_TIER_NVME, "persistent memory on the memory bus" },
	{ "nbd", DBT_TIER_NETWORK, "a network block device (nbd)" },
	{ "rbd", DBT_TIER_NETWORK, "a Ceph block device (rbd)" },
	{ "drbd", DBT_TIER_NETWORK, "DRBD without a disk of its own: its peer answers" },
};

enum dbt_tier dbt_classify_disk(const struct dbt_blkdev *d, char *why, size_t why_size)
{
	if (d->kind == DBT_BLK_ZRAM || d->kind == DBT_BLK_RAMDISK)
		return because(why, why_size, d, DBT_TIER_RAM, "memory, not a disk");
	if (d->kind != DBT_BLK_DISK && d->kind != DBT_BLK_DRBD)
		return because(why, why_size, d, DBT_TIER_UNKNOWN,
		               "no device could be found below it");
	if (strncmp(d->name, "nvme", 4) == 0)
		return judge_nvme(d, why, why_size);
	for (size_t i = 0; i < sizeof(by_tran) / sizeof(by_tran[0]); i++)
		if (is(d->tran, by_tran[i].tran))
			return because(why, why_size, d, by_tran[i].tier, "%s", by_tran[i].reason);
	if (strncmp(d->name, "sr", 2) == 0)
		return because(why, why_size, d, DBT_TIER_UNKNOWN, "an optical drive");
	if (strncmp(d->name, "sd", 2) == 0)
		return judge_scsi(d, why, why_size);
	return by_flag(d, why, why_size);
}
