#include "flow/remember.h"

#include "base/buf.h"
#include "base/vec.h"
#include "record/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* --- names of a scan ------------------------------------------------------------------------------------ */

static int add_name(struct dbt_scan_names *names, const struct dbt_database *db, const char *name,
                    const char *path, uint64_t size_bytes, bool is_member, bool promoted,
                    enum dbt_tier tier)
{
	struct dbt_scan_name *n = dbt_vec_push(names);

	if (!n)
		return -ENOMEM;
	n->name = strdup(name);
	n->path = strdup(path);
	n->dir = strdup(db->dir);
	n->database = strdup(db->name);
	n->format = strdup(db->format);
	n->tier = strdup(dbt_tier_name(tier));
	n->size_bytes = size_bytes;
	n->is_member = is_member;
	n->promoted = promoted;
	return n->name && n->path && n->dir && n->database && n->format && n->tier ? 0 : -ENOMEM;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int add_database(struct dbt_scan_names *names, const struct dbt_database *db,
                        enum dbt_tier tier)
{
	int r = add_name(names, db, db->name, db->path, db->size_bytes, false, db->promoted, tier);

	/* What a user types may also be the last part of the path ("psc.dmnd" of the database "psc"). */
	if (r == 0 && strcmp(base_name(db->path), db->name) != 0)
		r = add_name(names, db, base_name(db->path), db->path, db->size_bytes, false,
		             db->promoted, tier);
	for (size_t i = 0; r == 0 && db->n_members > 1 && i < db->n_members; i++) {
		const struct dbt_member *m = &db->members[i];

		r = add_name(names, db, base_name(m->name), m->path, m->size_bytes, true,
		             m->promoted, tier);
	}
	return r;
}

int dbt_remember_scan(const struct dbt_ctx *ctx, const char *state_dir, const char *root,
                      const struct dbt_scan_result *found, const enum dbt_tier *tiers,
                      struct dbt_err *err)
{
	struct dbt_scan_names names = { 0 };
	struct dbt_ledger *ledger = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < found->n_databases; i++)
		r = add_database(&names, &found->databases[i], tiers ? tiers[i] : DBT_TIER_UNKNOWN);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot remember the scan");
	if (r == 0)
		r = dbt_ledger_open(ctx, state_dir, DBT_LEDGER_WRITE, &ledger, err);
	if (r == 0)
		r = dbt_ledger_save_scan(ledger, root, &names, err);
	dbt_ledger_close(ledger);
	dbt_scan_names_release(&names);
	return r;
}

/* --- links that are ours -------------------------------------------------------------------------------- */

struct dbt_links {
	char **items; /* sorted */
	size_t n, cap;
};

/* Of what was unpacked some is a file itself, or a link that the archive has. */
static bool is_link(const struct dbt_promotion *p, const struct dbt_pmember *m)
{
	return p->kind != DBT_KIND_ARCHIVE || m->copied.ino != 0;
}

static int add_link(struct dbt_links *links, const char *path, struct dbt_err *err)
{
	char **item = dbt_vec_push(links);

	if (item)
		*item = strdup(path);
	return item && *item ? 0 : dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
}

static int add_links(const struct dbt_ctx *ctx, const char *state_dir, struct dbt_links *links,
                     struct dbt_err *err)
{
	struct dbt_promotions list = { 0 };
	struct dbt_ledger *ledger = NULL;
	int r = dbt_ledger_open(ctx, state_dir, DBT_LEDGER_READ, &ledger, err);

	if (r == 0)
		r = dbt_ledger_load(ledger, &list, err);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		for (size_t j = 0; r == 0 && dbt_state_is_active(list.items[i].state) &&
		                   j < list.items[i].n_members;
		     j++)
			if (is_link(&list.items[i], &list.items[i].members[j]))
				r = add_link(links, list.items[i].members[j].path, err);
	dbt_ledger_close(ledger);
	dbt_promotions_release(&list);
	return r == -ENOENT ? 0 : r;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int dbt_links_load(const struct dbt_ctx *ctx, const char *state_dir, const char *system_state_dir,
                   struct dbt_links **ret, struct dbt_err *err)
{
	struct dbt_links *links = calloc(1, sizeof(*links));
	int r, system_r = 0;

	*ret = links;
	if (!links)
		return dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	r = add_links(ctx, state_dir, links, err);
	if (system_state_dir)
		system_r = add_links(ctx, system_state_dir, links, r < 0 ? NULL : err);
	while (links->n > 0 && !links->items[links->n - 1])
		links->n--;
	if (links->n > 0)
		qsort(links->items, links->n, sizeof(*links->items), compare_strings);
	return r < 0 ? r : system_r;
}

void dbt_links_free(struct dbt_links *links)
{
	if (!links)
		return;
	for (size_t i = 0; i < links->n; i++)
		free(links->items[i]);
	free(links->items);
	free(links);
}

bool dbt_links_is_ours(void *data, const char *path)
{
	const struct dbt_links *links = data;

	return links->n > 0 && bsearch(&path, links->items, links->n, sizeof(*links->items),
	                               compare_strings) != NULL;
}

/* --- measurements --------------------------------------------------------------------------------------- */

/* Filesystem, devices below it and kernel: a measurement counts for exactly these. */
static int make_key(const struct dbt_place *place, struct dbt_buf *key)
{
	struct utsname uts;
	int r;

	if (uname(&uts) < 0)
		return -errno;
	r = dbt_buf_addf(key, "%s|%s|%s", place->fs_uuid ? place->fs_uuid : place->source,
	                 place->fstype, place->stack);
	for (size_t i = 0; r == 0 && i < place->n_disks; i++)
		r = dbt_buf_addf(key, "|%s:%s", place->disks[i].name,
		                 place->disks[i].model ? place->disks[i].model : "");
	return r == 0 ? dbt_buf_addf(key, "|%s", uts.release) : r;
}

static struct dbt_speed *speed_of(struct dbt_speeds *speeds, const char *pattern, unsigned jobs)
{
	bool is_random = strcmp(pattern, "random") == 0;

	if (jobs == 1)
		return is_random ? &speeds->random1 : &speeds->stream1;
	if (jobs == 4)
		return is_random ? &speeds->random4 : &speeds->stream4;
	return NULL;
}

static void take_measurements(const struct dbt_measurements *list, uint64_t oldest_ns,
                              struct dbt_speeds *ret)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct dbt_measurement *m = &list->items[i];
		struct dbt_speed *speed = speed_of(ret, m->pattern, m->jobs);

		if (!speed || m->wall_ns < oldest_ns)
			continue;
		*speed = (struct dbt_speed){ .proved = m->proved,
			                     .iops = m->iops,
			                     .rate_bytes_s = m->rate_bytes_s,
			                     .lat_p50_ns = m->lat_p50_ns };
		ret->measured_wall_ns = m->wall_ns;
		ret->span_bytes = m->span_bytes;
	}
}

int dbt_remember_get_speeds(const struct dbt_ctx *ctx, const char *state_dir,
                            const struct dbt_place *place, uint64_t max_age_ns,
                            struct dbt_speeds *ret, struct dbt_err *err)
{
	struct dbt_measurements list = { 0 };
	struct dbt_ledger *ledger = NULL;
	struct dbt_buf key = { 0 };
	uint64_t now = ctx->sys->wall_ns();
	int r = make_key(place, &key);

	*ret = (struct dbt_speeds){ 0 };
	if (r < 0)
		return dbt_err_sys(err, r, "cannot look for measurements");
	r = dbt_ledger_open(ctx, state_dir, DBT_LEDGER_READ, &ledger, err);
	if (r == 0)
		r = dbt_ledger_load_measurements(ledger, dbt_buf_str(&key), &list, err);
	if (r == 0)
		take_measurements(&list, now > max_age_ns ? now - max_age_ns : 0, ret);
	dbt_ledger_close(ledger);
	dbt_measurements_release(&list);
	dbt_buf_release(&key);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return ret->measured_wall_ns != 0;
}

static int add_measurement(struct dbt_measurements *list, const char *key, const char *pattern,
                           unsigned jobs, const struct dbt_speeds *speeds,
                           const struct dbt_speed *speed)
{
	struct dbt_measurement *m;

	if (speed->iops <= 0 && speed->rate_bytes_s == 0)
		return 0;
	m = dbt_vec_push(list);
	if (!m)
		return -ENOMEM;
	*m = (struct dbt_measurement){ .key = strdup(key),
		                       .pattern = strdup(pattern),
		                       .jobs = jobs,
		                       .wall_ns = speeds->measured_wall_ns,
		                       .iops = speed->iops,
		                       .rate_bytes_s = speed->rate_bytes_s,
		                       .lat_p50_ns = speed->lat_p50_ns,
		                       .span_bytes = speeds->span_bytes,
		                       .proved = speed->proved };
	return m->key && m->pattern ? 0 : -ENOMEM;
}

int dbt_remember_put_speeds(const struct dbt_ctx *ctx, const char *state_dir,
                            const struct dbt_place *place, const struct dbt_speeds *speeds,
                            struct dbt_err *err)
{
	struct dbt_measurements list = { 0 };
	struct dbt_ledger *ledger = NULL;
	struct dbt_buf key = { 0 };
	int r;

	/* A figure of a busy hour is not what tomorrow should be judged by. */
	if (speeds->load > DBT_LOADED)
		return 0;
	r = make_key(place, &key);
	if (r == 0)
		r = add_measurement(&list, dbt_buf_str(&key), "random", 1, speeds,
		                    &speeds->random1);
	if (r == 0)
		r = add_measurement(&list, dbt_buf_str(&key), "random", 4, speeds,
		                    &speeds->random4);
	if (r == 0)
		r = add_measurement(&list, dbt_buf_str(&key), "stream", 1, speeds,
		                    &speeds->stream1);
	if (r == 0)
		r = add_measurement(&list, dbt_buf_str(&key), "stream", 4, speeds,
		                    &speeds->stream4);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot remember the measurement");
	if (r == 0)
		r = dbt_ledger_open(ctx, state_dir, DBT_LEDGER_WRITE, &ledger, err);
	if (r == 0)
		r = dbt_ledger_save_measurements(ledger, &list, err);
	dbt_ledger_close(ledger);
	dbt_measurements_release(&list);
	dbt_buf_release(&key);
	return r;
}
