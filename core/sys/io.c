#include "sys/io.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One call moves at most this much (MAX_RW_COUNT of the kernel is just under 2 GiB). */
enum { ONE_CALL_BYTES = 1 << 30 };

ssize_t dbt_io_pread(const struct dbt_ctx *ctx, int fd, void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	while (done < len) {
		size_t want = len - done < ONE_CALL_BYTES ? len - done : ONE_CALL_BYTES;
		ssize_t got = ctx->sys->pread(fd, (char *)buf + done, want, off + done);

		if (got == -EINTR)
			continue;
		/* A read that ended inside a sector met the end of the file. With O_DIRECT some
		 * filesystems refuse the unaligned read behind it instead of saying "nothing left".
		 */
		if (got == -EINVAL && done % 512 != 0)
			break;
		if (got < 0)
			return got;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int dbt_io_pwrite(const struct dbt_ctx *ctx, int fd, const void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	while (done < len) {
		size_t want = len - done < ONE_CALL_BYTES ? len - done : ONE_CALL_BYTES;
		ssize_t put = ctx->sys->pwrite(fd, (const char *)buf + done, want, off + done);

		if (put == -EINTR)
			continue;
		if (put < 0)
			return (int)put;
		if (put == 0)
			return -EIO;
		done += (size_t)put;
	}
	return 0;
}

/* Offsets in struct statx of stx_dio_mem_align and stx_dio_offset_align (Linux 6.1,
 * include/uapi/linux/stat.h); glibc 2.36 has the room, not the names. */
enum { STATX_DIOALIGN_BIT = 0x2000, DIO_MEM_ALIGN_AT = 0x98, DIO_OFF_ALIGN_AT = 0x9c };

void dbt_io_dio_limits(const struct dbt_ctx *ctx, int fd, struct dbt_dio *ret)
{
	union {
		struct statx stx;
		unsigned char bytes[256];
	} u = { .bytes = { 0 } };
	uint32_t mem, off;

	*ret = (struct dbt_dio){
		.known = false, .supported = true, .mem_align = 4096, .off_align = 4096
	};
	if (ctx->sys->statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN_BIT, &u.stx) < 0 ||
	    !(u.stx.stx_mask & STATX_DIOALIGN_BIT))
		return;
	__builtin_memcpy(&mem, u.bytes + DIO_MEM_ALIGN_AT, sizeof(mem));
	__builtin_memcpy(&off, u.bytes + DIO_OFF_ALIGN_AT, sizeof(off));
	ret->known = true;
	ret->supported = mem != 0 && off != 0;
	if (ret->supported) {
		ret->mem_align = mem;
		ret->off_align = off;
	}
}

/* Linux 6.5, include/uapi/linux/mman.h. */
struct cachestat_range {
	uint64_t off, len;
};
struct cachestat {
	uint64_t nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted;
};
enum { SYS_CACHESTAT = 451 };

/* For whoever neither owns the file nor may write to it the kernel calls every page cached
 * (mm/mincore.c, since 5.2). */
static bool mincore_is_true(int fd)
{
	struct stat st;
	char path[64];

	if (geteuid() == 0 || (fstat(fd, &st) == 0 && st.st_uid == geteuid()))
		return true;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static int cached_by_mincore(int fd, uint64_t off, uint64_t len, uint64_t page, uint64_t *ret_bytes)
{
	uint64_t start = off / page * page, span = off + len - start,
		 pages = (span + page - 1) / page, n = 0;
	dbt_autofree unsigned char *seen = malloc(pages);
	void *map;
	int r = 0;

	if (!seen)
		return -ENOMEM;
	if (!mincore_is_true(fd))
		return -ENOTSUP;
	map = mmap(NULL, span, PROT_READ, MAP_SHARED, fd, (off_t)start);
	if (map == MAP_FAILED)
		return -errno;
	if (mincore(map, span, seen) < 0)
		r = -errno;
	(void)munmap(map, span);
	for (uint64_t i = 0; r == 0 && i < pages; i++)
		n += seen[i] & 1U;
	if (r == 0)
		*ret_bytes = n * page;
	return r;
}

int dbt_io_cached(const struct dbt_ctx *ctx, int fd, uint64_t off, uint64_t len,
                  uint64_t *ret_bytes)
{
	struct cachestat_range range = { .off = off, .len = len };
	struct cachestat cs = { 0 };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct statfs fs;

	(void)ctx;
	if (len == 0) {
		*ret_bytes = 0;
		return 0;
	}
	/* Both calls look at the overlay's own empty mapping, not at the layer's: "nothing cached"
	 * always. */
	if (fstatfs(fd, &fs) == 0 &&
	    (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == FUSE_SUPER_MAGIC))
		return -ENOTSUP;
	if (syscall(SYS_CACHESTAT, fd, &range, &cs, 0) == 0) {
		*ret_bytes = cs.nr_cache * page;
		return 0;
	}
	return cached_by_mincore(fd, off, len, page, ret_bytes);
}
