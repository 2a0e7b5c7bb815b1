#include "base/cleanup.h"
#include "flow/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- names ---------------------------------------------------------------------------------------------- */

const char *dbt_tree_gone_name(const struct dbt_promotion *p, char out[DBT_TREE_GONE_NAME_BYTES])
{
	(void)snprintf(out, DBT_TREE_GONE_NAME_BYTES, ".dbtier-%s-0-gone.part", p->token);
	return out;
}

char *dbt_tree_list_path(const struct dbt_promotion *p, const char *ending)
{
	char *path;

	return asprintf(&path, "%s%s", p->lists, ending) < 0 ? NULL : path;
}

char *dbt_tree_list_of_copy(const struct dbt_promotion *p, enum dbt_tree_side *ret_side)
{
	const bool came_back = p->members[0].returned.ino != 0;

	*ret_side = came_back ? DBT_TREE_SOURCE : DBT_TREE_COPY;
	return dbt_tree_list_path(p, came_back ? ".back" : ".tree");
}

static void remove_list(const struct dbt_promotion *p, const char *ending)
{
	dbt_autofree char *path = dbt_tree_list_path(p, ending);

	if (path)
		(void)unlink(path);
}

void dbt_tree_remove_back_list(const struct dbt_promotion *p)
{
	remove_list(p, ".back");
	remove_list(p, ".back.new");
}

void dbt_tree_remove_lists(const struct dbt_promotion *p)
{
	remove_list(p, ".tree");
	remove_list(p, ".tree.new");
	dbt_tree_remove_back_list(p);
}

/* --- what may not be in it ------------------------------------------------------------------------------ */

/* Does a link's text stay inside? ".." only counts at its beginning, where the directories are known: behind a name
 * it may be that of another link. Absolute ones mean the same from everywhere. */
static bool leads_out(const char *text, unsigned depth)
{
	if (*text == '/')
		return false;
	while (strncmp(text, "..", 2) == 0 && (text[2] == '/' || text[2] == '\0')) {
		if (depth-- == 0)
			return true;
		for (text += 2; *text == '/'; text++)
			;
	}
	for (const char *at = text; (at = strstr(at, "..")); at += 2)
		if ((at == text || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
			return true;
	return false;
}

static int check_link(const struct dbt_tree_visit *v, const char *shown, struct dbt_err *err)
{
	char text[PATH_MAX + 1];
	ssize_t len = readlinkat(v->dirfd, v->name, text, sizeof(text) - 1);

	if (len < 0)
		return dbt_err_sys(err, -errno, "cannot read the link '%s/%s'", shown, v->path);
	text[len] = '\0';
	if (leads_out(text, v->depth))
		return dbt_err_refuse(err,
		                      "'%s/%s' is a link to '%s', outside of the directory: from "
		                      "another place it would lead elsewhere; make it absolute",
		                      shown, v->path, text);
	return 0;
}

static bool is_of_ours(const char *name)
{
	static const char original[] = ".dbtier-original";
	size_t len = strlen(name);

	return strncmp(name, ".dbtier-", 8) == 0 ||
	       (len >= sizeof(original) &&
	        strcmp(name + len - sizeof(original) + 1, original) == 0);
}

int dbt_tree_check_entry(const struct dbt_tree_visit *v, const char *shown, struct dbt_err *err)
{
	const struct dbt_ident *i = &v->ident;

	if (v->dirfd >= 0 && is_of_ours(v->name))
		return dbt_err_refuse(err,
		                      "'%s/%s' is of a promotion of a part of it: roll that one "
		                      "back first",
		                      shown, v->path);
	if (i->attrs & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		return dbt_err_refuse(err, "'%s/%s' is %s: 'chattr -R %s' lifts that", shown,
		                      v->path,
		                      i->attrs & STATX_ATTR_IMMUTABLE ? "immutable" : "append-only",
		                      i->attrs & STATX_ATTR_IMMUTABLE ? "-i" : "-a");
	if (S_ISLNK(i->mode))
		return check_link(v, shown, err);
	if (!S_ISREG(i->mode) && !S_ISDIR(i->mode))
		return dbt_err_refuse(
			err, "'%s/%s' is neither a file nor a directory nor a link: remove it",
			shown, v->path);
	if (S_ISREG(i->mode) && i->nlink > 1)
		return dbt_err_refuse(
			err,
			"'%s/%s' has %u names (hard links), of which the copy would be none: "
			"replace it by a copy of its own ('cp --reflink=auto')",
			shown, v->path, i->nlink);
	return 0;
}

struct counter {
	const char *shown;
	struct dbt_tree_facts facts;
};

static int count(void *data, const struct dbt_tree_visit *v, struct dbt_err *err)
{
	struct counter *c = data;
	const uint64_t blocks = v->ident.blocks512 * 512;
	int r;

	if (v->step == DBT_TREE_LEAVE)
		return 0;
	r = dbt_tree_check_entry(v, c->shown, err);
	c->facts.n_entries++;
	if (S_ISREG(v->ident.mode)) {
		c->facts.n_files++;
		c->facts.size_bytes += v->ident.size_bytes;
		/* What is compressed counts in full, holes do not, in whole blocks. */
		c->facts.need_bytes += blocks > 0 && blocks < v->ident.size_bytes
		                               ? v->ident.size_bytes
		                               : (v->ident.size_bytes + 4095) / 4096 * 4096;
	} else {
		c->facts.need_bytes += 4096;
	}
	return r;
}

int dbt_tree_check(const struct dbt_ctx *ctx, int fd, const char *shown, struct dbt_tree_facts *ret,
                   struct dbt_err *err)
{
	struct counter c = { .shown = shown };
	const struct dbt_tree_walk walk = {
		.ctx = ctx, .shown = shown, .visit = count, .data = &c
	};
	int r = dbt_tree_walk(&walk, fd, err);

	if (r == 0)
		*ret = c.facts;
	return r;
}
