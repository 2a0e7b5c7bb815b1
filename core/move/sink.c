#include "move/sink.h"

#include "base/units.h"
#include "move/mark.h"
#include "move/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 1 << 20,
	BLOCKS = 16,
	WINDOW_BLOCKS = 64,
	WRITERS = 2,
	PROVERS = 2,
	MOST_FILES = 64 /* open at a time, with two descriptors each */
};
#define RESERVED_FROM_BYTES (1U << 20)

struct window {
	struct dbt_sink_file *file;
	struct window *next;    /* in the queue of the provers */
	struct window *earlier; /* of the same file, which owns them all */
	uint64_t off, len;
	struct dbt_digest digest;
	unsigned unwritten; /* blocks */
	bool closed;        /* no more blocks will come */
	bool last;          /* of its file */
};

struct block {
	struct block *next; /* in the pool, or in the queue of the writers */
	struct window *window;
	uint64_t off;
	size_t len;
	bool has_data; /* not only zeros that the archive passed over */
	unsigned char *bytes;
};

struct dbt_sink_file {
	int fd;
	struct dbt_stream stream;
	const struct dbt_ctx *ctx;
	const char *shown;
	const struct dbt_sink_space *space;
	struct dbt_sink_result *result;
	bool reserved;
	bool from_device;
	uint32_t mode, uid, gid;
	int64_t mtime_ns;
	/* Of the caller who fills it. */
	struct dbt_hasher *whole, *part;
	struct window *window, *windows; /* the present one; the newest */
	struct block *block;
	uint64_t at;
	/* Under the mutex. */
	uint64_t unwritten;     /* blocks */
	uint64_t unproved;      /* windows, also the one that is being filled */
	struct window *waiting; /* the last window: its turn is when all blocks are written */
	bool ended;
	struct dbt_sink_file *prev, *next; /* all that are open */
};

struct dbt_sink {
	const struct dbt_ctx *ctx;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct block blocks[BLOCKS];
	struct block *pool, *to_write, **to_write_end;
	struct window *to_prove, **to_prove_end;
	struct dbt_sink_file *files;
	size_t n_files; /* of them, or about to be made */
	bool closing;
	atomic_bool stopped;
	struct dbt_err err;
	pthread_t threads[WRITERS + PROVERS];
	size_t n_threads;
};

/* ---- failures ---- */

static void fail_locked(struct dbt_sink *s, const struct dbt_err *err)
{
	if (!atomic_load(&s->stopped))
		s->err = *err;
	atomic_store(&s->stopped, true);
	(void)pthread_cond_broadcast(&s->changed);
}

void dbt_sink_fail(struct dbt_sink *s, const struct dbt_err *err)
{
	(void)pthread_mutex_lock(&s->mutex);
	fail_locked(s, err);
	(void)pthread_mutex_unlock(&s->mutex);
}

atomic_bool *dbt_sink_stopped(struct dbt_sink *s)
{
	return &s->stopped;
}

/* The failure of whatever stopped the sink is the caller's too. */
static int stopped(struct dbt_sink *s, struct dbt_err *err)
{
	int code;

	(void)pthread_mutex_lock(&s->mutex);
	code = s->err.code;
	if (err)
		*err = s->err;
	(void)pthread_mutex_unlock(&s->mutex);
	return code;
}

/* ---- files ---- */

static void close_file(struct dbt_sink_file *f)
{
	struct window *w;

	dbt_stream_release(&f->stream);
	if (f->fd >= 0)
		(void)f->ctx->sys->close(f->fd);
	dbt_hasher_free(f->whole);
	dbt_hasher_free(f->part);
	while ((w = f->windows)) {
		f->windows = w->earlier;
		free(w);
	}
	free(f);
}

static void list_file(struct dbt_sink *s, struct dbt_sink_file *f)
{
	(void)pthread_mutex_lock(&s->mutex);
	f->next = s->files;
	if (f->next)
		f->next->prev = f;
	s->files = f;
	(void)pthread_mutex_unlock(&s->mutex);
}

static void unlist_file(struct dbt_sink *s, struct dbt_sink_file *f)
{
	(void)pthread_mutex_lock(&s->mutex);
	if (f->next)
		f->next->prev = f->prev;
	if (f->prev)
		f->prev->next = f->next;
	else
		s->files = f->next;
	s->n_files--;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->mutex);
}

static int check_space(const struct dbt_sink_space *space, uint64_t bytes, struct dbt_err *err)
{
	char need[DBT_UNITS_TEXT_BYTES], there[DBT_UNITS_TEXT_BYTES], keep[DBT_UNITS_TEXT_BYTES];
	struct statvfs vfs;
	uint64_t free_bytes;

	if (fstatvfs(space->fd, &vfs) < 0)
		return dbt_err_sys(err, -errno, "cannot ask for the space of '%s'", space->shown);
	free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (free_bytes >= bytes && free_bytes - bytes >= space->reserve_bytes)
		return 0;
	return dbt_err_refuse(
		err,
		"not enough space in '%s': %s more needed and %s to be left free, %s there "
		"are; --reserve changes what is left free",
		space->shown, dbt_units_size(bytes, need),
		dbt_units_size(space->reserve_bytes, keep), dbt_units_size(free_bytes, there));
}

static int reserve(struct dbt_sink_file *f, uint64_t size_bytes)
{
	int r;

	if (size_bytes < RESERVED_FROM_BYTES)
		return 0;
	do
		r = f->ctx->sys->fallocate(f->fd, 0, 0, size_bytes);
	while (r == -EINTR && !dbt_ctx_cancelled(f->ctx));
	f->reserved = r == 0;
	return r == -EOPNOTSUPP || r == -ENOSYS ? 0 : r;
}

static int make_file(struct dbt_sink_file *f, const struct dbt_sink_want *want, struct dbt_err *err)
{
	int r;

	if (want->sized) {
		r = check_space(want->space, want->size_bytes, err);
		if (r < 0)
			return r;
	}
	f->fd = f->ctx->sys->openat(want->dirfd, want->name,
	                            O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->fd < 0)
		return dbt_err_sys(err, f->fd, "cannot create '%s'", want->shown);
	r = want->mark ? dbt_mark_set(f->ctx, f->fd, want->mark) : 0;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot mark '%s'", want->shown);
	r = want->sized ? reserve(f, want->size_bytes) : 0;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot reserve space for '%s'", want->shown);
	dbt_stream_init(f->ctx, &f->stream, f->fd, O_RDWR);
	return 0;
}

/* Takes a place among the open files. */
static int take_place(struct dbt_sink *s)
{
	bool go;

	(void)pthread_mutex_lock(&s->mutex);
	while (s->n_files >= MOST_FILES && !atomic_load(&s->stopped))
		(void)pthread_cond_wait(&s->changed, &s->mutex);
	go = !atomic_load(&s->stopped);
	s->n_files += go;
	(void)pthread_mutex_unlock(&s->mutex);
	return go ? 0 : -ECANCELED;
}

int dbt_sink_begin(struct dbt_sink *s, const struct dbt_sink_want *want,
                   struct dbt_sink_result *result, struct dbt_sink_file **ret, struct dbt_err *err)
{
	struct dbt_sink_file *f;
	int r;

	if (take_place(s) < 0)
		return stopped(s, err);
	f = calloc(1, sizeof(*f));
	if (!f) {
		(void)pthread_mutex_lock(&s->mutex);
		s->n_files--;
		(void)pthread_mutex_unlock(&s->mutex);
		return dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", want->shown);
	}
	f->fd = f->stream.direct_fd = -1;
	f->ctx = s->ctx;
	f->shown = want->shown;
	f->space = want->space;
	f->result = result;
	f->from_device = true;
	f->mode = want->mode;
	f->uid = want->uid;
	f->gid = want->gid;
	f->mtime_ns = want->mtime_ns;
	f->whole = dbt_hasher_new();
	f->part = dbt_hasher_new();
	list_file(s, f);
	r = f->whole && f->part ? make_file(f, want, err)
	                        : dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", want->shown);
	if (r < 0) {
		unlist_file(s, f);
		close_file(f);
		return r;
	}
	*ret = f;
	return 0;
}

/* ---- filling ---- */

static struct block *take_block(struct dbt_sink *s)
{
	struct block *b;

	(void)pthread_mutex_lock(&s->mutex);
	while (!s->pool && !atomic_load(&s->stopped))
		(void)pthread_cond_wait(&s->changed, &s->mutex);
	b = atomic_load(&s->stopped) ? NULL : s->pool;
	if (b)
		s->pool = b->next;
	(void)pthread_mutex_unlock(&s->mutex);
	return b;
}

static void free_block_locked(struct dbt_sink *s, struct block *b)
{
	b->next = s->pool;
	s->pool = b;
	(void)pthread_cond_broadcast(&s->changed);
}

static void queue_window_locked(struct dbt_sink *s, struct window *w)
{
	w->next = NULL;
	*s->to_prove_end = w;
	s->to_prove_end = &w->next;
	(void)pthread_cond_broadcast(&s->changed);
}

/* A window whose blocks are all written is the provers'; the last one of a file waits for those of the others. */
static void offer_locked(struct dbt_sink *s, struct window *w)
{
	struct dbt_sink_file *f = w->file;

	if (w->closed && w->unwritten == 0 && !w->last)
		queue_window_locked(s, w);
	if (f->waiting && f->unwritten == 0) {
		queue_window_locked(s, f->waiting);
		f->waiting = NULL;
	}
}

static int open_window(struct dbt_sink *s, struct dbt_sink_file *f, struct dbt_err *err)
{
	int r = f->reserved ? 0 : check_space(f->space, 0, err);

	if (r < 0)
		return r;
	f->window = calloc(1, sizeof(*f->window));
	if (!f->window)
		return dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", f->shown);
	f->window->file = f;
	f->window->earlier = f->windows;
	f->windows = f->window;
	f->window->off = f->at;
	dbt_hasher_reset(f->part);
	(void)pthread_mutex_lock(&s->mutex);
	f->unproved++;
	(void)pthread_mutex_unlock(&s->mutex);
	return 0;
}

static void close_window(struct dbt_sink *s, struct dbt_sink_file *f, bool last)
{
	struct window *w = f->window;

	f->window = NULL;
	w->len = f->at - w->off;
	w->digest = dbt_hasher_digest(f->part);
	(void)pthread_mutex_lock(&s->mutex);
	w->closed = true;
	w->last = last;
	f->ended = last;
	if (last)
		f->waiting = w;
	offer_locked(s, w);
	(void)pthread_mutex_unlock(&s->mutex);
}

/* Hands the block to the writers. */
static void send_block(struct dbt_sink *s, struct dbt_sink_file *f)
{
	struct block *b = f->block;

	f->block = NULL;
	(void)pthread_mutex_lock(&s->mutex);
	if (b->has_data) {
		b->window->unwritten++;
		f->unwritten++;
		b->next = NULL;
		*s->to_write_end = b;
		s->to_write_end = &b->next;
		(void)pthread_cond_broadcast(&s->changed);
	} else {
		free_block_locked(s, b);
	}
	(void)pthread_mutex_unlock(&s->mutex);
}

static int open_block(struct dbt_sink *s, struct dbt_sink_file *f, struct dbt_err *err)
{
	int r = f->window ? 0 : open_window(s, f, err);

	if (r < 0)
		return r;
	f->block = take_block(s);
	if (!f->block)
		return stopped(s, err);
	f->block->window = f->window;
	f->block->off = f->at;
	f->block->len = 0;
	f->block->has_data = false;
	return 0;
}

/* data NULL: zeros that the archive passes over. */
static int append(struct dbt_sink *s, struct dbt_sink_file *f, const unsigned char *data,
                  uint64_t len, struct dbt_err *err)
{
	while (len > 0) {
		struct block *b;
		size_t n;
		int r = f->block ? 0 : open_block(s, f, err);

		if (r < 0)
			return r;
		b = f->block;
		n = BLOCK_BYTES - b->len < len ? BLOCK_BYTES - b->len : (size_t)len;
		if (data)
			memcpy(b->bytes + b->len, data, n);
		else
			memset(b->bytes + b->len, 0, n);
		b->has_data |= data != NULL;
		dbt_hasher_add(f->whole, b->bytes + b->len, n);
		dbt_hasher_add(f->part, b->bytes + b->len, n);
		b->len += n;
		f->at += n;
		len -= n;
		data = data ? data + n : NULL;
		if (b->len == BLOCK_BYTES)
			send_block(s, f);
		if (f->at - f->window->off == (uint64_t)WINDOW_BLOCKS * BLOCK_BYTES)
			close_window(s, f, false);
		if (atomic_load(&s->stopped))
			return stopped(s, err);
	}
	return 0;
}

static int append_zeros(struct dbt_sink *s, struct dbt_sink_file *f, uint64_t end,
                        struct dbt_err *err)
{
	int r;

	if (end == f->at)
		return 0;
	if (end < f->at)
		return dbt_err_set(err, DBT_ERR_VERIFY, -EBADMSG,
		                   "'%s' comes out of order, or larger than it was said to be",
		                   f->shown);
	/* Room as for data: what is sparse in the archive may not be so for long. */
	r = f->reserved ? 0 : check_space(f->space, end - f->at, err);
	return r < 0 ? r : append(s, f, NULL, end - f->at, err);
}

int dbt_sink_write(struct dbt_sink *s, struct dbt_sink_file *f, const void *data, size_t len,
                   uint64_t off, struct dbt_err *err)
{
	int r = append_zeros(s, f, off, err);

	return r < 0 ? r : append(s, f, data, len, err);
}

int dbt_sink_end(struct dbt_sink *s, struct dbt_sink_file *f, uint64_t size_bytes,
                 struct dbt_err *err)
{
	int r = append_zeros(s, f, size_bytes, err);

	/* Also an empty file, and one that ends with a window, has a last window. */
	if (r == 0 && !f->window)
		r = open_window(s, f, err);
	if (r < 0)
		return r;
	if (f->block)
		send_block(s, f);
	f->result->digest = dbt_hasher_digest(f->whole);
	close_window(s, f, true);
	return 0;
}

/* ---- writing ---- */

static struct block *next_block(struct dbt_sink *s)
{
	struct block *b = NULL;

	(void)pthread_mutex_lock(&s->mutex);
	while (!s->to_write && !s->closing && !atomic_load(&s->stopped))
		(void)pthread_cond_wait(&s->changed, &s->mutex);
	if (!atomic_load(&s->stopped) && s->to_write) {
		b = s->to_write;
		s->to_write = b->next;
		if (!s->to_write)
			s->to_write_end = &s->to_write;
	}
	(void)pthread_mutex_unlock(&s->mutex);
	return b;
}

static void *writer_main(void *arg)
{
	struct dbt_sink *s = arg;
	struct dbt_err err;
	struct block *b;

	while ((b = next_block(s))) {
		struct dbt_sink_file *f = b->window->file;
		int r = dbt_stream_write(s->ctx, &f->stream, b->bytes, b->len, b->off);

		if (r < 0)
			(void)dbt_err_sys(&err, r, "cannot write '%s'", f->shown);
		(void)pthread_mutex_lock(&s->mutex);
		if (r < 0)
			fail_locked(s, &err);
		b->window->unwritten--;
		f->unwritten--;
		offer_locked(s, b->window);
		free_block_locked(s, b);
		(void)pthread_mutex_unlock(&s->mutex);
	}
	return NULL;
}

/* ---- proving ---- */

/* Who may read it and when it was made; before the last flush, so that it is on the device too. */
static int adorn(const struct dbt_sink_file *f, uint64_t size_bytes)
{
	const struct dbt_sys *sys = f->ctx->sys;
	const struct timespec times[2] = {
		{ .tv_sec = f->mtime_ns / 1000000000, .tv_nsec = f->mtime_ns % 1000000000 },
		{ .tv_sec = f->mtime_ns / 1000000000, .tv_nsec = f->mtime_ns % 1000000000 },
	};
	int r = sys->ftruncate(f->fd, size_bytes);

	if (r == 0)
		/* Only root may give files away. */
		(void)sys->fchownat(f->fd, "", f->uid, f->gid, AT_EMPTY_PATH);
	if (r == 0)
		r = sys->fchmod(f->fd, f->mode);
	if (r == 0 && f->mtime_ns > 0)
		r = sys->utimensat(f->fd, "", times, AT_EMPTY_PATH);
	return r == 0 ? sys->fsync(f->fd) : r;
}

static int prove(struct dbt_sink *s, struct window *w, void *buf, struct dbt_hasher *hasher,
                 struct dbt_err *err)
{
	struct dbt_sink_file *f = w->file;
	struct dbt_digest got;
	bool from_device;
	int r = w->last ? adorn(f, w->off + w->len) : s->ctx->sys->fdatasync(f->fd);

	/* A flush that failed is final: the data may be lost. */
	if (r < 0)
		return dbt_err_sys(err, r, "cannot flush '%s'", f->shown);
	dbt_stream_drop(&f->stream, w->off, w->len);
	from_device = dbt_stream_reads_device(s->ctx, &f->stream, w->off, w->len);
	dbt_hasher_reset(hasher);
	for (uint64_t off = w->off; off < w->off + w->len; off += BLOCK_BYTES) {
		uint64_t left = w->off + w->len - off;
		size_t want = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
		ssize_t n = dbt_stream_read(s->ctx, &f->stream, buf, want, off);

		if (n < 0)
			return dbt_err_sys(err, (int)n, "cannot read back '%s'", f->shown);
		dbt_hasher_add(hasher, buf, (size_t)n);
		if (atomic_load(&s->stopped))
			return -ECANCELED;
	}
	got = dbt_hasher_digest(hasher);
	if (!dbt_digest_equal(&got, &w->digest))
		return dbt_err_set(
			err, DBT_ERR_VERIFY, -EIO,
			"'%s' reads back other bytes than were written, between byte %" PRIu64
			" and %" PRIu64 ": do not trust its device",
			f->shown, w->off, w->off + w->len);
	(void)pthread_mutex_lock(&s->mutex);
	f->from_device = f->from_device && from_device;
	(void)pthread_mutex_unlock(&s->mutex);
	return 0;
}

/* The last of its windows is proved: what it is from now on. */
static int finish(struct dbt_sink *s, struct dbt_sink_file *f, struct dbt_err *err)
{
	int r = dbt_ident_fd(s->ctx, f->fd, &f->result->ident);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", f->shown);
	f->result->from_device = f->from_device;
	r = s->ctx->sys->close(f->fd);
	f->fd = -1;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot close '%s'", f->shown);
	unlist_file(s, f);
	close_file(f);
	return 0;
}

static struct window *next_window(struct dbt_sink *s)
{
	struct window *w = NULL;

	(void)pthread_mutex_lock(&s->mutex);
	while (!s->to_prove && !s->closing && !atomic_load(&s->stopped))
		(void)pthread_cond_wait(&s->changed, &s->mutex);
	if (!atomic_load(&s->stopped) && s->to_prove) {
		w = s->to_prove;
		s->to_prove = w->next;
		if (!s->to_prove)
			s->to_prove_end = &s->to_prove;
	}
	(void)pthread_mutex_unlock(&s->mutex);
	return w;
}

static void *prover_main(void *arg)
{
	struct dbt_sink *s = arg;
	struct dbt_hasher *hasher = dbt_hasher_new();
	void *buf = dbt_stream_alloc(BLOCK_BYTES);
	struct dbt_err err = { 0 };
	struct window *w;

	if (!hasher || !buf) {
		(void)dbt_err_sys(&err, -ENOMEM, "cannot prove what was unpacked");
		dbt_sink_fail(s, &err);
	}
	while ((w = next_window(s))) {
		struct dbt_sink_file *f = w->file;
		bool complete;
		int r = prove(s, w, buf, hasher, &err);

		(void)pthread_mutex_lock(&s->mutex);
		complete = --f->unproved == 0 && f->ended && r == 0;
		(void)pthread_mutex_unlock(&s->mutex);
		if (complete)
			r = finish(s, f, &err);
		if (r < 0)
			dbt_sink_fail(s, &err);
	}
	free(buf);
	dbt_hasher_free(hasher);
	return NULL;
}

/* ---- the whole ---- */

static int start_threads(struct dbt_sink *s)
{
	int r = 0;

	for (size_t i = 0; i < WRITERS + PROVERS && r == 0; i++) {
		r = pthread_create(&s->threads[i], NULL, i < WRITERS ? writer_main : prover_main,
		                   s);
		s->n_threads += r == 0;
	}
	return -r;
}

int dbt_sink_new(const struct dbt_ctx *ctx, struct dbt_sink **ret, struct dbt_err *err)
{
	struct dbt_sink *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int r = 0;

	if (!s)
		return dbt_err_sys(err, -ENOMEM, "cannot unpack");
	s->ctx = ctx;
	s->to_write_end = &s->to_write;
	s->to_prove_end = &s->to_prove;
	(void)pthread_mutex_init(&s->mutex, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	for (size_t i = 0; r == 0 && i < BLOCKS; i++) {
		s->blocks[i].bytes = dbt_stream_alloc(BLOCK_BYTES);
		s->blocks[i].next = s->pool;
		s->pool = &s->blocks[i];
		r = s->blocks[i].bytes ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = start_threads(s);
	if (r < 0) {
		dbt_sink_free(s);
		return dbt_err_sys(err, r, "cannot unpack");
	}
	*ret = s;
	return 0;
}

void dbt_sink_free(struct dbt_sink *s)
{
	struct dbt_sink_file *f;

	if (!s)
		return;
	(void)pthread_mutex_lock(&s->mutex);
	s->closing = true;
	atomic_store(&s->stopped, true);
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->mutex);
	for (size_t i = 0; i < s->n_threads; i++)
		(void)pthread_join(s->threads[i], NULL);
	while ((f = s->files)) {
		s->files = f->next;
		close_file(f);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(s->blocks[i].bytes);
	(void)pthread_cond_destroy(&s->changed);
	(void)pthread_mutex_destroy(&s->mutex);
	free(s);
}

/* Waits for news at most 50 ms, so that the caller can look at the cancel flag. */
static void wait_a_little(struct dbt_sink *s)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += 50000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)pthread_cond_timedwait(&s->changed, &s->mutex, &until);
}

int dbt_sink_drain(struct dbt_sink *s, struct dbt_err *err)
{
	struct dbt_err cancelled;

	(void)pthread_mutex_lock(&s->mutex);
	while (s->n_files > 0 && !atomic_load(&s->stopped)) {
		if (dbt_ctx_cancelled(s->ctx)) {
			(void)dbt_err_sys(&cancelled, -ECANCELED, "unpacking");
			fail_locked(s, &cancelled);
			break;
		}
		wait_a_little(s);
	}
	(void)pthread_mutex_unlock(&s->mutex);
	return atomic_load(&s->stopped) ? stopped(s, err) : 0;
}
