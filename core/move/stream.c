#include "move/stream.h"

#include "sys/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *dbt_stream_alloc(size_t len)
{
	void *p = NULL;

	return posix_memalign(&p, 65536, len) == 0 ? p : NULL;
}

void dbt_stream_init(const struct dbt_ctx *ctx, struct dbt_stream *stream, int fd, int access)
{
	char path[64];
	struct dbt_dio dio;

	stream->fd = fd;
	stream->direct_fd = -1;
	stream->keep_cache = access == O_RDONLY;
	atomic_init(&stream->buffered, true);
	dbt_io_dio_limits(ctx, fd, &dio);
	stream->sure_direct = dio.known;
	if (!dio.supported || dio.mem_align > 65536 || dio.off_align > DBT_STREAM_ALIGN)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	stream->direct_fd = ctx->sys->openat(AT_FDCWD, path, access | O_DIRECT | O_CLOEXEC, 0);
	atomic_store(&stream->buffered, stream->direct_fd < 0);
}

void dbt_stream_init_buffered(struct dbt_stream *stream, int fd)
{
	*stream = (struct dbt_stream){ .fd = fd, .direct_fd = -1 };
	atomic_init(&stream->buffered, true);
}

void dbt_stream_release(struct dbt_stream *stream)
{
	if (stream->direct_fd >= 0)
		(void)close(stream->direct_fd);
	stream->direct_fd = -1;
}

static size_t round_up(size_t len)
{
	return (len + DBT_STREAM_ALIGN - 1) / DBT_STREAM_ALIGN * DBT_STREAM_ALIGN;
}

static ssize_t read_direct(const struct dbt_ctx *ctx, struct dbt_stream *stream, void *buf,
                           size_t len, uint64_t off)
{
	ssize_t got, rest;

	do
		got = ctx->sys->pread(stream->direct_fd, buf, round_up(len), off);
	while (got == -EINTR);
	if (got < 0 || (size_t)got >= len)
		return got < 0 ? got : (ssize_t)len;
	if (got % DBT_STREAM_ALIGN != 0)
		return got; /* the end of the file */
	/* A direct read may stop anywhere: the rest through the cache. */
	rest = dbt_io_pread(ctx, stream->fd, (char *)buf + got, len - (size_t)got,
	                    off + (uint64_t)got);
	return rest < 0 ? rest : got + rest;
}

/* Reads that may pass through the page cache leave there what was there before, and nothing more: buffered ones, and
 * direct ones on a filesystem that turns them into buffered ones where it must (btrfs with compressed data). */
static ssize_t read_and_drop(const struct dbt_ctx *ctx, struct dbt_stream *stream, void *buf,
                             size_t len, uint64_t off)
{
	uint64_t cached = 0;
	bool drop = true;
	ssize_t got = -EINVAL;

	if (stream->keep_cache && dbt_io_cached(ctx, stream->fd, off, len, &cached) == 0)
		drop = cached == 0;
	if (!atomic_load(&stream->buffered))
		got = read_direct(ctx, stream, buf, len, off);
	if (got == -EINVAL) {
		atomic_store(&stream->buffered, true);
		got = dbt_io_pread(ctx, stream->fd, buf, len, off);
	}
	if (drop)
		(void)posix_fadvise(stream->fd, (off_t)off, (off_t)len, POSIX_FADV_DONTNEED);
	return got;
}

ssize_t dbt_stream_read(const struct dbt_ctx *ctx, struct dbt_stream *stream, void *buf, size_t len,
                        uint64_t off)
{
	ssize_t got;

	if (!atomic_load(&stream->buffered) && stream->sure_direct) {
		got = read_direct(ctx, stream, buf, len, off);
		if (got != -EINVAL)
			return got;
		atomic_store(&stream->buffered, true);
	}
	return read_and_drop(ctx, stream, buf, len, off);
}

int dbt_stream_write(const struct dbt_ctx *ctx, struct dbt_stream *stream, const void *buf,
                     size_t len, uint64_t off)
{
	size_t whole = len / DBT_STREAM_ALIGN * DBT_STREAM_ALIGN;
	int r;

	if (atomic_load(&stream->buffered))
		whole = 0;
	if (whole > 0) {
		r = dbt_io_pwrite(ctx, stream->direct_fd, buf, whole, off);
		if (r == -EINVAL) {
			atomic_store(&stream->buffered, true);
			whole = 0;
		} else if (r < 0) {
			return r;
		}
	}
	if (whole == len)
		return 0;
	return dbt_io_pwrite(ctx, stream->fd, (const char *)buf + whole, len - whole, off + whole);
}

void dbt_stream_drop(struct dbt_stream *stream, uint64_t off, uint64_t len)
{
	(void)posix_fadvise(stream->fd, (off_t)off, (off_t)len, POSIX_FADV_DONTNEED);
}

bool dbt_stream_reads_device(const struct dbt_ctx *ctx, struct dbt_stream *stream, uint64_t off,
                             uint64_t len)
{
	uint64_t cached;

	if (!atomic_load(&stream->buffered) && stream->sure_direct)
		return true;
	return dbt_io_cached(ctx, stream->fd, off, len, &cached) == 0 && cached == 0;
}
