#include "record/promotion.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const state_names[] = {
	[DBT_STATE_PLANNED] = "planned",
	[DBT_STATE_COPYING] = "copying",
	[DBT_STATE_VERIFIED] = "verified",
	[DBT_STATE_SWAPPING] = "swapping",
	[DBT_STATE_PROMOTED] = "promoted",
	[DBT_STATE_RECLAIMING] = "reclaiming",
	[DBT_STATE_ROLLING_BACK] = "rolling-back",
	[DBT_STATE_ROLLED_BACK] = "rolled-back",
	[DBT_STATE_FAILED] = "failed",
};

static const char *const kind_names[] = {
	[DBT_KIND_FILES] = "files",
	[DBT_KIND_ARCHIVE] = "archive",
};

const char *dbt_kind_name(enum dbt_kind kind)
{
	return kind_names[kind];
}

int dbt_kind_parse(const char *name, enum dbt_kind *ret)
{
	for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++)
		if (strcmp(name, kind_names[i]) == 0) {
			*ret = (enum dbt_kind)i;
			return 0;
		}
	return -EINVAL;
}

const char *dbt_state_name(enum dbt_state state)
{
	return state_names[state];
}

int dbt_state_parse(const char *name, enum dbt_state *ret)
{
	for (size_t i = 0; i < sizeof(state_names) / sizeof(state_names[0]); i++)
		if (strcmp(name, state_names[i]) == 0) {
			*ret = (enum dbt_state)i;
			return 0;
		}
	return -EINVAL;
}

bool dbt_state_is_active(enum dbt_state state)
{
	return state != DBT_STATE_ROLLED_BACK && state != DBT_STATE_FAILED;
}

/* Of what was unpacked only the links are recorded as their path's source: the bytes are the copy's. */
uint64_t dbt_pmember_size(const struct dbt_pmember *m)
{
	if (m->role != DBT_ROLE_FILE || S_ISDIR(m->source.mode))
		return 0;
	if (S_ISLNK(m->source.mode))
		return m->copied.ino != 0 ? m->copied.size_bytes : 0;
	return m->source.size_bytes;
}

bool dbt_promotion_is_tree(const struct dbt_promotion *p)
{
	return p->kind == DBT_KIND_FILES && p->n_members == 1 && S_ISDIR(p->members[0].source.mode);
}

uint64_t dbt_promotion_size(const struct dbt_promotion *p)
{
	uint64_t sum = 0;

	if (dbt_promotion_is_tree(p))
		return p->members[0].source.size_bytes;
	for (size_t i = 0; i < p->n_members; i++)
		sum += dbt_pmember_size(&p->members[i]);
	return sum;
}

bool dbt_promotion_is_reclaimed(const struct dbt_promotion *p)
{
	for (size_t i = 0; i < p->n_members; i++)
		if (!p->members[i].reclaimed)
			return false;
	return true;
}

bool dbt_promotion_waits(const struct dbt_promotion *p)
{
	for (size_t i = 0; i < p->n_members; i++)
		if (p->members[i].copy_left)
			return true;
	return false;
}

bool dbt_promotion_lost_copies(const struct dbt_promotion *p)
{
	return p->error && strcmp(p->error, DBT_PROMOTION_COPY_LOST) == 0;
}

bool dbt_promotion_keeps_copies(const struct dbt_promotion *p)
{
	return p->error && strcmp(p->error, DBT_PROMOTION_COPY_UNMOUNTED) == 0;
}

bool dbt_promotion_is_superseded(const struct dbt_promotion *p, const struct dbt_promotions *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i].id > p->id && all->items[i].state != DBT_STATE_FAILED &&
		    strcmp(all->items[i].path, p->path) == 0)
			return true;
	return false;
}

/* Replaces a pointer that was copied with its struct by a copy of the string. */
static bool own(char **s)
{
	if (!*s)
		return true;
	*s = strdup(*s);
	return *s != NULL;
}

static bool own_member(struct dbt_pmember *m)
{
	bool ok = own(&m->path);

	ok = own(&m->kept) && ok;
	ok = own(&m->copy) && ok;
	ok = own(&m->part) && ok;
	return own(&m->back) && ok;
}

int dbt_promotion_clone(const struct dbt_promotion *p, struct dbt_promotion *ret)
{
	struct dbt_promotion c = *p;
	bool ok = own(&c.name);

	ok = own(&c.format) && ok;
	ok = own(&c.path) && ok;
	ok = own(&c.target) && ok;
	ok = own(&c.target_uuid) && ok;
	ok = own(&c.target_mount) && ok;
	ok = own(&c.made_dir) && ok;
	ok = own(&c.error) && ok;
	ok = own(&c.lists) && ok;
	c.members = calloc(p->n_members ? p->n_members : 1, sizeof(*c.members));
	c.n_members = c.members ? p->n_members : 0;
	ok = ok && c.members;
	for (size_t i = 0; i < c.n_members; i++) {
		c.members[i] = p->members[i];
		ok = own_member(&c.members[i]) && ok;
	}
	if (!ok) {
		dbt_promotion_release(&c);
		*ret = (struct dbt_promotion){ 0 };
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

void dbt_promotion_release(struct dbt_promotion *p)
{
	for (size_t i = 0; i < p->n_members; i++) {
		free(p->members[i].path);
		free(p->members[i].kept);
		free(p->members[i].copy);
		free(p->members[i].part);
		free(p->members[i].back);
	}
	free(p->members);
	free(p->name);
	free(p->format);
	free(p->path);
	free(p->target);
	free(p->target_uuid);
	free(p->target_mount);
	free(p->made_dir);
	free(p->error);
	free(p->lists);
	*p = (struct dbt_promotion){ 0 };
}

void dbt_promotions_release(struct dbt_promotions *list)
{
	for (size_t i = 0; i < list->n; i++)
		dbt_promotion_release(&list->items[i]);
	free(list->items);
	*list = (struct dbt_promotions){ 0 };
}
