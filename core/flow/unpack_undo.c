#include "base/cleanup.h"
#include "flow/look.h"
#include "flow/unpack.h"
#include "flow/unpack_roots.h"
#include "move/copy.h"
#include "sys/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- the archives --------------------------------------------------------------------------------------- */

/* Another inode or time, the same size: somebody moved it, or fetched it again. The bytes decide. */
static int reread_archive(const struct dbt_ctx *ctx, const struct dbt_at *at,
                          const struct dbt_pmember *m, bool *ret_same, struct dbt_err *err)
{
	const struct dbt_copy_opts opts = { .shown_src = m->path, .shown_dst = m->path };
	dbt_autoclose int fd = dbt_at_open(ctx, at, O_RDONLY | O_NONBLOCK, 0);
	struct dbt_digest recorded, now;
	int r;

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", m->path);
	r = dbt_copy_digest(ctx, fd, m->source.size_bytes, &opts, &now, NULL, err);
	if (r == 0)
		*ret_same = dbt_digest_parse(m->xxh128, &recorded) == 0 &&
		            dbt_digest_equal(&recorded, &now);
	return r;
}

/* *ret: NULL when it is there as it was, else what is wrong with it; read: a look at the bytes may clear it. */
static int look_at_archive(const struct dbt_ctx *ctx, const struct dbt_pmember *m, bool read,
                           const char **ret, struct dbt_err *err)
{
	struct dbt_ident now;
	struct dbt_at at;
	bool same = false;
	int r = dbt_at_resolve_strict(ctx, m->path, &at, err);

	*ret = "is gone";
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP) {
		dbt_err_clear(err);
		return 0;
	}
	if (r < 0)
		return r;
	r = dbt_at_ident(ctx, &at, &now);
	if (r == 0 && dbt_ident_same_content(&now, &m->source, false, true)) {
		*ret = NULL;
	} else if (r == 0) {
		*ret = "was changed";
		if (read && S_ISREG(now.mode) && now.size_bytes == m->source.size_bytes)
			r = reread_archive(ctx, &at, m, &same, err);
		if (same)
			*ret = NULL;
	} else if (r == -ENOENT) {
		r = 0;
	} else {
		(void)dbt_err_sys(err, r, "cannot look at '%s'", m->path);
	}
	dbt_at_release(&at);
	return r;
}

static int check_archives(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                          struct dbt_err *err)
{
	for (size_t i = 0; i < p->n_members; i++) {
		const char *why;
		int r;

		if (p->members[i].role != DBT_ROLE_ARCHIVE)
			continue;
		r = look_at_archive(ctx, &p->members[i], true, &why, err);
		if (r < 0)
			return r;
		if (why)
			return dbt_err_refuse(
				err,
				"the archive '%s' %s: what was unpacked from it may be the only "
				"one; delete '%s' by hand when nobody needs it; nothing was "
				"changed",
				p->members[i].path, why, p->path);
	}
	return 0;
}

/* --- is it allowed -------------------------------------------------------------------------------------- */

static int check_users(const struct dbt_ctx *ctx, const struct dbt_pmember *const *roots, size_t n,
                       struct dbt_err *err)
{
	struct dbt_procs_file files[2] = { 0 };
	char how[DBT_PROC_HOW_TEXT_BYTES];
	struct dbt_procs users = { 0 };
	int r;

	for (size_t i = 0; i < n; i++)
		files[i] = (struct dbt_procs_file){ .ident = &roots[i]->source,
			                            .path = roots[i]->path };
	r = dbt_procs_users_of(ctx, files, n, &users, err);
	if (r == 0 && users.n > 0)
		r = dbt_err_refuse(err,
		                   "process %d (%s) has something of '%s' %s: wait for it to end; "
		                   "nothing was changed",
		                   users.items[0].pid, users.items[0].name,
		                   roots[users.items[0].file]->path,
		                   dbt_proc_how_text(users.items[0].how, how));
	dbt_procs_release(&users);
	return r;
}

/* What somebody put there is not dbtier's to delete, whatever was asked for. */
static int check_tree(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                      const struct dbt_pmember *root, enum dbt_rollback_mode mode,
                      struct dbt_err *err)
{
	struct dbt_unpack_diff diff = { 0 };
	int r = dbt_unpack_compare(ctx, p, root, mode == DBT_ROLLBACK_PLAIN, &diff, err);

	if (r == 0 && diff.is == DBT_DIFF_EXTRA)
		r = dbt_err_refuse(err,
		                   "'%s' was put there since it was unpacked: move it away; "
		                   "nothing was changed",
		                   diff.path);
	else if (r == 0 && diff.is == DBT_DIFF_CHANGED && mode == DBT_ROLLBACK_PLAIN)
		r = dbt_err_refuse(err,
		                   "'%s' was changed since it was unpacked: --discard-changes "
		                   "removes it all the "
		                   "same; nothing was changed",
		                   diff.path);
	dbt_unpack_diff_release(&diff);
	return r;
}

static int check_root(struct dbt_flow *flow, const struct dbt_promotion *p,
                      const struct dbt_pmember *root, enum dbt_rollback_mode mode,
                      struct dbt_err *err)
{
	enum dbt_root_is is;
	int r = dbt_unpack_root_is(flow->ctx, root, &is, err);

	if (r < 0)
		return r;
	if (is == DBT_ROOT_VISIBLE)
		return check_tree(flow->ctx, p, root, mode, err);
	if (is == DBT_ROOT_OTHER && mode == DBT_ROLLBACK_PLAIN)
		return dbt_err_refuse(
			err,
			"'%s' is not what was unpacked any more but something newer: "
			"--discard-changes leaves it and removes the rest; nothing was changed",
			root->path);
	return 0;
}

static int check_all(struct dbt_flow *flow, const struct dbt_promotion *p,
                     const struct dbt_rollback_opts *opts, struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	int r;

	if (opts->mode == DBT_ROLLBACK_KEEP_CHANGES || opts->keep_copy)
		return dbt_err_refuse(err,
		                      "'%s' was unpacked from an archive: there is no plain file "
		                      "to go back to, so "
		                      "%s means nothing here; nothing was changed",
		                      p->path, opts->keep_copy ? "--keep-copy" : "--keep-changes");
	if (!dbt_look_target_is_mounted(flow->ctx, p))
		return dbt_err_refuse(
			err, "the filesystem of '%s' is not mounted: mount it, then roll back",
			p->target);
	r = check_archives(flow->ctx, p, err);
	if (r == 0)
		r = check_users(flow->ctx, roots, n, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = check_root(flow, p, roots[i], opts->mode, err);
	return r;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* All roots at once out of sight, the visible one first. *ret_whole: nothing was out of sight before, so that it can be
 * put back. */
static int hide(struct dbt_flow *flow, const struct dbt_promotion *p, bool *ret_whole,
                struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	int r = 0;

	*ret_whole = true;
	for (size_t i = n; r == 0 && i-- > 0;) {
		enum dbt_root_is is;

		r = dbt_unpack_root_is(flow->ctx, roots[i], &is, err);
		if (r == 0 && is == DBT_ROOT_VISIBLE)
			r = dbt_unpack_rename(flow, roots[i], false, err);
		else
			*ret_whole = false;
	}
	return r;
}

static int put_back(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	struct dbt_err later;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = dbt_unpack_rename(flow, roots[i], true, &later);
	if (r == 0) {
		p->state = DBT_STATE_PROMOTED;
		r = dbt_flow_let_go(flow, p, "rollback refused", &later);
	}
	return r < 0 ? dbt_err_add(err, "putting it back failed too: %s", later.text)
	       : err ? err->code
	             : -EPERM;
}

/* Out of sight nobody opens anything anew: what is as recorded now stays so. */
static int check_hidden(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		enum dbt_root_is is;

		r = dbt_unpack_root_is(flow->ctx, roots[i], &is, err);
		if (r == 0 && is == DBT_ROOT_TEMPORARY)
			r = check_tree(flow->ctx, p, roots[i], p->rollback_mode, err);
	}
	return r;
}

static int remove_all(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	int r = 0;

	for (size_t i = n; r == 0 && i-- > 0;) {
		bool gone = true;

		r = dbt_unpack_remove_root(flow, p, roots[i],
		                           p->rollback_mode == DBT_ROLLBACK_DISCARD_CHANGES, &gone,
		                           err);
		if (r == 0 && !gone)
			dbt_ctx_log(flow->ctx, DBT_LOG_WARNING,
			            "'%s' in the directory of '%s' stays: somebody else changed "
			            "what is in it",
			            roots[i]->part, roots[i]->path);
	}
	if (r < 0)
		return r;
	free(p->made_dir);
	p->made_dir = NULL;
	p->owner = (struct dbt_run){ 0 };
	return dbt_flow_enter(flow, p, DBT_STATE_ROLLED_BACK, err);
}

static int finish(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err)
{
	bool whole = false;
	int r = hide(flow, p, &whole, err);

	if (r == 0 && whole) {
		r = check_hidden(flow, p, err);
		if (r < 0)
			return put_back(flow, p, err);
	}
	return r == 0 ? remove_all(flow, p, err) : r;
}

int dbt_unpack_rollback(struct dbt_flow *flow, struct dbt_promotion *p,
                        const struct dbt_rollback_opts *opts, struct dbt_err *err)
{
	struct dbt_err later;
	int r = 0;

	if (p->state == DBT_STATE_PROMOTED) {
		r = check_all(flow, p, opts, err);
		if (r == 0) {
			p->rollback_mode = opts->mode;
			r = dbt_flow_enter(flow, p, DBT_STATE_ROLLING_BACK, err);
		}
		if (r < 0) {
			p->state = DBT_STATE_PROMOTED;
			(void)dbt_flow_let_go(flow, p, "rollback refused", &later);
			return r;
		}
	}
	r = finish(flow, p, err);
	return r < 0 && p->state == DBT_STATE_ROLLING_BACK
	               ? dbt_err_add(err, "'dbtier recover' ends what was begun")
	               : r;
}

/* --- health --------------------------------------------------------------------------------------------- */

static int say(enum dbt_health *health, char **detail, enum dbt_health found, const char *fmt,
               const char *path) __attribute__((format(printf, 4, 0)));

/* Lower is graver, except that ok is the lightest. */
static int say(enum dbt_health *health, char **detail, enum dbt_health found, const char *fmt,
               const char *path)
{
	char *text = NULL;

	if (*health != DBT_HEALTH_OK && *health <= found)
		return 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (asprintf(&text, fmt, path) < 0)
		return -ENOMEM;
#pragma GCC diagnostic pop
	free(*detail);
	*detail = text;
	*health = found;
	return 0;
}

static int judge_archives(const struct dbt_ctx *ctx, const struct dbt_promotion *p, bool read,
                          enum dbt_health *health, char **detail, struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++) {
		const struct dbt_pmember *m = &p->members[i];
		const char *why;

		if (m->role != DBT_ROLE_ARCHIVE)
			continue;
		r = look_at_archive(ctx, m, read, &why, err);
		if (r == 0 && why)
			r = say(health, detail,
			        why[0] == 'i' ? DBT_HEALTH_ORIGINAL_MISSING
			                      : DBT_HEALTH_ORIGINAL_CHANGED,
			        why[0] == 'i'
			                ? "the archive '%s' is gone: what was unpacked may be the "
			                  "only one now"
			                : "the archive '%s' was changed; what was unpacked is not",
			        m->path);
	}
	return r;
}

static int judge_tree(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                      const struct dbt_pmember *root, enum dbt_health *health, char **detail,
                      struct dbt_err *err)
{
	struct dbt_unpack_diff diff = { 0 };
	int r = dbt_unpack_compare(ctx, p, root, false, &diff, err);

	if (r == 0 && diff.is == DBT_DIFF_CHANGED)
		r = say(health, detail, DBT_HEALTH_COPY_MODIFIED,
		        "'%s' was modified: 'dbtier rollback --discard-changes' removes it, then "
		        "unpack again",
		        diff.path);
	else if (r == 0 && diff.is == DBT_DIFF_TOUCHED)
		r = say(health, detail, DBT_HEALTH_COPY_MODIFIED,
		        "'%s' was touched (its ctime differs, size and mtime do not): 'dbtier "
		        "verify' reads it",
		        diff.path);
	else if (r == 0 && diff.is == DBT_DIFF_MISSING)
		r = say(health, detail, DBT_HEALTH_COPY_MISSING,
		        "'%s' is gone: 'dbtier rollback', then unpack again", diff.path);
	dbt_unpack_diff_release(&diff);
	return r;
}

static int judge_root(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                      const struct dbt_pmember *root, bool is_hot, enum dbt_health *health,
                      char **detail, struct dbt_err *err)
{
	enum dbt_root_is is;
	int r = dbt_unpack_root_is(ctx, root, &is, err);

	if (r < 0)
		return r;
	if (is == DBT_ROOT_VISIBLE)
		return judge_tree(ctx, p, root, health, detail, err);
	if (is_hot && !dbt_look_target_is_mounted(ctx, p))
		return say(health, detail, DBT_HEALTH_NOT_MOUNTED,
		           "the filesystem of '%s' is not mounted: mount it", root->path);
	if (is == DBT_ROOT_OTHER)
		return say(health, detail, DBT_HEALTH_LINK_REPLACED,
		           "'%s' is not what was unpacked any more: somebody replaced it",
		           root->path);
	return say(health, detail, is_hot ? DBT_HEALTH_COPY_MISSING : DBT_HEALTH_ORPHAN,
	           is_hot ? "'%s' is gone: 'dbtier rollback', then unpack again"
	                  : "'%s' is gone: 'dbtier rollback' removes what is left of it",
	           root->path);
}

/* Reads every file of a root that is there and compares it with its hash. */
static int read_files(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                      enum dbt_health *health, char **detail, struct dbt_err *err)
{
	for (size_t i = 0; i < p->n_members; i++) {
		const struct dbt_pmember *m = &p->members[i];
		const struct dbt_copy_opts opts = { .shown_src = m->copy, .shown_dst = m->copy };
		struct dbt_digest recorded, now;
		struct dbt_at at;
		int fd, r;

		if (m->role != DBT_ROLE_FILE || m->xxh128[0] == '\0' ||
		    dbt_at_resolve_strict(ctx, m->copy, &at, NULL) < 0)
			continue; /* what is missing was found before */
		fd = dbt_at_open(ctx, &at, O_RDONLY | O_NONBLOCK, 0);
		dbt_at_release(&at);
		if (fd < 0)
			continue;
		r = dbt_copy_digest(ctx, fd, dbt_pmember_size(m), &opts, &now, NULL, err);
		(void)ctx->sys->close(fd);
		if (r < 0 && err && err->kind == DBT_ERR_INTERRUPTED)
			return r;
		if (r < 0 || dbt_digest_parse(m->xxh128, &recorded) < 0 ||
		    !dbt_digest_equal(&recorded, &now)) {
			dbt_err_clear(err);
			return say(health, detail, DBT_HEALTH_COPY_MODIFIED,
			           "'%s' does not hold the bytes that were unpacked", m->copy);
		}
	}
	return 0;
}

int dbt_unpack_health(const struct dbt_ctx *ctx, const struct dbt_promotion *p, bool read,
                      enum dbt_health *health, char **detail, struct dbt_err *err)
{
	const struct dbt_pmember *roots[2];
	size_t n = dbt_unpack_roots(p, roots);
	int r = judge_archives(ctx, p, read, health, detail, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = judge_root(ctx, p, roots[i], i == 0, health, detail, err);
	/* What was only touched is cleared, or not, by its bytes. */
	if (r == 0 && read && *health == DBT_HEALTH_COPY_MODIFIED && *detail &&
	    strstr(*detail, "was touched")) {
		*health = DBT_HEALTH_OK;
		free(*detail);
		*detail = NULL;
	}
	return r == 0 && read ? read_files(ctx, p, health, detail, err) : r;
}
