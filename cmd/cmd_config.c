/* dbtier config: what the configuration files set, and which of them. */
#include "cmd/app.h"
#include "cmd/table.h"

#include <errno.h>
#include <stdlib.h>

/* A key that no file sets: what happens then. */
static const struct {
	enum dbt_config_key key;
	const char *text; /* NULL: nothing */
} built_in[] = {
	{ DBT_CONFIG_TARGET, NULL },
	{ DBT_CONFIG_RESERVE, "5% of the target, at most 10G; twice that on /" },
	{ DBT_CONFIG_LIMIT_RATE, NULL },
	{ DBT_CONFIG_EXCLUDE, NULL },
	{ DBT_CONFIG_TIER, NULL },
};

enum { N_BUILT_IN = sizeof(built_in) / sizeof(built_in[0]) };

struct row {
	const char *key;
	const char *value;  /* NULL: not set */
	const char *source; /* file and line; NULL: built in */
};

static json_t *get_key(const void *row)
{
	return json_string(((const struct row *)row)->key);
}

static json_t *get_value(const void *row)
{
	return table_json_name(((const struct row *)row)->value);
}

static json_t *get_source(const void *row)
{
	const struct row *r = row;

	return table_json_name(r->source ? r->source : "built in");
}

static const struct column columns[] = {
	{ .key = "key", .shown = true, .help = "what is set", .get = get_key },
	{ .key = "value",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .help = "what it is set to, as it stands in the file",
	  .get = get_value },
	{ .key = "source",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .help = "file and line that say so, or built in",
	  .get = get_source },
	{ 0 },
};

static const struct table_spec table = { .key = "settings", .columns = columns };

/* The lines that count, key by key, in the order in which they are asked. Returns their number. */
static size_t fill(const struct dbt_config *config, struct row *rows)
{
	size_t n = 0;

	for (size_t k = 0; k < N_BUILT_IN; k++) {
		const size_t before = n;

		for (size_t i = 0; i < config->n; i++)
			if (config->items[i].key == built_in[k].key && !config->items[i].overruled)
				rows[n++] =
					(struct row){ .key = dbt_config_key_name(built_in[k].key),
					              .value = config->items[i].value,
					              .source = config->items[i].where };
		if (n == before)
			rows[n++] = (struct row){ .key = dbt_config_key_name(built_in[k].key),
				                  .value = built_in[k].text };
	}
	return n;
}

static int run(struct app *app, void *args, char **operands, size_t n)
{
	struct dbt_err err = { 0 };
	struct row *rows;
	int r = app_settings(app, &err);

	(void)args;
	(void)operands;
	(void)n;
	if (r < 0)
		return msg_fail(&err);
	rows = calloc(app->settings.config.n + N_BUILT_IN, sizeof(*rows));
	if (!rows)
		r = dbt_err_sys(&err, -ENOMEM, "cannot list the configuration");
	else
		r = table_print(&table, &app->args,
		                TABLE_ROWS(rows, fill(&app->settings.config, rows)), stdout, &err);
	free(rows);
	return r < 0 ? msg_fail(&err) : EXIT_DONE;
}

const struct command cmd_config = {
	.name = "config",
	.summary = "print what the configuration files set, and where",
	.help = "/etc/dbtier.conf is the system's file, dbtier/dbtier.conf below XDG_CONFIG_HOME "
		"or ~/.config the user's. The user's counts before the system's, and the command "
		"line before both. See dbtier.conf(5).",
	.table = &table,
	.run = run,
};
