/* The generated parts of the zsh completion: specifications for _arguments. */
#include "cmd/describe.h"
#include "cmd/table.h"

#include <string.h>

/* Text inside '...' and inside the [...] of a specification, or before a colon. */
static void quoted(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\'", out);
		else if (strchr("[]:\\", *text))
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
}

void describe_zsh_commands(const struct command *cmd, FILE *out)
{
	(void)cmd;
	for (size_t i = 0; commands[i]; i++) {
		if (!describe_is_listed(commands[i]))
			continue;
		(void)fprintf(out, "\t\t'%s:", commands[i]->name);
		quoted(commands[i]->summary, out);
		(void)fputs("'\n", out);
	}
}

/* ":DIR:_dbtier_targets" */
static void action(const struct opt_spec *opt, FILE *out)
{
	(void)fputc(':', out);
	quoted(opt->metavar, out);
	(void)fputc(':', out);
	switch (opt->complete) {
	case COMPLETE_NONE:
		(void)fputc(' ', out);
		break;
	case COMPLETE_DIR:
		(void)fputs("_files -/", out);
		break;
	case COMPLETE_TARGET:
		(void)fputs(" _dbtier_targets", out);
		break;
	case COMPLETE_FILE:
		(void)fputs("_files", out);
		break;
	case COMPLETE_COLUMNS:
		(void)fputs(" _dbtier_columns", out);
		break;
	case COMPLETE_FORMATS:
		(void)fputs(" _dbtier_names formats", out);
		break;
	case COMPLETE_CHOICES:
		(void)fputc('(', out);
		for (size_t i = 0; opt->choices[i]; i++)
			(void)fprintf(out, "%s%s", i ? " " : "", opt->choices[i]);
		(void)fputc(')', out);
		break;
	}
}

/* One word of _arguments: '(-o --output)'{-o+,--output=}'[help]:COLS:...' is two, for letter and name. */
static void option(const struct opt_spec *opt, const char *indent, FILE *out)
{
	bool value = opt->kind != OPT_FLAG && opt->kind != OPT_COUNT;
	bool repeats = opt->kind == OPT_STRINGS || opt->kind == OPT_COUNT;
	const char *end = !value ? "" : opt->optional_value ? "=-" : "=";

	(void)fputs(indent, out);
	if (repeats)
		(void)fputs("'*'", out);
	else if (opt->letter)
		(void)fprintf(out, "'(-%c --%s)'", opt->letter, opt->name);
	if (opt->letter)
		(void)fprintf(out, "{-%c%s,--%s%s}", opt->letter, value ? "+" : "", opt->name, end);
	else
		(void)fprintf(out, "--%s%s", opt->name, end);
	(void)fputs("'[", out);
	quoted(opt->help, out);
	(void)fputc(']', out);
	if (value && opt->optional_value)
		(void)fputc(':', out);
	if (value)
		action(opt, out);
	(void)fputs("'\n", out);
}

void describe_zsh_globals(const struct command *cmd, FILE *out)
{
	(void)cmd;
	for (size_t i = 0; global_opts[i].name; i++)
		if (!global_opts[i].hidden)
			option(&global_opts[i], "\t\t", out);
}

static const char *operand(const struct command *cmd)
{
	switch (cmd->operand_kind) {
	case OPERAND_NONE:
		break;
	case OPERAND_PATH:
		return "'*:path:_files'";
	case OPERAND_PLAIN_DB:
		return "'*:database: _dbtier_names plain'";
	case OPERAND_ACTIVE_DB:
		return "'*:database: _dbtier_names active'";
	}
	return NULL;
}

void describe_zsh_options(const struct command *cmd, FILE *out)
{
	(void)cmd;
	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];

		if (!describe_is_listed(c))
			continue;
		(void)fprintf(out, "\t%s)\n\t\tspecs=(\n", c->name);
		for (size_t k = 0; c->opts && c->opts[k].name; k++)
			if (!c->opts[k].hidden)
				option(&c->opts[k], "\t\t\t", out);
		if (operand(c))
			(void)fprintf(out, "\t\t\t%s\n", operand(c));
		(void)fputs("\t\t)\n\t\tshown_columns=(", out);
		for (const struct column *col = c->table ? c->table->columns : NULL;
		     col && col->key; col++) {
			(void)fprintf(out, "\n\t\t\t'%s[", col->key);
			quoted(col->help ? col->help : "", out);
			(void)fputs("]'", out);
		}
		(void)fputs("\n\t\t)\n\t\t;;\n", out);
	}
}
