#include "flow/resume.h"

#include "flow/promote.h"
#include "flow/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A source that was changed within this time before the interrupted run began may have been changed once more without a
 * newer ctime: the kernel's clock for files ticks at 100 Hz at the least. */
#define CTIME_TICK_NS 50000000

static bool is_copying(const struct dbt_promotion *p)
{
	return p->state == DBT_STATE_COPYING && p->kind == DBT_KIND_FILES &&
	       !dbt_promotion_is_tree(p);
}

static const struct dbt_pmember *member_of(const struct dbt_promotion *p, const char *path)
{
	for (size_t i = 0; i < p->n_members; i++)
		if (strcmp(p->members[i].path, path) == 0)
			return &p->members[i];
	return NULL;
}

bool dbt_resume_is_wanted(struct dbt_flow *flow, const struct dbt_promotion *p,
                          const struct dbt_resume_wish *wish)
{
	bool wanted = false;

	for (size_t i = 0; is_copying(p) && !wanted && i < wish->n; i++) {
		struct dbt_selection sel = { 0 };

		if (dbt_select(flow->ctx, flow->ledger, wish->names[i], wish->all_files, &sel,
		               NULL) < 0)
			continue;
		for (size_t k = 0; !wanted && k < sel.n; k++)
			wanted = member_of(p, sel.paths[k]) != NULL;
		dbt_selection_release(&sel);
	}
	return wanted;
}

static const char *member_differs(const struct dbt_promotion *old, const struct dbt_pmember *was,
                                  const struct dbt_pmember *now)
{
	if (strcmp(was->path, now->path) != 0 || strcmp(was->copy, now->copy) != 0 ||
	    was->role != now->role)
		return "it was of other files";
	if (!dbt_ident_same_content(&was->source, &now->source, true, true) ||
	    was->source.mode != now->source.mode || was->source.uid != now->source.uid ||
	    was->source.gid != now->source.gid)
		return "the source was changed since";
	if (was->source.ctime_ns + CTIME_TICK_NS > (int64_t)old->created_ns)
		return "the source had just been changed when it began";
	if (was->taken_over != now->taken_over ||
	    (was->copied.ino != 0) != (now->copied.ino != 0) ||
	    (was->copied.ino != 0 &&
	     !dbt_ident_same_content(&was->copied, &now->copied, true, true)))
		return "the target was changed since";
	return NULL;
}

/* Why p cannot go on where `old` was interrupted; NULL: it can. */
static const char *differs(const struct dbt_promotion *old, const struct dbt_promotion *p)
{
	const char *why = NULL;

	if (strcmp(old->target, p->target) != 0)
		return "it went to another directory";
	if (old->target_ino != p->target_ino)
		return "the target directory is another one";
	if (old->is_set != p->is_set || old->n_members != p->n_members || old->kind != p->kind ||
	    strcmp(old->name, p->name) != 0 || strcmp(old->format, p->format) != 0)
		return "it was of other files";
	for (size_t i = 0; !why && i < p->n_members; i++)
		why = member_differs(old, &old->members[i], &p->members[i]);
	return why;
}

/* p is planned afresh: its device numbers are those of this boot. */
static void become(struct dbt_promotion *p, struct dbt_promotion *old)
{
	struct dbt_promotion planned = *p;

	for (size_t i = 0; i < old->n_members; i++) {
		old->members[i].source = planned.members[i].source;
		old->members[i].copied = planned.members[i].copied;
	}
	old->run = planned.run;
	old->reclaim = planned.reclaim;
	*p = *old;
	dbt_promotion_release(&planned);
	*old = (struct dbt_promotion){ 0 };
}

static int start_over(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_promotion *old,
                      const char *why, struct dbt_err *err)
{
	dbt_ctx_log(flow->ctx, DBT_LOG_NOTE,
	            "the interrupted copy of '%s' is not continued: %s; it starts over", old->path,
	            why);
	/* Its directory goes with it, and p makes it again. */
	if (!p->made_dir && old->made_dir && p->is_set && strcmp(old->target, p->target) == 0 &&
	    strcmp(old->name, p->name) == 0) {
		p->made_dir = strdup(old->made_dir);
		if (!p->made_dir)
			return dbt_err_sys(err, -ENOMEM, "cannot promote '%s'", p->path);
	}
	return dbt_promote_undo(flow, old, why, err);
}

/* Takes one interrupted promotion; *ret when p has become it. */
static int take(struct dbt_flow *flow, int64_t id, struct dbt_promotion *p, bool *ret,
                struct dbt_err *err)
{
	struct dbt_promotion old = { 0 };
	const char *why;
	int r = dbt_flow_claim(flow, id, &old, err);

	if (r < 0)
		return r;
	if (!is_copying(&old)) { /* somebody else ended it in between */
		r = dbt_flow_let_go(flow, &old, "released", err);
	} else if ((why = *ret ? "there is a second one" : differs(&old, p))) {
		r = start_over(flow, p, &old, why, err);
	} else {
		become(p, &old);
		*ret = true;
		r = dbt_ledger_save(flow->ledger, p, "resumed", err);
	}
	dbt_promotion_release(&old);
	return r;
}

static bool shares_a_file(const struct dbt_promotion *a, const struct dbt_promotion *b)
{
	for (size_t i = 0; i < a->n_members; i++)
		if (member_of(b, a->members[i].path))
			return true;
	return false;
}

int dbt_resume_find(struct dbt_flow *flow, struct dbt_promotion *p, bool *ret, struct dbt_err *err)
{
	struct dbt_promotions all = { 0 };
	int r = dbt_ledger_load(flow->ledger, &all, err);

	*ret = false;
	for (size_t i = 0; r == 0 && i < all.n; i++)
		if (is_copying(&all.items[i]) && shares_a_file(&all.items[i], p))
			r = take(flow, all.items[i].id, p, ret, err);
	dbt_promotions_release(&all);
	return r;
}
