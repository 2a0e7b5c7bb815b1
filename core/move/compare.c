/* Reading without writing: the digest of one file, the comparison of two. */
#include "base/cleanup.h"
#include "move/copy.h"
#include "move/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int step(const struct dbt_ctx *ctx, const struct dbt_copy_opts *opts, const char *phase,
                uint64_t done, uint64_t size, struct dbt_err *err)
{
	struct dbt_progress progress = {
		.phase = phase,
		.name = opts->shown_src,
		.done_bytes = opts->done_before_bytes + done,
		.total_bytes = opts->total_bytes ? opts->total_bytes : size,
	};

	if (ctx->progress)
		ctx->progress(ctx->progress_data, &progress);
	if (dbt_ctx_cancelled(ctx))
		return dbt_err_sys(err, -ECANCELED, "reading '%s'", opts->shown_src);
	return 0;
}

/* Reads a block of a file that should have size_bytes. Asks for one byte more than should be left, so that a file that
 * has grown shows; not for much more, because a direct read fills what lies beyond the end with zeros first. */
static ssize_t read_at(const struct dbt_ctx *ctx, struct dbt_stream *stream, uint64_t size_bytes,
                       void *buf, uint64_t off, const char *shown, struct dbt_err *err)
{
	uint64_t left = size_bytes > off ? size_bytes - off : 0;
	size_t want = left < DBT_STREAM_BLOCK_BYTES ? (size_t)left + 1 : DBT_STREAM_BLOCK_BYTES;
	ssize_t got = dbt_stream_read(ctx, stream, buf, want, off);

	if (got < 0)
		(void)dbt_err_sys(err, (int)got, "cannot read '%s' at byte %" PRIu64, shown, off);
	return got;
}

int dbt_copy_digest(const struct dbt_ctx *ctx, int fd, uint64_t size_bytes,
                    const struct dbt_copy_opts *opts, struct dbt_digest *ret, bool *ret_from_device,
                    struct dbt_err *err)
{
	dbt_autofree void *buf = dbt_stream_alloc(DBT_STREAM_BLOCK_BYTES);
	struct dbt_hasher *hasher = dbt_hasher_new();
	struct dbt_stream stream;
	bool from_device = true;
	uint64_t off = 0;
	ssize_t got = 1;
	int r = 0;

	if (!buf || !hasher) {
		dbt_hasher_free(hasher);
		return dbt_err_sys(err, -ENOMEM, "cannot read '%s'", opts->shown_src);
	}
	dbt_stream_init(ctx, &stream, fd, O_RDONLY);
	while (r == 0 && got > 0) {
		from_device = from_device &&
		              dbt_stream_reads_device(ctx, &stream, off, DBT_STREAM_BLOCK_BYTES);
		got = read_at(ctx, &stream, size_bytes, buf, off, opts->shown_src, err);
		if (got < 0) {
			r = (int)got;
			break;
		}
		dbt_hasher_add(hasher, buf, (size_t)got);
		off += (uint64_t)got;
		r = step(ctx, opts, "verify", off, size_bytes, err);
	}
	dbt_stream_release(&stream);
	if (r == 0 && off != size_bytes)
		r = dbt_err_set(err, DBT_ERR_CHANGED, -EIO,
		                "'%s' has %" PRIu64 " bytes instead of %" PRIu64, opts->shown_src,
		                off, size_bytes);
	if (r == 0) {
		*ret = dbt_hasher_digest(hasher);
		if (ret_from_device)
			*ret_from_device = from_device;
	}
	dbt_hasher_free(hasher);
	return r;
}

struct pair {
	struct dbt_stream a, b;
	uint64_t size_bytes; /* of a */
	void *buf_a, *buf_b;
	struct dbt_hasher *hasher;
};

static int compare(const struct dbt_ctx *ctx, struct pair *p, const struct dbt_copy_opts *opts,
                   bool *ret_same, struct dbt_err *err)
{
	uint64_t off = 0;

	for (;;) {
		ssize_t a = read_at(ctx, &p->a, p->size_bytes, p->buf_a, off, opts->shown_src, err);
		ssize_t b = a < 0 ? 0
		                  : read_at(ctx, &p->b, p->size_bytes, p->buf_b, off,
		                            opts->shown_dst, err);
		int r;

		if (a < 0 || b < 0)
			return a < 0 ? (int)a : (int)b;
		if (a != b || memcmp(p->buf_a, p->buf_b, (size_t)a) != 0) {
			*ret_same = false;
			return 0;
		}
		if (a == 0) {
			*ret_same = true;
			return 0;
		}
		dbt_hasher_add(p->hasher, p->buf_a, (size_t)a);
		off += (uint64_t)a;
		r = step(ctx, opts, "compare", off, opts->total_bytes, err);
		if (r < 0)
			return r;
	}
}

int dbt_copy_compare(const struct dbt_ctx *ctx, int fd_a, int fd_b,
                     const struct dbt_copy_opts *opts, bool *ret_same,
                     struct dbt_digest *ret_digest, struct dbt_err *err)
{
	struct stat st = { 0 };
	struct pair p = { .buf_a = dbt_stream_alloc(DBT_STREAM_BLOCK_BYTES),
		          .buf_b = dbt_stream_alloc(DBT_STREAM_BLOCK_BYTES),
		          .hasher = dbt_hasher_new() };
	int r;

	dbt_stream_init(ctx, &p.a, fd_a, O_RDONLY);
	dbt_stream_init(ctx, &p.b, fd_b, O_RDONLY);
	p.size_bytes = fstat(fd_a, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
	if (p.buf_a && p.buf_b && p.hasher)
		r = compare(ctx, &p, opts, ret_same, err);
	else
		r = dbt_err_sys(err, -ENOMEM, "cannot compare '%s' and '%s'", opts->shown_src,
		                opts->shown_dst);
	if (r == 0 && *ret_same && ret_digest)
		*ret_digest = dbt_hasher_digest(p.hasher);
	dbt_stream_release(&p.a);
	dbt_stream_release(&p.b);
	free(p.buf_a);
	free(p.buf_b);
	dbt_hasher_free(p.hasher);
	return r;
}
