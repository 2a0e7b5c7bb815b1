#include "flow/settings.h"

#include "survey/override.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int bad_value(const struct dbt_config_line *line, const char *wanted, struct dbt_err *err)
{
	return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "%s: '%s' wants %s, not '%s'", line->where,
	                   dbt_config_key_name(line->key), wanted, line->value);
}

static int take_target(const struct dbt_config_line *line, struct dbt_settings *s,
                       struct dbt_err *err)
{
	if (line->value[0] != '/' && strcmp(line->value, "auto") != 0)
		return bad_value(line, "an absolute directory, or auto", err);
	if (!line->overruled)
		s->target = line->value;
	return 0;
}

static int take_reserve(const struct dbt_config_line *line, struct dbt_settings *s,
                        struct dbt_err *err)
{
	struct dbt_amount amount;

	if (dbt_units_parse_amount(line->value, &amount) < 0)
		return bad_value(line, "a size (10G) or a share (5%)", err);
	if (!line->overruled) {
		s->reserve = amount;
		s->reserve_set = true;
	}
	return 0;
}

static int take_limit(const struct dbt_config_line *line, struct dbt_settings *s,
                      struct dbt_err *err)
{
	uint64_t bytes;

	if (dbt_units_parse_size(line->value, &bytes) < 0 || bytes == 0)
		return bad_value(line, "a size such as 512K or 10G", err);
	if (!line->overruled)
		s->limit_bytes_s = bytes;
	return 0;
}

static int take(const struct dbt_config_line *line, struct dbt_settings *s, struct dbt_err *err)
{
	enum dbt_tier tier;
	size_t len;

	switch (line->key) {
	case DBT_CONFIG_NONE:
		if (line->code < 0)
			return dbt_err_sys(err, line->code, "cannot read '%s'", line->where);
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "%s: %s", line->where, line->value);
	case DBT_CONFIG_TARGET:
		return take_target(line, s, err);
	case DBT_CONFIG_RESERVE:
		return take_reserve(line, s, err);
	case DBT_CONFIG_LIMIT_RATE:
		return take_limit(line, s, err);
	case DBT_CONFIG_EXCLUDE:
		s->exclude[s->n_exclude++] = line->value;
		return 0;
	case DBT_CONFIG_TIER:
		if (dbt_override_parse(line->value, &len, &tier) < 0)
			return bad_value(line, "WHAT ram|nvme|ssd|hdd|network", err);
		return 0;
	}
	return 0;
}

int dbt_settings_load(const struct dbt_ctx *ctx, struct dbt_settings *ret, struct dbt_err *err)
{
	struct dbt_settings s = { 0 };
	int r = dbt_config_load(ctx, &s.config);

	if (r == 0) {
		s.exclude = calloc(s.config.n ? s.config.n : 1, sizeof(*s.exclude));
		r = s.exclude ? 0 : -ENOMEM;
	}
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot read the configuration");
	for (size_t i = 0; r == 0 && i < s.config.n; i++)
		r = take(&s.config.items[i], &s, err);
	if (r < 0)
		dbt_settings_release(&s);
	else
		*ret = s;
	return r;
}

void dbt_settings_release(struct dbt_settings *s)
{
	dbt_config_release(&s->config);
	free(s->exclude);
	*s = (struct dbt_settings){ 0 };
}
