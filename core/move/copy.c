/* The copy engine; what its threads share and who may touch what: move/engine.h. */
#include "move/copy.h"

#include "move/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* --- errors and messages -------------------------------------------------------------------------------- */

/* The first error wins, later ones are its echo. */
void dbt_engine_fail(struct engine *e, const struct dbt_err *err)
{
	(void)pthread_mutex_lock(&e->mutex);
	if (!e->stop)
		e->err = *err;
	e->stop = true;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
}

bool dbt_engine_stopped(struct engine *e)
{
	bool stop;

	(void)pthread_mutex_lock(&e->mutex);
	stop = e->stop;
	(void)pthread_mutex_unlock(&e->mutex);
	return stop;
}

/* A dbt_ctx.log for the threads. More lines than fit between two looks of the caller's thread are cut off. */
static void queue_log(void *data, enum dbt_log_level level, const char *text)
{
	struct engine *e = data;

	(void)pthread_mutex_lock(&e->mutex);
	if (e->n_log < ENGINE_LOG_LINES) {
		e->log[e->n_log].level = level;
		e->log[e->n_log].text = strdup(text);
		e->n_log++;
	}
	(void)pthread_mutex_unlock(&e->mutex);
}

static void pass_log_on(struct engine *e)
{
	for (;;) {
		enum dbt_log_level level = DBT_LOG_NOTE;
		char *text = NULL;

		(void)pthread_mutex_lock(&e->mutex);
		if (e->n_log > 0) {
			level = e->log[0].level;
			text = e->log[0].text;
			e->n_log--;
			memmove(&e->log[0], &e->log[1], e->n_log * sizeof(e->log[0]));
		}
		(void)pthread_mutex_unlock(&e->mutex);
		if (!text)
			return;
		dbt_ctx_log(e->caller, level, "%s", text);
		free(text);
	}
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* Under the mutex: the file whose blocks come next. */
static struct engine_file *next_file(struct engine *e)
{
	struct engine_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->index = e->next_file++;
	f->size = e->many->size(e->many->data, f->index);
	f->n_blocks = f->size ? (f->size + ENGINE_BLOCK - 1) / ENGINE_BLOCK : 1;
	f->item = (struct dbt_copy_item){ .src = -1, .dst = -1 };
	f->src.direct_fd = f->dst.direct_fd = -1;
	f->from_device = true;
	f->prev = e->files.prev;
	f->next = &e->files;
	f->prev->next = f->next->prev = f;
	e->n_files++;
	e->reading_off = 0;
	return f;
}

static bool nothing_to_read(const struct engine *e)
{
	return !e->reading && e->next_file == e->many->n;
}

/* Under the mutex, with a free slot. */
static int claim_block(struct engine *e, struct engine_slot *slot)
{
	uint64_t rest;

	if (!e->reading)
		e->reading = next_file(e);
	if (!e->reading)
		return -ENOMEM;
	rest = e->reading->size - e->reading_off;
	slot->file = e->reading;
	slot->off = e->reading_off;
	slot->len = (size_t)(rest < ENGINE_BLOCK ? rest : ENGINE_BLOCK);
	slot->state = SLOT_READING;
	e->reading_off += slot->len;
	e->next_read++;
	if (e->reading_off == e->reading->size)
		e->reading = NULL;
	(void)pthread_cond_broadcast(&e->changed);
	return 0;
}

static struct engine_slot *claim_to_read(struct engine *e, struct dbt_err *err, int *ret)
{
	struct engine_slot *slot = NULL;

	*ret = 0;
	(void)pthread_mutex_lock(&e->mutex);
	while (!e->stop && !nothing_to_read(e)) {
		struct engine_slot *next = &e->slots[e->next_read % ENGINE_SLOTS];

		if (next->state == SLOT_FREE && (e->reading || e->n_files < e->max_files)) {
			*ret = claim_block(e, next);
			slot = next;
			break;
		}
		(void)pthread_cond_wait(&e->changed, &e->mutex);
	}
	(void)pthread_mutex_unlock(&e->mutex);
	if (*ret < 0)
		(void)dbt_err_sys(err, *ret, "cannot copy");
	return *ret < 0 ? NULL : slot;
}

/* Waits for the reader that opens the file. */
static bool wait_until_open(struct engine *e, const struct engine_file *f)
{
	bool open;

	(void)pthread_mutex_lock(&e->mutex);
	while (!e->stop && !f->open && !f->failed_open)
		(void)pthread_cond_wait(&e->changed, &e->mutex);
	open = f->open && !f->failed_open && !e->stop;
	(void)pthread_mutex_unlock(&e->mutex);
	return open;
}

static int read_block(struct engine *e, struct engine_slot *slot, struct dbt_err *err)
{
	struct engine_file *f = slot->file;
	ssize_t got;

	if (slot->off < f->start || slot->len == 0)
		return 0;
	if (!slot->buf)
		slot->buf = dbt_stream_alloc(DBT_STREAM_BLOCK_BYTES);
	if (!slot->buf)
		return dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", f->item.shown_src);
	got = dbt_stream_read(&e->ctx, &f->src, slot->buf, slot->len, slot->off);
	if (got < 0)
		return dbt_err_sys(err, (int)got, "cannot read '%s' at byte %" PRIu64,
		                   f->item.shown_src, slot->off);
	if ((size_t)got < slot->len)
		return dbt_err_set(err, DBT_ERR_CHANGED, -EIO,
		                   "'%s' became shorter while it was read", f->item.shown_src);
	return 0;
}

static void set_state(struct engine *e, struct engine_slot *slot, enum engine_slot_state state)
{
	(void)pthread_mutex_lock(&e->mutex);
	slot->state = state;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
}

static void *reader_main(void *arg)
{
	struct engine *e = arg;
	struct engine_slot *slot;
	struct dbt_err err;
	int r;

	while ((slot = claim_to_read(e, &err, &r))) {
		if (slot->off == 0)
			r = dbt_engine_open(e, slot->file, &err);
		else if (!wait_until_open(e, slot->file))
			break;
		if (r == 0)
			r = read_block(e, slot, &err);
		if (r < 0)
			break;
		set_state(e, slot, SLOT_READY);
	}
	if (r < 0)
		dbt_engine_fail(e, &err);
	return NULL;
}

/* --- the caller's part ---------------------------------------------------------------------------------- */

/* What the caller's thread knows of the run. */
struct run {
	struct engine *e;
	struct dbt_hasher *hasher; /* of the file whose blocks are passing */
	struct engine_window *window;
	uint64_t start_ns, done,
		limited; /* bytes that passed; of them, those that the rate limit counts */
	const char *name;
};

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

/* Called often, without the mutex. */
static void look_around(struct run *run, const char *phase)
{
	struct engine *e = run->e;
	struct dbt_progress progress = { .phase = phase,
		                         .name = run->name,
		                         .total_bytes = e->opts->total_bytes };
	struct dbt_err err;
	uint64_t kept;

	(void)pthread_mutex_lock(&e->mutex);
	kept = e->kept_done;
	(void)pthread_mutex_unlock(&e->mutex);
	progress.done_bytes = e->opts->done_before_bytes + (run->done > kept ? run->done : kept);
	pass_log_on(e);
	if (e->caller->progress)
		e->caller->progress(e->caller->progress_data, &progress);
	if (dbt_ctx_cancelled(e->caller)) {
		(void)dbt_err_sys(&err, -ECANCELED, "copying '%s'", run->name);
		dbt_engine_fail(e, &err);
	}
}

/* Sleeps until what passed is allowed by the limit. */
static void keep_limit(struct run *run)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	struct engine *e = run->e;
	uint64_t due_ns;

	if (e->opts->limit_bytes_s == 0)
		return;
	due_ns = run->start_ns +
	         (uint64_t)((double)run->limited / (double)e->opts->limit_bytes_s * 1e9);
	while (e->ctx.sys->now_ns() < due_ns && !dbt_engine_stopped(e)) {
		(void)nanosleep(&nap, NULL);
		look_around(run, "copy");
	}
}

/* The next block in order when it has been read; NULL at the end. */
static struct engine_slot *wait_for_block(struct run *run)
{
	struct engine *e = run->e;
	struct engine_slot *slot = &e->slots[e->next_hash % ENGINE_SLOTS];
	bool ready = false, over = false;

	while (!ready && !over) {
		look_around(run, "copy");
		(void)pthread_mutex_lock(&e->mutex);
		if (slot->state != SLOT_READY && !e->stop && !nothing_to_read(e))
			wait_a_little(e);
		/* The slot can only be READY with this very block: it is reused after FREE. */
		ready = slot->state == SLOT_READY;
		over = e->stop || (nothing_to_read(e) && e->next_hash == e->next_read);
		(void)pthread_mutex_unlock(&e->mutex);
	}
	return ready && !over ? slot : NULL;
}

/* A window to put the block into; NULL when the run was stopped. */
static struct engine_window *wait_for_window(struct run *run)
{
	struct engine *e = run->e;
	struct engine_window *w = run->window;
	bool found = w != NULL, stop = false;

	while (!found && !stop) {
		look_around(run, "copy");
		(void)pthread_mutex_lock(&e->mutex);
		w = &e->windows[e->next_window % ENGINE_WINDOWS];
		if (w->used && !e->stop)
			wait_a_little(e);
		stop = e->stop;
		found = !w->used;
		if (found) {
			w->used = true;
			e->next_window++;
		}
		(void)pthread_mutex_unlock(&e->mutex);
	}
	run->window = found ? w : NULL;
	return run->window;
}

/* Only the caller's thread writes to a window that is not closed. */
static void add_to_window(struct run *run, struct engine_window *w, const struct engine_slot *slot)
{
	struct engine_file *f = slot->file;
	struct engine_part *part = w->n_parts ? &w->parts[w->n_parts - 1] : NULL;
	uint64_t end = slot->off + slot->len;
	bool last = end == f->size;

	if (slot->off < f->start && !last)
		return; /* proved when the file was opened */
	if (!part || part->file != f) {
		part = &w->parts[w->n_parts++];
		*part = (struct engine_part){ .file = f,
			                      .off = slot->off < f->start ? f->size : slot->off };
	}
	part->end = end;
	part->last = last;
	w->bytes += slot->off < f->start ? 0 : slot->len;
	if (last)
		part->digest = f->digest = dbt_hasher_digest(run->hasher);
}

static bool is_full(const struct engine *e, const struct engine_window *w)
{
	return w->bytes >= ENGINE_WINDOW_BYTES || w->n_parts >= e->window_files;
}

/* Under the mutex. */
static void close_window(struct run *run)
{
	struct engine_window *w = run->window;
	struct engine_part *part = w->n_parts ? &w->parts[w->n_parts - 1] : NULL;

	if (part && !part->last)
		part->digest = dbt_hasher_digest(run->hasher);
	w->closed = true;
	run->window = NULL;
}

static void hash_block(struct run *run, const struct engine_slot *slot)
{
	const struct engine_file *f = slot->file;

	run->name = f->item.shown_src;
	if (slot->off == 0 && f->kept)
		dbt_hasher_copy(run->hasher, f->kept);
	else if (slot->off == 0)
		dbt_hasher_reset(run->hasher);
	if (slot->off >= f->start && slot->len > 0) {
		dbt_hasher_add(run->hasher, slot->buf, slot->len);
		run->limited += slot->len;
	}
}

/* Hashes block after block in order. */
static void hash_all(struct run *run)
{
	struct engine *e = run->e;
	struct engine_slot *slot;

	while ((slot = wait_for_block(run))) {
		struct engine_window *w = wait_for_window(run);

		if (!w)
			return;
		hash_block(run, slot);
		add_to_window(run, w, slot);
		run->done += slot->len;
		(void)pthread_mutex_lock(&e->mutex);
		w->blocks++;
		slot->window = w;
		slot->state = SLOT_HASHED;
		e->next_hash++;
		if (is_full(run->e, w))
			close_window(run);
		(void)pthread_cond_broadcast(&e->changed);
		(void)pthread_mutex_unlock(&e->mutex);
		keep_limit(run);
	}
	(void)pthread_mutex_lock(&e->mutex);
	if (run->window)
		close_window(run);
	e->all_hashed = true;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
}

static void wait_for_proof(struct run *run)
{
	struct engine *e = run->e;
	bool over = false;

	while (!over) {
		look_around(run, "prove");
		(void)pthread_mutex_lock(&e->mutex);
		if (!e->stop && !e->proof_done)
			wait_a_little(e);
		over = e->stop || e->proof_done;
		(void)pthread_mutex_unlock(&e->mutex);
	}
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static int start_threads(struct engine *e, struct dbt_err *err)
{
	size_t jobs = e->opts->jobs ? e->opts->jobs : DBT_COPY_JOBS;
	int r = 0;

	if (jobs > DBT_COPY_MAX_JOBS)
		jobs = DBT_COPY_MAX_JOBS;
	for (size_t i = 0; i < 2 * jobs + 1 && r == 0; i++) {
		void *(*fn)(void *) = i < jobs       ? reader_main
		                      : i < 2 * jobs ? dbt_engine_writer
		                                     : dbt_engine_prover;

		r = pthread_create(&e->threads[i], NULL, fn, e);
		if (r == 0)
			e->n_threads++;
	}
	return r == 0 ? 0 : dbt_err_sys(err, -r, "cannot start a thread");
}

/* Two windows of files are open at once, each file with its directory. */
static size_t room_for_files(void)
{
	struct rlimit limit;
	rlim_t room;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= ENGINE_OTHER_FDS)
		return 1;
	room = (limit.rlim_cur - ENGINE_OTHER_FDS) / 4;
	return room < 1 ? 1 : room < ENGINE_WINDOW_FILES ? (size_t)room : ENGINE_WINDOW_FILES;
}

static void engine_init(struct engine *e, const struct dbt_ctx *ctx,
                        const struct dbt_copy_many *many, const struct dbt_copy_opts *opts)
{
	pthread_condattr_t attr;

	e->caller = ctx;
	e->ctx = *ctx;
	e->ctx.log = ctx->log ? queue_log : NULL;
	e->ctx.log_data = e;
	e->ctx.progress = NULL;
	e->many = many;
	e->opts = opts;
	e->files.next = e->files.prev = &e->files;
	e->window_files = room_for_files();
	e->max_files = 2 * e->window_files + ENGINE_SLOTS;
	(void)pthread_mutex_init(&e->mutex, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&e->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
}

static void run_threads(struct engine *e)
{
	struct run run = { .e = e,
		           .hasher = dbt_hasher_new(),
		           .start_ns = e->ctx.sys->now_ns(),
		           .name = e->opts->shown_src };
	struct dbt_err err;
	int r = run.hasher ? start_threads(e, &err) : dbt_err_sys(&err, -ENOMEM, "cannot copy");

	if (r < 0) {
		dbt_engine_fail(e, &err);
	} else {
		hash_all(&run);
		wait_for_proof(&run);
	}
	for (size_t i = 0; i < e->n_threads; i++)
		(void)pthread_join(e->threads[i], NULL);
	dbt_hasher_free(run.hasher);
}

int dbt_copy_many(const struct dbt_ctx *ctx, const struct dbt_copy_many *many,
                  const struct dbt_copy_opts *opts, struct dbt_err *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r = 0;

	if (!e)
		return dbt_err_sys(err, -ENOMEM, "cannot copy");
	engine_init(e, ctx, many, opts);
	if (many->n > 0)
		run_threads(e);
	while (e->files.next != &e->files)
		dbt_engine_close(e, e->files.next, true);
	pass_log_on(e);
	if (e->stop) {
		if (err)
			*err = e->err;
		r = e->err.code;
	}
	for (size_t i = 0; i < ENGINE_SLOTS; i++)
		free(e->slots[i].buf);
	(void)pthread_cond_destroy(&e->changed);
	(void)pthread_mutex_destroy(&e->mutex);
	free(e);
	return r;
}
