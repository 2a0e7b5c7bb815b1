/* Disks whose power can be cut. A FUSE filesystem with one image file per disk, to be put under loop devices: what is
 * written and what is flushed, on all disks in one common order, is remembered from a mark on, and every state in which
 * a cut could have left the disks can be shown again.
 *
 *	fusedisks DIR NAME:MIB...        in the foreground; ends with its parent, or when DIR is unmounted
 *	echo mark >DIR/control           what was written so far is on the disks; the log begins
 *	cat DIR/control                  "flushes N writes M reads R": since the mark
 *	echo cut N drop >DIR/control     the disks as they are when the power goes just before flush N: without,
 *	echo cut N keep >DIR/control     ... with,
 *	echo cut N torn SEED >...        ... with a random half of what no flush has covered until then
 *	echo fault NAME KIND >...        a disk that misbehaves, see enum fault
 *
 * A cut ends the log: what is written then changes the shown state only, and the next cut starts from the log again.
 * A flush of a disk covers the writes to that disk that were answered before. Nothing is cached by the kernel: the
 * files are opened for direct I/O, and without a writeback cache each write of the loop driver waits for its answer. */
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096, SECTOR = 512, MAX_DISKS = 8 };

/* A sector that begins with this is a bad one for the faults. */
static const char bad_sector[] = "A BAD SECTOR FOR TESTS";

enum fault {
	FAULT_OFF,
	FAULT_READ,  /* reading a bad sector is an error */
	FAULT_FLIP,  /* a bad sector reads with one bit turned over */
	FAULT_WRITE, /* writing a bad sector is an error */
	FAULT_FLUSH, /* so is every flush */
	FAULT_N,
};
static const char *const fault_names[FAULT_N] = { "off", "read", "flip", "write", "flush" };

struct disk {
	const char *name;
	size_t bytes;
	char *base;    /* at the mark */
	char *shown;   /* as it is read */
	bool *touched; /* blocks of shown that may differ from base */
	enum fault fault;
};

struct record {
	struct disk *disk;
	size_t off, len;
	char *data; /* NULL: a flush */
};

static struct disk disks[MAX_DISKS];
static size_t n_disks;
static struct record *records;
static size_t n_records, cap_records;
static size_t flushes, writes, reads;
static bool recording;

/* --- the disks ------------------------------------------------------------------------------------------ */

static void *must(void *memory)
{
	if (!memory || memory == MAP_FAILED) {
		perror("fusedisks");
		exit(1);
	}
	return memory;
}

static void disk_new(char *spec)
{
	struct disk *d = &disks[n_disks];
	char *colon = strchr(spec, ':');

	if (!colon || n_disks == MAX_DISKS) {
		(void)fprintf(stderr, "fusedisks: bad disk '%s'\n", spec);
		exit(2);
	}
	*colon = '\0';
	d->name = spec;
	d->bytes = strtoul(colon + 1, NULL, 10) << 20;
	d->base = must(mmap(NULL, d->bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	d->shown = must(mmap(NULL, d->bytes, PROT_READ | PROT_WRITE,
	                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	d->touched = must(calloc(d->bytes / BLOCK, sizeof(*d->touched)));
	n_disks++;
}

static struct disk *disk_find(const char *name)
{
	for (size_t i = 0; i < n_disks; i++)
		if (strcmp(disks[i].name, name) == 0)
			return &disks[i];
	return NULL;
}

static void put(struct disk *d, size_t off, const char *data, size_t len)
{
	memcpy(d->shown + off, data, len);
	for (size_t b = off / BLOCK; b * BLOCK < off + len; b++)
		d->touched[b] = true;
}

/* Makes the two states equal: the shown one as at the mark, or the mark as it is shown. */
static void level(struct disk *d, bool to_base)
{
	for (size_t b = 0; b < d->bytes / BLOCK; b++) {
		if (!d->touched[b])
			continue;
		if (to_base)
			memcpy(d->shown + b * BLOCK, d->base + b * BLOCK, BLOCK);
		else
			memcpy(d->base + b * BLOCK, d->shown + b * BLOCK, BLOCK);
		d->touched[b] = false;
	}
}

static void record(struct disk *d, size_t off, const char *data, size_t len)
{
	if (!recording)
		return;
	if (n_records == cap_records) {
		cap_records = cap_records ? 2 * cap_records : 1024;
		records = must(realloc(records, cap_records * sizeof(*records)));
	}
	records[n_records] = (struct record){ .disk = d, .off = off, .len = len };
	if (data) {
		records[n_records].data = must(malloc(len));
		memcpy(records[n_records].data, data, len);
		writes++;
	} else {
		flushes++;
	}
	n_records++;
}

static void mark(void)
{
	for (size_t i = 0; i < n_records; i++)
		free(records[i].data);
	n_records = flushes = writes = reads = 0;
	for (size_t i = 0; i < n_disks; i++)
		level(&disks[i], false);
	recording = true;
}

/* --- the cut -------------------------------------------------------------------------------------------- */

enum how { DROP, KEEP, TORN };

static void put_torn(struct disk *d, const struct record *r, unsigned *seed)
{
	for (size_t at = 0; at < r->len;) {
		size_t len = BLOCK - (r->off + at) % BLOCK;

		if (len > r->len - at)
			len = r->len - at;
		if (rand_r(seed) >> 7 & 1)
			put(d, r->off + at, r->data + at, len);
		at += len;
	}
}

/* The last flush of the record's disk that lies behind it and before `end`, covers it. */
static bool is_flushed(size_t i, size_t end)
{
	for (size_t j = i + 1; j < end; j++)
		if (!records[j].data && records[j].disk == records[i].disk)
			return true;
	return false;
}

static void cut(size_t before_flush, enum how how, unsigned seed)
{
	size_t end = 0, seen = 0;

	recording = false;
	for (size_t i = 0; i < n_disks; i++)
		level(&disks[i], true);
	while (end < n_records && (records[end].data || ++seen < before_flush))
		end++;
	for (size_t i = 0; i < end; i++) {
		if (!records[i].data)
			continue;
		if (how == KEEP || is_flushed(i, end))
			put(records[i].disk, records[i].off, records[i].data, records[i].len);
		else if (how == TORN)
			put_torn(records[i].disk, &records[i], &seed);
	}
}

/* --- control -------------------------------------------------------------------------------------------- */

static int set_fault(const char *name, const char *kind)
{
	struct disk *d = disk_find(name);

	for (int i = 0; d && i < FAULT_N; i++)
		if (strcmp(fault_names[i], kind) == 0) {
			d->fault = (enum fault)i;
			return 0;
		}
	return -EINVAL;
}

static int command(const char *text)
{
	char word[32] = "", how[32] = "", name[32] = "";
	size_t n;
	unsigned seed = 0;

	if (sscanf(text, "fault %31s %31s", name, how) == 2)
		return set_fault(name, how);
	if (sscanf(text, "cut %zu %31s %u", &n, how, &seed) >= 2) {
		if (strcmp(how, "drop") != 0 && strcmp(how, "keep") != 0 &&
		    strcmp(how, "torn") != 0)
			return -EINVAL;
		cut(n, *how == 'd' ? DROP : *how == 'k' ? KEEP : TORN, seed);
		return 0;
	}
	if (sscanf(text, "%31s", word) != 1 || strcmp(word, "mark") != 0)
		return -EINVAL;
	mark();
	return 0;
}

static int read_control(char *buf, size_t len, off_t off)
{
	char text[96];
	size_t n = (size_t)snprintf(text, sizeof(text), "flushes %zu writes %zu reads %zu\n",
	                            flushes, writes, reads);

	if ((size_t)off >= n)
		return 0;
	n -= (size_t)off;
	if (n > len)
		n = len;
	memcpy(buf, text + off, n);
	return (int)n;
}

/* --- the filesystem ------------------------------------------------------------------------------------- */

static bool is_control(const char *path)
{
	return strcmp(path, "/control") == 0;
}

static int disks_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	const struct disk *d = disk_find(path + 1);

	(void)fi;
	memset(st, 0, sizeof(*st));
	st->st_nlink = 1;
	st->st_mode = S_IFREG | 0600;
	if (strcmp(path, "/") == 0) {
		st->st_mode = S_IFDIR | 0700;
		st->st_nlink = 2;
		return 0;
	}
	if (d)
		st->st_size = (off_t)d->bytes;
	return d || is_control(path) ? 0 : -ENOENT;
}

static int disks_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                         struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	(void)path;
	(void)off;
	(void)fi;
	(void)flags;
	fill(buf, "control", NULL, 0, 0);
	for (size_t i = 0; i < n_disks; i++)
		fill(buf, disks[i].name, NULL, 0, 0);
	return 0;
}

static int disks_open(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	fi->direct_io = 1;
	return 0;
}

/* The shell truncates what it writes to. */
static int disks_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)size;
	(void)fi;
	return is_control(path) ? 0 : -EPERM;
}

/* The next bad sector of the buffer from `at` on, or len. */
static size_t next_bad(const char *buf, size_t len, size_t at)
{
	while (at + SECTOR <= len && memcmp(buf + at, bad_sector, sizeof(bad_sector) - 1) != 0)
		at += SECTOR;
	return at + SECTOR <= len ? at : len;
}

static int disks_read(const char *path, char *buf, size_t len, off_t off, struct fuse_file_info *fi)
{
	struct disk *d = disk_find(path + 1);

	(void)fi;
	if (!d)
		return read_control(buf, len, off);
	reads++;
	if ((size_t)off >= d->bytes)
		return 0;
	if (len > d->bytes - (size_t)off)
		len = d->bytes - (size_t)off;
	memcpy(buf, d->shown + off, len);
	if (d->fault == FAULT_READ && next_bad(buf, len, 0) < len)
		return -EIO;
	if (d->fault == FAULT_FLIP)
		for (size_t at = next_bad(buf, len, 0); at < len;
		     at = next_bad(buf, len, at + SECTOR))
			buf[at + SECTOR - 1] ^= 1;
	return (int)len;
}

static int disks_write(const char *path, const char *buf, size_t len, off_t off,
                       struct fuse_file_info *fi)
{
	struct disk *d = disk_find(path + 1);
	char text[128];
	int r;

	(void)fi;
	if (!d) {
		(void)snprintf(text, sizeof(text), "%.*s", (int)len, buf);
		r = command(text);
		return r < 0 ? r : (int)len;
	}
	if ((size_t)off >= d->bytes || len > d->bytes - (size_t)off)
		return -ENOSPC;
	if (d->fault == FAULT_WRITE && next_bad(buf, len, 0) < len)
		return -EIO;
	put(d, (size_t)off, buf, len);
	record(d, (size_t)off, buf, len);
	return (int)len;
}

static int disks_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	struct disk *d = disk_find(path + 1);

	(void)data_only;
	(void)fi;
	if (d && d->fault == FAULT_FLUSH)
		return -EIO;
	if (d)
		record(d, 0, NULL, 0);
	return 0;
}

static const struct fuse_operations ops = {
	.getattr = disks_getattr,
	.readdir = disks_readdir,
	.open = disks_open,
	.truncate = disks_truncate,
	.read = disks_read,
	.write = disks_write,
	.fsync = disks_fsync,
};

int main(int argc, char **argv)
{
	/* One thread: what is handled first was first. */
	char *args[] = { argv[0], argc > 1 ? argv[1] : NULL, (char[]){ "-f" }, (char[]){ "-s" },
		         NULL };

	if (argc < 3) {
		(void)fprintf(stderr, "usage: fusedisks DIR NAME:MIB...\n");
		return 2;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (int i = 2; i < argc; i++)
		disk_new(argv[i]);
	return fuse_main(4, args, &ops, NULL);
}
