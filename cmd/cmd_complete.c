/* dbtier __complete plain|active: the names for the shell's completion, each ended by a NUL. From
 * the ledgers alone: a disk that sleeps or a dead mount must not hang the shell. Says nothing when
 * something is wrong; there is nobody to read it. */
#include "cmd/app.h"
#include "record/ledger.h"

#include <stdio.h>
#include <string.h>

static int print_name(const char *name)
{
	return fwrite(name, strlen(name) + 1, 1, stdout) == 1 ? 0 : -1;
}

/* What the last scan found and is not promoted. */
static void print_plain(struct dbt_ledger *ledger)
{
	struct dbt_scan_names names = { 0 };

	if (dbt_ledger_find_names(ledger, NULL, &names, NULL) == 0)
		for (size_t i = 0; i < names.n; i++)
			if (!names.items[i].promoted && print_name(names.items[i].name) < 0)
				break;
	dbt_scan_names_release(&names);
}

static void print_active(struct dbt_ledger *ledger)
{
	struct dbt_promotions list = { 0 };

	if (dbt_ledger_load(ledger, &list, NULL) == 0)
		for (size_t i = 0; i < list.n; i++)
			if (dbt_state_is_active(list.items[i].state) &&
			    print_name(list.items[i].name) < 0)
				break;
	dbt_promotions_release(&list);
}

static void print_names(const struct app *app, const char *state_dir, bool active)
{
	struct dbt_ledger *ledger;

	if (!state_dir || dbt_ledger_open(&app->ctx, state_dir, DBT_LEDGER_READ, &ledger, NULL) < 0)
		return;
	if (active)
		print_active(ledger);
	else
		print_plain(ledger);
	dbt_ledger_close(ledger);
}

static int run(struct app *app, void *args, char **operands, size_t n_operands)
{
	bool active = strcmp(operands[0], "active") == 0;

	(void)args;
	(void)n_operands;
	if (!active && strcmp(operands[0], "plain") != 0)
		return EXIT_USAGE_ERROR;
	print_names(app, app->state_dir, active);
	print_names(app, app->system_state_dir, active);
	return EXIT_DONE;
}

const struct command cmd_complete = {
	.name = "__complete",
	.operands = "plain|active",
	.summary = "print names for the shell's completion",
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
