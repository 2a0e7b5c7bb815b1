#include "cmd/help.h"

#include "cmd/describe.h"
#include "cmd/pager.h"
#include "cmd/table.h"

#include <stdlib.h>
#include <string.h>

enum { HELP_WIDTH = 79 };

static void print_program(FILE *out)
{
	(void)fputs("Usage: dbtier COMMAND [OPTION...] [ARG...] | [COMMAND] --help | --version\n"
	            "Move hot reference databases to fast storage, safely and reversibly.\n\n",
	            out);
	for (size_t i = 0; commands[i]; i++)
		if (describe_is_listed(commands[i]))
			(void)fprintf(out, "  %-10s  %s\n", commands[i]->name,
			              commands[i]->summary);
	(void)fputc('\n', out);
	opt_print_help(global_opts, out);
}

/* A paragraph in lines that fit; its own line breaks are blanks. */
static void print_wrapped(const char *text, FILE *out)
{
	size_t at = 0;

	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		size_t len = strcspn(text, " \n");

		if (at > 0 && at + 1 + len > HELP_WIDTH) {
			(void)fputc('\n', out);
			at = 0;
		}
		(void)fprintf(out, "%s%.*s", at ? " " : "", (int)len, text);
		at += len + (at > 0);
		text += len;
	}
	(void)fputc('\n', out);
}

/* "Columns: name, format, path ..." in lines that fit. */
static void print_columns(const char *title, const struct table_spec *table, FILE *out)
{
	size_t at = (size_t)fprintf(out, "%s:", title);

	for (const struct column *c = table->columns; c->key; c++) {
		size_t len = strlen(c->key) + 1 + (c[1].key != NULL);

		if (at + len > HELP_WIDTH)
			at = (size_t)fprintf(out, "\n        ") - 1;
		(void)fprintf(out, " %s%s", c->key, c[1].key ? "," : "\n");
		at += len;
	}
}

static void print_command(const struct command *cmd, FILE *out)
{
	(void)fprintf(out, "Usage: dbtier %s [OPTION...]%s%s\n%c%s.\n", cmd->name,
	              cmd->operands ? " " : "", cmd->operands ? cmd->operands : "",
	              cmd->summary[0] >= 'a' && cmd->summary[0] <= 'z' ? cmd->summary[0] - 32
	                                                               : cmd->summary[0],
	              cmd->summary + 1);
	if (cmd->help) {
		(void)fputc('\n', out);
		print_wrapped(cmd->help, out);
	}
	if (cmd->opts) {
		(void)fputc('\n', out);
		opt_print_help(cmd->opts, out);
	}
	if (cmd->table)
		print_columns("\nColumns", cmd->table, out);
	if (cmd->other_table)
		print_columns("Others", cmd->other_table, out);
	(void)fputs("\nOptions of every command: see 'dbtier --help'. More: man dbtier.\n", out);
}

/* Without memory for the whole text it goes out as it comes. */
static void print(const struct command *cmd, FILE *out)
{
	char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);
	FILE *to = memory ? memory : out;

	if (cmd)
		print_command(cmd, to);
	else
		print_program(to);
	if (memory && fclose(memory) == 0)
		pager_print(text, out);
	free(text);
}

void help_program(FILE *out)
{
	print(NULL, out);
}

void help_command(const struct command *cmd, FILE *out)
{
	print(cmd, out);
}
