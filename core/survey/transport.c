#include "survey/transport.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "survey/sysfs.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* sysfs is deep at USB hubs behind bridges; a garbled path must end somewhere. */
enum { MAX_ANCESTORS = 32 };

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static int set(char **at, const char *text)
{
	char *new = strdup(text);

	if (!new)
		return -ENOMEM;
	free(*at);
	*at = new;
	return 0;
}

/* Cuts the last component; false at the top. */
static bool go_up(char *dir)
{
	char *slash = strrchr(dir, '/');

	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/* The driver of the nearest device above that is a controller: the SCSI disk driver itself tells
 * nothing. */
static int read_driver(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	char at[PATH_MAX], path[PATH_MAX + 16];
	struct dbt_buf link = { 0 };
	const char *base;
	int r = 0;

	(void)snprintf(at, sizeof(at), "%s", dir);
	for (int i = 0; i < MAX_ANCESTORS && strchr(at, '/') && !dev->driver && r == 0; i++) {
		(void)snprintf(path, sizeof(path), "%s/driver", at);
		if (dbt_root_readlink(ctx->root, path, &link) == 0) {
			base = strrchr(dbt_buf_str(&link), '/');
			base = base ? base + 1 : dbt_buf_str(&link);
			if (strcmp(base, "sd") != 0 && strcmp(base, "sr") != 0 && *base)
				r = set(&dev->driver, base);
		}
		if (!go_up(at))
			break;
	}
	dbt_buf_release(&link);
	return r;
}

/* The component of dir that begins with prefix and goes on with a digit: "host0", "usb2". */
static bool has_numbered(const char *dir, const char *prefix, char *out, size_t out_size)
{
	for (const char *p = dir; (p = strstr(p, prefix)); p++) {
		size_t len = strlen(prefix);

		if ((p == dir || p[-1] == '/') && isdigit((unsigned char)p[len])) {
			if (out)
				(void)snprintf(out, out_size, "%.*s", (int)strcspn(p, "/"), p);
			return true;
		}
	}
	return false;
}

/* What the path of a SCSI disk shows of its transport; the names are those of the kernel's
 * transport classes (drivers/scsi/scsi_transport_*.c, drivers/ata/libata-transport.c). */
static const char *scsi_by_path(const char *dir)
{
	if (has_numbered(dir, "session", NULL, 0))
		return "iscsi";
	if (strstr(dir, "/rport-"))
		return "fc";
	if (strstr(dir, "/end_device-"))
		return "sas";
	if (has_numbered(dir, "usb", NULL, 0))
		return "usb";
	if (has_numbered(dir, "ata", NULL, 0))
		return "sata";
	return NULL;
}

/* Host adapters whose transport the path does not show, by driver or proc_name. */
static const struct {
	const char *driver, *tran;
} scsi_hosts[] = {
	{ "iscsi_tcp", "iscsi" }, { "iscsi", "iscsi" },    { "ib_iser", "iscsi" },
	{ "iser", "iscsi" },      { "qla4xxx", "iscsi" },  { "cxgb4i", "iscsi" },
	{ "bnx2i", "iscsi" },     { "be2iscsi", "iscsi" }, { "qedi", "iscsi" },
	{ "ib_srp", "srp" },      { "lpfc", "fc" },        { "qla2xxx", "fc" },
	{ "bfa", "fc" },          { "zfcp", "fc" },        { "fcoe", "fc" },
	{ "fnic", "fc" },         { "bnx2fc", "fc" },      { "usb-storage", "usb" },
	{ "uas", "usb" },         { "ahci", "sata" },      { "ata_piix", "sata" },
};

static const char *scsi_by_host(const char *host)
{
	for (size_t i = 0; host && i < sizeof(scsi_hosts) / sizeof(scsi_hosts[0]); i++)
		if (strcmp(scsi_hosts[i].driver, host) == 0)
			return scsi_hosts[i].tran;
	return NULL;
}

/* The drive's own word, SCSI page "block device characteristics" (SBC-4, 6.6.2): bytes 4 and 5 are
 * the rotation rate; sysfs has the page since Linux 5.19. */
static void read_rpm(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	char path[PATH_MAX];
	struct dbt_buf page = { 0 };
	const unsigned char *p;

	if (snprintf(path, sizeof(path), "%s/device/vpd_pgb1", dir) < (int)sizeof(path) &&
	    dbt_root_read(ctx->root, path, 4096, &page) == 0 && page.len >= 6) {
		p = (const unsigned char *)page.data;
		if (p[1] == 0xb1)
			dev->rpm = p[4] << 8 | p[5];
	}
	dbt_buf_release(&page);
}

static int read_scsi(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	char device[PATH_MAX], host[32];
	const char *tran;
	int r;

	if (snprintf(device, sizeof(device), "%s/device", dir) >= (int)sizeof(device))
		return 0;
	read_rpm(ctx, dir, dev);
	r = dbt_sysfs_text(ctx, device, "model", &dev->model);
	if (r == 0)
		r = dbt_sysfs_text(ctx, device, "vendor", &dev->vendor);
	if (r == 0)
		r = read_driver(ctx, dir, dev);
	/* The host's own name is nearer to the disk than the PCI driver above it. */
	if (r == 0 && has_numbered(dir, "host", host, sizeof(host))) {
		(void)snprintf(device, sizeof(device), "sys/class/scsi_host/%s", host);
		if (!dev->driver)
			r = dbt_sysfs_text(ctx, device, "proc_name", &dev->driver);
	}
	if (r < 0)
		return r;
	tran = scsi_by_path(dir);
	if (!tran)
		tran = scsi_by_host(dev->driver);
	return set(&dev->tran, tran ? tran : "scsi");
}

static bool is_controller(const char *name)
{
	return starts(name, "nvme") && isdigit((unsigned char)name[4]) &&
	       name[4 + strspn(name + 4, "0123456789")] == '\0';
}

/* Takes over one controller's transport. Several controllers of one namespace: a path over a
 * network decides, because reads may take it. */
static int merge_transport(const struct dbt_ctx *ctx, const char *controller,
                           struct dbt_blkdev *dev)
{
	char *tran = NULL;
	int r = dbt_sysfs_text(ctx, controller, "transport", &tran);

	if (r == 0 && tran && (!dev->tran || strcmp(dev->tran, "pcie") == 0))
		r = set(&dev->tran, tran);
	free(tran);
	return r;
}

/* Controllers of a subsystem (native multipath): links below it, else those in sys/class/nvme that
 * name the same subsystem. */
static int read_nvme_paths(const struct dbt_ctx *ctx, const char *subsys, struct dbt_blkdev *dev)
{
	const char *places[] = { subsys, "sys/class/nvme" };
	char *nqn = NULL;
	int r = dbt_sysfs_text(ctx, subsys, "subsysnqn", &nqn);

	for (size_t i = 0; r == 0 && i < 2 && !dev->tran; i++) {
		dbt_autoclosedir DIR *d = NULL;
		struct dirent *entry;
		char path[PATH_MAX];

		if (dbt_root_opendir(ctx->root, places[i], &d) < 0)
			continue;
		while (r == 0 && (entry = readdir(d))) {
			dbt_autofree char *theirs = NULL;

			if (!is_controller(entry->d_name) ||
			    snprintf(path, sizeof(path), "%s/%s", places[i], entry->d_name) >=
			            (int)sizeof(path))
				continue;
			if (i == 1 && (dbt_sysfs_text(ctx, path, "subsysnqn", &theirs) < 0 ||
			               !nqn || !theirs || strcmp(nqn, theirs) != 0))
				continue;
			r = merge_transport(ctx, path, dev);
		}
	}
	free(nqn);
	return r;
}

bool dbt_nvme_is_path(const char *name, const char *disk)
{
	size_t head = 4 + strspn(disk + 4, "0123456789");
	const char *p = name + head;

	if (strncmp(name, disk, head) != 0 || *p != 'c')
		return false;
	p += 1 + strspn(p + 1, "0123456789");
	return disk[head] == 'n' && strcmp(p, disk + head) == 0;
}

/* Where no controller tells its transport (older captures), the directory of the disk or of one of its
 * hidden paths may: the kernel makes fabrics controllers below "nvme-fabrics". */
static int nvme_by_directory(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	bool fabrics = strstr(dir, "/nvme-fabrics/");
	dbt_autoclosedir DIR *d = NULL;
	struct dbt_buf link = { 0 };
	struct dirent *entry;
	char path[PATH_MAX];

	if (!fabrics && dbt_root_opendir(ctx->root, "sys/block", &d) < 0)
		return 0;
	while (!fabrics && (entry = readdir(d))) {
		if (!dbt_nvme_is_path(entry->d_name, dev->name))
			continue;
		(void)snprintf(path, sizeof(path), "sys/block/%s", entry->d_name);
		fabrics = dbt_root_readlink(ctx->root, path, &link) == 0 &&
		          strstr(dbt_buf_str(&link), "/nvme-fabrics/");
	}
	dbt_buf_release(&link);
	return fabrics ? set(&dev->tran, "fabrics") : 0;
}

static int read_nvme(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	char controller[PATH_MAX];
	int r;

	(void)snprintf(controller, sizeof(controller), "%s", dir);
	if (!go_up(controller))
		return 0;
	r = dbt_sysfs_text(ctx, controller, "model", &dev->model);
	if (r == 0)
		r = merge_transport(ctx, controller, dev);
	if (r == 0 && !dev->tran)
		r = read_nvme_paths(ctx, controller, dev);
	if (r == 0 && !dev->tran)
		r = nvme_by_directory(ctx, dir, dev);
	if (r == 0)
		r = read_driver(ctx, controller, dev);
	return r;
}

static int read_plain(const struct dbt_ctx *ctx, const char *dir, const char *tran,
                      const char *model_attr, struct dbt_blkdev *dev)
{
	char device[PATH_MAX];
	int r = set(&dev->tran, tran);

	if (r == 0 && model_attr &&
	    snprintf(device, sizeof(device), "%s/device", dir) < (int)sizeof(device))
		r = dbt_sysfs_text(ctx, device, model_attr, &dev->model);
	return r == 0 ? read_driver(ctx, dir, dev) : r;
}

/* Kernel names that tell the driver, hence the transport. */
static const struct {
	const char *prefix, *tran, *model_attr;
} by_name[] = {
	{ "vd", "virtio", NULL },    { "xvd", "xen", NULL },    { "mmcblk", "mmc", "name" },
	{ "nbd", "nbd", NULL },      { "rbd", "rbd", NULL },    { "pmem", "nvdimm", NULL },
	{ "drbd", "drbd", NULL },    { "ublkb", "ublk", NULL }, { "nullb", "null", NULL },
	{ "dasd", "ccw", NULL },     { "zd", "zvol", NULL },    { "mtdblock", "mtd", NULL },
	{ "ubiblock", "ubi", NULL },
};

int dbt_transport_read(const struct dbt_ctx *ctx, const char *dir, struct dbt_blkdev *dev)
{
	if (starts(dev->name, "nvme"))
		return read_nvme(ctx, dir, dev);
	if (starts(dev->name, "sd") || starts(dev->name, "sr"))
		return read_scsi(ctx, dir, dev);
	for (size_t i = 0; i < sizeof(by_name) / sizeof(by_name[0]); i++)
		if (starts(dev->name, by_name[i].prefix))
			return read_plain(ctx, dir, by_name[i].tran, by_name[i].model_attr, dev);
	return 0;
}
