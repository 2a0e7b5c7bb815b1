#include "flow/health.h"

#include "flow/look.h"
#include "flow/prove.h"
#include "flow/unpack.h"
#include "sys/procs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
	[DBT_HEALTH_OK] = "ok",
	[DBT_HEALTH_INTERRUPTED] = "interrupted",
	[DBT_HEALTH_NOT_MOUNTED] = "not-mounted",
	[DBT_HEALTH_ORPHAN] = "orphan",
	[DBT_HEALTH_LINK_REPLACED] = "link-replaced",
	[DBT_HEALTH_COPY_MISSING] = "copy-missing",
	[DBT_HEALTH_COPY_MODIFIED] = "copy-modified",
	[DBT_HEALTH_ORIGINAL_MISSING] = "original-missing",
	[DBT_HEALTH_ORIGINAL_CHANGED] = "original-changed",
};

const char *dbt_health_name(enum dbt_health health)
{
	return names[health];
}

struct finding {
	enum dbt_health health;
	const char *say; /* a sentence with two %s: path and copy, in this order */
};

/* What is wrong with one member, the gravest first. */
static struct finding judge(const struct dbt_pmember *m, const struct dbt_look *l)
{
	const bool gone = l->copy_is == DBT_COPY_MISSING;

	if (l->path_is == DBT_PATH_MISSING && l->kept_is != DBT_KEPT_ORIGINAL)
		return (struct finding){
			DBT_HEALTH_ORPHAN,
			"'%s' is gone, its copy '%s' is left: delete the copy by hand when "
			"nobody needs it"
		};
	if (l->path_is == DBT_PATH_ORIGINAL)
		return (struct finding){
			DBT_HEALTH_LINK_REPLACED,
			"'%s' is its original again, its copy '%s' is left: 'dbtier recover' "
			"ends the promotion"
		};
	if (l->path_is == DBT_PATH_MISSING)
		return (struct finding){ DBT_HEALTH_LINK_REPLACED,
			                 "'%s', the link to '%s', was deleted: 'dbtier rollback' "
			                 "puts the original there" };
	if (l->path_is != DBT_PATH_LINK)
		return (struct finding){
			DBT_HEALTH_LINK_REPLACED,
			"'%s' is no longer dbtier's link to '%s': somebody replaced it, "
			"what stands there now is used"
		};
	if (l->copy_is == DBT_COPY_UNMOUNTED)
		return (struct finding){
			DBT_HEALTH_NOT_MOUNTED,
			"'%s' leads to '%s', whose filesystem is not mounted: mount it, or "
			"run 'dbtier recover' to return to the original"
		};
	if (gone && m->reclaimed)
		return (struct finding){
			DBT_HEALTH_COPY_MISSING,
			"'%s' leads to '%s', which is gone, and the original was reclaimed: "
			"restore it from elsewhere"
		};
	if (gone)
		return (struct finding){
			DBT_HEALTH_COPY_MISSING,
			"'%s' leads to '%s', which is gone: 'dbtier recover' returns to the "
			"original"
		};
	if (l->copy_is == DBT_COPY_OTHER)
		return (struct finding){
			DBT_HEALTH_COPY_MODIFIED,
			"the copy of '%s', '%s', was replaced by another file: 'dbtier rollback "
			"--keep-changes' or '--discard-changes' decides"
		};
	if (l->copy_journal)
		return (struct finding){
			DBT_HEALTH_COPY_MODIFIED,
			"SQLite left changes of '%s' beside its copy '%s' (-wal or -journal): they "
			"belong to it; 'PRAGMA wal_checkpoint(TRUNCATE)' writes them into it"
		};
	if (l->copy_is == DBT_COPY_MODIFIED)
		return (struct finding){ DBT_HEALTH_COPY_MODIFIED,
			                 "the copy of '%s', '%s', was modified: 'dbtier rollback "
			                 "--keep-changes' or '--discard-changes' decides" };
	if (l->copy_is == DBT_COPY_TOUCHED)
		return (struct finding){
			DBT_HEALTH_COPY_MODIFIED,
			"the copy of '%s', '%s', was touched (its ctime differs, size and "
			"mtime do not): 'dbtier verify' reads it"
		};
	if (m->reclaimed)
		return (struct finding){ DBT_HEALTH_OK, NULL };
	if (l->kept_is == DBT_KEPT_CHANGED)
		return (struct finding){
			DBT_HEALTH_ORIGINAL_CHANGED,
			"the original kept beside '%s' was changed; the copy '%s' is as it "
			"was promoted"
		};
	if (l->kept_is != DBT_KEPT_ORIGINAL)
		return (struct finding){
			DBT_HEALTH_ORIGINAL_MISSING,
			"the original kept beside '%s' is missing; the copy '%s' may be the "
			"only one now"
		};
	return (struct finding){ DBT_HEALTH_OK, NULL };
}

/* Lower is graver, except that ok is the lightest. */
static bool is_graver(enum dbt_health a, enum dbt_health b)
{
	return a != DBT_HEALTH_OK && (b == DBT_HEALTH_OK || a < b);
}

static int set_detail(char **detail, const char *text)
{
	free(*detail);
	*detail = strdup(text);
	return *detail ? 0 : -ENOMEM;
}

static int add_member(const struct dbt_pmember *m, const struct dbt_look *look,
                      enum dbt_health *health, char **detail)
{
	const struct finding f = judge(m, look);
	char *text = NULL;

	if (!is_graver(f.health, *health))
		return 0;
	*health = f.health;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (asprintf(&text, f.say, m->path, m->copy) < 0)
		return -ENOMEM;
#pragma GCC diagnostic pop
	free(*detail);
	*detail = text;
	return 0;
}

/* A run is in the middle of it, or was. */
static int judge_state(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                       enum dbt_health *health, char **detail)
{
	if (p->state == DBT_STATE_PROMOTED && p->owner.pid == 0)
		return 0;
	if (p->owner.pid != 0 &&
	    dbt_procs_is_alive(ctx, p->owner.pid, p->owner.start_ticks, p->owner.boot_id))
		return 0; /* at work: the state says so */
	if (p->state == DBT_STATE_PROMOTED)
		return 0; /* the run ended after the last step that matters */
	*health = DBT_HEALTH_INTERRUPTED;
	return set_detail(detail, "a run ended half-way: 'dbtier recover' finishes or undoes it");
}

/* The end of a judgement: hands over what was found, or r with a sentence. */
static int give(int r, enum dbt_health health, char *detail, enum dbt_health *ret,
                char **ret_detail, const struct dbt_promotion *p, struct dbt_err *err)
{
	if (r < 0 || !ret_detail)
		free(detail);
	if (r < 0)
		return r == -ENOMEM || !err || err->kind == DBT_ERR_NONE
		               ? dbt_err_sys(err, r, "cannot judge '%s'", p->path)
		               : r;
	*ret = health;
	if (ret_detail)
		*ret_detail = detail;
	return 0;
}

int dbt_health_of(const struct dbt_ctx *ctx, const struct dbt_promotion *p, enum dbt_health *ret,
                  char **ret_detail, struct dbt_err *err)
{
	enum dbt_health health = DBT_HEALTH_OK;
	char *detail = NULL;
	int r = judge_state(ctx, p, &health, &detail);

	if (r == 0 && p->kind == DBT_KIND_ARCHIVE) {
		if (p->state == DBT_STATE_PROMOTED)
			r = dbt_unpack_health(ctx, p, false, &health, &detail, err);
		return give(r, health, detail, ret, ret_detail, p, err);
	}
	for (size_t i = 0; r == 0 && p->state == DBT_STATE_PROMOTED && i < p->n_members; i++) {
		struct dbt_look look;

		r = dbt_look_through(ctx, p, &p->members[i], &look, err);
		if (r < 0) {
			free(detail);
			return r;
		}
		r = add_member(&p->members[i], &look, &health, &detail);
		dbt_look_release(&look);
	}
	return give(r, health, detail, ret, ret_detail, p, err);
}

/* Reads one member; a finding of the bytes outranks one of the times. */
static int verify_member(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                         const struct dbt_pmember *m, enum dbt_health *health, char **detail,
                         struct dbt_err *err)
{
	bool copy_same = false, original_same = false, from_device = false;
	struct dbt_err why = { 0 };
	int r = dbt_prove_copy(ctx, p, m, &copy_same, &from_device, &why);

	if (r < 0 && why.kind == DBT_ERR_INTERRUPTED) {
		*err = why;
		return r;
	}
	if (r < 0 || !copy_same) {
		*health = DBT_HEALTH_COPY_MODIFIED;
		return set_detail(detail, why.text);
	}
	r = dbt_prove_original(ctx, p, m, &original_same, &why);
	if (r < 0 && why.kind == DBT_ERR_INTERRUPTED) {
		*err = why;
		return r;
	}
	if ((r < 0 || !original_same) && *health == DBT_HEALTH_OK) {
		*health = DBT_HEALTH_ORIGINAL_CHANGED;
		return set_detail(detail, why.text);
	}
	return 0;
}

/* Is what status holds against the copies no more than their ctime? */
static bool is_only_touched(const struct dbt_ctx *ctx, const struct dbt_promotion *p)
{
	bool only = true;

	for (size_t i = 0; only && i < p->n_members; i++) {
		struct dbt_look look;

		if (dbt_look_through(ctx, p, &p->members[i], &look, NULL) < 0)
			return false;
		only = !look.copy_journal &&
		       (look.copy_is == DBT_COPY_INTACT || look.copy_is == DBT_COPY_TOUCHED);
		dbt_look_release(&look);
	}
	return only;
}

int dbt_health_verify(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                      enum dbt_health *ret, char **ret_detail, struct dbt_err *err)
{
	enum dbt_health health = DBT_HEALTH_OK;
	char *detail = NULL;
	int r = dbt_health_of(ctx, p, &health, &detail, err);

	if (r < 0)
		return r;
	if (p->kind == DBT_KIND_ARCHIVE) {
		if (p->state == DBT_STATE_PROMOTED) {
			health = DBT_HEALTH_OK;
			free(detail);
			detail = NULL;
			r = dbt_unpack_health(ctx, p, true, &health, &detail, err);
		}
		return give(r, health, detail, ret, ret_detail, p, err);
	}
	/* Touched or not, the bytes are read now: what the times hint at gives way to what they are. */
	if (p->state == DBT_STATE_PROMOTED &&
	    (health == DBT_HEALTH_OK || health >= DBT_HEALTH_COPY_MODIFIED)) {
		bool was_times_only = health == DBT_HEALTH_COPY_MODIFIED && is_only_touched(ctx, p);
		enum dbt_health read = DBT_HEALTH_OK;
		char *read_detail = NULL;

		for (size_t i = 0; r == 0 && i < p->n_members; i++)
			r = verify_member(ctx, p, &p->members[i], &read, &read_detail, err);
		if (r == 0 && (read != DBT_HEALTH_OK || was_times_only)) {
			health = read;
			free(detail);
			detail = read_detail;
		} else {
			free(read_detail);
		}
	}
	if (r < 0) {
		free(detail);
		return r == -ENOMEM ? dbt_err_sys(err, r, "cannot verify '%s'", p->path) : r;
	}
	*ret = health;
	if (ret_detail)
		*ret_detail = detail;
	else
		free(detail);
	return 0;
}
