#include "flow/inventory.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "flow/observed.h"
#include "flow/places.h"
#include "flow/remember.h"
#include "sys/io.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* At most this many files of a database are opened to see what is cached of it. */
enum { MAX_CACHE_FILES = 512 };

struct work {
	const struct dbt_ctx *ctx;
	const struct dbt_inventory_opts *opts;
	struct dbt_inventory *inventory;
	struct dbt_places places;
	uint64_t free_memory_bytes;
};

static uint64_t free_memory(const struct dbt_ctx *ctx)
{
	struct dbt_buf text = { 0 };
	uint64_t kib = 0;
	const char *at;

	if (dbt_root_read(ctx->root, "proc/meminfo", 65536, &text) == 0) {
		at = strstr(dbt_buf_str(&text), "MemAvailable:");
		if (at)
			kib = strtoull(at + strlen("MemAvailable:"), NULL, 10);
	}
	dbt_buf_release(&text);
	return kib * 1024;
}

/* ---- items ---- */

static const char *first_member(const struct dbt_database *db)
{
	return db->n_members ? db->members[0].name : "";
}

static int by_path(const void *a, const void *b)
{
	const struct dbt_inventory_item *x = a, *y = b;
	int r = strcmp(x->db->path, y->db->path);

	if (r == 0)
		r = strcmp(x->db->format, y->db->format);
	/* Proteins and nucleotides of one base name, a small and a large index: two that differ by their files. */
	return r ? r : strcmp(first_member(x->db), first_member(y->db));
}

/* Paths given twice, or one below the other, find the same database again. */
static void drop_repeated(struct dbt_inventory *inventory)
{
	size_t kept = 0;

	for (size_t i = 0; i < inventory->n_items; i++) {
		const struct dbt_inventory_item *last = kept ? &inventory->items[kept - 1] : NULL;

		if (!last || by_path(last, &inventory->items[i]) != 0)
			inventory->items[kept++] = inventory->items[i];
	}
	inventory->n_items = kept;
}

static int list_items(struct dbt_inventory *inventory)
{
	size_t n = 0;

	for (size_t i = 0; i < inventory->n_scans; i++)
		n += inventory->scans[i].n_databases;
	inventory->items = calloc(n ? n : 1, sizeof(*inventory->items));
	if (!inventory->items)
		return -ENOMEM;
	for (size_t i = 0; i < inventory->n_scans; i++)
		for (size_t k = 0; k < inventory->scans[i].n_databases; k++)
			inventory->items[inventory->n_items++] = (struct dbt_inventory_item){
				.db = &inventory->scans[i].databases[k], .cached = -1
			};
	if (inventory->n_items > 1)
		qsort(inventory->items, inventory->n_items, sizeof(*inventory->items), by_path);
	drop_repeated(inventory);
	return 0;
}

static double cached_share(const struct dbt_ctx *ctx, const struct dbt_database *db)
{
	uint64_t cached = 0, bytes = 0;

	if (db->n_members > MAX_CACHE_FILES)
		return -1;
	for (size_t i = 0; i < db->n_members; i++) {
		const struct dbt_member *m = &db->members[i];
		dbt_autoclose int fd = -1;
		uint64_t n;

		if (m->link_of_database || m->size_bytes == 0)
			continue;
		fd = ctx->sys->openat(AT_FDCWD, m->path,
		                      O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
		if (fd < 0 || dbt_io_cached(ctx, fd, 0, m->size_bytes, &n) < 0)
			return -1;
		cached += n < m->size_bytes ? n : m->size_bytes;
		bytes += m->size_bytes;
	}
	return bytes ? (double)cached / (double)bytes : -1;
}

static uint64_t hot_bytes(const struct dbt_database *db)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < db->n_members; i++)
		bytes += db->members[i].hot ? db->members[i].size_bytes : 0;
	return bytes;
}

/* ---- measuring, place by place ---- */

/* The large files of all databases that lie on a place. Borrowed strings; free() the array. */
static const char **files_on(const struct work *work, const struct dbt_inventory_place *place,
                             size_t *ret_n)
{
	enum { MAX_PATHS = 256, MIN_BYTES = 1 << 20 };
	const char **paths = calloc(MAX_PATHS, sizeof(*paths));
	size_t n = 0;

	for (size_t i = 0; paths && i < work->inventory->n_items; i++) {
		const struct dbt_inventory_item *item = &work->inventory->items[i];

		if (item->place != place)
			continue;
		for (size_t m = 0; m < item->db->n_members && n < MAX_PATHS; m++)
			if (item->db->members[m].hot &&
			    item->db->members[m].size_bytes >= MIN_BYTES)
				paths[n++] = item->db->members[m].path;
	}
	*ret_n = n;
	return paths;
}

static int measure_sources(struct work *work)
{
	for (size_t i = 0; i < work->inventory->n_items; i++) {
		struct dbt_inventory_item *item = &work->inventory->items[i];
		struct dbt_inventory_place *place = dbt_places_of(&work->places, item->db);

		item->place = place;
	}
	for (struct dbt_inventory_place *place = work->places.known; place; place = place->next) {
		size_t n;
		const char **paths = files_on(work, place, &n);

		if (!paths)
			return -ENOMEM;
		/* Without a large file of a database, by what else is there. */
		dbt_places_measure(&work->places, place, n > 0 ? paths : NULL, n);
		free(paths);
	}
	return 0;
}

static int advise(struct work *work, struct dbt_inventory_item *item)
{
	struct dbt_inventory_place *to;

	if (!item->place)
		return 0;
	to = dbt_places_better(&work->places, item->place, hot_bytes(item->db));
	item->to = to;
	if (to)
		dbt_places_measure(&work->places, to, NULL, 0);
	return dbt_advice_for(item->db, &item->place->place, &item->place->speeds,
	                      to ? &to->place : NULL, to ? &to->speeds : NULL,
	                      work->free_memory_bytes, &item->advice);
}

/* ---- the whole ---- */

static int scan_paths(struct work *work, const char *const *paths, size_t n_paths,
                      const struct dbt_scan_opts *opts, struct dbt_err *err)
{
	struct dbt_inventory *inventory = work->inventory;
	int failed = 0;

	inventory->scans = calloc(n_paths ? n_paths : 1, sizeof(*inventory->scans));
	if (!inventory->scans)
		return -ENOMEM;
	for (size_t i = 0; i < n_paths && !inventory->partial; i++) {
		struct dbt_scan_result *scan = &inventory->scans[inventory->n_scans];
		struct dbt_err why = { 0 };
		int r = dbt_scan(work->ctx, paths[i], opts, scan, failed ? &why : err);

		if (r == -ENOMEM)
			return r;
		if (r < 0 && failed)
			dbt_ctx_log(work->ctx, DBT_LOG_WARNING, "%s", why.text);
		if (r < 0) {
			failed = failed ? failed : r;
			continue;
		}
		inventory->partial |= scan->partial;
		inventory->n_scans++;
	}
	return failed;
}

/* A place is judged anew by its measurement, so the slowest member is looked for again. */
static int judge(struct work *work)
{
	int r = measure_sources(work);

	for (size_t i = 0; r == 0 && i < work->inventory->n_items; i++) {
		struct dbt_inventory_item *item = &work->inventory->items[i];

		item->place = dbt_places_of(&work->places, item->db);
		item->cached = cached_share(work->ctx, item->db);
		r = advise(work, item);
	}
	return r;
}

/* Names for later commands. A partial scan would make them forget what it did not reach. */
static void remember(struct work *work)
{
	for (size_t i = 0; i < work->inventory->n_scans; i++) {
		const struct dbt_scan_result *scan = &work->inventory->scans[i];
		enum dbt_tier *tiers =
			calloc(scan->n_databases ? scan->n_databases : 1, sizeof(*tiers));
		struct dbt_err err = { 0 };

		if (scan->partial || !scan->root || !tiers) {
			free(tiers);
			continue;
		}
		for (size_t k = 0; k < work->inventory->n_items; k++) {
			const struct dbt_inventory_item *item = &work->inventory->items[k];

			if (item->place && item->db >= scan->databases &&
			    item->db < scan->databases + scan->n_databases)
				tiers[item->db - scan->databases] = item->place->place.tier;
		}
		if (dbt_remember_scan(work->ctx, work->opts->state_dir, scan->root, scan, tiers,
		                      &err) < 0)
			dbt_ctx_log(work->ctx, DBT_LOG_WARNING,
			            "the databases are not remembered by name: %s", err.text);
		free(tiers);
	}
}

/* How databases were seen to be read outranks what their formats say. */
static void apply_observed(struct work *work)
{
	struct dbt_observed_list observed;
	struct dbt_err err = { 0 };

	if (dbt_observed_load(work->ctx, work->opts->state_dir, work->opts->system_state_dir,
	                      &observed, &err) < 0)
		dbt_ctx_log(work->ctx, DBT_LOG_WARNING, "%s", err.text);
	for (size_t i = 0; observed.n > 0 && i < work->inventory->n_scans; i++)
		for (size_t k = 0; k < work->inventory->scans[i].n_databases; k++)
			dbt_observed_apply(&observed, &work->inventory->scans[i].databases[k]);
	dbt_observed_release(&observed);
}

int dbt_inventory_make(const struct dbt_ctx *ctx, const char *const *paths, size_t n_paths,
                       const struct dbt_inventory_opts *opts, struct dbt_inventory *ret,
                       struct dbt_err *err)
{
	struct work work = {
		.ctx = ctx, .opts = opts, .inventory = ret, .free_memory_bytes = free_memory(ctx)
	};
	struct dbt_scan_opts scan_opts = opts->scan;
	struct dbt_links *links = NULL;
	struct dbt_err why = { 0 };
	int r, failed;

	*ret = (struct dbt_inventory){ 0 };
	if (dbt_links_load(ctx, opts->state_dir, opts->system_state_dir, &links, &why) < 0)
		dbt_ctx_log(ctx, DBT_LOG_WARNING, "%s", why.text);
	if (links) {
		scan_opts.is_ours = dbt_links_is_ours;
		scan_opts.is_ours_data = links;
	}
	failed = scan_paths(&work, paths, n_paths, &scan_opts, err);
	if (failed != -ENOMEM)
		apply_observed(&work);
	r = failed == -ENOMEM ? failed : list_items(ret);
	if (r == 0)
		r = dbt_places_init(&work.places, ctx, opts, err);
	if (r == 0)
		r = judge(&work);
	if (r == 0)
		remember(&work);
	ret->places = work.places.known;
	dbt_places_release(&work.places);
	dbt_links_free(links);
	if (r < 0) {
		dbt_inventory_release(ret);
		return r == -ENOMEM ? dbt_err_sys(err, r, "cannot list the databases") : r;
	}
	return failed;
}

void dbt_inventory_release(struct dbt_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_items; i++)
		dbt_advice_release(&inventory->items[i].advice);
	free(inventory->items);
	for (size_t i = 0; i < inventory->n_scans; i++)
		dbt_scan_result_release(&inventory->scans[i]);
	free(inventory->scans);
	for (struct dbt_inventory_place *place = inventory->places, *next; place; place = next) {
		next = place->next;
		dbt_place_release(&place->place);
		free(place);
	}
	*inventory = (struct dbt_inventory){ 0 };
}
