#include "flow/remove.h"

#include "base/cleanup.h"
#include "flow/dirs.h"
#include "flow/look.h"
#include "flow/prove.h"
#include "flow/tree.h"
#include "move/mark.h"
#include "move/swap.h"
#include "sys/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- temporary names ------------------------------------------------------------------------------------ */

/* A file under one of our random names: the name is in the ledger, which lets no other pattern pass, and nobody can
 * guess it. It has no other name. */
static bool is_our_temporary(const struct dbt_ctx *ctx, int dirfd, const char *name)
{
	struct dbt_ident now;

	return dbt_ident_of(ctx, dirfd, name, &now) == 0 && S_ISREG(now.mode) && now.nlink == 1;
}

static bool is_directory(const struct dbt_ctx *ctx, int dirfd, const char *name)
{
	struct dbt_ident now;

	return dbt_ident_of(ctx, dirfd, name, &now) == 0 && S_ISDIR(now.mode);
}

static int unlink_temporary(const struct dbt_ctx *ctx, const struct dbt_at *at, const char *name,
                            struct dbt_err *err)
{
	int r = 0;

	if (is_directory(ctx, at->dirfd, name))
		r = dbt_tree_remove_all(ctx, at->dirfd, name, name, err);
	else if (is_our_temporary(ctx, at->dirfd, name))
		r = ctx->sys->unlinkat(at->dirfd, name, 0);
	return r < 0 && r != -ENOENT
	               ? dbt_err_sys(err, r, "cannot remove '%s' beside '%s'", name, at->shown)
	               : 0;
}

static int unlink_link(const struct dbt_ctx *ctx, const struct dbt_at *at, const char *name,
                       const char *text, struct dbt_err *err)
{
	int r = dbt_swap_unlink(ctx, at->dirfd, name, &(struct dbt_expect){ .link_text = text });

	return r < 0 ? dbt_err_sys(err, r, "cannot remove the link '%s' beside '%s'", name,
	                           at->shown)
	             : 0;
}

static int remove_beside_path(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                              const struct dbt_pmember *m, const struct dbt_look *look,
                              struct dbt_err *err)
{
	int r;

	if (look->path.dirfd < 0)
		return 0;
	r = dbt_swap_remove_scratch(ctx, look->path.dirfd, p->token);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot remove the scratch files beside '%s'", m->path);
	if (p->state == DBT_STATE_COPYING || p->state == DBT_STATE_VERIFIED)
		return 0; /* no link was made yet */
	r = unlink_link(ctx, &look->path, m->kept, m->copy, err);
	/* The link that dbt_swap_by_hardlink prepares has the name of the unfinished copy. */
	if (r == 0)
		r = unlink_link(ctx, &look->path, m->part, m->copy, err);
	if (r == 0 && m->back)
		r = unlink_link(ctx, &look->path, m->back, m->copy, err);
	if (r == 0 && m->back)
		r = unlink_temporary(ctx, &look->path, m->back, err);
	return r;
}

int dbt_remove_temporaries(struct dbt_flow *flow, const struct dbt_promotion *p,
                           struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++) {
		const struct dbt_pmember *m = &p->members[i];
		struct dbt_look look;

		r = dbt_look_at(flow->ctx, p, m, &look, err);
		if (r < 0)
			break;
		r = remove_beside_path(flow->ctx, p, m, &look, err);
		if (r == 0 && look.copy.dirfd >= 0)
			r = unlink_temporary(flow->ctx, &look.copy, m->part, err);
		dbt_look_release(&look);
	}
	return r;
}

/* --- directories ---------------------------------------------------------------------------------------- */

/* The directory that carries the gone name in dirfd is what was decided to be deleted: this one. */
static int check_gone(const struct dbt_ctx *ctx, int dirfd, const char *gone,
                      const struct dbt_ident *wanted)
{
	struct dbt_ident now;
	int r = dbt_ident_of(ctx, dirfd, gone, &now);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return dbt_ident_same_inode(&now, wanted, true);
}

/* Deletes the copy under its gone name. True when nothing of it is left. */
static bool remove_gone_copy(struct dbt_flow *flow, const struct dbt_promotion *p,
                             const struct dbt_pmember *m, int dirfd)
{
	char gone[DBT_TREE_GONE_NAME_BYTES];
	enum dbt_tree_side side;
	dbt_autofree char *list = dbt_tree_list_of_copy(p, &side);
	struct dbt_err err = { 0 };
	uint64_t left = 0;
	int r = list ? check_gone(flow->ctx, dirfd, dbt_tree_gone_name(p, gone), &m->copied)
	             : -ENOMEM;

	if (r == 0)
		return true;
	if (r < 0)
		(void)dbt_err_sys(&err, r, "cannot look at '%s'", gone);
	else if (p->rollback_mode == DBT_ROLLBACK_DISCARD_CHANGES)
		r = dbt_tree_remove_all(flow->ctx, dirfd, gone, m->copy, &err);
	else
		r = dbt_tree_remove_listed(flow->ctx, dirfd, gone, list, side, m->copy, &left,
		                           &err);
	if (r < 0)
		dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
		            "'%s' is only partly removed: %s; 'dbtier recover' goes on", m->copy,
		            err.text);
	else if (left > 0)
		dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
		            "beside '%s' stays '%s', with what is not of the copy: move it away by "
		            "hand",
		            m->copy, gone);
	return r >= 0;
}

/* The copy gets the gone name first: what is half deleted is never found under its own. */
static int remove_tree_copy(struct dbt_flow *flow, const struct dbt_promotion *p,
                            const struct dbt_pmember *m, const struct dbt_look *look)
{
	char gone[DBT_TREE_GONE_NAME_BYTES];
	int r = flow->ctx->sys->renameat2(look->copy.dirfd, look->copy.name, look->copy.dirfd,
	                                  dbt_tree_gone_name(p, gone), RENAME_NOREPLACE);

	if (r < 0)
		return r;
	r = flow->ctx->sys->fsync(look->copy.dirfd);
	if (r < 0)
		return r;
	return remove_gone_copy(flow, p, m, look->copy.dirfd) ? 1 : -EBUSY;
}

int dbt_remove_kept_tree(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_err *err)
{
	const struct dbt_pmember *m = &p->members[0];
	const struct dbt_expect original = { .ident = &m->source, .any_dev = true };
	dbt_autofree char *list = dbt_tree_list_path(p, ".tree");
	char gone[DBT_TREE_GONE_NAME_BYTES];
	const struct dbt_sys *sys = flow->ctx->sys;
	struct dbt_at at;
	uint64_t left = 0;
	int r = list ? dbt_at_resolve_strict(flow->ctx, m->path, &at, err)
	             : dbt_err_sys(err, -ENOMEM, "cannot delete '%s'", m->kept);

	if (r < 0)
		return r;
	r = dbt_expect_check(flow->ctx, at.dirfd, m->kept, &original);
	if (r == 1)
		r = sys->renameat2(at.dirfd, m->kept, at.dirfd, dbt_tree_gone_name(p, gone),
		                   RENAME_NOREPLACE);
	if (r == 0)
		r = sys->fsync(at.dirfd);
	if (r == 0)
		r = check_gone(flow->ctx, at.dirfd, dbt_tree_gone_name(p, gone), &m->source);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot delete '%s'", m->kept);
	else if (r == 1)
		r = dbt_tree_remove_listed(flow->ctx, at.dirfd, gone, list, DBT_TREE_SOURCE, gone,
		                           &left, err);
	if (r == 0)
		r = sys->fsync(at.dirfd);
	if (r < 0 && err && err->kind == DBT_ERR_NONE)
		(void)dbt_err_sys(err, r, "cannot flush the directory of '%s'", m->path);
	if (r == 0 && left > 0)
		dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
		            "beside '%s' stays '%s', with what is not of the original: move it "
		            "away by hand",
		            m->path, gone);
	dbt_at_release(&at);
	return r;
}

/* --- copies --------------------------------------------------------------------------------------------- */

/* Before the promotion was complete a copy is only ever a duplicate. */
static bool is_undo(const struct dbt_promotion *p)
{
	return p->state == DBT_STATE_COPYING || p->state == DBT_STATE_VERIFIED ||
	       p->state == DBT_STATE_SWAPPING || p->state == DBT_STATE_FAILED;
}

/* The bytes of the copy exist a second time, or whoever owns the path gave them up himself by writing to the file
 * or replacing it while the copy was nothing but a duplicate. */
static bool may_vanish(const struct dbt_promotion *p, const struct dbt_pmember *m,
                       const struct dbt_look *look)
{
	if (look->path_is == DBT_PATH_ORIGINAL || look->path_is == DBT_PATH_RETURNED ||
	    look->kept_is == DBT_KEPT_ORIGINAL)
		return true;
	if (p->state == DBT_STATE_COPYING || p->state == DBT_STATE_VERIFIED || m->never_swapped)
		return true;
	/* Not swapped, or swapped back: the link lies under the kept name, or the inode under the path. */
	return is_undo(p) && (look->kept_is == DBT_KEPT_LINK || look->path_is == DBT_PATH_CHANGED);
}

static void say_left(struct dbt_flow *flow, const struct dbt_pmember *m, const char *why)
{
	dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
	            "'%s' stays for now: %s; 'dbtier recover' removes it later", m->copy, why);
}

/* Who uses the copies? One walk through /proc for all of them. */
static int find_users(struct dbt_flow *flow, const struct dbt_promotion *p,
                      const struct dbt_ident *idents, struct dbt_procs *ret, struct dbt_err *err)
{
	dbt_autofree struct dbt_procs_file *files = calloc(p->n_members, sizeof(*files));
	struct dbt_ctx ctx = *flow->ctx;

	/* What is decided is carried out: a signal that comes now does not leave the rest to recover. */
	ctx.cancel = NULL;
	if (!files)
		return dbt_err_sys(err, -ENOMEM, "cannot look for users of the copies");
	for (size_t i = 0; i < p->n_members; i++)
		files[i] =
			(struct dbt_procs_file){ .ident = &idents[i], .path = p->members[i].copy };
	return dbt_procs_users_of(&ctx, files, p->n_members, ret, err);
}

static const struct dbt_proc *user_of(const struct dbt_procs *users, size_t file)
{
	for (size_t i = 0; i < users->n; i++)
		if (users->items[i].file == file)
			return &users->items[i];
	return NULL;
}

/* Marked by a promotion of another ledger, which took the place of ours. */
static bool is_marked_by_others(struct dbt_flow *flow, const struct dbt_look *look)
{
	dbt_autoclose int fd = dbt_at_open(flow->ctx, &look->copy, O_RDONLY | O_NONBLOCK, 0);
	char token[DBT_MARK_BYTES];

	return fd >= 0 && dbt_mark_get(fd, token) &&
	       dbt_ledger_has_token(flow->ledger, token, NULL) == 0;
}

/* Why a copy must stay; NULL when it may go. */
static const char *reason_to_keep(struct dbt_flow *flow, const struct dbt_promotion *p,
                                  const struct dbt_pmember *m, const struct dbt_look *look)
{
	struct dbt_err err;
	bool same = false, from_device;

	if (look->path_is == DBT_PATH_LINK)
		return "its link is still in place";
	if (is_marked_by_others(flow, look))
		return "it belongs to a promotion of another ledger";
	if (look->copy_journal)
		dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
		            "SQLite's -wal or -journal beside '%s' stays: delete it by hand",
		            m->copy);
	if (look->copy_is == DBT_COPY_MODIFIED && p->rollback_mode != DBT_ROLLBACK_DISCARD_CHANGES)
		return "it was modified meanwhile";
	if (look->copy_is != DBT_COPY_TOUCHED || is_undo(p) ||
	    p->rollback_mode == DBT_ROLLBACK_DISCARD_CHANGES)
		return NULL;
	/* Only ctime differs: its bytes decide. */
	if (dbt_prove_copy(flow->ctx, p, m, &same, &from_device, &err) < 0 || !same)
		return "it was modified meanwhile";
	return NULL;
}

static void remove_copy(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_pmember *m,
                        const struct dbt_look *look, const struct dbt_proc *user)
{
	const struct dbt_expect expect = { .ident = &look->copy_ident, .with_ctime = true };
	char how[DBT_PROC_HOW_TEXT_BYTES], text[256];
	const char *why;
	int r;

	if (look->path_is != DBT_PATH_LINK && !may_vanish(p, m, look)) {
		dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
		            "'%s' stays: it may be the only copy of its bytes, since '%s' is "
		            "another file by now; "
		            "delete it by hand when nobody needs it",
		            m->copy, m->path);
		return;
	}
	why = reason_to_keep(flow, p, m, look);
	m->copy_left = true;
	if (!why && user) {
		(void)snprintf(text, sizeof(text), "process %d (%s) has it %s", user->pid,
		               user->name, dbt_proc_how_text(user->how, how));
		why = text;
	}
	if (!why) {
		r = dbt_promotion_is_tree(p) ? remove_tree_copy(flow, p, m, look)
		                             : dbt_swap_unlink(flow->ctx, look->copy.dirfd,
		                                               look->copy.name, &expect);
		m->copy_left = r != 1;
		why = r == 1 ? NULL : r == 0 ? "it was modified meanwhile" : dbt_err_text(r);
	}
	if (why)
		say_left(flow, m, why);
}

/* Only an empty directory can be removed: what others put there keeps it. True when it is gone or not empty, false
 * when it could not be removed now. */
static bool remove_dir_if_empty(struct dbt_flow *flow, const char *path)
{
	struct dbt_at at;
	int r = dbt_at_resolve_strict(flow->ctx, path, &at, NULL);

	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
	r = flow->ctx->sys->unlinkat(at.dirfd, at.name, AT_REMOVEDIR);
	if (r == 0)
		(void)dbt_at_sync_dir(flow->ctx, &at);
	dbt_at_release(&at);
	return r == 0 || r == -ENOENT || r == -ENOTEMPTY || r == -EEXIST || r == -ENOTDIR;
}

/* The directories between the set's own and this copy, deepest first. */
static bool remove_inner_dirs(struct dbt_flow *flow, const char *copy, size_t outer_len)
{
	dbt_autofree char *dir = strdup(copy);
	bool done = dir != NULL;
	char *slash;

	while (dir && (slash = strrchr(dir, '/')) && (size_t)(slash - dir) > outer_len) {
		*slash = '\0';
		done = remove_dir_if_empty(flow, dir) && done;
	}
	return done;
}

/* No descriptor is kept for a file: a set may have more of them than a process may have open. */
static int identify_copies(struct dbt_flow *flow, const struct dbt_promotion *p,
                           struct dbt_ident *ret, struct dbt_err *err)
{
	for (size_t i = 0; i < p->n_members; i++) {
		struct dbt_look look;
		int r = dbt_look_at(flow->ctx, p, &p->members[i], &look, err);

		if (r < 0)
			return r;
		ret[i] = look.copy_ident;
		dbt_look_release(&look);
	}
	return 0;
}

static void remove_looked_at(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_pmember *m,
                             const struct dbt_look *look, const struct dbt_proc *user)
{
	switch (look->copy_is) {
	case DBT_COPY_UNMOUNTED:
		m->copy_left = true;
		say_left(flow, m, "its filesystem is not mounted");
		break;
	case DBT_COPY_INTACT:
	case DBT_COPY_TOUCHED:
	case DBT_COPY_MODIFIED:
		remove_copy(flow, p, m, look, user);
		break;
	case DBT_COPY_MISSING:
	case DBT_COPY_OTHER:
		break;
	}
}

static int remove_each(struct dbt_flow *flow, struct dbt_promotion *p,
                       const struct dbt_procs *users, struct dbt_err *err)
{
	for (size_t i = 0; i < p->n_members; i++) {
		struct dbt_pmember *m = &p->members[i];
		bool is_due = dbt_state_is_active(p->state) || m->copy_left;
		struct dbt_look look;
		int r;

		if (!is_due || m->taken_over || m->copied.ino == 0) {
			m->copy_left = false;
			continue;
		}
		/* Before the promotion was complete, nobody could have changed what is only listed. */
		r = is_undo(p) ? dbt_look_at(flow->ctx, p, m, &look, err)
		               : dbt_look_through(flow->ctx, p, m, &look, err);
		if (r < 0 && dbt_promotion_is_tree(p) && err && err->kind == DBT_ERR_LEDGER) {
			m->copy_left = true;
			say_left(flow, m, err->text);
			dbt_err_clear(err);
			continue;
		}
		if (r < 0)
			return r;
		m->copy_left = dbt_promotion_is_tree(p) && look.copy.dirfd >= 0 &&
		               !remove_gone_copy(flow, p, m, look.copy.dirfd);
		if (!m->copy_left)
			remove_looked_at(flow, p, m, &look, user_of(users, i));
		dbt_look_release(&look);
	}
	return 0;
}

int dbt_remove_copies(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	dbt_autofree struct dbt_ident *idents = calloc(p->n_members, sizeof(*idents));
	struct dbt_procs users = { 0 };
	struct dbt_dirs dirs = { 0 };
	int r;

	if (!idents)
		return dbt_err_sys(err, -ENOMEM, "cannot remove the copies");
	r = identify_copies(flow, p, idents, err);
	if (r == 0)
		r = find_users(flow, p, idents, &users, err);
	if (r == 0)
		r = dbt_dirs_of(flow->ctx, p, true, &dirs, err);
	if (r == 0)
		r = remove_each(flow, p, &users, err);
	if (r == 0)
		r = dbt_dirs_sync(flow->ctx, &dirs, err);
	dbt_procs_release(&users);
	dbt_dirs_release(&dirs);
	return r;
}

void dbt_remove_set_dirs(struct dbt_flow *flow, struct dbt_promotion *p)
{
	size_t outer_len = strlen(p->target) + 1 + strlen(p->name);
	bool done = true;

	if (!p->is_set || dbt_promotion_waits(p))
		return;
	for (size_t i = 0; i < p->n_members; i++)
		done = remove_inner_dirs(flow, p->members[i].copy, outer_len) && done;
	if (p->made_dir && done && remove_dir_if_empty(flow, p->made_dir)) {
		free(p->made_dir);
		p->made_dir = NULL;
	}
}
