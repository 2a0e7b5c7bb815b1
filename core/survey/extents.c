#include "survey/extents.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file in more pieces than this is sampled well enough by the first ones. */
enum { MAX_EXTENTS = 65536, EXTENTS_A_CALL = 512 };

static int add(struct dbt_extents *e, uint32_t file, uint64_t off, uint64_t len, uint32_t align)
{
	uint64_t start = (off + align - 1) / align * align, end = (off + len) / align * align;
	struct dbt_extent *x;

	if (end <= start)
		return 0;
	x = dbt_vec_push(e);
	if (!x)
		return -ENOMEM;
	*x = (struct dbt_extent){ .file = file, .off_bytes = start, .len_bytes = end - start };
	e->data_bytes += end - start;
	return 0;
}

static int add_mapped(struct dbt_extents *e, uint32_t file, const struct fiemap_extent *x,
                      uint64_t size_bytes, uint32_t align)
{
	uint64_t len = x->fe_length;

	if (x->fe_logical >= size_bytes)
		return 0;
	if (len > size_bytes - x->fe_logical)
		len = size_bytes - x->fe_logical;
	if (x->fe_flags & FIEMAP_EXTENT_UNWRITTEN) {
		e->unwritten_bytes += len;
		return 0;
	}
	/* Encrypted by the filesystem: as long on the device as in the file. */
	if ((x->fe_flags & FIEMAP_EXTENT_ENCODED) &&
	    !(x->fe_flags & FIEMAP_EXTENT_DATA_ENCRYPTED)) {
		e->compressed_bytes += len;
		return 0;
	}
	if (x->fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
	                   FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL)) {
		e->other_bytes += len;
		return 0;
	}
	return add(e, file, x->fe_logical, len, align);
}

/* Never FIEMAP_FLAG_SYNC: that would write. */
static int by_fiemap(int fd, uint32_t file, uint64_t size_bytes, uint32_t align,
                     struct dbt_extents *e)
{
	dbt_autofree struct fiemap *map =
		calloc(1, sizeof(*map) + EXTENTS_A_CALL * sizeof(map->fm_extents[0]));
	uint64_t at = 0;
	int r = 0;

	if (!map)
		return -ENOMEM;
	while (at < size_bytes && e->n < MAX_EXTENTS) {
		const struct fiemap_extent *last;

		map->fm_start = at;
		map->fm_length = size_bytes - at;
		map->fm_flags = 0;
		map->fm_extent_count = EXTENTS_A_CALL;
		if (ioctl(fd, FS_IOC_FIEMAP, map) < 0)
			return -errno;
		if (map->fm_mapped_extents == 0)
			break;
		for (uint32_t i = 0; r == 0 && i < map->fm_mapped_extents; i++)
			r = add_mapped(e, file, &map->fm_extents[i], size_bytes, align);
		if (r < 0)
			return r;
		last = &map->fm_extents[map->fm_mapped_extents - 1];
		if ((last->fe_flags & FIEMAP_EXTENT_LAST) || last->fe_length == 0 ||
		    last->fe_logical + last->fe_length <= at)
			break;
		at = last->fe_logical + last->fe_length;
	}
	return 0;
}

static int by_seek(int fd, uint32_t file, uint64_t size_bytes, uint32_t align,
                   struct dbt_extents *e)
{
	off_t data = 0, hole;
	int r = 0;

	while (r == 0 && (uint64_t)data < size_bytes && e->n < MAX_EXTENTS) {
		data = lseek(fd, data, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -errno;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		if (hole <= data)
			break;
		r = add(e, file, (uint64_t)data, (uint64_t)(hole - data), align);
		data = hole;
	}
	return r;
}

int dbt_extents_add(const struct dbt_ctx *ctx, int fd, uint32_t file, uint64_t size_bytes,
                    uint32_t align, struct dbt_extents *extents)
{
	struct stat st;
	int r;

	(void)ctx;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISBLK(st.st_mode))
		return add(extents, file, 0, size_bytes, align);
	r = by_fiemap(fd, file, size_bytes, align, extents);
	if (r == -EOPNOTSUPP || r == -ENOTTY || r == -EINVAL || r == -ENOSYS)
		r = by_seek(fd, file, size_bytes, align, extents);
	return r;
}
