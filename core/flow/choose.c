#include "flow/choose.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "sys/at.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_id(const char *what, int64_t id)
{
	char *end;

	if (!isdigit((unsigned char)*what))
		return false;
	errno = 0;
	return strtoll(what, &end, 10) == id && *end == '\0' && errno == 0;
}

static bool has_path(const struct dbt_promotion *p, const char *path)
{
	if (strcmp(p->path, path) == 0)
		return true;
	for (size_t i = 0; i < p->n_members; i++)
		if (strcmp(p->members[i].path, path) == 0 || strcmp(p->members[i].copy, path) == 0)
			return true;
	return false;
}

static bool has_name(const struct dbt_promotion *p, const char *name)
{
	if (strcmp(p->name, name) == 0 || strcmp(base_name(p->path), name) == 0)
		return true;
	for (size_t i = 0; i < p->n_members; i++)
		if (strcmp(base_name(p->members[i].path), name) == 0)
			return true;
	return false;
}

static int several(const struct dbt_promotions *list, const char *what, struct dbt_err *err)
{
	struct dbt_buf text = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++)
		if (dbt_state_is_active(list->items[i].state) && has_name(&list->items[i], what))
			r = dbt_buf_addf(&text, "%s%lld ('%s')", text.len ? ", " : "",
			                 (long long)list->items[i].id, list->items[i].path);
	r = dbt_err_set(err, DBT_ERR_UNKNOWN, -EINVAL,
	                "'%s' may mean the promotions %s: give the number", what,
	                dbt_buf_str(&text));
	dbt_buf_release(&text);
	return r;
}

/* The promoted directory that the path lies in, by its real place. */
static const struct dbt_promotion *around(const struct dbt_promotions *list, const char *path)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct dbt_promotion *p = &list->items[i];
		size_t len;

		if (!dbt_state_is_active(p->state) || !dbt_promotion_is_tree(p))
			continue;
		len = strlen(p->members[0].copy);
		if (strncmp(path, p->members[0].copy, len) == 0 && path[len] == '/')
			return p;
	}
	return NULL;
}

static int none(const struct dbt_promotions *list, const char *what, struct dbt_err *err)
{
	struct dbt_buf text = { 0 };
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++)
		if (dbt_state_is_active(list->items[i].state) && n++ < 10)
			r = dbt_buf_addf(&text, "%s'%s'", text.len ? ", " : "",
			                 list->items[i].name);
	(void)dbt_err_set(err, DBT_ERR_UNKNOWN, -ENOENT, "'%s' is no active promotion", what);
	if (n > 0)
		(void)dbt_err_add(err, "there %s %s", n == 1 ? "is" : "are", dbt_buf_str(&text));
	else
		(void)dbt_err_add(err, "nothing is promoted");
	dbt_buf_release(&text);
	return -ENOENT;
}

/* The absolute path that the word means, if it means one at all; the directory may be gone. */
static char *as_path(const struct dbt_ctx *ctx, const char *what)
{
	struct dbt_at at;
	char *path = NULL;

	if (dbt_at_resolve(ctx, what, &at, NULL) < 0)
		return *what == '/' ? strdup(what) : NULL;
	path = strdup(at.shown);
	dbt_at_release(&at);
	return path;
}

int dbt_choose(const struct dbt_ctx *ctx, const struct dbt_promotions *list, const char *what,
               size_t *ret, struct dbt_err *err)
{
	dbt_autofree char *path = as_path(ctx, what);
	const struct dbt_promotion *outer = path ? around(list, path) : NULL;
	size_t n = 0, found = 0;

	for (size_t i = 0; path && n == 0 && i < list->n; i++)
		if (dbt_state_is_active(list->items[i].state) && has_path(&list->items[i], path)) {
			found = i;
			n = 1;
		}
	for (size_t i = 0; n == 0 && i < list->n; i++)
		if (dbt_state_is_active(list->items[i].state) && is_id(what, list->items[i].id)) {
			found = i;
			n = 1;
		}
	if (n == 0)
		for (size_t i = 0; i < list->n; i++)
			if (dbt_state_is_active(list->items[i].state) &&
			    has_name(&list->items[i], what)) {
				found = i;
				n++;
			}
	if (n == 1) {
		*ret = found;
		return 0;
	}
	if (n == 0 && outer)
		return dbt_err_set(err, DBT_ERR_UNKNOWN, -EINVAL,
		                   "'%s' is a file in the promoted directory '%s', which moves as "
		                   "one: name that",
		                   what, outer->path);
	return n == 0 ? none(list, what, err) : several(list, what, err);
}

int64_t dbt_choose_last_run(const struct dbt_promotions *list)
{
	int64_t run = 0;

	for (size_t i = 0; i < list->n; i++)
		if (dbt_state_is_active(list->items[i].state) && list->items[i].run > run)
			run = list->items[i].run;
	return run;
}
