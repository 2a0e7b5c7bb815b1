/* The generated parts of the manual page, in mdoc(7). */
#include "cmd/describe.h"
#include "cmd/table.h"

#include <string.h>

/* Text as a sentence: roff's special characters escaped, first letter large, full stop. */
static void sentence(const char *text, FILE *out)
{
	if (*text >= 'a' && *text <= 'z')
		(void)fputc(*text++ - 'a' + 'A', out);
	else if (*text == '.' || *text == '\'')
		(void)fputs("\\&", out);
	for (; *text; text++)
		if (*text == '\\')
			(void)fputs("\\e", out);
		else if (*text == '-')
			(void)fputs("\\-", out);
		else
			(void)fputc(*text, out);
	(void)fputs(".\n", out);
}

/* An argument of a macro must not be taken for a delimiter or another macro. */
static void argument(const char *text, FILE *out)
{
	for (; *text; text++)
		if (*text == '|')
			(void)fputs(" | ", out);
		else
			(void)fputc(*text, out);
}

void describe_man_os(const struct command *cmd, FILE *out)
{
	(void)cmd;
	(void)fprintf(out, ".Os dbtier %s\n", DBTIER_VERSION);
}

void describe_man_synopsis(const struct command *cmd, FILE *out)
{
	(void)fprintf(out, ".Ic %s\n.Op Ar OPTION ...\n", cmd->name);
	if (cmd->operands)
		(void)fprintf(out, ".Li %s\n", cmd->operands);
}

static void option_head(const struct opt_spec *opt, FILE *out)
{
	bool value = opt->kind != OPT_FLAG && opt->kind != OPT_COUNT;

	(void)fputs(".It ", out);
	if (opt->letter)
		(void)fprintf(out, "Fl %c , ", opt->letter);
	(void)fprintf(out, "Fl \\-%s", opt->name);
	if (value && opt->optional_value) {
		(void)fputs("Ns Oo = Ns Ar ", out);
		argument(opt->metavar, out);
		(void)fputs(" Oc", out);
	} else if (value) {
		(void)fputs(" Ar ", out);
		argument(opt->metavar, out);
	}
	(void)fputc('\n', out);
}

void describe_man_options(const struct command *cmd, FILE *out)
{
	const struct opt_spec *opts = cmd ? cmd->opts : global_opts;

	(void)fputs(".Bl -tag -width indent\n", out);
	for (size_t i = 0; opts && opts[i].name; i++)
		if (!opts[i].hidden) {
			option_head(&opts[i], out);
			sentence(opts[i].help, out);
		}
	(void)fputs(".El\n", out);
}

static const char *type_text(const struct column *column)
{
	switch (column->type) {
	case COLUMN_TEXT:
	case COLUMN_NAME:
		return "text";
	case COLUMN_SIZE:
		return "bytes";
	case COLUMN_COUNT:
		return "number";
	case COLUMN_NS:
		return "nanoseconds";
	case COLUMN_SECONDS:
		return "seconds";
	case COLUMN_TIME:
		return "seconds since 1970";
	case COLUMN_RATE:
		return "bytes a second";
	case COLUMN_REAL:
		return "number";
	case COLUMN_SHARE:
		return "0 to 1";
	case COLUMN_BOOL:
		return "true or false";
	case COLUMN_LIST:
		return "list";
	}
	return "";
}

static void column_list(const struct table_spec *table, FILE *out)
{
	(void)fputs(".Bl -tag -width indent -compact\n", out);
	for (const struct column *c = table->columns; c->key; c++) {
		(void)fprintf(out, ".It Li %s Pq %s%s\n", c->key, type_text(c),
		              c->json_only   ? ", with --json only"
		              : c->text_only ? ", not with --json"
		                             : "");
		sentence(c->help, out);
	}
	(void)fputs(".El\n", out);
}

void describe_man_columns(const struct command *cmd, FILE *out)
{
	column_list(cmd->table, out);
}

void describe_man_other_columns(const struct command *cmd, FILE *out)
{
	column_list(cmd->other_table, out);
}
