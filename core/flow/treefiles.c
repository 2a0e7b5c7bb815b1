#include "flow/treefiles.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "flow/carry.h"
#include "move/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void item_release(struct dbt_tree_batch_item *item)
{
	free(item->path);
	free(item->shown_src);
	free(item->shown_dst);
}

int dbt_tree_batch_add(struct dbt_tree_batch *b, const struct dbt_tree_entry *e,
                       struct dbt_err *err)
{
	struct dbt_tree_batch_item item = { .e = *e, .path = strdup(e->path) }, *place;
	size_t *file;

	if (asprintf(&item.shown_src, "%s/%s", b->c->shown_src, e->path) < 0)
		item.shown_src = NULL;
	if (asprintf(&item.shown_dst, "%s/%s", b->c->shown_dst, e->path) < 0)
		item.shown_dst = NULL;
	place = item.path && item.shown_src && item.shown_dst ? dbt_vec_push(&b->items) : NULL;
	if (!place) {
		item_release(&item);
		return dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", b->c->shown_src);
	}
	item.e.path = item.path;
	*place = item;
	if (e->kind != 'f')
		return 0;
	file = dbt_vec_push(&b->files);
	if (!file)
		return dbt_err_sys(err, -ENOMEM, "cannot copy '%s'", b->c->shown_src);
	*file = b->items.n - 1;
	return 0;
}

void dbt_tree_batch_clear(struct dbt_tree_batch *b)
{
	for (size_t i = 0; i < b->items.n; i++)
		item_release(&b->items.items[i]);
	b->items.n = 0;
	b->files.n = 0;
}

void dbt_tree_batch_release(struct dbt_tree_batch *b)
{
	dbt_tree_batch_clear(b);
	free(b->items.items);
	free(b->files.items);
}

/* --- the engine's questions ----------------------------------------------------------------------------- */

static struct dbt_tree_batch_item *file_of(void *data, size_t i)
{
	struct dbt_tree_batch *b = data;

	return &b->items.items[b->files.items[i]];
}

static uint64_t file_size(void *data, size_t i)
{
	return file_of(data, i)->e.source.size_bytes;
}

static int check_source(const struct dbt_ctx *ctx, const struct dbt_tree_batch_item *item, int fd,
                        struct dbt_err *err)
{
	struct dbt_ident now;
	int r = dbt_ident_fd(ctx, fd, &now);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", item->shown_src);
	if (!dbt_ident_same_content(&now, &item->e.source, true, false))
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                   "'%s' changed while it was copied", item->shown_src);
	return 0;
}

/* Several threads ask at once: no directory is remembered. */
static int make_file(const struct dbt_ctx *ctx, int root, const char *path)
{
	struct dbt_tree_dirs dirs = { .ctx = ctx, .root_fd = root, .fd = -1 };
	const char *name;
	int dir = dbt_tree_dirs_of(&dirs, path, &name), fd;

	fd = dir < 0 ? dir
	             : ctx->sys->openat(dir, name,
	                                O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	dbt_tree_dirs_release(&dirs);
	return fd;
}

static int file_open(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *ret,
                     struct dbt_err *err)
{
	const struct dbt_tree_batch *b = data;
	const struct dbt_tree_batch_item *item = file_of(data, i);
	int r;

	ret->shown_src = item->shown_src;
	ret->shown_dst = item->shown_dst;
	ret->src = dbt_at_open_beneath(ctx, b->c->src, item->path, O_RDONLY | O_NONBLOCK);
	if (ret->src < 0)
		return dbt_err_sys(err, ret->src, "cannot open '%s'", item->shown_src);
	r = check_source(ctx, item, ret->src, err);
	if (r == 0) {
		ret->dst = make_file(ctx, b->root, item->path);
		if (ret->dst < 0)
			r = dbt_err_sys(err, ret->dst, "cannot create '%s'", item->shown_dst);
	}
	if (r < 0)
		(void)ctx->sys->close(ret->src);
	return r;
}

/* Everything that the copy gets besides its bytes, so that the flush takes it along. */
static int file_written(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *file,
                        const struct dbt_digest *digest, struct dbt_err *err)
{
	const struct dbt_tree_batch *b = data;
	const struct dbt_tree_batch_item *item = file_of(data, i);
	const struct dbt_carry carry = { .src = file->src,
		                         .dst = file->dst,
		                         .shown_src = item->shown_src,
		                         .shown_dst = item->shown_dst,
		                         .times = &item->e.source,
		                         .whole = b->c->whole };
	int r = check_source(ctx, item, file->src, err);

	(void)digest;
	if (r == 0)
		r = dbt_carry_meta(ctx, &carry, err);
	if (r < 0)
		return r;
	(void)ctx->sys->close(file->src);
	file->src = -1;
	return 0;
}

static int file_proved(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *file,
                       const struct dbt_copy_result *result, struct dbt_err *err)
{
	struct dbt_tree_batch *b = data;
	struct dbt_tree_batch_item *item = file_of(data, i);
	int r = dbt_ident_fd(ctx, file->dst, &item->e.copied);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", item->shown_dst);
	r = ctx->sys->close(file->dst);
	file->dst = -1;
	if (r < 0)
		return dbt_err_sys(err, r, "cannot close '%s'", item->shown_dst);
	item->e.digest = result->digest;
	b->all_from_device = b->all_from_device && (result->from_device || result->size_bytes == 0);
	return 0;
}

/* What was made stays on an error: the whole tree goes. */
static void file_close(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *file,
                       bool failed)
{
	(void)data;
	(void)i;
	(void)failed;
	if (file->src >= 0)
		(void)ctx->sys->close(file->src);
	if (file->dst >= 0)
		(void)ctx->sys->close(file->dst);
}

int dbt_tree_batch_copy(struct dbt_tree_batch *b, struct dbt_err *err)
{
	const struct dbt_copy_opts opts = { .limit_bytes_s = b->c->limit_bytes_s,
		                            .jobs = b->c->jobs,
		                            .shown_src = b->c->shown_src,
		                            .shown_dst = b->c->shown_dst,
		                            .done_before_bytes = b->done_bytes,
		                            .total_bytes = b->c->total_bytes };
	const struct dbt_copy_many many = {
		.n = b->files.n,
		.data = b,
		.size = file_size,
		.open = file_open,
		.written = file_written,
		.proved = file_proved,
		.close = file_close,
	};
	int r = b->files.n > 0 ? dbt_copy_many(b->c->ctx, &many, &opts, err) : 0;

	for (size_t i = 0; r == 0 && i < b->files.n; i++)
		b->done_bytes += b->items.items[b->files.items[i]].e.source.size_bytes;
	return r;
}
