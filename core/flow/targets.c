#include "flow/targets.h"

#include "base/units.h"
#include "base/vec.h"
#include "record/ledger.h"
#include "survey/mounts.h"
#include "survey/place.h"
#include "sys/config.h"
#include "sys/root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

void dbt_targets_release(struct dbt_targets *targets)
{
	for (size_t i = 0; i < targets->n; i++) {
		free(targets->items[i].dir);
		free(targets->items[i].note);
	}
	free(targets->items);
	*targets = (struct dbt_targets){ 0 };
}

/* Each directory once, with what was said first. */
static int add(struct dbt_targets *list, const char *dir, const char *note)
{
	struct dbt_target *target;

	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i].dir, dir) == 0)
			return 0;
	target = dbt_vec_push(list);
	if (!target)
		return -ENOMEM;
	target->dir = strdup(dir);
	target->note = strdup(note);
	if (target->dir && target->note)
		return 0;
	free(target->dir);
	free(target->note);
	list->n--;
	return -ENOMEM;
}

static int add_configured(const struct dbt_ctx *ctx, struct dbt_targets *list)
{
	struct dbt_config config = { 0 };
	int r = dbt_config_load(ctx, &config);

	for (size_t i = 0; r == 0 && i < config.n; i++)
		if (config.items[i].key == DBT_CONFIG_TARGET && config.items[i].value[0] == '/')
			r = add(list, config.items[i].value, "configured");
	dbt_config_release(&config);
	return r;
}

static int add_used(const struct dbt_ctx *ctx, const char *state_dir, struct dbt_targets *list)
{
	struct dbt_promotions known = { 0 };
	struct dbt_ledger *ledger = NULL;
	int r = 0;

	if (dbt_ledger_open(ctx, state_dir, DBT_LEDGER_READ, &ledger, NULL) == 0 &&
	    dbt_ledger_load(ledger, &known, NULL) == 0)
		for (size_t i = known.n; r == 0 && i > 0; i--)
			if (known.items[i - 1].state != DBT_STATE_FAILED)
				r = add(list, known.items[i - 1].target, "used before");
	dbt_ledger_close(ledger);
	dbt_promotions_release(&known);
	return r;
}

/* --- fast mounts ---------------------------------------------------------------------------------------- */

struct fast {
	char *dir;
	enum dbt_tier tier;
	uint64_t free_bytes;
};

struct fasts {
	struct fast *items;
	size_t n, cap;
};

static int by_speed_and_room(const void *a, const void *b)
{
	const struct fast *x = a, *y = b;
	int tiers = dbt_tier_rank(x->tier) - dbt_tier_rank(y->tier);

	return tiers ? tiers : (x->free_bytes < y->free_bytes) - (x->free_bytes > y->free_bytes);
}

/* ctx answers as for a captured machine: what it would have to open a device for is not asked. */
static int look_at_mount(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts,
                         const struct dbt_mount *mount, struct fasts *list)
{
	struct dbt_place place = { 0 };
	struct statvfs vfs;
	struct fast *fast;
	int r = dbt_place_of_mount(ctx, mounts, mount->id, NULL, &place, NULL);
	bool is_fast = r == 0 && (place.tier == DBT_TIER_NVME || place.tier == DBT_TIER_SSD) &&
	               !place.network && !place.userspace && !place.overlay;
	enum dbt_tier tier = place.tier;

	dbt_place_release(&place);
	if (!is_fast || statvfs(mount->target, &vfs) < 0)
		return r == -ENOMEM ? r : 0;
	fast = dbt_vec_push(list);
	if (!fast)
		return -ENOMEM;
	*fast = (struct fast){ .dir = strdup(mount->target),
		               .tier = tier,
		               .free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize };
	return fast->dir ? 0 : -ENOMEM;
}

/* A file that is mounted by itself (/etc/hosts in a container) is no directory for databases, nor is what boots. */
static bool could_be_target(const struct dbt_mounts *mounts, size_t at)
{
	const struct dbt_mount *mount = dbt_mounts_at(mounts, at);

	if (mount->read_only || mount->source[0] != '/' ||
	    strncmp(mount->target, "/boot", 5) == 0 || strncmp(mount->target, "/etc/", 5) == 0)
		return false;
	for (size_t i = 0; i < at; i++) /* a bind mount of what was seen already */
		if (dbt_mounts_at(mounts, i)->devno == mount->devno)
			return false;
	return true;
}

static int add_fast(const struct dbt_ctx *ctx, struct dbt_targets *list)
{
	struct dbt_root still = *ctx->root;
	struct dbt_ctx quiet = *ctx;
	struct dbt_mounts *mounts = NULL;
	struct fasts fasts = { 0 };
	int r = 0;

	still.live = false;
	quiet.root = &still;
	quiet.log = NULL;
	if (dbt_mounts_new(&quiet, &mounts, NULL) == 0)
		for (size_t i = 0; r == 0 && i < dbt_mounts_count(mounts); i++)
			if (could_be_target(mounts, i))
				r = look_at_mount(&quiet, mounts, dbt_mounts_at(mounts, i), &fasts);
	if (fasts.n > 1)
		qsort(fasts.items, fasts.n, sizeof(*fasts.items), by_speed_and_room);
	for (size_t i = 0; r == 0 && i < fasts.n; i++) {
		char note[64], size[DBT_UNITS_TEXT_BYTES];

		(void)snprintf(note, sizeof(note), "%s, %s free",
		               dbt_tier_name(fasts.items[i].tier),
		               dbt_units_size(fasts.items[i].free_bytes, size));
		r = add(list, fasts.items[i].dir, note);
	}
	for (size_t i = 0; i < fasts.n; i++)
		free(fasts.items[i].dir);
	free(fasts.items);
	dbt_mounts_free(mounts);
	return r;
}

int dbt_targets_find(const struct dbt_ctx *ctx, const char *state_dir, struct dbt_targets *ret)
{
	struct dbt_targets list = { 0 };
	int r = add_configured(ctx, &list);

	if (r == 0)
		r = add_used(ctx, state_dir, &list);
	if (r == 0)
		r = add_fast(ctx, &list);
	if (r < 0)
		dbt_targets_release(&list);
	else
		*ret = list;
	return r;
}
