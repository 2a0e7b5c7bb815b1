#include "base/cleanup.h"
#include "flow/tree.h"

#include <errno.h>
#include <fcntl.h>

static int copy(struct dbt_flow *flow, const struct dbt_promotion *p, int src,
                const struct dbt_at *dst, uint64_t limit_bytes_s, unsigned jobs,
                struct dbt_tree_copied *ret, struct dbt_err *err)
{
	const struct dbt_pmember *m = &p->members[0];
	dbt_autofree char *list = dbt_tree_list_path(p, ".tree");
	const struct dbt_tree_copy what = { .ctx = flow->ctx,
		                            .src = src,
		                            .dst_dirfd = dst->dirfd,
		                            .dst_name = m->part,
		                            .shown_src = m->path,
		                            .shown_dst = m->copy,
		                            .list = list,
		                            .token = p->token,
		                            .limit_bytes_s = limit_bytes_s,
		                            .jobs = jobs,
		                            .total_bytes = m->source.size_bytes };
	struct dbt_ident now;
	struct dbt_err later;
	int r = list ? dbt_ident_fd(flow->ctx, src, &now) : -ENOMEM;

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", m->path);
	if (!dbt_ident_same_inode(&now, &m->source, false))
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                   "'%s' changed while it was being promoted", m->path);
	r = dbt_tree_copy(&what, ret, err);
	/* Here, through the open directory: its name may lead elsewhere by now. */
	if (r < 0)
		(void)dbt_tree_remove_all(flow->ctx, dst->dirfd, m->part, m->copy, &later);
	return r;
}

int dbt_tree_promote(struct dbt_flow *flow, struct dbt_promotion *p, uint64_t limit_bytes_s,
                     unsigned jobs, struct dbt_err *err)
{
	struct dbt_pmember *m = &p->members[0];
	struct dbt_at src_at = { .dirfd = -1 }, dst_at = { .dirfd = -1 };
	struct dbt_tree_copied copied = { 0 };
	int src, r = dbt_at_resolve_strict(flow->ctx, m->path, &src_at, err);

	if (r < 0)
		return r;
	r = dbt_at_resolve_strict(flow->ctx, m->copy, &dst_at, err);
	if (r < 0) {
		dbt_at_release(&src_at);
		return r;
	}
	src = dbt_at_open(flow->ctx, &src_at, O_RDONLY | O_DIRECTORY, 0);
	if (src < 0) {
		r = dbt_err_sys(err, src, "cannot open '%s'", m->path);
	} else {
		r = copy(flow, p, src, &dst_at, limit_bytes_s, jobs, &copied, err);
		(void)flow->ctx->sys->close(src);
	}
	dbt_at_release(&src_at);
	dbt_at_release(&dst_at);
	if (r < 0)
		return r;
	m->source = copied.source;
	m->copied = copied.root;
	m->from_device = copied.from_device;
	(void)dbt_digest_hex(&copied.digest, m->xxh128);
	if (!copied.from_device)
		dbt_ctx_log(flow->ctx, DBT_LOG_NOTE,
		            "the copy '%s' was compared, but its filesystem does not show that all "
		            "bytes came from the device rather than from memory",
		            m->copy);
	return 0;
}
