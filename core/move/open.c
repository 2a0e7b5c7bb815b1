/* The beginning and the end of a file in the copy engine. */
#include "move/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Where syncfs(2) is known to write all data and metadata of the filesystem and to flush the device's cache. FUSE, for
 * one, does not pass it on (fs/fuse/inode.c: only for virtiofs). */
static bool sync_fs_is_sure(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch (fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

int dbt_copy_sync_fs(const struct dbt_ctx *ctx, int fd)
{
	return sync_fs_is_sure(fd) ? ctx->sys->syncfs(fd) : 1;
}

/* Reserves room for the data, so that a full disk is known before the first byte. Filesystems that cannot
 * reserve answer EOPNOTSUPP: then the writes tell. */
static int reserve(struct engine *e, struct engine_file *f, struct dbt_err *err)
{
	uint64_t off = 0;
	int r = e->ctx.sys->ftruncate(f->item.dst, f->size);

	while (r == 0 && off < f->size && !f->small) {
		uint64_t end = f->size;

		if (f->has_holes) {
			off_t data = lseek(f->item.src, (off_t)off, SEEK_DATA), hole;

			if (data < 0)
				break;
			hole = lseek(f->item.src, data, SEEK_HOLE);
			off = (uint64_t)data;
			end = hole < 0 ? f->size : (uint64_t)hole;
		}
		if (end <= off)
			break;
		do
			r = e->ctx.sys->fallocate(f->item.dst, 0, off, end - off);
		while (r == -EINTR && !dbt_engine_stopped(e));
		off = end;
	}
	if (r == -EOPNOTSUPP || r == -ENOSYS)
		r = 0;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot reserve space for '%s'", f->item.shown_dst);
	return 0;
}

/* Hashes what an earlier run left of the copy. 1: it is what its digest says; 0: it is not. */
static int reprove(struct engine *e, struct engine_file *f, struct dbt_hasher *hasher, void *buf)
{
	struct dbt_digest now;

	for (uint64_t off = 0; off < f->item.kept_bytes;) {
		uint64_t rest = f->item.kept_bytes - off;
		size_t want = (size_t)(rest < ENGINE_BLOCK ? rest : ENGINE_BLOCK);
		ssize_t got;

		if (dbt_engine_stopped(e))
			return -ECANCELED;
		dbt_stream_drop(&f->dst, off, want);
		f->from_device =
			f->from_device && dbt_stream_reads_device(&e->ctx, &f->dst, off, want);
		got = dbt_stream_read(&e->ctx, &f->dst, buf, want, off);
		if (got < (ssize_t)want)
			return 0;
		dbt_hasher_add(hasher, buf, want);
		off += want;
		(void)pthread_mutex_lock(&e->mutex);
		e->kept_done += want;
		(void)pthread_mutex_unlock(&e->mutex);
	}
	now = dbt_hasher_digest(hasher);
	return dbt_digest_equal(&now, &f->item.kept_digest);
}

/* Decides from where on the file is copied. What an earlier run wrote behind that point goes: where the source has a
 * hole nothing is written. */
static int keep(struct engine *e, struct engine_file *f, struct dbt_err *err)
{
	void *buf = dbt_stream_alloc(DBT_STREAM_BLOCK_BYTES);
	struct dbt_hasher *hasher = dbt_hasher_new();
	bool can = f->item.kept_bytes == f->size ||
	           (f->item.kept_bytes < f->size && f->item.kept_bytes % ENGINE_BLOCK == 0);
	int r = -ENOMEM;

	if (buf && hasher)
		r = can ? reprove(e, f, hasher, buf) : 0;
	if (r == 1) {
		f->start = f->item.kept_bytes;
		f->kept = hasher;
		hasher = NULL;
	} else if (r == 0) {
		f->from_device = true;
		dbt_ctx_log(&e->ctx, DBT_LOG_NOTE,
		            "what an interrupted run left of '%s' is not what it wrote: "
		            "the copy starts over",
		            f->item.shown_dst);
	}
	free(buf);
	dbt_hasher_free(hasher);
	if (r >= 0)
		r = e->ctx.sys->ftruncate(f->item.dst, f->start);
	return r < 0 ? dbt_err_sys(err, r, "cannot continue the copy '%s'", f->item.shown_dst) : 0;
}

/* May the flushes of this run be shared? Only where all copies lie on one filesystem. */
static void note_target(struct engine *e, const struct engine_file *f)
{
	bool sure = false;
	struct stat st;

	(void)pthread_mutex_lock(&e->mutex);
	if (!e->target_known)
		sure = sync_fs_is_sure(f->item.dst);
	if (fstat(f->item.dst, &st) < 0)
		e->share_flushes = false;
	else if (!e->target_known)
		e->share_flushes = sure;
	else if (st.st_dev != e->target_dev)
		e->share_flushes = false;
	if (!e->target_known)
		e->target_dev = st.st_dev;
	e->target_known = true;
	(void)pthread_mutex_unlock(&e->mutex);
}

static int prepare(struct engine *e, struct engine_file *f, struct dbt_err *err)
{
	off_t hole;
	int r = 0;

	f->small = f->size <= ENGINE_SMALL_BYTES;
	dbt_stream_init(&e->ctx, &f->src, f->item.src, O_RDONLY);
	if (f->small && f->item.kept_bytes == 0)
		dbt_stream_init_buffered(&f->dst, f->item.dst);
	else
		dbt_stream_init(&e->ctx, &f->dst, f->item.dst, O_RDWR);
	hole = f->size ? lseek(f->item.src, 0, SEEK_HOLE) : 0;
	f->has_holes = hole >= 0 && (uint64_t)hole < f->size;
	note_target(e, f);
	if (f->item.kept_bytes > 0)
		r = keep(e, f, err);
	/* A small file needs its length beforehand only when it may end in a hole. */
	if (r == 0 && f->start < f->size && (!f->small || f->has_holes))
		r = reserve(e, f, err);
	return r;
}

int dbt_engine_open(struct engine *e, struct engine_file *f, struct dbt_err *err)
{
	int r = e->many->open(e->many->data, &e->ctx, f->index, &f->item, err);
	bool open = r == 0;

	if (r == 0)
		r = prepare(e, f, err);
	(void)pthread_mutex_lock(&e->mutex);
	f->open = open;
	f->failed_open = r < 0;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
	return r;
}

int dbt_engine_written(struct engine *e, struct engine_file *f, struct dbt_err *err)
{
	int r = 0;

	dbt_stream_release(&f->src);
	if (e->many->written)
		r = e->many->written(e->many->data, &e->ctx, f->index, &f->item, &f->digest, err);
	return r;
}

void dbt_engine_close(struct engine *e, struct engine_file *f, bool failed)
{
	(void)pthread_mutex_lock(&e->mutex);
	f->prev->next = f->next;
	f->next->prev = f->prev;
	e->n_files--;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
	dbt_stream_release(&f->src);
	dbt_stream_release(&f->dst);
	if (f->open && e->many->close)
		e->many->close(e->many->data, &e->ctx, f->index, &f->item, failed);
	dbt_hasher_free(f->kept);
	free(f);
}
