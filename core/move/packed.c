#include "move/packed.h"

#include "move/stream.h"
#include "sys/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nettle/md5.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The kernel is asked to read AHEAD_BYTES before they are wanted, in steps: so the disk is busy while the processor
 * unpacks, without a thread of our own. */
enum { BLOCK_BYTES = 1 << 20, STEP_BYTES = 8 << 20, AHEAD_BYTES = 16 << 20 };

struct dbt_packed {
	const struct dbt_ctx *ctx;
	struct dbt_packed_opts opts;
	int fd;
	uint64_t size, at;
	uint64_t hashed; /* everything before is in the hashes */
	uint64_t asked;  /* read ahead up to here */
	bool drop;       /* the pages of this step were not cached before: leave none behind */
	uint64_t start_ns, paid_bytes;
	unsigned char *block;
	struct dbt_hasher *hasher;
	struct md5_ctx md5;
	struct sha256_ctx sha256;
};

int dbt_packed_new(const struct dbt_ctx *ctx, int fd, const struct dbt_ident *ident,
                   const struct dbt_packed_opts *opts, struct dbt_packed **ret, struct dbt_err *err)
{
	struct dbt_packed *p = calloc(1, sizeof(*p));

	if (p) {
		*p = (struct dbt_packed){ .ctx = ctx,
			                  .opts = *opts,
			                  .fd = fd,
			                  .size = ident->size_bytes,
			                  .start_ns = ctx->sys->now_ns(),
			                  .block = dbt_stream_alloc(BLOCK_BYTES),
			                  .hasher = dbt_hasher_new() };
		md5_init(&p->md5);
		sha256_init(&p->sha256);
	}
	if (!p || !p->block || !p->hasher) {
		dbt_packed_free(p);
		return dbt_err_sys(err, -ENOMEM, "cannot read '%s'", opts->shown);
	}
	*ret = p;
	return 0;
}

void dbt_packed_free(struct dbt_packed *p)
{
	if (!p)
		return;
	free(p->block);
	dbt_hasher_free(p->hasher);
	free(p);
}

uint64_t dbt_packed_at(const struct dbt_packed *p)
{
	return p->at;
}

void dbt_packed_seek(struct dbt_packed *p, uint64_t off)
{
	p->at = off;
}

uint64_t dbt_packed_size(const struct dbt_packed *p)
{
	return p->size;
}

ssize_t dbt_packed_peek(struct dbt_packed *p, void *buf, size_t len)
{
	return dbt_io_pread(p->ctx, p->fd, buf, len, 0);
}

/* Asks for the next step and lets the one behind go. */
static void look_ahead(struct dbt_packed *p)
{
	uint64_t cached = 0;

	if (p->at + AHEAD_BYTES < p->asked || p->asked >= p->size)
		return;
	if (p->asked < p->at) /* after a seek */
		p->asked = p->at;
	/* What was cached before, by others, stays so. */
	if (p->asked == 0)
		p->drop = dbt_io_cached(p->ctx, p->fd, 0, p->size, &cached) < 0 ||
		          cached < p->size / 2;
	(void)posix_fadvise(p->fd, (off_t)p->asked, STEP_BYTES, POSIX_FADV_WILLNEED);
	p->asked += STEP_BYTES;
	if (p->drop && p->at > STEP_BYTES)
		(void)posix_fadvise(p->fd, 0, (off_t)(p->at - BLOCK_BYTES), POSIX_FADV_DONTNEED);
}

static bool must_stop(const struct dbt_packed *p)
{
	return dbt_ctx_cancelled(p->ctx) || (p->opts.stop && atomic_load(p->opts.stop));
}

static void keep_limit(struct dbt_packed *p, size_t bytes)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	uint64_t due_ns;

	if (p->opts.limit_bytes_s == 0)
		return;
	p->paid_bytes += bytes;
	due_ns = p->start_ns +
	         (uint64_t)((double)p->paid_bytes / (double)p->opts.limit_bytes_s * 1e9);
	while (p->ctx->sys->now_ns() < due_ns && !must_stop(p))
		(void)nanosleep(&nap, NULL);
}

/* Bytes that continue what was hashed so far. */
static void hash(struct dbt_packed *p, uint64_t at, const unsigned char *data, size_t len)
{
	size_t known;

	if (at > p->hashed || at + len <= p->hashed)
		return;
	known = (size_t)(p->hashed - at);
	data += known;
	len -= known;
	dbt_hasher_add(p->hasher, data, len);
	if (p->opts.sums & DBT_SUM_MD5)
		md5_update(&p->md5, len, data);
	if (p->opts.sums & DBT_SUM_SHA256)
		sha256_update(&p->sha256, len, data);
	p->hashed += len;
	if (p->opts.progress)
		atomic_fetch_add(p->opts.progress, len);
}

ssize_t dbt_packed_read(struct dbt_packed *p, const void **ret)
{
	ssize_t got;

	if (must_stop(p))
		return -ECANCELED;
	look_ahead(p);
	got = dbt_io_pread(p->ctx, p->fd, p->block, BLOCK_BYTES, p->at);
	if (got <= 0)
		return got;
	hash(p, p->at, p->block, (size_t)got);
	keep_limit(p, (size_t)got);
	p->at += (uint64_t)got;
	*ret = p->block;
	return got;
}

static void hex(const uint8_t *bytes, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

int dbt_packed_finish(struct dbt_packed *p, struct dbt_packed_sums *ret, struct dbt_err *err)
{
	struct dbt_packed_sums sums = { 0 };
	uint8_t md5[MD5_DIGEST_SIZE], sha256[SHA256_DIGEST_SIZE];
	const void *block;
	ssize_t got = 1;

	p->at = p->hashed;
	while (got > 0 && p->hashed < p->size)
		got = dbt_packed_read(p, &block);
	if (got < 0)
		return dbt_err_sys(err, (int)got, "cannot read '%s' at byte %" PRIu64,
		                   p->opts.shown, p->at);
	if (p->hashed != p->size)
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE, "'%s' changed while it was read",
		                   p->opts.shown);
	sums.digest = dbt_hasher_digest(p->hasher);
	md5_digest(&p->md5, sizeof(md5), md5);
	sha256_digest(&p->sha256, sizeof(sha256), sha256);
	if (p->opts.sums & DBT_SUM_MD5)
		hex(md5, sizeof(md5), sums.md5);
	if (p->opts.sums & DBT_SUM_SHA256)
		hex(sha256, sizeof(sha256), sums.sha256);
	*ret = sums;
	return 0;
}
