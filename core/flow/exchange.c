#include "flow/exchange.h"

#include "base/cleanup.h"
#include "flow/checks.h"
#include "flow/dirs.h"
#include "flow/look.h"
#include "flow/tree.h"
#include "move/swap.h"
#include "sys/journal.h"
#include "sys/lease.h"
#include "sys/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* --- in ------------------------------------------------------------------------------------------------- */

/* Where the filesystem grants no lease, /proc tells who writes. */
static int refuse_writers(struct dbt_flow *flow, const struct dbt_pmember *m,
                          const struct dbt_ident *now, struct dbt_err *err)
{
	struct dbt_procs users = { 0 };
	int r = dbt_procs_users(flow->ctx, now, NULL, &users, err);

	if (r == 0 && dbt_procs_count(&users, DBT_PROC_WRITES) > 0)
		r = dbt_err_refuse(err, "'%s' is open for writing", m->path);
	dbt_procs_release(&users);
	return r;
}

/* A journal may have come since the plan was made, beside the file or beside its copy: whoever opens the link would
 * replay the latter into the copy. */
static int refuse_journals(const struct dbt_pmember *m, const struct dbt_look *look, int fd,
                           struct dbt_err *err)
{
	char name[DBT_JOURNAL_NAME_BYTES];
	int r = dbt_check_no_journal(&look->path, fd, err);

	if (r < 0 || !dbt_journal_is_sqlite(fd) || look->copy.dirfd < 0 ||
	    !dbt_journal_beside(look->copy.dirfd, look->copy.name, name))
		return r;
	return dbt_err_refuse(err,
	                      "'%s%s' would be replayed into the copy beside it: remove it first",
	                      m->copy, name + strlen(look->copy.name));
}

struct guard {
	const struct dbt_ctx *ctx;
	int fd;
	bool leased;
};

static bool still_unbroken(void *data)
{
	const struct guard *guard = data;

	return !guard->leased || !dbt_lease_broken(guard->ctx, guard->fd);
}

static int take_guard(struct dbt_flow *flow, const struct dbt_pmember *m, struct guard *guard,
                      struct dbt_err *err)
{
	const char *why;
	int r = dbt_lease_take(flow->ctx, guard->fd, &why);

	guard->leased = r > 0;
	if (r == -EAGAIN)
		return dbt_err_refuse(err, "'%s' is open for writing", m->path);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot take a lease on '%s'", m->path);
	if (r > 0)
		return 0;
	dbt_ctx_log(flow->ctx, DBT_LOG_DETAIL, "no lease on '%s': %s; looking for writers in /proc",
	            m->path, why);
	return refuse_writers(flow, m, &m->source, err);
}

/* --- a directory ---------------------------------------------------------------------------------------- */

struct tree_swap {
	const struct dbt_ctx *ctx;
	int fd;           /* of the original, whatever its name */
	const char *list; /* what was copied */
	const char *path;
	char *kept; /* the path under the kept name */
	struct dbt_tree_guard guard;
	struct dbt_err why;
};

static bool is_what_was_copied(struct tree_swap *s, const char *shown)
{
	enum dbt_tree_is is = DBT_TREE_CHANGED;

	return dbt_tree_compare(s->ctx, s->fd, s->list, DBT_TREE_SOURCE, shown, &is, &s->why,
	                        &s->why) == 0 &&
	       is == DBT_TREE_SAME;
}

/* Asked when the names are exchanged: nobody wrote to the original since it was copied, and nobody is about to. */
static bool tree_is_unchanged(void *data)
{
	struct tree_swap *s = data;

	return dbt_tree_guard_is_unbroken(&s->guard) && is_what_was_copied(s, s->path) &&
	       dbt_tree_check_processes(s->ctx, s->fd, s->kept, &s->why) == 0;
}

static int swap_guarded(struct dbt_flow *flow, const struct dbt_pmember *m,
                        const struct dbt_look *look, struct tree_swap *s, struct dbt_err *err)
{
	const struct dbt_expect original = { .ident = &m->source, .any_dev = true };
	const struct dbt_expect link = { .link_text = m->copy };
	int r = 0;

	if (!is_what_was_copied(s, m->path)) {
		if (s->why.kind == DBT_ERR_NONE)
			(void)dbt_err_set(&s->why, DBT_ERR_CHANGED, -ESTALE,
			                  "'%s' was touched since it was copied", m->path);
		if (err)
			*err = s->why;
		return s->why.code;
	}
	if (look->kept_is == DBT_KEPT_MISSING)
		r = dbt_swap_make_link(flow->ctx, &look->path, m->kept, m->copy, &m->source, err);
	if (r == 0)
		r = dbt_swap_exchange(flow->ctx, &look->path, &original, m->kept, &link,
		                      tree_is_unchanged, s, err);
	if (r == -ESTALE && s->why.kind != DBT_ERR_NONE)
		(void)dbt_err_add(err, "%s", s->why.text);
	return r;
}

static int swap_tree(struct dbt_flow *flow, const struct dbt_promotion *p,
                     const struct dbt_pmember *m, const struct dbt_look *look, struct dbt_err *err)
{
	dbt_autoclose int fd = dbt_at_open(flow->ctx, &look->path, O_RDONLY | O_DIRECTORY, 0);
	dbt_autofree char *list = dbt_tree_list_path(p, ".tree");
	dbt_autofree char *kept = NULL;
	struct tree_swap s = { .ctx = flow->ctx, .fd = fd, .list = list, .path = m->path };
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", m->path);
	if (asprintf(&kept, "%.*s%s", (int)(strlen(look->path.shown) - strlen(look->path.name)),
	             look->path.shown, m->kept) < 0)
		kept = NULL;
	if (!list || !kept)
		return dbt_err_sys(err, -ENOMEM, "cannot put the link in place of '%s'", m->path);
	s.kept = kept;
	r = dbt_tree_guard_take(flow->ctx, fd, m->path, list, &s.guard, err);
	if (r < 0)
		return r;
	r = swap_guarded(flow, m, look, &s, err);
	dbt_tree_guard_release(&s.guard);
	return r;
}

/* --- a file --------------------------------------------------------------------------------------------- */

static int swap_one(struct dbt_flow *flow, const struct dbt_promotion *p,
                    const struct dbt_pmember *m, const struct dbt_look *look, struct dbt_err *err)
{
	const struct dbt_expect original = { .ident = &m->source,
		                             .with_ctime = true,
		                             .any_dev = true };
	const struct dbt_expect link = { .link_text = m->copy };
	struct guard guard = { .ctx = flow->ctx };
	dbt_autoclose int fd = dbt_at_open(flow->ctx, &look->path, O_RDONLY | O_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", m->path);
	guard.fd = fd;
	r = refuse_journals(m, look, fd, err);
	if (r < 0)
		return r;
	if (!p->by_link && look->kept_is == DBT_KEPT_MISSING) {
		r = dbt_swap_make_link(flow->ctx, &look->path, m->kept, m->copy, &m->source, err);
		if (r < 0)
			return r;
	}
	r = take_guard(flow, m, &guard, err);
	if (r == 0 && p->by_link)
		r = dbt_swap_by_hardlink(flow->ctx, &look->path, &original, m->kept, m->part,
		                         m->copy, err);
	else if (r == 0)
		r = dbt_swap_exchange(flow->ctx, &look->path, &original, m->kept, &link,
		                      still_unbroken, &guard, err);
	if (guard.leased)
		dbt_lease_drop(flow->ctx, fd);
	return r;
}

/* The exchange changed the original's ctime on some filesystems. From now on the new one is what tells whether
 * somebody touched it. */
static void note_kept(struct dbt_flow *flow, struct dbt_pmember *m, const struct dbt_look *look)
{
	struct dbt_ident kept;

	if (dbt_ident_of(flow->ctx, look->path.dirfd, m->kept, &kept) == 0 &&
	    dbt_ident_same_content(&kept, &m->source, false, true))
		m->source.ctime_ns = kept.ctime_ns;
}

static int swap_member(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_pmember *m,
                       struct dbt_err *err)
{
	struct dbt_look look;
	int r = dbt_look_at(flow->ctx, p, m, &look, err);

	if (r < 0)
		return r;
	m->never_swapped = look.kept_is == DBT_KEPT_MISSING || look.kept_is == DBT_KEPT_LINK;
	if (look.path_is == DBT_PATH_LINK && look.kept_is == DBT_KEPT_ORIGINAL) {
		r = 0; /* done by an interrupted run */
	} else if (look.path_is != DBT_PATH_ORIGINAL) {
		r = dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                "'%s' was replaced or changed meanwhile", m->path);
	} else if (!m->never_swapped) {
		r = dbt_err_refuse(err, "a file named '%s' stands beside '%s': remove it first",
		                   m->kept, m->path);
	} else {
		r = dbt_promotion_is_tree(p) ? swap_tree(flow, p, m, &look, err)
		                             : swap_one(flow, p, m, &look, err);
		m->never_swapped = r == -ESTALE; /* looked at before, or taken back */
		if (r == 0)
			note_kept(flow, m, &look);
	}
	dbt_look_release(&look);
	return r;
}

int dbt_exchange_in(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	struct dbt_dirs dirs = { 0 };
	int r = dbt_dirs_of(flow->ctx, p, false, &dirs, err);

	if (r == 0)
		r = dbt_dirs_lock(flow->ctx, &dirs, err);
	for (size_t i = 0; r == 0 && i < p->n_members; i++) {
		r = swap_member(flow, p, &p->members[i], err);
		if (r == 0 && dbt_ctx_cancelled(flow->ctx))
			r = dbt_err_sys(err, -ECANCELED, "putting the links in place");
	}
	if (r == 0)
		r = dbt_dirs_sync(flow->ctx, &dirs, err);
	dbt_dirs_release(&dirs);
	return r;
}

/* --- out ------------------------------------------------------------------------------------------------ */

/* The name beside the path that holds what belongs there, and what it is: the file that was copied back, or the
 * kept original. NULL: neither. */
static const char *comeback(const struct dbt_pmember *m, const struct dbt_look *look,
                            struct dbt_expect *ret_expect)
{
	if (m->back && look->back_is == DBT_KEPT_ORIGINAL) {
		*ret_expect = (struct dbt_expect){ .ident = &m->returned, .any_dev = true };
		return m->back;
	}
	if (look->kept_is == DBT_KEPT_ORIGINAL) {
		*ret_expect = (struct dbt_expect){ .ident = &m->source, .any_dev = true };
		return m->kept;
	}
	return NULL;
}

static int put_back(struct dbt_flow *flow, const struct dbt_promotion *p,
                    const struct dbt_pmember *m, const struct dbt_look *look, struct dbt_err *err)
{
	const struct dbt_expect link = { .link_text = m->copy };
	struct dbt_expect expect;
	const char *name = comeback(m, look, &expect);
	int r;

	if (!name)
		return dbt_err_set(
			err, DBT_ERR_CHANGED, -ESTALE,
			"'%s' stays a link to '%s': the original beside it %s", m->path, m->copy,
			look->kept_is == DBT_KEPT_MISSING ? "is missing" : "is not what it was");
	if (p->by_link) {
		r = flow->ctx->sys->renameat2(look->path.dirfd, name, look->path.dirfd,
		                              look->path.name, 0);
		return r < 0 ? dbt_err_sys(err, r, "cannot put '%s' back", m->path) : 0;
	}
	return dbt_swap_exchange(flow->ctx, &look->path, &link, name, &expect, NULL, NULL, err);
}

/* Nothing stands at the path: the original goes there, unless something appears in that instant. */
static int put_into_gap(struct dbt_flow *flow, const struct dbt_pmember *m,
                        const struct dbt_look *look, struct dbt_err *err)
{
	struct dbt_expect expect;
	const char *name = comeback(m, look, &expect);
	int r;

	if (!name)
		return dbt_err_set(err, DBT_ERR_CHANGED, -ENOENT,
		                   "'%s' is gone, and so is the original beside it", m->path);
	r = flow->ctx->sys->renameat2(look->path.dirfd, name, look->path.dirfd, look->path.name,
	                              RENAME_NOREPLACE);
	return r < 0 ? dbt_err_sys(err, r, "cannot put '%s' back", m->path) : 0;
}

static int return_member(struct dbt_flow *flow, const struct dbt_promotion *p,
                         const struct dbt_pmember *m, struct dbt_err *err)
{
	struct dbt_look look;
	int r;

	if (m->never_swapped)
		return 0;
	r = dbt_look_at(flow->ctx, p, m, &look, err);
	if (r < 0)
		return r;
	switch (look.path_is) {
	case DBT_PATH_LINK:
		r = put_back(flow, p, m, &look, err);
		break;
	case DBT_PATH_MISSING:
		if (look.path.dirfd < 0)
			r = dbt_err_set(err, DBT_ERR_CHANGED, look.dir_error,
			                "the directory of '%s' is gone", m->path);
		else
			r = put_into_gap(flow, m, &look, err);
		break;
	case DBT_PATH_ORIGINAL:
		/* Swapped by hard link and stopped half-way: the kept name is the second name of the file. */
		if (p->by_link && look.kept_is == DBT_KEPT_ORIGINAL)
			r = dbt_swap_unlink(
				flow->ctx, look.path.dirfd, m->kept,
				&(struct dbt_expect){ .ident = &m->source, .any_dev = true });
		r = r < 0 ? dbt_err_sys(err, r, "cannot remove '%s' beside '%s'", m->kept, m->path)
		          : 0;
		break;
	case DBT_PATH_CHANGED:
	case DBT_PATH_RETURNED:
		break;
	case DBT_PATH_OTHER:
		r = dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                "'%s' is another file by now, it stays as it is", m->path);
		break;
	}
	dbt_look_release(&look);
	return r;
}

static bool may_be_swapped(const struct dbt_promotion *p)
{
	for (size_t i = 0; i < p->n_members; i++)
		if (!p->members[i].never_swapped)
			return true;
	return false;
}

int dbt_exchange_out(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	struct dbt_dirs dirs = { 0 };
	struct dbt_err first = { 0 }, other = { 0 };
	int r;

	if (!may_be_swapped(p))
		return 0;
	r = dbt_dirs_of(flow->ctx, p, false, &dirs, &first);
	if (r == 0)
		r = dbt_dirs_lock(flow->ctx, &dirs, &first);
	/* What cannot be returned outweighs what somebody else has by now. */
	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		if (return_member(flow, p, &p->members[i], &other) < 0 &&
		    (first.kind == DBT_ERR_NONE || first.kind == DBT_ERR_CHANGED))
			first = other;
	/* So does what may not be on the disk. */
	if (r == 0 && dbt_dirs_sync(flow->ctx, &dirs, &other) < 0)
		first = other;
	dbt_dirs_release(&dirs);
	if (first.kind == DBT_ERR_NONE)
		return 0;
	if (err)
		*err = first;
	return first.code;
}

int dbt_exchange_count_links(struct dbt_flow *flow, const struct dbt_promotion *p, size_t *ret,
                             struct dbt_err *err)
{
	*ret = 0;
	for (size_t i = 0; i < p->n_members; i++) {
		struct dbt_look look;
		int r = dbt_look_at(flow->ctx, p, &p->members[i], &look, err);

		if (r < 0)
			return r;
		*ret += look.path_is == DBT_PATH_LINK && !p->members[i].never_swapped;
		dbt_look_release(&look);
	}
	return 0;
}
