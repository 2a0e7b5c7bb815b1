/* The generated parts of the bash completion. Only our own words are printed, none of which needs
 * quoting; names of databases come at completion time from the ledger. */
#include "cmd/describe.h"
#include "cmd/table.h"

#include <string.h>

static void option_words(const struct opt_spec *opts, FILE *out)
{
	const char *space = "";

	for (size_t i = 0; opts && opts[i].name; i++)
		if (!opts[i].hidden) {
			(void)fprintf(out, "%s--%s", space, opts[i].name);
			space = " ";
		}
}

void describe_bash_commands(const struct command *cmd, FILE *out)
{
	(void)cmd;
	(void)fputs("\tcommands='", out);
	for (size_t i = 0, n = 0; commands[i]; i++)
		if (describe_is_listed(commands[i]))
			(void)fprintf(out, "%s%s", n++ ? " " : "", commands[i]->name);
	(void)fputs("'\n\tglobals='", out);
	option_words(global_opts, out);
	(void)fputs("'\n", out);
}

static const char *operand_word(const struct command *cmd)
{
	switch (cmd->operand_kind) {
	case OPERAND_NONE:
		return "none";
	case OPERAND_PATH:
		return "file";
	case OPERAND_PLAIN_DB:
		return "plain";
	case OPERAND_ACTIVE_DB:
		return "active";
	}
	return "none";
}

static void column_words(const struct table_spec *table, const char *before, FILE *out)
{
	for (const struct column *c = table ? table->columns : NULL; c && c->key; c++)
		(void)fprintf(out, "%s%s", c == table->columns ? before : " ", c->key);
}

void describe_bash_options(const struct command *cmd, FILE *out)
{
	(void)cmd;
	for (size_t i = 0; commands[i]; i++) {
		if (!describe_is_listed(commands[i]))
			continue;
		(void)fprintf(out, "\t%s)\n\t\toptions='", commands[i]->name);
		option_words(commands[i]->opts, out);
		(void)fprintf(out, "'\n\t\toperand='%s'\n\t\tcolumns='", operand_word(commands[i]));
		column_words(commands[i]->table, "", out);
		column_words(commands[i]->other_table, " ", out);
		(void)fputs("'\n\t\t;;\n", out);
	}
}

static void value_word(const struct opt_spec *opt, FILE *out)
{
	switch (opt->complete) {
	case COMPLETE_NONE:
		(void)fputs("none", out);
		break;
	case COMPLETE_DIR:
		(void)fputs("dir", out);
		break;
	case COMPLETE_TARGET:
		(void)fputs("target", out);
		break;
	case COMPLETE_FILE:
		(void)fputs("file", out);
		break;
	case COMPLETE_COLUMNS:
		(void)fputs("columns", out);
		break;
	case COMPLETE_FORMATS:
		(void)fputs("formats", out);
		break;
	case COMPLETE_CHOICES:
		(void)fputs("words", out);
		for (size_t i = 0; opt->choices[i]; i++)
			(void)fprintf(out, " %s", opt->choices[i]);
		break;
	}
}

/* One arm of a case over "COMMAND OPTION" for each option that takes a value. */
static void option_values(const char *command, const struct opt_spec *opts, FILE *out)
{
	for (size_t i = 0; opts && opts[i].name; i++) {
		if (opts[i].hidden || opts[i].kind == OPT_FLAG || opts[i].kind == OPT_COUNT)
			continue;
		(void)fprintf(out, "\t%s' --%s'", command, opts[i].name);
		if (opts[i].letter)
			(void)fprintf(out, " | %s' -%c'", command, opts[i].letter);
		(void)fputs(") value='", out);
		value_word(&opts[i], out);
		(void)fputs("' ;;\n", out);
	}
}

void describe_bash_values(const struct command *cmd, FILE *out)
{
	(void)cmd;
	option_values("*", global_opts, out);
	for (size_t i = 0; commands[i]; i++)
		if (describe_is_listed(commands[i]))
			option_values(commands[i]->name, commands[i]->opts, out);
}
