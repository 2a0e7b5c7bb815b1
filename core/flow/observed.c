#include "flow/observed.h"

#include "base/vec.h"
#include "survey/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Fewer requests are too few to overrule the catalogue for months. */
static const double MIN_REQUESTS = 32;

/* The share of their time that the readers of a file waited. */
static double waiting_of(const struct dbt_diagnosis *d, size_t file)
{
	for (size_t g = 0; g < d->groups.n; g++)
		for (size_t i = 0; i < d->groups.items[g].n_files; i++)
			if (d->groups.items[g].files[i] == file)
				return d->groups.items[g].blocked;
	return 0;
}

static int add(const struct dbt_observation *obs, const struct dbt_diagnosis *d, size_t at,
               struct dbt_observed_list *list)
{
	const struct dbt_diag_file *f = &d->files.items[at];
	const struct dbt_obs_file *file = &obs->files.items[f->file];
	struct dbt_observed *o;

	if (f->class == DBT_CLASS_UNKNOWN || !file->path || !file->format ||
	    f->requests < MIN_REQUESTS)
		return 0;
	o = dbt_vec_push(list);
	if (!o)
		return -ENOMEM;
	*o = (struct dbt_observed){ .path = strdup(file->path),
		                    .class_name = strdup(dbt_class_name(f->class)),
		                    .wall_ns = obs->wall_ns,
		                    .rate_bytes_s = (uint64_t)f->rate,
		                    .misses_s = f->misses_s,
		                    .mean_bytes = (uint64_t)f->mean_bytes,
		                    .jumps = f->jumps,
		                    .waiting = waiting_of(d, at) };
	return o->path && o->class_name ? 0 : -ENOMEM;
}

int dbt_observed_remember(const struct dbt_ctx *ctx, const char *state_dir,
                          const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                          struct dbt_err *err)
{
	struct dbt_observed_list list = { 0 };
	struct dbt_ledger *ledger = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->files.n; i++)
		r = add(obs, d, i, &list);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot remember how databases are read");
	if (r == 0 && list.n > 0) {
		r = dbt_ledger_open(ctx, state_dir, DBT_LEDGER_WRITE, &ledger, err);
		if (r == 0)
			r = dbt_ledger_save_observed(ledger, &list, err);
		dbt_ledger_close(ledger);
	}
	dbt_observed_release(&list);
	return r;
}

static int load_from(const struct dbt_ctx *ctx, const char *state_dir,
                     struct dbt_observed_list *ret, struct dbt_err *err)
{
	struct dbt_ledger *ledger = NULL;
	int r = dbt_ledger_open(ctx, state_dir, DBT_LEDGER_READ, &ledger, err);

	if (r == 0)
		r = dbt_ledger_load_observed(ledger, NULL, ret, err);
	dbt_ledger_close(ledger);
	return r == -ENOENT ? 0 : r;
}

/* Moves what other has into list, the later one of a path. */
static int merge(struct dbt_observed_list *list, struct dbt_observed_list *other)
{
	for (size_t i = 0; i < other->n; i++) {
		struct dbt_observed *slot = NULL, swap;

		for (size_t k = 0; !slot && k < list->n; k++)
			if (strcmp(list->items[k].path, other->items[i].path) == 0)
				slot = &list->items[k];
		if (slot && slot->wall_ns >= other->items[i].wall_ns)
			continue;
		if (!slot)
			slot = dbt_vec_push(list);
		if (!slot)
			return -ENOMEM;
		swap = *slot;
		*slot = other->items[i];
		other->items[i] = swap;
	}
	return 0;
}

int dbt_observed_load(const struct dbt_ctx *ctx, const char *state_dir,
                      const char *system_state_dir, struct dbt_observed_list *ret,
                      struct dbt_err *err)
{
	struct dbt_observed_list list = { 0 }, system_list = { 0 };
	int r = load_from(ctx, state_dir, &list, err);

	if (r == 0 && system_state_dir)
		r = load_from(ctx, system_state_dir, &system_list, err);
	if (r == 0 && merge(&list, &system_list) < 0)
		r = dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	dbt_observed_release(&system_list);
	if (r < 0)
		dbt_observed_release(&list);
	*ret = list;
	return r;
}

void dbt_observed_apply(const struct dbt_observed_list *list, struct dbt_database *db)
{
	bool any = false;

	for (size_t m = 0; m < db->n_members; m++)
		for (size_t i = 0; i < list->n; i++) {
			struct dbt_member *member = &db->members[m];
			enum dbt_class class;

			if (strcmp(member->path, list->items[i].path) != 0 ||
			    dbt_class_parse(list->items[i].class_name, &class) < 0)
				continue;
			member->class = class;
			member->observed = any = true;
			/* What somebody waits for is read. */
			member->hot = true;
		}
	/* What the members show counts then, not what the format says of all its databases. */
	if (any)
		dbt_database_settle(db, DBT_CLASS_UNKNOWN);
}
