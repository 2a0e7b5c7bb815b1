#include "flow/budget.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "flow/inventory.h"
#include "flow/select.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static struct dbt_inventory_opts quiet_look(const struct dbt_plan_opts *opts)
{
	return (struct dbt_inventory_opts){ .no_probe = true, .state_dir = opts->state_dir };
}

/* --- where to ------------------------------------------------------------------------------------------- */

/* On the root filesystem a directory of the system's own conventions, else one that shows whose it is. */
static int name_directory(const char *mount, char **ret)
{
	int r = strcmp(mount, "/") == 0 ? asprintf(ret, "/var/lib/dbtier/copies")
	                                : asprintf(ret, "%s/dbtier", mount);

	if (r < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

static int make_directory(const struct dbt_ctx *ctx, const char *dir, struct dbt_err *err)
{
	const char *parent = "/var/lib/dbtier";
	int r = 0;

	if (strncmp(dir, parent, strlen(parent)) == 0)
		r = ctx->sys->mkdirat(AT_FDCWD, parent, 0755);
	if (r == 0 || r == -EEXIST)
		r = ctx->sys->mkdirat(AT_FDCWD, dir, 0755);
	return r == 0 || r == -EEXIST ? 0 : dbt_err_sys(err, r, "cannot make '%s'", dir);
}

int dbt_budget_target(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
                      const struct dbt_plan_opts *opts, bool make, char **ret, struct dbt_err *err)
{
	const struct dbt_inventory_opts look = quiet_look(opts);
	struct dbt_inventory inventory = { 0 };
	struct dbt_selection sel = { 0 };
	dbt_autofree char *dir = NULL;
	const char *path;
	int r = dbt_select(ctx, ledger, what, opts->all_files, &sel, err);

	if (r < 0)
		return r;
	path = sel.paths[0];
	r = dbt_inventory_make(ctx, &path, 1, &look, &inventory, err);
	if (r == 0 && (inventory.n_items == 0 || !inventory.items[0].to))
		r = dbt_err_refuse(err,
		                   "no faster place with room for '%s' is known: name a directory "
		                   "with --to",
		                   sel.path);
	if (r == 0 && name_directory(inventory.items[0].to->place.mount, &dir) < 0)
		r = dbt_err_sys(err, -ENOMEM, "cannot plan");
	dbt_inventory_release(&inventory);
	dbt_selection_release(&sel);
	if (r == 0 && make)
		r = make_directory(ctx, dir, err);
	if (r < 0)
		return r;
	*ret = dir;
	dir = NULL;
	return 0;
}

/* --- what ----------------------------------------------------------------------------------------------- */

void dbt_budget_release(struct dbt_budget *budget)
{
	for (size_t i = 0; i < budget->n; i++) {
		free(budget->items[i].name);
		free(budget->items[i].path);
		free(budget->items[i].target);
	}
	free(budget->items);
	*budget = (struct dbt_budget){ 0 };
}

static bool moves(const struct dbt_member *m, bool all_files)
{
	return (m->hot || all_files) && !m->promoted;
}

static uint64_t observed_rate(const struct dbt_observed_list *observed,
                              const struct dbt_database *db)
{
	uint64_t rate = 0;

	for (size_t i = 0; i < observed->n; i++)
		for (size_t k = 0; k < db->n_members; k++)
			if (strcmp(observed->items[i].path, db->members[k].path) == 0)
				rate += observed->items[i].rate_bytes_s;
	return rate;
}

static int add(struct dbt_budget *budget, const struct dbt_inventory_item *item,
               const struct dbt_plan_opts *opts, const struct dbt_observed_list *observed)
{
	struct dbt_budget_item *new;

	if (item->advice.verdict != DBT_VERDICT_MOVE || item->advice.gain_low <= 0 || !item->to)
		return 0;
	new = dbt_vec_push(budget);
	if (!new)
		return -ENOMEM;
	new->name = strdup(item->db->name);
	new->path = strdup(item->db->path);
	new->target =
		strdup(strcmp(opts->target, "auto") == 0 ? item->to->place.mount : opts->target);
	new->gain = item->advice.gain_low;
	new->observed_bytes_s = observed_rate(observed, item->db);
	for (size_t i = 0; i < item->db->n_members; i++)
		if (moves(&item->db->members[i], opts->all_files))
			new->bytes += item->db->members[i].size_bytes;
	return new->name &&new->path &&new->target ? 0 : -ENOMEM;
}

static double worth(const struct dbt_budget_item *item)
{
	double use = item->observed_bytes_s ? (double)item->observed_bytes_s : 1;

	return item->gain * use / (double)(item->bytes ? item->bytes : 1);
}

static int by_worth(const void *a, const void *b)
{
	const struct dbt_budget_item *x = a, *y = b;
	double wx = worth(x), wy = worth(y);

	if ((x->observed_bytes_s == 0) != (y->observed_bytes_s == 0))
		return x->observed_bytes_s == 0 ? 1 : -1;
	return wx > wy ? -1 : wx < wy ? 1 : strcmp(x->path, y->path);
}

static void choose(struct dbt_budget *budget, uint64_t left)
{
	if (budget->n > 1)
		qsort(budget->items, budget->n, sizeof(*budget->items), by_worth);
	for (size_t i = 0; i < budget->n; i++) {
		struct dbt_budget_item *item = &budget->items[i];

		item->chosen = item->bytes <= left;
		if (item->chosen) {
			left -= item->bytes;
			budget->n_chosen++;
		}
	}
}

/* The directories of the databases that the last scan found, each once. free() the array only. */
static const char **known_dirs(const struct dbt_scan_names *names, size_t *ret_n)
{
	const char **dirs = calloc(names->n ? names->n : 1, sizeof(*dirs));
	size_t n = 0;

	for (size_t i = 0; dirs && i < names->n; i++) {
		bool seen = names->items[i].is_member;

		for (size_t k = 0; k < n && !seen; k++)
			seen = strcmp(dirs[k], names->items[i].dir) == 0;
		if (!seen)
			dirs[n++] = names->items[i].dir;
	}
	*ret_n = n;
	return dirs;
}

static bool was_found(const struct dbt_scan_names *names, const struct dbt_database *db)
{
	for (size_t i = 0; i < names->n; i++)
		if (!names->items[i].is_member && strcmp(names->items[i].path, db->path) == 0)
			return true;
	return false;
}

static int fill(const struct dbt_ctx *ctx, const struct dbt_scan_names *names,
                const struct dbt_plan_opts *opts, const struct dbt_observed_list *observed,
                struct dbt_budget *budget, struct dbt_err *err)
{
	const struct dbt_inventory_opts look = quiet_look(opts);
	struct dbt_inventory inventory = { 0 };
	size_t n = 0;
	dbt_autofree const char **dirs = known_dirs(names, &n);
	int r = dirs ? 0 : dbt_err_sys(err, -ENOMEM, "cannot plan");

	if (r == 0)
		r = dbt_inventory_make(ctx, dirs, n, &look, &inventory, err);
	/* A directory that is gone is said and passed over. */
	if (r < 0 && inventory.n_scans > 0) {
		dbt_ctx_log(ctx, DBT_LOG_WARNING, "%s", err->text);
		r = 0;
	}
	for (size_t i = 0; r == 0 && i < inventory.n_items; i++)
		if (was_found(names, inventory.items[i].db) &&
		    add(budget, &inventory.items[i], opts, observed) < 0)
			r = dbt_err_sys(err, -ENOMEM, "cannot plan");
	dbt_inventory_release(&inventory);
	return r;
}

int dbt_budget_make(const struct dbt_ctx *ctx, struct dbt_ledger *ledger,
                    const struct dbt_plan_opts *opts, uint64_t budget_bytes, struct dbt_budget *ret,
                    struct dbt_err *err)
{
	struct dbt_observed_list observed = { 0 };
	struct dbt_scan_names names = { 0 };
	struct dbt_budget budget = { 0 };
	int r = ledger ? dbt_ledger_find_names(ledger, NULL, &names, err) : 0;

	if (r == 0 && names.n == 0)
		r = dbt_err_set(err, DBT_ERR_UNKNOWN, -ENOENT,
		                "no scan is remembered: run 'dbtier scan DIR' first");
	if (r == 0)
		r = dbt_ledger_load_observed(ledger, NULL, &observed, err);
	if (r == 0)
		r = fill(ctx, &names, opts, &observed, &budget, err);
	dbt_scan_names_release(&names);
	dbt_observed_release(&observed);
	if (r < 0) {
		dbt_budget_release(&budget);
		return r;
	}
	choose(&budget, budget_bytes);
	*ret = budget;
	return 0;
}
