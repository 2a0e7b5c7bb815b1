#include "ladder/dnafile.h"

#include "base/units.h"
#include "survey/mounts.h"
#include "sys/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { NAME_TRIES = 16 };

/* Where O_TMPFILE is not known: a name that is gone before anything is written. */
static int open_and_unlink(const struct dbt_ctx *ctx, int dirfd)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		uint64_t token;
		char name[64];
		int fd, r = ctx->sys->random(&token, sizeof(token));

		if (r < 0)
			return r;
		(void)snprintf(name, sizeof(name), ".dbtier-ladder-%016" PRIx64, token);
		fd = ctx->sys->openat(dirfd, name,
		                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd == -EEXIST)
			continue;
		if (fd >= 0)
			(void)ctx->sys->unlinkat(dirfd, name, 0);
		return fd;
	}
	return -EEXIST;
}

static int open_nameless(const struct dbt_ctx *ctx, const char *dir)
{
	int fd = ctx->sys->openat(AT_FDCWD, dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int dirfd;

	if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -ENOENT)
		return fd;
	dirfd = ctx->sys->openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dirfd < 0)
		return dirfd;
	fd = open_and_unlink(ctx, dirfd);
	(void)close(dirfd);
	return fd;
}

static int check_space(const char *dir, int fd, uint64_t n, struct dbt_err *err)
{
	char need[DBT_UNITS_TEXT_BYTES], have[DBT_UNITS_TEXT_BYTES];
	struct statvfs st;
	uint64_t available;

	if (fstatvfs(fd, &st) < 0)
		return dbt_err_sys(err, -errno, "cannot tell the free space of '%s'", dir);
	available = (uint64_t)st.f_bavail * st.f_frsize;
	/* Twice: the last free blocks of a filesystem are nobody's to measure with. */
	if (available / 2 < n)
		return dbt_err_set(err, DBT_ERR_NOSPACE, -ENOSPC,
		                   "'%s' has %s free, twice the %s of the temporary file are asked "
		                   "for; nothing was written",
		                   dir, dbt_units_size(available, have), dbt_units_size(n, need));
	return 0;
}

static int find_place(const struct dbt_ctx *ctx, struct dbt_dnafile *file, struct dbt_err *err)
{
	struct dbt_mounts *mounts = NULL;
	int r = dbt_mounts_new(ctx, &mounts, err);

	if (r == 0)
		r = dbt_place_of_fd(ctx, mounts, file->fd, NULL, &file->place, err);
	dbt_mounts_free(mounts);
	return r;
}

static int write_all(const struct dbt_ctx *ctx, int fd, const char *data, uint64_t n)
{
	int r = 0;

	for (uint64_t off = 0; off < n && r == 0; off += DBT_DNAFILE_BUFFER_BYTES) {
		uint64_t len =
			n - off < DBT_DNAFILE_BUFFER_BYTES ? n - off : DBT_DNAFILE_BUFFER_BYTES;

		r = dbt_ctx_cancelled(ctx) ? -ECANCELED
		                           : dbt_io_pwrite(ctx, fd, data + off, len, off);
	}
	if (r == 0)
		r = ctx->sys->fsync(fd);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return r;
}

/* A second way to the same file that goes past the page cache. */
static int reopen_direct(const struct dbt_ctx *ctx, int fd)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = ctx->sys->openat(AT_FDCWD, path, O_RDONLY | O_DIRECT | O_CLOEXEC, 0);
	return r < 0 ? -1 : r;
}

int dbt_dnafile_new(const struct dbt_ctx *ctx, const char *dir, const void *data, uint64_t n,
                    struct dbt_dnafile *ret, struct dbt_err *err)
{
	struct dbt_dnafile file = { .fd = open_nameless(ctx, dir), .direct_fd = -1 };
	int r;

	if (file.fd < 0)
		return dbt_err_sys(err, file.fd, "cannot make a temporary file in '%s'", dir);
	r = check_space(dir, file.fd, n, err);
	if (r == 0)
		r = find_place(ctx, &file, err);
	if (r == 0) {
		r = write_all(ctx, file.fd, data, n);
		if (r < 0)
			r = dbt_err_sys(err, r, "cannot write a temporary file in '%s'", dir);
	}
	if (r == 0 &&
	    posix_memalign(&file.buffer, DBT_DNAFILE_BLOCK_BYTES, DBT_DNAFILE_BUFFER_BYTES) != 0)
		r = dbt_err_sys(err, -ENOMEM, "cannot read a temporary file in '%s'", dir);
	if (r < 0) {
		dbt_dnafile_close(&file);
		return r;
	}
	file.direct_fd = reopen_direct(ctx, file.fd);
	*ret = file;
	return 0;
}

void dbt_dnafile_close(struct dbt_dnafile *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	if (file->direct_fd >= 0)
		(void)close(file->direct_fd);
	free(file->buffer);
	dbt_place_release(&file->place);
	*file = DBT_DNAFILE_NONE;
}

int dbt_dnafile_count_order(const struct dbt_ctx *ctx, const struct dbt_dnafile *file, bool direct,
                            uint64_t n, struct dbt_counts *counts)
{
	/* Warm reads as stdio-like programs do them: a buffer that stays in the second cache. */
	const uint64_t step = direct ? DBT_DNAFILE_BUFFER_BYTES : 64 << 10;
	int fd = direct ? file->direct_fd : file->fd;

	for (uint64_t off = 0; off < n; off += step) {
		uint64_t len = n - off < step ? n - off : step;
		ssize_t got = dbt_io_pread(ctx, fd, file->buffer, len, off);

		if (got < 0)
			return (int)got;
		if ((uint64_t)got != len)
			return -EIO;
		dbt_count_order(file->buffer, len, counts);
	}
	return 0;
}

int dbt_dnafile_count_index(const struct dbt_ctx *ctx, const struct dbt_dnafile *file, bool direct,
                            const uint32_t *index, uint64_t n, struct dbt_counts *counts)
{
	const uint32_t block = direct ? DBT_DNAFILE_BLOCK_BYTES : 1;
	int fd = direct ? file->direct_fd : file->fd;
	const uint8_t *bytes = file->buffer;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t within = index[i] % block;
		ssize_t got = ctx->sys->pread(fd, file->buffer, block, index[i] - within);

		if (got == -EINTR && !dbt_ctx_cancelled(ctx)) {
			i--;
			continue;
		}
		if (got != (ssize_t)block)
			return got < 0 ? (int)got : -EIO;
		dbt_count_order(bytes + within, 1, counts);
	}
	return 0;
}
