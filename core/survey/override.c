#include "survey/override.h"

#include "base/buf.h"
#include "base/vec.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONF_MAX_BYTES = 1 << 20 };

void dbt_overrides_release(struct dbt_overrides *overrides)
{
	for (size_t i = 0; i < overrides->n; i++) {
		free(overrides->items[i].what);
		free(overrides->items[i].where);
	}
	free(overrides->items);
	*overrides = (struct dbt_overrides){ 0 };
}

/* Both ends without white space; cut in place. */
static char *trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* "tier WHAT TIER", where WHAT may hold blanks. 0, -EINVAL or -ENOMEM. */
static int add_line(struct dbt_overrides *list, char *line, const char *file, unsigned number)
{
	struct dbt_override *o;
	enum dbt_tier tier;
	char *what, *word;

	if (strncmp(line, "tier", 4) != 0 || !isspace((unsigned char)line[4]))
		return -EINVAL;
	what = trim(line + 4);
	word = what + strlen(what);
	while (word > what && !isspace((unsigned char)word[-1]))
		word--;
	if (word == what || dbt_tier_parse(word, &tier) < 0)
		return -EINVAL;
	*word = '\0';
	o = dbt_vec_push(list);
	if (!o)
		return -ENOMEM;
	o->tier = tier;
	o->what = strdup(trim(what));
	if (asprintf(&o->where, "%s, line %u", file, number) < 0)
		o->where = NULL;
	return o->what && o->where ? 0 : -ENOMEM;
}

static int add_text(const struct dbt_ctx *ctx, bool warn, struct dbt_overrides *list, char *text,
                    const char *file)
{
	char *rest = text, *line;
	unsigned number = 0;
	int r = 0;

	while (r == 0 && (line = strsep(&rest, "\n"))) {
		number++;
		line = trim(line);
		if (*line == '\0' || *line == '#')
			continue;
		r = add_line(list, line, file, number);
		if (r == -EINVAL) {
			if (warn)
				dbt_ctx_log(ctx, DBT_LOG_WARNING,
				            "'%s', line %u is not understood and left out: it "
				            "should read 'tier WHAT ram|nvme|ssd|hdd|network'",
				            file, number);
			r = 0;
		}
	}
	return r;
}

static int add_file(const struct dbt_ctx *ctx, bool warn, struct dbt_overrides *list,
                    const char *path, const char *shown)
{
	struct dbt_buf text = { 0 };
	int r = dbt_root_read(ctx->root, path, CONF_MAX_BYTES, &text);

	if (r == 0 && text.len > 0)
		r = add_text(ctx, warn, list, text.data, shown);
	else if (r < 0 && r != -ENOENT && r != -ENOMEM && warn)
		dbt_ctx_log(ctx, DBT_LOG_WARNING, "cannot read '%s': %s", shown, dbt_err_text(r));
	dbt_buf_release(&text);
	return r == -ENOMEM ? r : 0;
}

/* As the XDG base directory specification says: a relative value is ignored. */
static int add_user_file(const struct dbt_ctx *ctx, bool warn, struct dbt_overrides *list)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int r;

	if (xdg && *xdg == '/')
		r = asprintf(&path, "%s/dbtier.conf", xdg);
	else if (home && *home == '/')
		r = asprintf(&path, "%s/.config/dbtier.conf", home);
	else
		return 0;
	if (r < 0)
		return -ENOMEM;
	r = add_file(ctx, warn, list, path + 1, path);
	free(path);
	return r;
}

int dbt_overrides_load(const struct dbt_ctx *ctx, bool warn, struct dbt_overrides *ret)
{
	struct dbt_overrides list = { 0 };
	int r = ctx->root->live ? add_user_file(ctx, warn, &list) : 0;

	if (r == 0)
		r = add_file(ctx, warn, &list, "etc/dbtier.conf", "/etc/dbtier.conf");
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
