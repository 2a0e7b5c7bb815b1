/* The writers of the copy engine. */
#include "move/engine.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool all_zero(const unsigned char *p, size_t len)
{
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

static int write_range(struct engine *e, const struct engine_slot *slot, uint64_t off, uint64_t end,
                       uint64_t *ret_bytes)
{
	const char *buf = slot->buf;

	*ret_bytes += end - off;
	return dbt_stream_write(&e->ctx, &slot->file->dst, buf + (off - slot->off),
	                        (size_t)(end - off), off);
}

/* What a filesystem says of its holes is only a hint (OpenZFS has reported holes where there was data): a hole
 * is left out only where the bytes that were read are all zero. */
static int write_around_holes(struct engine *e, const struct engine_slot *slot, uint64_t *ret_bytes)
{
	const uint64_t start = slot->off, end = start + slot->len;
	const unsigned char *buf = slot->buf;
	int src = slot->file->item.src;
	uint64_t off = start;
	int r;

	while (off < end) {
		off_t data = lseek(src, (off_t)off, SEEK_DATA), hole;
		uint64_t data_at, hole_at;

		if (data < 0 && errno != ENXIO)
			return write_range(e, slot, off, end, ret_bytes);
		data_at = data < 0 || (uint64_t)data > end ? end : (uint64_t)data;
		data_at = data_at < end ? data_at / DBT_STREAM_ALIGN * DBT_STREAM_ALIGN : end;
		if (data_at < off)
			data_at = off;
		if (!all_zero(buf + (off - start), (size_t)(data_at - off)))
			return write_range(e, slot, off, end, ret_bytes);
		if (data_at == end)
			return 0;
		hole = lseek(src, (off_t)data_at, SEEK_HOLE);
		hole_at = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
		hole_at = (hole_at + DBT_STREAM_ALIGN - 1) / DBT_STREAM_ALIGN * DBT_STREAM_ALIGN;
		if (hole_at <= data_at || hole_at > end)
			hole_at = end;
		r = write_range(e, slot, data_at, hole_at, ret_bytes);
		if (r < 0)
			return r;
		off = hole_at;
	}
	return 0;
}

static struct engine_slot *claim_to_write(struct engine *e)
{
	struct engine_slot *slot = NULL;

	(void)pthread_mutex_lock(&e->mutex);
	while (!e->stop && !slot) {
		struct engine_slot *next = &e->slots[e->next_write % ENGINE_SLOTS];

		if (e->next_write < e->next_hash && next->state == SLOT_HASHED)
			slot = next;
		else if (e->all_hashed && e->next_write == e->next_hash)
			break;
		else
			(void)pthread_cond_wait(&e->changed, &e->mutex);
	}
	if (slot) {
		slot->state = SLOT_WRITING;
		e->next_write++;
	}
	(void)pthread_mutex_unlock(&e->mutex);
	return slot;
}

static int write_block(struct engine *e, const struct engine_slot *slot, uint64_t *ret_bytes,
                       struct dbt_err *err)
{
	const struct engine_file *f = slot->file;
	int r = 0;

	if (slot->off < f->start || slot->len == 0)
		return 0;
	if (f->has_holes)
		r = write_around_holes(e, slot, ret_bytes);
	else
		r = write_range(e, slot, slot->off, slot->off + slot->len, ret_bytes);
	return r < 0 ? dbt_err_sys(err, r, "cannot write '%s'", f->item.shown_dst) : 0;
}

/* The window counts the block only after the file's last block has brought its metadata. */
static int end_block(struct engine *e, struct engine_slot *slot, uint64_t bytes,
                     struct dbt_err *err)
{
	struct engine_file *f = slot->file;
	bool whole;
	int r = 0;

	(void)pthread_mutex_lock(&e->mutex);
	f->data_bytes += bytes;
	whole = ++f->blocks_done == f->n_blocks;
	(void)pthread_mutex_unlock(&e->mutex);
	if (whole)
		r = dbt_engine_written(e, f, err);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&e->mutex);
	slot->window->blocks_done++;
	slot->state = SLOT_FREE;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->mutex);
	return 0;
}

void *dbt_engine_writer(void *arg)
{
	struct engine *e = arg;
	struct engine_slot *slot;
	struct dbt_err err;

	while ((slot = claim_to_write(e))) {
		uint64_t bytes = 0;
		int r = write_block(e, slot, &bytes, &err);

		if (r == 0)
			r = end_block(e, slot, bytes, &err);
		if (r < 0) {
			dbt_engine_fail(e, &err);
			break;
		}
	}
	return NULL;
}
