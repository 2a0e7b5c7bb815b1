/* The prover of the copy engine: window by window, flush, read back from the device, compare. */
#include "move/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

struct prover {
	void *buf;
	struct dbt_hasher *hasher; /* of the file that is being read back, from its beginning */
};

/* The next window when all its blocks are written; NULL when there is none any more. */
static struct engine_window *wait_for_window(struct engine *e)
{
	struct engine_window *w = &e->windows[e->next_proof % ENGINE_WINDOWS];
	bool ready = false, over = false;

	(void)pthread_mutex_lock(&e->mutex);
	while (!ready && !over) {
		ready = w->used && w->closed && w->blocks_done == w->blocks;
		over = e->stop || (e->all_hashed && !w->used);
		if (!ready && !over)
			(void)pthread_cond_wait(&e->changed, &e->mutex);
	}
	ready = ready && !e->stop;
	(void)pthread_mutex_unlock(&e->mutex);
	return ready ? w : NULL;
}

static int flush_each(struct engine *e, const struct engine_window *w, struct dbt_err *err)
{
	for (size_t i = 0; i < w->n_parts; i++) {
		const struct engine_file *f = w->parts[i].file;
		bool with_metadata = w->parts[i].last && e->many->written;
		int r = with_metadata ? e->ctx.sys->fsync(f->item.dst)
		                      : e->ctx.sys->fdatasync(f->item.dst);

		/* Final: the data may be lost, a second try would report success. */
		if (r < 0)
			return dbt_err_sys(err, r, "cannot flush '%s'", f->item.shown_dst);
	}
	return 0;
}

static int flush(struct engine *e, const struct engine_window *w, struct dbt_err *err)
{
	const struct dbt_copy_item *first;
	bool share;
	int r;

	(void)pthread_mutex_lock(&e->mutex);
	share = e->share_flushes;
	(void)pthread_mutex_unlock(&e->mutex);
	if (!share || w->n_parts < ENGINE_SHARE_FILES) /* it may have no part at all */
		return flush_each(e, w, err);
	first = &w->parts[0].file->item;
	r = e->ctx.sys->syncfs(first->dst);
	return r < 0 ? dbt_err_sys(err, r, "cannot flush the filesystem of '%s'", first->shown_dst)
	             : 0;
}

static int read_back(struct engine *e, struct prover *p, const struct engine_part *part,
                     struct dbt_stream *stream, struct dbt_err *err)
{
	struct engine_file *f = part->file;
	uint64_t len = part->end - part->off;
	struct dbt_digest got;

	dbt_stream_drop(stream, part->off, len);
	if (len > 0 && !dbt_stream_reads_device(&e->ctx, stream, part->off, len))
		f->from_device = false;
	for (uint64_t off = part->off; off < part->end;) {
		uint64_t rest = part->end - off;
		size_t want = (size_t)(rest < ENGINE_BLOCK ? rest : ENGINE_BLOCK);
		ssize_t bytes = dbt_stream_read(&e->ctx, stream, p->buf, want, off);

		if (bytes < 0)
			return dbt_err_sys(err, (int)bytes, "cannot read back '%s'",
			                   f->item.shown_dst);
		dbt_hasher_add(p->hasher, p->buf, (size_t)bytes);
		if ((size_t)bytes < want)
			break; /* the digests will differ */
		off += want;
	}
	got = dbt_hasher_digest(p->hasher);
	if (!dbt_digest_equal(&got, &part->digest))
		return dbt_err_set(
			err, DBT_ERR_VERIFY, -EIO,
			"'%s' reads back other bytes than were written, between byte %" PRIu64
			" and %" PRIu64 ": do not trust its device",
			f->item.shown_dst, part->off, part->end);
	return 0;
}

static int prove_part(struct engine *e, struct prover *p, const struct engine_part *part,
                      struct dbt_err *err)
{
	struct engine_file *f = part->file;
	struct dbt_stream own, *stream = &f->dst;
	int r;

	if (part->off == f->start && f->kept)
		dbt_hasher_copy(p->hasher, f->kept);
	else if (part->off == f->start)
		dbt_hasher_reset(p->hasher);
	/* What was written through the page cache is read back around it. */
	if (f->small)
		dbt_stream_init(&e->ctx, stream = &own, f->item.dst, O_RDONLY);
	r = read_back(e, p, part, stream, err);
	if (f->small)
		dbt_stream_release(&own);
	return r;
}

static int end_part(struct engine *e, const struct engine_part *part, struct dbt_err *err)
{
	const struct dbt_copy_many *many = e->many;
	struct engine_file *f = part->file;
	struct dbt_copy_result result;
	int r = 0;

	if (!part->last)
		return many->flushed ? many->flushed(many->data, &e->ctx, f->index, &f->item,
		                                     part->end, &part->digest, err)
		                     : 0;
	result = (struct dbt_copy_result){ .digest = part->digest,
		                           .size_bytes = f->size,
		                           .data_bytes = f->data_bytes,
		                           .kept_bytes = f->start,
		                           .from_device = f->from_device };
	if (many->proved)
		r = many->proved(many->data, &e->ctx, f->index, &f->item, &result, err);
	if (r == 0)
		dbt_engine_close(e, f, false);
	return r;
}

static int prove_window(struct engine *e, struct prover *p, const struct engine_window *w,
                        struct dbt_err *err)
{
	int r = flush(e, w, err);

	for (size_t i = 0; r == 0 && i < w->n_parts; i++) {
		r = prove_part(e, p, &w->parts[i], err);
		if (r == 0)
			r = end_part(e, &w->parts[i], err);
	}
	return r;
}

static void free_window(struct engine *e, struct engine_window *w)
{
	(void)pthread_mutex_lock(&e->mutex);
	w->n_parts = 0;
	w->bytes = w->blocks = w->blocks_done = 0;
	w->used = w->closed = false;
	e->next_proof++;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
}

void *dbt_engine_prover(void *arg)
{
	struct engine *e = arg;
	struct prover p = { .buf = dbt_stream_alloc(DBT_STREAM_BLOCK_BYTES),
		            .hasher = dbt_hasher_new() };
	struct engine_window *w;
	struct dbt_err err;
	int r = p.buf && p.hasher ? 0 : dbt_err_sys(&err, -ENOMEM, "cannot prove the copy");

	while (r == 0 && (w = wait_for_window(e))) {
		r = prove_window(e, &p, w, &err);
		if (r == 0)
			free_window(e, w);
	}
	if (r < 0)
		dbt_engine_fail(e, &err);
	(void)pthread_mutex_lock(&e->mutex);
	e->proof_done = !e->stop;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
	free(p.buf);
	dbt_hasher_free(p.hasher);
	return NULL;
}
