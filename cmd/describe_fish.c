/* The generated parts of the fish completion: one `complete` line for each command and option. */
#include "cmd/describe.h"
#include "cmd/table.h"

#include <string.h>

/* In '...' fish knows two escapes. */
static void quoted(const char *text, FILE *out)
{
	(void)fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
	(void)fputc('\'', out);
}

void describe_fish_commands(const struct command *cmd, FILE *out)
{
	(void)cmd;
	for (size_t i = 0; commands[i]; i++) {
		if (!describe_is_listed(commands[i]))
			continue;
		(void)fprintf(out, "complete -c dbtier -n __dbtier_wants_command -f -a %s -d ",
		              commands[i]->name);
		quoted(commands[i]->summary, out);
		(void)fputc('\n', out);
	}
}

/* The global options that take the next word as their value: it is not the command. */
void describe_fish_valued(const struct command *cmd, FILE *out)
{
	(void)cmd;
	(void)fputs("    set -l valued", out);
	for (size_t i = 0; global_opts[i].name; i++) {
		const struct opt_spec *opt = &global_opts[i];

		if (opt->hidden || opt->kind == OPT_FLAG || opt->kind == OPT_COUNT ||
		    opt->optional_value)
			continue;
		(void)fprintf(out, " --%s", opt->name);
		if (opt->letter)
			(void)fprintf(out, " -%c", opt->letter);
	}
	(void)fputc('\n', out);
}

static void values(const struct opt_spec *opt, FILE *out)
{
	switch (opt->complete) {
	case COMPLETE_NONE:
		(void)fputs(" -x", out);
		break;
	case COMPLETE_DIR:
		(void)fputs(" -x -a '(__fish_complete_directories)'", out);
		break;
	case COMPLETE_TARGET:
		(void)fputs(" -x -k -a '(__dbtier_targets)'", out);
		break;
	case COMPLETE_FILE:
		(void)fputs(" -r", out);
		break;
	case COMPLETE_COLUMNS:
		(void)fputs(" -x -a '(__dbtier_columns)'", out);
		break;
	case COMPLETE_FORMATS:
		(void)fputs(" -x -a '(__dbtier_names formats)'", out);
		break;
	case COMPLETE_CHOICES:
		(void)fputs(opt->optional_value ? " -f -a '" : " -x -a '", out);
		for (size_t i = 0; opt->choices[i]; i++)
			(void)fprintf(out, "%s%s", i ? " " : "", opt->choices[i]);
		(void)fputc('\'', out);
		break;
	}
}

static void options(const char *command, const struct opt_spec *opts, FILE *out)
{
	for (size_t i = 0; opts && opts[i].name; i++) {
		if (opts[i].hidden)
			continue;
		(void)fputs("complete -c dbtier", out);
		if (command)
			(void)fprintf(out, " -n '__dbtier_is %s'", command);
		(void)fprintf(out, " -l %s", opts[i].name);
		if (opts[i].letter)
			(void)fprintf(out, " -s %c", opts[i].letter);
		if (opts[i].kind != OPT_FLAG && opts[i].kind != OPT_COUNT)
			values(&opts[i], out);
		(void)fputs(" -d ", out);
		quoted(opts[i].help, out);
		(void)fputc('\n', out);
	}
}

void describe_fish_options(const struct command *cmd, FILE *out)
{
	(void)cmd;
	options(NULL, global_opts, out);
	for (size_t i = 0; commands[i]; i++)
		if (describe_is_listed(commands[i]))
			options(commands[i]->name, commands[i]->opts, out);
}

void describe_fish_operands(const struct command *cmd, FILE *out)
{
	(void)cmd;
	for (size_t i = 0; commands[i]; i++) {
		const char *kind = commands[i]->operand_kind == OPERAND_PLAIN_DB    ? "plain"
		                   : commands[i]->operand_kind == OPERAND_ACTIVE_DB ? "active"
		                                                                    : NULL;

		if (!describe_is_listed(commands[i]))
			continue;
		(void)fprintf(out, "complete -c dbtier -n '__dbtier_is %s'", commands[i]->name);
		if (kind)
			(void)fprintf(out, " -k -a '(__dbtier_names %s)'", kind);
		(void)fputs(commands[i]->operand_kind == OPERAND_PATH ? " -F\n" : " -f\n", out);
	}
}

void describe_fish_columns(const struct command *cmd, FILE *out)
{
	(void)cmd;
	for (size_t i = 0; commands[i]; i++) {
		if (!describe_is_listed(commands[i]) || !commands[i]->table)
			continue;
		(void)fprintf(out, "        case %s\n", commands[i]->name);
		for (const struct column *c = commands[i]->table->columns; c->key; c++) {
			(void)fprintf(out, "            printf '%%s\\t%%s\\n' %s ", c->key);
			quoted(c->help ? c->help : "", out);
			(void)fputc('\n', out);
		}
	}
}
