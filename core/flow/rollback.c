#include "flow/rollback.h"

#include "base/cleanup.h"
#include "flow/carry.h"
#include "flow/dirs.h"
#include "flow/exchange.h"
#include "flow/look.h"
#include "flow/prove.h"
#include "flow/remove.h"
#include "flow/tree.h"
#include "flow/unpack.h"
#include "move/copy.h"
#include "move/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- is it allowed -------------------------------------------------------------------------------------- */

/* Only ctime tells that something happened to the copy: its bytes decide. The recorded identity is renewed when
 * they are right. */
static int reread_touched(struct dbt_flow *flow, struct dbt_pmember *m, const struct dbt_look *look,
                          bool *ret_same, struct dbt_err *err)
{
	const struct dbt_copy_opts opts = { .shown_src = m->copy, .shown_dst = m->copy };
	struct dbt_digest recorded, now = { 0 };
	dbt_autoclose int fd = dbt_at_open(flow->ctx, &look->copy, O_RDONLY | O_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", m->copy);
	r = dbt_copy_digest(flow->ctx, fd, m->copied.size_bytes, &opts, &now, NULL, err);
	if (r < 0 && r != -EIO)
		return r;
	*ret_same = r == 0 && dbt_digest_parse(m->xxh128, &recorded) == 0 &&
	            dbt_digest_equal(&recorded, &now);
	if (*ret_same)
		m->copied.ctime_ns = look->copy_ident.ctime_ns;
	return 0;
}

/* The same for a directory, whose list stays as it is. */
static int reread_tree(struct dbt_flow *flow, const struct dbt_promotion *p,
                       const struct dbt_pmember *m, bool *ret_same, struct dbt_err *err)
{
	bool from_device;

	return dbt_prove_copy(flow->ctx, p, m, ret_same, &from_device, err);
}

static int refuse_modified(const struct dbt_pmember *m, const struct dbt_look *look,
                           struct dbt_err *err)
{
	const char *what =
		look->copy_is == DBT_COPY_OTHER ? "was replaced by another file" : "was modified";

	if (m->reclaimed)
		return dbt_err_refuse(
			err,
			"the copy '%s' %s since it was promoted, and the original was reclaimed; "
			"--keep-changes copies it back as it is; nothing was changed",
			m->copy, what);
	return dbt_err_refuse(
		err,
		"the copy '%s' %s since it was promoted; --keep-changes copies it "
		"back, --discard-changes returns to the original; nothing was changed",
		m->copy, what);
}

static int refuse_discard(const struct dbt_pmember *m, struct dbt_err *err)
{
	return dbt_err_refuse(
		err,
		"the original of '%s' was reclaimed: there is nothing to return to but the copy; "
		"nothing was changed",
		m->path);
}

/* What SQLite has not written into the copy yet would be lost in either direction. */
static int check_journal(const struct dbt_pmember *m, const struct dbt_look *look,
                         enum dbt_rollback_mode mode, struct dbt_err *err)
{
	if (!look->copy_journal || mode == DBT_ROLLBACK_DISCARD_CHANGES)
		return 0;
	return dbt_err_refuse(
		err,
		"SQLite left changes beside the copy '%s' (-wal or -journal): open it with sqlite3 "
		"and run 'PRAGMA wal_checkpoint(TRUNCATE)', or give them up with "
		"--discard-changes; nothing was changed",
		m->copy);
}

static int check_gone(const struct dbt_pmember *m, const struct dbt_look *look,
                      enum dbt_rollback_mode mode, struct dbt_err *err)
{
	if (!m->reclaimed && mode != DBT_ROLLBACK_KEEP_CHANGES)
		return 0; /* the original is there: the path gets well again */
	if (look->copy_is == DBT_COPY_UNMOUNTED)
		return dbt_err_refuse(
			err, "the filesystem of '%s' is not mounted: mount it, then roll back",
			m->copy);
	return dbt_err_set(err, DBT_ERR_CHANGED, -ENOENT, "the copy '%s' is gone, and %s", m->copy,
	                   m->reclaimed ? "the original was reclaimed: restore the database "
	                                  "from elsewhere"
	                                : "so are the changes in it: roll back without "
	                                  "--keep-changes");
}

static int check_copy(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_pmember *m,
                      const struct dbt_look *look, enum dbt_rollback_mode mode, struct dbt_err *err)
{
	bool is_same = true;
	int r = 0;

	if (m->reclaimed && mode == DBT_ROLLBACK_DISCARD_CHANGES)
		return refuse_discard(m, err);
	switch (look->copy_is) {
	case DBT_COPY_TOUCHED:
		if (mode == DBT_ROLLBACK_PLAIN)
			r = dbt_promotion_is_tree(p) ? reread_tree(flow, p, m, &is_same, err)
			                             : reread_touched(flow, m, look, &is_same, err);
		break;
	case DBT_COPY_MODIFIED:
	case DBT_COPY_OTHER:
		is_same = mode != DBT_ROLLBACK_PLAIN;
		break;
	case DBT_COPY_UNMOUNTED:
	case DBT_COPY_MISSING:
		return check_gone(m, look, mode, err);
	case DBT_COPY_INTACT:
		break;
	}
	if (r == 0 && !is_same)
		r = refuse_modified(m, look, err);
	return r == 0 ? check_journal(m, look, mode, err) : r;
}

static int check_path(const struct dbt_pmember *m, const struct dbt_look *look, struct dbt_err *err)
{
	switch (look->path_is) {
	case DBT_PATH_LINK:
	case DBT_PATH_ORIGINAL:
	case DBT_PATH_RETURNED:
		return 0;
	case DBT_PATH_MISSING:
		if (look->path.dirfd >= 0 && look->kept_is == DBT_KEPT_ORIGINAL)
			return 0;
		return dbt_err_refuse(err,
		                      "'%s' does not exist any more; the copy '%s' stays as it is",
		                      m->path, m->copy);
	case DBT_PATH_CHANGED:
	case DBT_PATH_OTHER:
	default:
		return dbt_err_refuse(
			err,
			"'%s' is not dbtier's link any more but something newer, which rolling "
			"back would replace: nothing was changed; the original is '%s' beside it",
			m->path, m->kept);
	}
}

static int refuse_original(const struct dbt_pmember *m, const struct dbt_look *look,
                           struct dbt_err *err)
{
	return dbt_err_refuse(
		err,
		"the original '%s' beside '%s' %s; --keep-changes copies the copy back; nothing "
		"was changed",
		m->kept, m->path, look->kept_is == DBT_KEPT_MISSING ? "is missing" : "was changed");
}

static int check_original(struct dbt_flow *flow, const struct dbt_promotion *p,
                          const struct dbt_pmember *m, const struct dbt_look *look,
                          enum dbt_rollback_mode mode, struct dbt_err *err)
{
	bool same = true;
	int r;

	if (m->reclaimed || look->path_is != DBT_PATH_LINK || mode == DBT_ROLLBACK_KEEP_CHANGES)
		return 0;
	if (look->kept_is != DBT_KEPT_ORIGINAL)
		return refuse_original(m, look, err);
	if (!look->kept_touched || mode == DBT_ROLLBACK_DISCARD_CHANGES)
		return 0;
	/* Only its ctime differs: its bytes decide. */
	r = dbt_prove_original(flow->ctx, p, m, &same, err);
	return r < 0 ? r : same ? 0 : refuse_original(m, look, err);
}

static int check_member(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_pmember *m,
                        enum dbt_rollback_mode mode, struct dbt_err *err)
{
	struct dbt_look look;
	/* Who gives up changes wants the original, whatever the copy has become. */
	int r = mode == DBT_ROLLBACK_DISCARD_CHANGES
	                ? dbt_look_at(flow->ctx, p, m, &look, err)
	                : dbt_look_through(flow->ctx, p, m, &look, err);

	if (r < 0)
		return r;
	r = check_path(m, &look, err);
	if (r == 0)
		r = check_original(flow, p, m, &look, mode, err);
	if (r == 0 && look.path_is == DBT_PATH_LINK)
		r = check_copy(flow, p, m, &look, mode, err);
	dbt_look_release(&look);
	return r;
}

/* --- copying back --------------------------------------------------------------------------------------- */

static bool needs_copy_back(const struct dbt_promotion *p, const struct dbt_pmember *m)
{
	return m->reclaimed || p->rollback_mode == DBT_ROLLBACK_KEEP_CHANGES;
}

/* The copied-back file must be what was promoted, unless changes are wanted or given up on purpose. */
static int check_digest(const struct dbt_promotion *p, const struct dbt_pmember *m,
                        const struct dbt_digest *found, struct dbt_err *err)
{
	struct dbt_digest recorded;

	if (p->rollback_mode != DBT_ROLLBACK_PLAIN)
		return 0;
	if (dbt_digest_parse(m->xxh128, &recorded) == 0 && dbt_digest_equal(&recorded, found))
		return 0;
	return dbt_err_set(
		err, DBT_ERR_VERIFY, -EIO,
		"the copy '%s' does not hold the bytes that were promoted any more; --keep-changes "
		"takes it as it is",
		m->copy);
}

/* What was copied back is what may be removed later: nothing newer, and no file that somebody else put there. */
static void note_copied(struct dbt_pmember *m, const struct dbt_ident *from)
{
	if (!dbt_ident_same_inode(from, &m->copied, true))
		m->taken_over = true;
	m->copied = *from;
}

static int fill_back(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_pmember *m,
                     int src, int dst, uint64_t limit_bytes_s, struct dbt_err *err)
{
	const struct dbt_copy_opts opts = { .limit_bytes_s = limit_bytes_s,
		                            .shown_src = m->copy,
		                            .shown_dst = m->path };
	struct dbt_copy_result result;
	struct dbt_ident from, after;
	/* The copy's filesystem may keep times more coarsely: the original's are in the ledger. */
	const struct dbt_carry carry = {
		.src = src,
		.dst = dst,
		.shown_src = m->copy,
		.shown_dst = m->path,
		.times = p->rollback_mode == DBT_ROLLBACK_PLAIN ? &m->source : &from,
		.whole = true,
	};
	int r = dbt_ident_fd(flow->ctx, src, &from);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", m->copy);
	r = dbt_copy_file(flow->ctx, src, &from, dst, &opts, &result, err);
	if (r == 0)
		r = check_digest(p, m, &result.digest, err);
	if (r == 0)
		r = dbt_carry_meta(flow->ctx, &carry, err);
	if (r < 0)
		return r;
	r = dbt_ident_fd(flow->ctx, src, &after);
	if (r == 0 && !dbt_ident_same_content(&from, &after, true, false))
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE,
		                   "'%s' changed while it was copied back", m->copy);
	if (r == 0)
		r = flow->ctx->sys->fsync(dst);
	if (r == 0)
		r = dbt_ident_fd(flow->ctx, dst, &m->returned);
	if (r == 0)
		note_copied(m, &from);
	return r < 0 ? dbt_err_sys(err, r, "cannot finish the file for '%s'", m->path) : 0;
}

/* A directory comes back as one. */
static int copy_back_tree(struct dbt_flow *flow, const struct dbt_promotion *p,
                          struct dbt_pmember *m, const struct dbt_look *look,
                          uint64_t limit_bytes_s, struct dbt_err *err)
{
	const bool plain = p->rollback_mode == DBT_ROLLBACK_PLAIN;
	dbt_autoclose int src = dbt_at_open(flow->ctx, &look->copy, O_RDONLY | O_DIRECTORY, 0);
	dbt_autofree char *list = dbt_tree_list_path(p, ".back");
	dbt_autofree char *times = dbt_tree_list_path(p, ".tree");
	const struct dbt_tree_copy copy = { .ctx = flow->ctx,
		                            .src = src,
		                            .dst_dirfd = look->path.dirfd,
		                            .dst_name = m->back,
		                            .shown_src = m->copy,
		                            .shown_dst = m->path,
		                            .list = list,
		                            .times = plain ? times : NULL,
		                            .limit_bytes_s = limit_bytes_s,
		                            .total_bytes = m->source.size_bytes,
		                            .whole = true };
	struct dbt_tree_copied copied;
	int r;

	if (src < 0 || !list || !times)
		return dbt_err_sys(err, src < 0 ? src : -ENOMEM, "cannot open '%s'", m->copy);
	r = dbt_tree_copy(&copy, &copied, err);
	if (r == 0)
		r = check_digest(p, m, &copied.digest, err);
	if (r < 0)
		return r;
	note_copied(m, &copied.source);
	m->returned = copied.root;
	return 0;
}

static int copy_back_one(struct dbt_flow *flow, const struct dbt_promotion *p,
                         struct dbt_pmember *m, const struct dbt_look *look, uint64_t limit_bytes_s,
                         struct dbt_err *err)
{
	dbt_autoclose int src = dbt_at_open(flow->ctx, &look->copy, O_RDONLY | O_NONBLOCK, 0);
	int dst, r;

	if (src < 0)
		return dbt_err_sys(err, src, "cannot open '%s'", m->copy);
	dst = flow->ctx->sys->openat(look->path.dirfd, m->back,
	                             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (dst < 0)
		return dbt_err_sys(err, dst, "cannot create a file beside '%s'", m->path);
	r = fill_back(flow, p, m, src, dst, limit_bytes_s, err);
	if (r < 0) {
		(void)flow->ctx->sys->close(dst);
		return r;
	}
	r = flow->ctx->sys->close(dst);
	return r < 0 ? dbt_err_sys(err, r, "cannot close the file for '%s'", m->path) : 0;
}

/* Room beside the path for what comes back, with a little left over for everybody else. */
static int copy_back_member(struct dbt_flow *flow, const struct dbt_promotion *p,
                            struct dbt_pmember *m, uint64_t limit_bytes_s, struct dbt_err *err)
{
	struct dbt_look look;
	int r = dbt_look_at(flow->ctx, p, m, &look, err);

	if (r < 0)
		return r;
	if (look.path_is == DBT_PATH_LINK && look.back_is == DBT_KEPT_MISSING)
		r = dbt_promotion_is_tree(p) ? copy_back_tree(flow, p, m, &look, limit_bytes_s, err)
		                             : copy_back_one(flow, p, m, &look, limit_bytes_s, err);
	dbt_look_release(&look);
	return r;
}

static int copy_back_all(struct dbt_flow *flow, struct dbt_promotion *p, uint64_t limit_bytes_s,
                         struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		if (needs_copy_back(p, &p->members[i]))
			r = copy_back_member(flow, p, &p->members[i], limit_bytes_s, err);
	/* recover must know the finished files by their inodes before they get their names. */
	return r == 0 ? dbt_ledger_save(flow->ledger, p, "copied back", err) : r;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static int name_backs(struct dbt_promotion *p, struct dbt_err *err)
{
	for (size_t i = 0; i < p->n_members; i++) {
		struct dbt_pmember *m = &p->members[i];

		if (m->back || !needs_copy_back(p, m))
			continue;
		if (asprintf(&m->back, ".dbtier-%s-%zu-back.part", p->token, i) < 0) {
			m->back = NULL;
			return dbt_err_sys(err, -ENOMEM, "cannot roll back '%s'", p->path);
		}
	}
	return 0;
}

/* Before the first path is exchanged a rollback can be given up: only unfinished files beside the
 * paths are to be removed. */
static int give_up(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	int r = dbt_remove_temporaries(flow, p, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_members; i++) {
		p->members[i].returned = (struct dbt_ident){ 0 };
		free(p->members[i].back);
		p->members[i].back = NULL;
	}
	p->rollback_mode = DBT_ROLLBACK_PLAIN;
	p->keep_copy = false;
	p->state = DBT_STATE_PROMOTED;
	r = dbt_flow_let_go(flow, p, "rollback given up", err);
	if (r == 0 && dbt_promotion_is_tree(p))
		dbt_tree_remove_back_list(p);
	return r;
}

/* The same after an error, whose sentence stays in front. */
static int abandon(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	struct dbt_err later;

	if (give_up(flow, p, &later) < 0)
		return dbt_err_add(err, "giving the rollback up failed too: %s", later.text);
	return dbt_err_add(err, "the database stays promoted as it was");
}

/* From here on there is only forward: each path is the link or already the plain file. */
static int return_paths(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	struct dbt_err paths, count_err;
	size_t links = 0;
	int r = dbt_exchange_out(flow, p, &paths);

	/* A path that holds something newer by now is not ours any more, and nothing is left to do there. */
	if (r < 0 && (paths.kind != DBT_ERR_CHANGED ||
	              dbt_exchange_count_links(flow, p, &links, &count_err) < 0 || links > 0)) {
		if (err)
			*err = paths;
		return r;
	}
	if (r < 0)
		dbt_ctx_log(flow->ctx, DBT_LOG_WARNING, "%s", paths.text);
	for (size_t i = 0; i < p->n_members; i++)
		p->members[i].copy_left = !p->members[i].taken_over && !p->keep_copy;
	return dbt_flow_enter(flow, p, DBT_STATE_ROLLED_BACK, err);
}

static void note_superseded(struct dbt_flow *flow, const struct dbt_promotion *p)
{
	for (size_t i = 0; i < p->n_members; i++) {
		const struct dbt_pmember *m = &p->members[i];
		struct dbt_look look;

		if (m->reclaimed || !needs_copy_back(p, m) ||
		    dbt_look_at(flow->ctx, p, m, &look, NULL) < 0)
			continue;
		if (look.kept_is == DBT_KEPT_ORIGINAL || look.kept_is == DBT_KEPT_CHANGED)
			dbt_ctx_log(flow->ctx, DBT_LOG_NOTE,
			            "the older original of '%s' stays beside it as '%s'; delete it "
			            "when it is no longer wanted",
			            m->path, m->kept);
		dbt_look_release(&look);
	}
}

/* A copy that stays is the user's from now on: any promotion may take it over. */
static void unmark_copies(struct dbt_flow *flow, const struct dbt_promotion *p)
{
	for (size_t i = 0; i < p->n_members; i++) {
		struct dbt_look look;
		int fd;

		if (dbt_look_at(flow->ctx, p, &p->members[i], &look, NULL) < 0)
			continue;
		fd = look.copy.dirfd < 0
		             ? -1
		             : dbt_at_open(flow->ctx, &look.copy, O_RDONLY | O_NONBLOCK, 0);
		if (fd >= 0) {
			dbt_mark_remove(fd);
			(void)flow->ctx->sys->close(fd);
		}
		dbt_look_release(&look);
	}
}

static int clean_up(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	const bool remove = !p->keep_copy && !dbt_promotion_keeps_copies(p);
	int r = dbt_remove_temporaries(flow, p, err);
	struct dbt_dirs dirs = { 0 };

	if (r == 0 && remove)
		r = dbt_remove_copies(flow, p, err);
	if (r == 0 && remove)
		dbt_remove_set_dirs(flow, p);
	if (r == 0 && p->keep_copy)
		unmark_copies(flow, p);
	if (r == 0)
		r = dbt_dirs_of(flow->ctx, p, false, &dirs, err);
	if (r == 0)
		r = dbt_dirs_sync(flow->ctx, &dirs, err);
	dbt_dirs_release(&dirs);
	if (r == 0) {
		note_superseded(flow, p);
		r = dbt_flow_let_go(flow, p, "cleaned up", err);
	}
	if (r == 0 && dbt_promotion_is_tree(p) && !dbt_promotion_waits(p))
		dbt_tree_remove_lists(p);
	return r;
}

/* Was every file that had to be copied back finished and recorded? Exchanging begins only then. */
static int is_copied_back(struct dbt_flow *flow, const struct dbt_promotion *p, bool *ret,
                          struct dbt_err *err)
{
	*ret = true;
	for (size_t i = 0; *ret && i < p->n_members; i++) {
		const struct dbt_pmember *m = &p->members[i];
		struct dbt_look look;
		int r;

		if (!needs_copy_back(p, m))
			continue;
		r = dbt_look_at(flow->ctx, p, m, &look, err);
		if (r < 0)
			return r;
		*ret = look.path_is != DBT_PATH_LINK || look.back_is == DBT_KEPT_ORIGINAL;
		dbt_look_release(&look);
	}
	return 0;
}

int dbt_rollback_finish(struct dbt_flow *flow, struct dbt_promotion *p, bool *ret_given_up,
                        struct dbt_err *err)
{
	bool ready = false;
	int r;

	*ret_given_up = false;
	if (p->state != DBT_STATE_ROLLING_BACK)
		return clean_up(flow, p, err);
	r = is_copied_back(flow, p, &ready, err);
	if (r < 0)
		return r;
	if (!ready) {
		*ret_given_up = true;
		return give_up(flow, p, err);
	}
	r = return_paths(flow, p, err);
	return r < 0 ? r : clean_up(flow, p, err);
}

int dbt_rollback(struct dbt_flow *flow, struct dbt_promotion *p,
                 const struct dbt_rollback_opts *opts, struct dbt_err *err)
{
	int r = 0;

	if (p->kind == DBT_KIND_ARCHIVE)
		return dbt_unpack_rollback(flow, p, opts, err);
	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		r = check_member(flow, p, &p->members[i], opts->mode, err);
	if (r == 0) {
		p->rollback_mode = opts->mode;
		p->keep_copy = opts->keep_copy;
		r = name_backs(p, err);
	}
	if (r == 0)
		r = dbt_flow_enter(flow, p, DBT_STATE_ROLLING_BACK, err);
	if (r < 0) {
		struct dbt_err later;

		p->state = DBT_STATE_PROMOTED;
		(void)dbt_flow_let_go(flow, p, "rollback refused", &later);
		return r;
	}
	r = copy_back_all(flow, p, opts->limit_bytes_s, err);
	if (r < 0)
		return abandon(flow, p, err);
	r = return_paths(flow, p, err);
	if (r == 0)
		r = clean_up(flow, p, err);
	return r < 0 ? dbt_err_add(err, "'dbtier recover' ends what was begun") : 0;
}
