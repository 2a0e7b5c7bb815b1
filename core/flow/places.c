#include "flow/places.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "flow/checks.h"
#include "flow/remember.h"
#include "survey/material.h"
#include "survey/probe.h"
#include "survey/tmpfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int dbt_places_init(struct dbt_places *places, const struct dbt_ctx *ctx,
                    const struct dbt_inventory_opts *opts, struct dbt_err *err)
{
	*places = (struct dbt_places){ .ctx = ctx, .opts = opts };
	return dbt_mounts_new(ctx, &places->mounts, err);
}

void dbt_places_release(struct dbt_places *places)
{
	dbt_mounts_free(places->mounts);
	free(places->failed);
	*places = (struct dbt_places){ 0 };
}

static bool has_failed(const struct dbt_places *places, uint64_t mnt_id)
{
	for (size_t i = 0; i < places->n_failed; i++)
		if (places->failed[i] == mnt_id)
			return true;
	return false;
}

static void note_failed(struct dbt_places *places, uint64_t mnt_id, const struct dbt_err *err)
{
	uint64_t *grown =
		dbt_vec_grow(places->failed, places->n_failed, &places->cap_failed, sizeof(*grown));

	dbt_ctx_log(places->ctx, DBT_LOG_WARNING, "%s", err->text);
	if (!grown)
		return;
	places->failed = grown;
	places->failed[places->n_failed++] = mnt_id;
}

static bool is_cleaned(const struct dbt_ctx *ctx, const char *mount)
{
	struct dbt_tmpfiles_hit hit = { 0 };
	dbt_autofree char *path = NULL;
	bool cleaned;

	if (asprintf(&path, "%s/database", strcmp(mount, "/") == 0 ? "" : mount) < 0) {
		path = NULL;
		return false;
	}
	cleaned = dbt_tmpfiles_find(ctx, path, &hit) == 1;
	dbt_tmpfiles_hit_release(&hit);
	return cleaned;
}

/* The place of this mount, looked up once. NULL: it cannot be judged, or no memory. */
static struct dbt_inventory_place *place_of_mount(struct dbt_places *places, uint64_t mnt_id)
{
	struct dbt_inventory_place *place;
	struct dbt_err err = { 0 };

	for (place = places->known; place; place = place->next)
		if (place->place.mnt_id == mnt_id)
			return place;
	if (has_failed(places, mnt_id))
		return NULL;
	place = calloc(1, sizeof(*place));
	if (!place)
		return NULL;
	if (dbt_place_of_mount(places->ctx, places->mounts, mnt_id, NULL, &place->place, &err) <
	    0) {
		free(place);
		note_failed(places, mnt_id, &err);
		return NULL;
	}
	place->cleaned = is_cleaned(places->ctx, place->place.mount);
	place->next = places->known;
	places->known = place;
	return place;
}

static int mount_of_path(const struct dbt_ctx *ctx, const char *path, uint64_t *ret_mnt_id)
{
	dbt_autoclose int fd = -1;
	struct statx stx = { 0 };
	struct dbt_ident ident;
	int r = ctx->sys->statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MNT_ID, &stx);

	if (r < 0)
		return r;
	if (stx.stx_mask & STATX_MNT_ID) {
		*ret_mnt_id = stx.stx_mnt_id;
		return 0;
	}
	fd = ctx->sys->openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	r = fd < 0 ? fd : dbt_ident_fd(ctx, fd, &ident);
	if (r < 0)
		return r;
	*ret_mnt_id = ident.mnt_id;
	return 0;
}

/* Is a slower than b? Unknown counts as slow: it is not known to be fast. */
static bool is_slower(const struct dbt_inventory_place *a, const struct dbt_inventory_place *b)
{
	int x = dbt_tier_rank(a->place.tier), y = dbt_tier_rank(b->place.tier);

	return (x < 0 ? INT32_MAX : x) > (y < 0 ? INT32_MAX : y);
}

struct dbt_inventory_place *dbt_places_of(struct dbt_places *places, const struct dbt_database *db)
{
	struct dbt_inventory_place *slowest = NULL;
	bool any_hot = false;

	for (size_t i = 0; i < db->n_members; i++)
		any_hot |= db->members[i].hot;
	for (size_t i = 0; i < db->n_members; i++) {
		const struct dbt_member *m = &db->members[i];
		struct dbt_inventory_place *place;
		uint64_t mnt_id;

		if (m->link_of_database || (any_hot && !m->hot) ||
		    mount_of_path(places->ctx, m->path, &mnt_id) < 0)
			continue;
		place = place_of_mount(places, mnt_id);
		if (place && (!slowest || is_slower(place, slowest)))
			slowest = place;
	}
	return slowest;
}

/* ---- measuring ---- */

static bool has_speeds(const struct dbt_speeds *speeds)
{
	return speeds->random1.iops > 0 || speeds->random4.iops > 0 ||
	       speeds->stream1.rate_bytes_s > 0 || speeds->stream4.rate_bytes_s > 0;
}

/* A measurement may change what the place is thought to be. */
static void judge_again(struct dbt_places *places, struct dbt_inventory_place *place)
{
	struct dbt_place judged = { 0 };
	struct dbt_err err = { 0 };

	if (dbt_place_of_mount(places->ctx, places->mounts, place->place.mnt_id, &place->speeds,
	                       &judged, &err) < 0)
		return;
	dbt_place_release(&place->place);
	place->place = judged;
}

static int probe(struct dbt_places *places, struct dbt_inventory_place *place,
                 const char *const *paths, size_t n_paths, struct dbt_err *err)
{
	const struct dbt_probe_target target = { .paths = paths,
		                                 .n_paths = n_paths,
		                                 .place = &place->place };

	return dbt_probe_quick(places->ctx, &target, &place->speeds, err);
}

static int probe_anything(struct dbt_places *places, struct dbt_inventory_place *place,
                          struct dbt_err *err)
{
	struct dbt_material material = { 0 };
	int r = dbt_material_find(places->ctx, place->place.mount, &material);

	if (r == 0 && material.n == 0)
		r = -ENODATA;
	if (r < 0)
		(void)dbt_err_sys(err, r, "found nothing to measure '%s' by", place->place.mount);
	else
		r = probe(places, place, (const char *const *)material.paths, material.n, err);
	dbt_material_release(&material);
	return r;
}

void dbt_places_measure(struct dbt_places *places, struct dbt_inventory_place *place,
                        const char *const *paths, size_t n_paths)
{
	const struct dbt_inventory_opts *opts = places->opts;
	struct dbt_err err = { 0 };
	int r;

	if (place->measured)
		return;
	place->measured = true;
	r = opts->fresh ? 0
	                : dbt_remember_get_speeds(places->ctx, opts->state_dir, &place->place,
	                                          DBT_REMEMBER_DAY_NS, &place->speeds, &err);
	if (r == 1) {
		judge_again(places, place);
		return;
	}
	if (opts->no_probe || place->place.ram || dbt_ctx_cancelled(places->ctx))
		return;
	r = n_paths > 0 ? probe(places, place, paths, n_paths, &err)
	                : probe_anything(places, place, &err);
	if (r < 0 || !has_speeds(&place->speeds)) {
		place->speeds = (struct dbt_speeds){ 0 };
		dbt_ctx_log(places->ctx, DBT_LOG_DETAIL, "'%s' was not measured: %s",
		            place->place.mount, r < 0 ? err.text : "nothing to measure");
		return;
	}
	judge_again(places, place);
	if (dbt_remember_put_speeds(places->ctx, opts->state_dir, &place->place, &place->speeds,
	                            &err) < 0)
		dbt_ctx_log(places->ctx, DBT_LOG_DETAIL, "%s", err.text);
}

/* ---- where to ---- */

static bool could_hold(const struct dbt_place *place, uint64_t bytes)
{
	const uint64_t reserve =
		dbt_default_reserve(place); /* as promote asks for without --reserve */

	return !place->network && !place->ram && !place->overlay && !place->userspace &&
	       !place->read_only && dbt_tier_rank(place->tier) >= 0 && place->free_bytes > bytes &&
	       place->free_bytes - bytes > reserve;
}

/* The mounts that could be targets at all; every one is looked at once. */
static void know_all(struct dbt_places *places)
{
	for (size_t i = 0; i < dbt_mounts_count(places->mounts); i++) {
		const struct dbt_mount *mount = dbt_mounts_at(places->mounts, i);

		/* Filesystems without a device, a boot partition: nobody keeps a database there. */
		if (mount->read_only || mount->source[0] != '/' ||
		    strncmp(mount->target, "/boot", 5) == 0)
			continue;
		(void)place_of_mount(places, mount->id);
	}
}

/* The faster one; of equals the one that nobody empties, then the one with more room. */
static bool is_better(const struct dbt_inventory_place *a, const struct dbt_inventory_place *b)
{
	if (is_slower(a, b) || is_slower(b, a))
		return is_slower(b, a);
	if (a->cleaned != b->cleaned)
		return b->cleaned;
	return a->place.free_bytes > b->place.free_bytes;
}

struct dbt_inventory_place *dbt_places_better(struct dbt_places *places,
                                              const struct dbt_inventory_place *from,
                                              uint64_t hot_bytes)
{
	struct dbt_inventory_place *best = NULL;

	know_all(places);
	for (struct dbt_inventory_place *place = places->known; place; place = place->next) {
		if (place == from || !could_hold(&place->place, hot_bytes) ||
		    dbt_place_same_filesystem(&place->place, &from->place) ||
		    !is_slower(from, place))
			continue;
		if (!best || is_better(place, best))
			best = place;
	}
	return best;
}
