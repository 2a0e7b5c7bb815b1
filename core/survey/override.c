#include "survey/override.h"

#include "base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void dbt_overrides_release(struct dbt_overrides *overrides)
{
	for (size_t i = 0; i < overrides->n; i++) {
		free(overrides->items[i].what);
		free(overrides->items[i].where);
	}
	free(overrides->items);
	*overrides = (struct dbt_overrides){ 0 };
}

int dbt_override_parse(const char *value, size_t *ret_what_len, enum dbt_tier *ret_tier)
{
	size_t word = strlen(value), what;

	while (word > 0 && !isspace((unsigned char)value[word - 1]))
		word--;
	for (what = word; what > 0 && isspace((unsigned char)value[what - 1]);)
		what--;
	/* A prefix alone is nobody's name. */
	if (what == 0 || value[what - 1] == '=' || dbt_tier_parse(value + word, ret_tier) < 0)
		return -EINVAL;
	*ret_what_len = what;
	return 0;
}

static void warn_of(const struct dbt_ctx *ctx, const struct dbt_config_line *line)
{
	if (line->key == DBT_CONFIG_TIER)
		dbt_ctx_log(ctx, DBT_LOG_WARNING,
		            "%s is not understood and left out: it should read 'tier WHAT "
		            "ram|nvme|ssd|hdd|network'",
		            line->where);
	else
		dbt_ctx_log(ctx, DBT_LOG_WARNING, "%s is left out: %s", line->where, line->value);
}

static int add(struct dbt_overrides *list, const struct dbt_config_line *line, size_t what_len,
               enum dbt_tier tier)
{
	struct dbt_override *o = dbt_vec_push(list);

	if (!o)
		return -ENOMEM;
	o->tier = tier;
	o->what = strndup(line->value, what_len);
	o->where = strdup(line->where);
	return o->what && o->where ? 0 : -ENOMEM;
}

int dbt_overrides_load(const struct dbt_ctx *ctx, bool warn, struct dbt_overrides *ret)
{
	struct dbt_overrides list = { 0 };
	struct dbt_config config = { 0 };
	int r = dbt_config_load(ctx, &config);

	for (size_t i = 0; r == 0 && i < config.n; i++) {
		const struct dbt_config_line *line = &config.items[i];
		enum dbt_tier tier;
		size_t len;

		if (line->key == DBT_CONFIG_TIER &&
		    dbt_override_parse(line->value, &len, &tier) == 0)
			r = add(&list, line, len, tier);
		else if (warn && (line->key == DBT_CONFIG_TIER || line->key == DBT_CONFIG_NONE))
			warn_of(ctx, line);
	}
	dbt_config_release(&config);
	if (r < 0) {
		dbt_overrides_release(&list);
		return r;
	}
	*ret = list;
	return 0;
}

const struct dbt_override *dbt_override_find(const struct dbt_overrides *overrides,
                                             const char *prefix, const char *name)
{
	size_t len = strlen(prefix);

	for (size_t i = 0; overrides && name && i < overrides->n; i++)
		if (strncmp(overrides->items[i].what, prefix, len) == 0 &&
		    strcmp(overrides->items[i].what + len, name) == 0)
			return &overrides->items[i];
	return NULL;
}
