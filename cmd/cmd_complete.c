/* dbtier __complete plain|active|formats [BEGINNING]: the names for the shell's completion that begin
 * so, each ended by a NUL. From the ledgers and the catalogue alone: a disk that sleeps or a dead mount must not hang the
 * shell. Says nothing when something is wrong; there is nobody to read it. */
#include "cmd/app.h"
#include "record/ledger.h"
#include "survey/dbkind.h"

#include <stdio.h>
#include <string.h>

static int print_name(const char *name, const char *beginning)
{
	if (strncmp(name, beginning, strlen(beginning)) != 0)
		return 0;
	return fwrite(name, strlen(name) + 1, 1, stdout) == 1 ? 0 : -1;
}

/* What the last scan found and is not promoted. */
static void print_plain(struct dbt_ledger *ledger, const char *beginning)
{
	struct dbt_scan_names names = { 0 };

	if (dbt_ledger_find_names(ledger, NULL, &names, NULL) == 0)
		for (size_t i = 0; i < names.n; i++)
			if (!names.items[i].promoted &&
			    print_name(names.items[i].name, beginning) < 0)
				break;
	dbt_scan_names_release(&names);
}

static void print_active(struct dbt_ledger *ledger, const char *beginning)
{
	struct dbt_promotions list = { 0 };

	if (dbt_ledger_load(ledger, &list, NULL) == 0)
		for (size_t i = 0; i < list.n; i++)
			if (dbt_state_is_active(list.items[i].state) &&
			    print_name(list.items[i].name, beginning) < 0)
				break;
	dbt_promotions_release(&list);
}

typedef void (*print_fn)(struct dbt_ledger *ledger, const char *beginning);

static void print_names(const struct app *app, const char *state_dir, print_fn print,
                        const char *beginning)
{
	struct dbt_ledger *ledger;

	if (!state_dir || dbt_ledger_open(&app->ctx, state_dir, DBT_LEDGER_READ, &ledger, NULL) < 0)
		return;
	print(ledger, beginning);
	dbt_ledger_close(ledger);
}

static int run(struct app *app, void *args, char **operands, size_t n_operands)
{
	const char *beginning = n_operands > 1 ? operands[1] : "";
	print_fn print = NULL;

	(void)args;
	if (strcmp(operands[0], "plain") == 0)
		print = print_plain;
	else if (strcmp(operands[0], "active") == 0)
		print = print_active;
	else if (strcmp(operands[0], "formats") != 0)
		return EXIT_USAGE_ERROR;
	if (print) {
		print_names(app, app->state_dir, print, beginning);
		print_names(app, app->system_state_dir, print, beginning);
		return EXIT_DONE;
	}
	for (size_t i = 0; dbt_formats[i]; i++)
		if (print_name(dbt_formats[i]->id, beginning) < 0)
			break;
	return EXIT_DONE;
}

const struct command cmd_complete = {
	.name = "__complete",
	.operands = "plain|active|formats [BEGINNING]",
	.summary = "print names for the shell's completion",
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
