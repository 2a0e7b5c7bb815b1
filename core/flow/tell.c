#include "flow/tell.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "survey/exports.h"
#include "sys/containers.h"
#include "sys/procs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 5 };

/* "diamond (4711), diamond (4712) and 3 more" */
static int list_users(const struct dbt_procs *users, struct dbt_buf *text, size_t *ret_n)
{
	int r = 0, last_pid = 0;

	*ret_n = 0;
	for (size_t i = 0; r == 0 && i < users->n; i++) {
		const struct dbt_proc *u = &users->items[i];

		if (!(u->how & (DBT_PROC_READS | DBT_PROC_CWD)) || u->pid == last_pid)
			continue;
		last_pid = u->pid;
		if ((*ret_n)++ < NAMED)
			r = dbt_buf_addf(text, "%s%s (%d)", text->len ? ", " : "", u->name, u->pid);
	}
	if (r == 0 && *ret_n > NAMED)
		r = dbt_buf_addf(text, " and %zu more", *ret_n - NAMED);
	return r;
}

static void tell_old_readers(const struct dbt_ctx *ctx, const struct dbt_promotion *p)
{
	dbt_autofree struct dbt_procs_file *files = calloc(p->n_members, sizeof(*files));
	dbt_autofree char *kept = NULL;
	struct dbt_procs users = { 0 };
	struct dbt_buf text = { 0 };
	size_t n = 0;

	for (size_t i = 0; files && i < p->n_members; i++)
		files[i].ident = &p->members[i].source;
	/* What is open in a directory is seen by its present name. */
	if (files && dbt_promotion_is_tree(p)) {
		if (asprintf(&kept, "%.*s%s", (int)(strrchr(p->path, '/') + 1 - p->path), p->path,
		             p->members[0].kept) < 0)
			kept = NULL;
		files[0].path = kept;
	}
	if (files && dbt_procs_users_of(ctx, files, p->n_members, &users, NULL) == 0 &&
	    list_users(&users, &text, &n) == 0 && n > 0)
		dbt_ctx_log(
			ctx, DBT_LOG_NOTE,
			"%zu process%s opened '%s' before and read%s the slow file until %s: %s", n,
			n == 1 ? "" : "es", p->path, n == 1 ? "s" : "",
			n == 1 ? "it ends" : "they end", dbt_buf_str(&text));
	dbt_buf_release(&text);
	dbt_procs_release(&users);
}

static void tell_containers(const struct dbt_ctx *ctx, const struct dbt_promotion *p)
{
	const struct dbt_pmember *m = &p->members[0];
	const char *slash = strrchr(m->path, '/');
	dbt_autofree char *dir = strndup(m->path, slash == m->path ? 1 : (size_t)(slash - m->path));
	dbt_autofree char *text = NULL;

	if (dir && dbt_containers_check(ctx, dir, m->copy, &text, NULL) == 0 && text)
		dbt_ctx_log(ctx, DBT_LOG_NOTE, "%s", text);
}

/* Whoever forced it past the refusal is told what the others see now. */
static void tell_exports(const struct dbt_ctx *ctx, const struct dbt_promotion *p)
{
	const struct dbt_pmember *m = &p->members[0];
	const char *slash = strrchr(m->path, '/');
	dbt_autofree char *dir = strndup(m->path, slash == m->path ? 1 : (size_t)(slash - m->path));
	dbt_autofree char *line = NULL;

	if (dir && dbt_exports_find(ctx, dir, &line) == 1)
		dbt_ctx_log(
			ctx, DBT_LOG_WARNING,
			"'%s' is exported to other machines (%s): they look for '%s' on their own "
			"disks, and find nothing or another file",
			dir, line, m->copy);
}

/* A link to a directory is not in everything the directory itself. */
static void tell_directory(const struct dbt_ctx *ctx, const struct dbt_promotion *p)
{
	dbt_ctx_log(ctx, DBT_LOG_NOTE,
	            "'%s' is a link to a directory now: '%s/..' is '%s', and whoever is in the old "
	            "directory, or has it open, goes on seeing that one",
	            p->path, p->path, p->target);
}

void dbt_tell_after_swap(const struct dbt_ctx *ctx, const struct dbt_promotion *p)
{
	if (dbt_promotion_is_tree(p))
		tell_directory(ctx, p);
	tell_old_readers(ctx, p);
	tell_containers(ctx, p);
	tell_exports(ctx, p);
}
