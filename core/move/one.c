/* One file as a run of the copy engine. */
#include "move/copy.h"

struct single {
	int src, dst;
	uint64_t size;
	const struct dbt_copy_opts *opts;
	struct dbt_copy_result *result;
};

static uint64_t single_size(void *data, size_t i)
{
	(void)i;
	return ((const struct single *)data)->size;
}

static int single_open(void *data, const struct dbt_ctx *ctx, size_t i, struct dbt_copy_item *ret,
                       struct dbt_err *err)
{
	const struct single *s = data;

	(void)ctx;
	(void)i;
	(void)err;
	*ret = (struct dbt_copy_item){ .src = s->src,
		                       .dst = s->dst,
		                       .shown_src = s->opts->shown_src,
		                       .shown_dst = s->opts->shown_dst };
	return 0;
}

static int single_proved(void *data, const struct dbt_ctx *ctx, size_t i,
                         struct dbt_copy_item *item, const struct dbt_copy_result *result,
                         struct dbt_err *err)
{
	const struct single *s = data;

	(void)ctx;
	(void)i;
	(void)item;
	(void)err;
	*s->result = *result;
	return 0;
}

int dbt_copy_file(const struct dbt_ctx *ctx, int src_fd, const struct dbt_ident *src, int dst_fd,
                  const struct dbt_copy_opts *opts, struct dbt_copy_result *ret,
                  struct dbt_err *err)
{
	struct dbt_copy_result result;
	struct single single = { .src = src_fd,
		                 .dst = dst_fd,
		                 .size = src->size_bytes,
		                 .opts = opts,
		                 .result = &result };
	const struct dbt_copy_many many = { .n = 1,
		                            .data = &single,
		                            .size = single_size,
		                            .open = single_open,
		                            .proved = single_proved };
	struct dbt_copy_opts with_total = *opts;
	int r;

	if (!with_total.total_bytes)
		with_total.total_bytes = src->size_bytes;
	r = dbt_copy_many(ctx, &many, &with_total, err);
	if (r == 0)
		*ret = result;
	return r;
}
