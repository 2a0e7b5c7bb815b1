/* dbtier __complete [--notes] plain|active|formats|targets [BEGINNING]: the names for the shell's completion that
 * begin so, each ended by a NUL; with --notes a few words about it follow, ended by a NUL as well. From the ledgers,
 * the catalogue and the mount table alone: a disk that sleeps or a dead mount must not hang the shell. Says nothing when
 * something is wrong; there is nobody to read it. */
#include "base/units.h"
#include "cmd/app.h"
#include "flow/targets.h"
#include "record/ledger.h"
#include "survey/dbkind.h"

#include <stdio.h>
#include <string.h>

struct complete_args {
	bool notes;
};

static const struct opt_spec complete_opts[] = {
	{ .name = "notes",
	  .at = offsetof(struct complete_args, notes),
	  .help = "print a description behind each name" },
	{ 0 },
};

struct answer {
	const struct app *app;
	const char *beginning;
	bool notes;
};

static int print_name(const struct answer *answer, const char *name, const char *description)
{
	if (strncmp(name, answer->beginning, strlen(answer->beginning)) != 0)
		return 0;
	if (fwrite(name, strlen(name) + 1, 1, stdout) != 1)
		return -1;
	return !answer->notes || fwrite(description, strlen(description) + 1, 1, stdout) == 1 ? 0
	                                                                                      : -1;
}

/* "42.9G, hdd" */
static const char *size_and(uint64_t bytes, const char *word, char *buf, size_t cap)
{
	char size[DBT_UNITS_TEXT_BYTES];

	(void)snprintf(buf, cap, "%s, %s", dbt_units_size(bytes, size), word);
	return buf;
}

/* What the last scan found and neither is promoted nor lies on the fastest tier already. */
static void print_plain(const struct answer *answer, struct dbt_ledger *ledger)
{
	struct dbt_scan_names names = { 0 };
	char text[96];

	if (dbt_ledger_find_names(ledger, NULL, &names, NULL) == 0)
		for (size_t i = 0; i < names.n; i++) {
			const struct dbt_scan_name *n = &names.items[i];

			if (!n->promoted && strcmp(n->tier, "nvme") != 0 &&
			    print_name(answer, n->name,
			               size_and(n->size_bytes, n->tier, text, sizeof(text))) < 0)
				break;
		}
	dbt_scan_names_release(&names);
}

static void print_active(const struct answer *answer, struct dbt_ledger *ledger)
{
	struct dbt_promotions list = { 0 };
	char text[4096];

	if (dbt_ledger_load(ledger, &list, NULL) == 0)
		for (size_t i = 0; i < list.n; i++) {
			const struct dbt_promotion *p = &list.items[i];

			if (dbt_state_is_active(p->state) &&
			    print_name(answer, p->name,
			               size_and(dbt_promotion_size(p), p->target, text,
			                        sizeof(text))) < 0)
				break;
		}
	dbt_promotions_release(&list);
}

typedef void (*print_fn)(const struct answer *answer, struct dbt_ledger *ledger);

static void print_names(const struct answer *answer, const char *state_dir, print_fn print)
{
	struct dbt_ledger *ledger;

	if (!state_dir ||
	    dbt_ledger_open(&answer->app->ctx, state_dir, DBT_LEDGER_READ, &ledger, NULL) < 0)
		return;
	print(answer, ledger);
	dbt_ledger_close(ledger);
}

static void print_formats(const struct answer *answer)
{
	for (size_t i = 0; dbt_formats[i]; i++)
		if (print_name(answer, dbt_formats[i]->id, dbt_formats[i]->name) < 0)
			break;
}

static void print_targets(const struct answer *answer)
{
	struct dbt_targets targets = { 0 };

	if (dbt_targets_find(&answer->app->ctx, answer->app->state_dir, &targets) < 0)
		return;
	for (size_t i = 0; i < targets.n; i++)
		if (print_name(answer, targets.items[i].dir, targets.items[i].note) < 0)
			break;
	dbt_targets_release(&targets);
}

static int run(struct app *app, void *opaque, char **operands, size_t n_operands)
{
	const struct complete_args *args = opaque;
	const struct answer answer = { .app = app,
		                       .beginning = n_operands > 1 ? operands[1] : "",
		                       .notes = args->notes };
	print_fn print = NULL;

	app->ctx.log = NULL;
	if (strcmp(operands[0], "formats") == 0) {
		print_formats(&answer);
		return EXIT_DONE;
	}
	if (strcmp(operands[0], "targets") == 0) {
		print_targets(&answer);
		return EXIT_DONE;
	}
	if (strcmp(operands[0], "plain") == 0)
		print = print_plain;
	else if (strcmp(operands[0], "active") == 0)
		print = print_active;
	else
		return EXIT_USAGE_ERROR;
	print_names(&answer, app->state_dir, print);
	print_names(&answer, app->system_state_dir, print);
	return EXIT_DONE;
}

const struct command cmd_complete = {
	.name = "__complete",
	.operands = "plain|active|formats|targets [BEGINNING]",
	.summary = "print names for the shell's completion",
	.opts = complete_opts,
	.args_bytes = sizeof(struct complete_args),
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
