/* The engine. Blocks of 4 MiB pass through a ring of slots; block i always uses slot i % SLOTS:
 *
 *	readers (2)   FREE -> READING -> READY     read from the source's device, in any order
 *	the caller    READY -> HASHED              in order: XXH3 of the whole stream and of each window;
 *	                                           progress, rate limit, cancellation
 *	writers (2)   HASHED -> WRITING -> FREE    write to the target, leave holes out
 *	prover (1)    per window, in order: when all its blocks are written, flush, read back, hash, compare
 *
 * A window is 64 MiB (more in files beyond 1 TiB). Once proved it is never written again. One mutex guards the
 * states and counters; the buffers belong to whoever put their slot into READING, HASHED or WRITING. The first
 * error stops everybody. */
#include "move/copy.h"

#include "move/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 8, READERS = 2, WRITERS = 2, MAX_WINDOWS = 16384 };
#define BLOCK ((uint64_t)DBT_STREAM_BLOCK_BYTES)

enum slot_state { SLOT_FREE = 0, SLOT_READING, SLOT_READY, SLOT_HASHED, SLOT_WRITING };

struct slot {
	void *buf;
	enum slot_state state;
};

struct window {
	struct dbt_digest digest; /* of the source's bytes */
	uint64_t blocks_written;
};

struct engine {
	const struct dbt_ctx *ctx;
	const struct dbt_copy_opts *opts;
	struct dbt_stream src, dst;
	uint64_t size, n_blocks;
	uint64_t window_blocks, n_windows;
	bool has_holes;
	struct slot slots[SLOTS];
	struct window *windows;

	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint64_t next_read, next_hash, next_write; /* block numbers */
	uint64_t data_bytes;
	bool proof_done;
	bool stop; /* an error happened, or the caller gave up */
	struct dbt_err err;
	struct dbt_digest read_back;
	bool from_device;

	pthread_t threads[READERS + WRITERS + 1];
	size_t n_threads;
};

static size_t block_len(const struct engine *e, uint64_t block)
{
	uint64_t off = block * BLOCK;

	return (size_t)(e->size - off < BLOCK ? e->size - off : BLOCK);
}

static uint64_t window_of(const struct engine *e, uint64_t block)
{
	return block / e->window_blocks;
}

static uint64_t blocks_in_window(const struct engine *e, uint64_t window)
{
	uint64_t first = window * e->window_blocks;

	return e->n_blocks - first < e->window_blocks ? e->n_blocks - first : e->window_blocks;
}

/* Under the mutex. The first error wins, later ones are its echo. */
static void fail_locked(struct engine *e, const struct dbt_err *err)
{
	if (!e->stop)
		e->err = *err;
	e->stop = true;
	(void)pthread_cond_broadcast(&e->changed);
}

static void fail(struct engine *e, const struct dbt_err *err)
{
	(void)pthread_mutex_lock(&e->mutex);
	fail_locked(e, err);
	(void)pthread_mutex_unlock(&e->mutex);
}

static void set_state(struct engine *e, struct slot *slot, enum slot_state state)
{
	(void)pthread_mutex_lock(&e->mutex);
	slot->state = state;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
}

/* Takes the next block whose slot is in `from`, or returns false when there is no more work. */
static bool claim(struct engine *e, uint64_t *next, enum slot_state from, enum slot_state to,
                  uint64_t *ret_block)
{
	bool found = false;

	(void)pthread_mutex_lock(&e->mutex);
	while (!e->stop && *next < e->n_blocks && e->slots[*next % SLOTS].state != from)
		(void)pthread_cond_wait(&e->changed, &e->mutex);
	if (!e->stop && *next < e->n_blocks) {
		found = true;
		*ret_block = (*next)++;
		e->slots[*ret_block % SLOTS].state = to;
		(void)pthread_cond_broadcast(&e->changed);
	}
	(void)pthread_mutex_unlock(&e->mutex);
	return found;
}

static int read_block(struct engine *e, uint64_t block, struct dbt_err *err)
{
	size_t len = block_len(e, block);
	ssize_t got =
		dbt_stream_read(e->ctx, &e->src, e->slots[block % SLOTS].buf, len, block * BLOCK);

	if (got < 0)
		return dbt_err_sys(err, (int)got, "cannot read '%s' at byte %" PRIu64,
		                   e->opts->shown_src, block * BLOCK);
	if ((size_t)got < len)
		return dbt_err_set(err, DBT_ERR_CHANGED, -EIO,
		                   "'%s' became shorter while it was read", e->opts->shown_src);
	return 0;
}

static void *reader_main(void *arg)
{
	struct engine *e = arg;
	struct dbt_err err;
	uint64_t block;

	while (claim(e, &e->next_read, SLOT_FREE, SLOT_READING, &block)) {
		if (read_block(e, block, &err) < 0) {
			fail(e, &err);
			break;
		}
		set_state(e, &e->slots[block % SLOTS], SLOT_READY);
	}
	return NULL;
}

static bool all_zero(const unsigned char *p, size_t len)
{
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

static int write_range(struct engine *e, uint64_t block, uint64_t off, uint64_t end,
                       uint64_t *ret_bytes)
{
	uint64_t start = block * BLOCK;
	const char *buf = e->slots[block % SLOTS].buf;

	*ret_bytes += end - off;
	return dbt_stream_write(e->ctx, &e->dst, buf + (off - start), (size_t)(end - off), off);
}

/* What a filesystem says of its holes is only a hint (OpenZFS has reported holes where there was data): a hole
 * is left out only where the bytes that were read are all zero. */
static int write_around_holes(struct engine *e, uint64_t block, uint64_t *ret_bytes)
{
	const uint64_t start = block * BLOCK, end = start + block_len(e, block);
	const unsigned char *buf = e->slots[block % SLOTS].buf;
	uint64_t off = start;
	int r;

	while (off < end) {
		off_t data = lseek(e->src.fd, (off_t)off, SEEK_DATA), hole;
		uint64_t data_at, hole_at;

		if (data < 0 && errno != ENXIO)
			return write_range(e, block, off, end, ret_bytes);
		data_at = data < 0 || (uint64_t)data > end ? end : (uint64_t)data;
		data_at = data_at < end ? data_at / DBT_STREAM_ALIGN * DBT_STREAM_ALIGN : end;
		if (data_at < off)
			data_at = off;
		if (!all_zero(buf + (off - start), (size_t)(data_at - off)))
			return write_range(e, block, off, end, ret_bytes);
		if (data_at == end)
			return 0;
		hole = lseek(e->src.fd, (off_t)data_at, SEEK_HOLE);
		hole_at = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
		hole_at = (hole_at + DBT_STREAM_ALIGN - 1) / DBT_STREAM_ALIGN * DBT_STREAM_ALIGN;
		if (hole_at <= data_at || hole_at > end)
			hole_at = end;
		r = write_range(e, block, data_at, hole_at, ret_bytes);
		if (r < 0)
			return r;
		off = hole_at;
	}
	return 0;
}

static void *writer_main(void *arg)
{
	struct engine *e = arg;
	struct dbt_err err;
	uint64_t block, bytes;
	int r;

	while (claim(e, &e->next_write, SLOT_HASHED, SLOT_WRITING, &block)) {
		bytes = 0;
		if (e->has_holes)
			r = write_around_holes(e, block, &bytes);
		else
			r = write_range(e, block, block * BLOCK,
			                block * BLOCK + block_len(e, block), &bytes);
		if (r < 0) {
			(void)dbt_err_sys(&err, r, "cannot write '%s'", e->opts->shown_dst);
			fail(e, &err);
			break;
		}
		(void)pthread_mutex_lock(&e->mutex);
		e->data_bytes += bytes;
		e->windows[window_of(e, block)].blocks_written++;
		e->slots[block % SLOTS].state = SLOT_FREE;
		(void)pthread_cond_broadcast(&e->changed);
		(void)pthread_mutex_unlock(&e->mutex);
	}
	return NULL;
}

/* Waits until the writers are through with a window. */
static bool wait_for_window(struct engine *e, uint64_t window)
{
	bool go;

	(void)pthread_mutex_lock(&e->mutex);
	while (!e->stop && e->windows[window].blocks_written < blocks_in_window(e, window))
		(void)pthread_cond_wait(&e->changed, &e->mutex);
	go = !e->stop;
	(void)pthread_mutex_unlock(&e->mutex);
	return go;
}

struct prover {
	void *buf;
	struct dbt_hasher *all, *one;
};

static int prove_window(struct engine *e, struct prover *p, uint64_t window, struct dbt_err *err)
{
	uint64_t first = window * e->window_blocks, n = blocks_in_window(e, window);
	uint64_t off = first * BLOCK, len = (n - 1) * BLOCK + block_len(e, first + n - 1);
	struct dbt_digest got;
	int r;

	r = dbt_stream_flush(e->ctx, &e->dst, off, len);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot flush '%s'", e->opts->shown_dst);
	if (!dbt_stream_reads_device(e->ctx, &e->dst, off, len))
		e->from_device = false;
	dbt_hasher_reset(p->one);
	for (uint64_t block = first; block < first + n; block++) {
		size_t want = block_len(e, block);
		ssize_t bytes = dbt_stream_read(e->ctx, &e->dst, p->buf, want, block * BLOCK);

		if (bytes < 0)
			return dbt_err_sys(err, (int)bytes, "cannot read back '%s'",
			                   e->opts->shown_dst);
		dbt_hasher_add(p->all, p->buf, (size_t)bytes);
		dbt_hasher_add(p->one, p->buf, (size_t)bytes);
		if ((size_t)bytes < want)
			break; /* the digests will differ */
	}
	got = dbt_hasher_digest(p->one);
	if (!dbt_digest_equal(&got, &e->windows[window].digest))
		return dbt_err_set(
			err, DBT_ERR_VERIFY, -EIO,
			"'%s' reads back other bytes than were written, between byte %" PRIu64
			" and %" PRIu64 ": do not trust its device",
			e->opts->shown_dst, off, off + len);
	return 0;
}

static void *prover_main(void *arg)
{
	struct engine *e = arg;
	struct prover p = { .buf = dbt_stream_alloc(DBT_STREAM_BLOCK_BYTES),
		            .all = dbt_hasher_new(),
		            .one = dbt_hasher_new() };
	struct dbt_err err;
	uint64_t window = 0;
	int r = p.buf && p.all && p.one ? 0 : dbt_err_sys(&err, -ENOMEM, "cannot prove the copy");

	for (; r == 0 && window < e->n_windows && wait_for_window(e, window); window++)
		r = prove_window(e, &p, window, &err);
	(void)pthread_mutex_lock(&e->mutex);
	if (r < 0) {
		fail_locked(e, &err);
	} else if (window == e->n_windows) {
		e->read_back = dbt_hasher_digest(p.all);
		e->proof_done = true;
		(void)pthread_cond_broadcast(&e->changed);
	}
	(void)pthread_mutex_unlock(&e->mutex);
	free(p.buf);
	dbt_hasher_free(p.all);
	dbt_hasher_free(p.one);
	return NULL;
}

/* Waits for news at most 50 ms, so that the caller's thread can look at the clock and the cancel flag. */
static void wait_a_little(struct engine *e)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += 50000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)pthread_cond_timedwait(&e->changed, &e->mutex, &until);
}

static void tell_progress(struct engine *e, const char *phase, uint64_t done)
{
	struct dbt_progress progress = {
		.phase = phase,
		.name = e->opts->shown_src,
		.done_bytes = e->opts->done_before_bytes + done,
		.total_bytes = e->opts->total_bytes ? e->opts->total_bytes : e->size,
	};

	if (e->ctx->progress)
		e->ctx->progress(e->ctx->progress_data, &progress);
}

/* Called often by the caller's thread, without the mutex. */
static void look_around(struct engine *e, const char *phase, uint64_t done)
{
	struct dbt_err err;

	tell_progress(e, phase, done);
	if (dbt_ctx_cancelled(e->ctx)) {
		(void)dbt_err_sys(&err, -ECANCELED, "copying '%s'", e->opts->shown_src);
		fail(e, &err);
	}
}

static bool stopped(struct engine *e)
{
	bool stop;

	(void)pthread_mutex_lock(&e->mutex);
	stop = e->stop;
	(void)pthread_mutex_unlock(&e->mutex);
	return stop;
}

/* Sleeps until `done` bytes are allowed by the limit. */
static void keep_limit(struct engine *e, uint64_t start_ns, uint64_t done)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	uint64_t due_ns;

	if (e->opts->limit_bytes_s == 0)
		return;
	due_ns = start_ns + (uint64_t)((double)done / (double)e->opts->limit_bytes_s * 1e9);
	while (e->ctx->sys->now_ns() < due_ns && !stopped(e)) {
		(void)nanosleep(&nap, NULL);
		look_around(e, "copy", done);
	}
}

/* The caller's part: hashes block after block in order. */
static void hash_all(struct engine *e, struct dbt_hasher *all, struct dbt_hasher *one)
{
	uint64_t start_ns = e->ctx->sys->now_ns(), done = 0;

	for (uint64_t block = 0; block < e->n_blocks; block++) {
		struct slot *slot = &e->slots[block % SLOTS];
		bool ready = false, stop = false;
		size_t len = block_len(e, block);

		while (!ready && !stop) {
			look_around(e, "copy", done);
			(void)pthread_mutex_lock(&e->mutex);
			if (slot->state != SLOT_READY && !e->stop)
				wait_a_little(e);
			/* The slot can only be READY with this very block: it is reused after FREE. */
			ready = slot->state == SLOT_READY;
			stop = e->stop;
			(void)pthread_mutex_unlock(&e->mutex);
		}
		if (stop)
			return;
		if (block % e->window_blocks == 0)
			dbt_hasher_reset(one);
		dbt_hasher_add(all, slot->buf, len);
		dbt_hasher_add(one, slot->buf, len);
		if ((block + 1) % e->window_blocks == 0 || block + 1 == e->n_blocks)
			e->windows[window_of(e, block)].digest = dbt_hasher_digest(one);
		set_state(e, slot, SLOT_HASHED);
		done += len;
		keep_limit(e, start_ns, done);
	}
}

static void wait_for_proof(struct engine *e)
{
	bool over = false;

	while (!over) {
		look_around(e, "prove", e->size);
		(void)pthread_mutex_lock(&e->mutex);
		if (!e->stop && !e->proof_done)
			wait_a_little(e);
		over = e->stop || e->proof_done;
		(void)pthread_mutex_unlock(&e->mutex);
	}
}

static int start_threads(struct engine *e, struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; i < READERS + WRITERS + 1 && r == 0; i++) {
		void *(*fn)(void *) = i < READERS             ? reader_main
		                      : i < READERS + WRITERS ? writer_main
		                                              : prover_main;

		r = pthread_create(&e->threads[i], NULL, fn, e);
		if (r == 0)
			e->n_threads++;
	}
	return r == 0 ? 0 : dbt_err_sys(err, -r, "cannot start a thread");
}

static void join_threads(struct engine *e)
{
	for (size_t i = 0; i < e->n_threads; i++)
		(void)pthread_join(e->threads[i], NULL);
}

/* Reserves room for the data, so that a full disk is known before the first byte. Filesystems that cannot
 * reserve answer EOPNOTSUPP: then the writes tell. */
static int reserve(struct engine *e, struct dbt_err *err)
{
	uint64_t off = 0;
	int r = e->ctx->sys->ftruncate(e->dst.fd, e->size);

	while (r == 0 && off < e->size) {
		uint64_t end = e->size;

		if (e->has_holes) {
			off_t data = lseek(e->src.fd, (off_t)off, SEEK_DATA), hole;

			if (data < 0)
				break;
			hole = lseek(e->src.fd, data, SEEK_HOLE);
			off = (uint64_t)data;
			end = hole < 0 ? e->size : (uint64_t)hole;
		}
		if (end <= off)
			break;
		do
			r = e->ctx->sys->fallocate(e->dst.fd, 0, off, end - off);
		while (r == -EINTR && !dbt_ctx_cancelled(e->ctx));
		off = end;
	}
	if (r == -EOPNOTSUPP || r == -ENOSYS)
		r = 0;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot reserve space for '%s'", e->opts->shown_dst);
	return 0;
}

static int engine_init(struct engine *e, const struct dbt_ctx *ctx, int src_fd, uint64_t size,
                       int dst_fd, const struct dbt_copy_opts *opts, struct dbt_err *err)
{
	pthread_condattr_t attr;
	off_t hole;

	*e = (struct engine){ .ctx = ctx, .opts = opts, .size = size, .from_device = true };
	e->n_blocks = (size + BLOCK - 1) / BLOCK;
	e->window_blocks = (64U << 20) / BLOCK;
	while (e->n_blocks / e->window_blocks > MAX_WINDOWS)
		e->window_blocks *= 2;
	e->n_windows = (e->n_blocks + e->window_blocks - 1) / e->window_blocks;
	dbt_stream_init(ctx, &e->src, src_fd, O_RDONLY);
	dbt_stream_init(ctx, &e->dst, dst_fd, O_RDWR);
	hole = size ? lseek(src_fd, 0, SEEK_HOLE) : 0;
	e->has_holes = hole >= 0 && (uint64_t)hole < size;
	(void)pthread_mutex_init(&e->mutex, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&e->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	e->windows = calloc(e->n_windows ? e->n_windows : 1, sizeof(*e->windows));
	if (!e->windows)
		return dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", opts->shown_src);
	for (size_t i = 0; i < SLOTS && i < e->n_blocks; i++) {
		e->slots[i].buf = dbt_stream_alloc(DBT_STREAM_BLOCK_BYTES);
		if (!e->slots[i].buf)
			return dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", opts->shown_src);
	}
	return 0;
}

static void engine_release(struct engine *e)
{
	for (size_t i = 0; i < SLOTS; i++)
		free(e->slots[i].buf);
	free(e->windows);
	dbt_stream_release(&e->src);
	dbt_stream_release(&e->dst);
	(void)pthread_cond_destroy(&e->changed);
	(void)pthread_mutex_destroy(&e->mutex);
}

static int run(struct engine *e, struct dbt_copy_result *ret, struct dbt_err *err)
{
	struct dbt_hasher *all = dbt_hasher_new(), *one = dbt_hasher_new();
	struct dbt_digest source = { 0 };
	struct dbt_err start_err;
	int r;

	if (!all || !one)
		r = dbt_err_sys(&start_err, -ENOMEM, "cannot copy '%s'", e->opts->shown_src);
	else
		r = start_threads(e, &start_err);
	if (r < 0) {
		fail(e, &start_err);
	} else {
		hash_all(e, all, one);
		wait_for_proof(e);
		source = dbt_hasher_digest(all);
	}
	join_threads(e);
	dbt_hasher_free(all);
	dbt_hasher_free(one);
	if (e->stop) {
		if (err)
			*err = e->err;
		return e->err.code;
	}
	if (!dbt_digest_equal(&source, &e->read_back))
		return dbt_err_set(
			err, DBT_ERR_VERIFY, -EIO,
			"'%s' reads back other bytes than were written: do not trust its device",
			e->opts->shown_dst);
	*ret = (struct dbt_copy_result){ .digest = source,
		                         .size_bytes = e->size,
		                         .data_bytes = e->data_bytes,
		                         .from_device = e->from_device };
	return 0;
}

int dbt_copy_file(const struct dbt_ctx *ctx, int src_fd, const struct dbt_ident *src, int dst_fd,
                  const struct dbt_copy_opts *opts, struct dbt_copy_result *ret,
                  struct dbt_err *err)
{
	struct engine e;
	int r = engine_init(&e, ctx, src_fd, src->size_bytes, dst_fd, opts, err);

	if (r == 0)
		r = reserve(&e, err);
	if (r == 0)
		r = run(&e, ret, err);
	engine_release(&e);
	return r;
}
