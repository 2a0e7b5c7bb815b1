#include "flow/stall.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "flow/naming.h"
#include "flow/places.h"
#include "flow/remember.h"
#include "survey/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct work {
	const struct dbt_ctx *ctx;
	const struct dbt_stall_opts *opts;
	struct dbt_inventory_opts inventory_opts;
	struct dbt_places places;
	struct dbt_observation *obs;
};

/* --- places --- */

static char *copy(const char *text, bool *failed)
{
	char *new = text ? strdup(text) : NULL;

	*failed |= text && !new;
	return new;
}

/* Adds what an observation keeps of a place; *ret_index: where. */
static int add_place(struct dbt_observation *obs, const struct dbt_place *p,
                     const struct dbt_speeds *speeds, size_t *ret_index)
{
	struct dbt_obs_place *slot = dbt_vec_push(&obs->places);
	bool failed = false;

	if (!slot)
		return -ENOMEM;
	*slot = (struct dbt_obs_place){ .devno = p->fs_devno,
		                        .mount = copy(p->mount, &failed),
		                        .source = copy(p->source, &failed),
		                        .fstype = copy(p->fstype, &failed),
		                        .stack = copy(p->stack, &failed),
		                        .device = copy(p->device, &failed),
		                        .tier = p->tier,
		                        .network = p->network,
		                        .ram = p->ram,
		                        .free_bytes = p->free_bytes,
		                        .speeds = *speeds };
	slot->disks = calloc(p->n_disks ? p->n_disks : 1, sizeof(*slot->disks));
	if (!slot->disks)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_disks; i++)
		slot->disks[slot->n_disks++] = copy(p->disks[i].name, &failed);
	*ret_index = obs->places.n - 1;
	return failed ? -ENOMEM : 0;
}

static bool recall(const struct work *w, const struct dbt_place *p, struct dbt_speeds *ret)
{
	struct dbt_err err;
	int r = dbt_remember_get_speeds(w->ctx, w->opts->state_dir, p, DBT_REMEMBER_DAY_NS, ret,
	                                &err);

	if (r <= 0 && w->opts->system_state_dir)
		r = dbt_remember_get_speeds(w->ctx, w->opts->system_state_dir, p,
		                            DBT_REMEMBER_DAY_NS, ret, &err);
	if (r <= 0)
		*ret = (struct dbt_speeds){ 0 };
	return r > 0;
}

/* Of the mounts of a filesystem, the one that the path leads through. */
static const struct dbt_mount *mount_of(const struct dbt_mounts *mounts, uint64_t devno,
                                        const char *path)
{
	const struct dbt_mount *best = NULL;

	for (size_t i = 0; i < dbt_mounts_count(mounts); i++) {
		const struct dbt_mount *m = dbt_mounts_at(mounts, i);
		size_t len = strlen(m->target);
		bool fits = path && strncmp(path, m->target, len) == 0;

		if (m->devno == devno && dbt_fs_kind_of(m->fstype) != DBT_FS_PSEUDO &&
		    (!best || (fits && len >= strlen(best->target))))
			best = m;
	}
	return best;
}

/* Judged anew where there is a measurement, which outranks what the kernel says of the disk. */
static int judge_place(const struct work *w, const struct dbt_mount *m, struct dbt_place *ret,
                       struct dbt_speeds *ret_speeds)
{
	struct dbt_err err;
	struct dbt_place judged;
	int r = dbt_place_of_mount(w->ctx, w->places.mounts, m->id, NULL, ret, &err);

	if (r < 0)
		return r;
	if (recall(w, ret, ret_speeds) &&
	    dbt_place_of_mount(w->ctx, w->places.mounts, m->id, ret_speeds, &judged, &err) == 0) {
		dbt_place_release(ret);
		*ret = judged;
	}
	return 0;
}

static int place_file(struct work *w, struct dbt_obs_file *f)
{
	const struct dbt_mount *m;
	struct dbt_speeds speeds = { 0 };
	struct dbt_place place;
	int r;

	for (size_t i = 0; i < w->obs->places.n; i++)
		if (w->obs->places.items[i].devno == f->devno) {
			f->place = i;
			return 0;
		}
	m = mount_of(w->places.mounts, f->devno, f->path);
	if (!m)
		return 0;
	r = judge_place(w, m, &place, &speeds);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = add_place(w->obs, &place, &speeds, &f->place);
	dbt_place_release(&place);
	return r;
}

/* --- where to --- */

/* The place that most was read of, and how much its files that were read have. */
static size_t slowest_read(const struct dbt_observation *obs, uint64_t *ret_bytes)
{
	size_t best = DBT_OBS_NONE;
	uint64_t most = 0;

	for (size_t i = 0; i < obs->places.n; i++) {
		uint64_t read = 0, size = 0;

		for (size_t k = 0; k < obs->files.n; k++) {
			const struct dbt_obs_file *f = &obs->files.items[k];
			uint64_t seen = f->reads.bytes + f->moved_bytes;

			if (f->place != i || (seen == 0 && !f->format))
				continue;
			read += seen + 1;
			size += f->size_bytes;
		}
		if (read <= most || obs->places.items[i].ram)
			continue;
		most = read;
		best = i;
		*ret_bytes = size;
	}
	return best;
}

/* What the survey knows about a place, for the search for a better one. */
static int inventory_place(struct work *w, size_t at, struct dbt_inventory_place *ret)
{
	const struct dbt_obs_place *p = &w->obs->places.items[at];
	const struct dbt_mount *m = mount_of(w->places.mounts, p->devno, p->mount);

	return m ? judge_place(w, m, &ret->place, &ret->speeds) : -ENOENT;
}

static int add_target(struct work *w, const struct dbt_place *p, const struct dbt_speeds *speeds)
{
	for (size_t i = 0; i < w->obs->places.n; i++)
		if (w->obs->places.items[i].devno == p->fs_devno) {
			w->obs->places.items[i].speeds = *speeds;
			w->obs->target = i;
			return 0;
		}
	return add_place(w->obs, p, speeds, &w->obs->target);
}

/* The directory that the user named: measured by what lies in it. */
static int find_named(struct work *w, struct dbt_err *err)
{
	dbt_autoclose int fd = open(w->opts->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dbt_inventory_place to = { 0 };
	int r;

	if (fd < 0)
		return dbt_err_sys(err, -errno, "cannot open '%s'", w->opts->to);
	r = dbt_place_of_fd(w->ctx, w->places.mounts, fd, NULL, &to.place, err);
	if (r < 0)
		return r;
	dbt_places_measure(&w->places, &to, NULL, 0);
	r = add_target(w, &to.place, &to.speeds);
	dbt_place_release(&to.place);
	return r;
}

static int find_better(struct work *w)
{
	struct dbt_inventory_place from = { 0 }, *to;
	uint64_t bytes = 0;
	size_t at = slowest_read(w->obs, &bytes);
	int r = at == DBT_OBS_NONE ? -ENOENT : inventory_place(w, at, &from);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	to = dbt_places_better(&w->places, &from, bytes);
	if (to) {
		dbt_places_measure(&w->places, to, NULL, 0);
		r = add_target(w, &to->place, &to->speeds);
	}
	dbt_place_release(&from.place);
	return r;
}

static void release_known(struct dbt_inventory_place *known)
{
	for (struct dbt_inventory_place *next; known; known = next) {
		next = known->next;
		dbt_place_release(&known->place);
		free(known);
	}
}

/* The device's counters stand for each layer; what the file waits for is the disk below. */
static int complete(struct work *w, struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->obs->files.n; i++)
		r = place_file(w, &w->obs->files.items[i]);
	if (r == 0)
		r = dbt_name_files(w->ctx, w->opts->state_dir, w->opts->system_state_dir, w->obs);
	if (r == 0)
		r = w->opts->to ? find_named(w, err) : find_better(w);
	return r == -ENOMEM ? dbt_err_sys(err, r, "cannot complete the observation") : r;
}

int dbt_stall_observe(const struct dbt_ctx *ctx, const struct dbt_stall_opts *opts,
                      struct dbt_observation *ret, struct dbt_err *err)
{
	struct work w = { .ctx = ctx,
		          .opts = opts,
		          .inventory_opts = { .no_probe = opts->no_probe,
		                              .state_dir = opts->state_dir,
		                              .system_state_dir = opts->system_state_dir },
		          .obs = ret };
	struct dbt_observe_opts observe = opts->observe;
	int r = dbt_places_init(&w.places, ctx, &w.inventory_opts, err);

	if (r < 0)
		return r;
	observe.tasks.mounts = w.places.mounts;
	r = dbt_observe(ctx, &observe, ret, err);
	if (r == 0) {
		r = complete(&w, err);
		if (r < 0)
			dbt_observation_release(ret);
	}
	release_known(w.places.known);
	dbt_places_release(&w.places);
	return r;
}
