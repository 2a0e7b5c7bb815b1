#include "cmd/describe.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

static const struct place_holder {
	const char *name;
	void (*print)(const struct command *cmd, FILE *out);
	bool of_command; /* wants the name of a command behind it */
	bool optional;   /* ... or none: then the program itself is meant */
} place_holders[] = {
	{ .name = "man os", .print = describe_man_os },
	{ .name = "man synopsis", .print = describe_man_synopsis, .of_command = true },
	{ .name = "man options",
	  .print = describe_man_options,
	  .of_command = true,
	  .optional = true },
	{ .name = "man columns", .print = describe_man_columns, .of_command = true },
	{ .name = "man other-columns", .print = describe_man_other_columns, .of_command = true },
	{ .name = "bash commands", .print = describe_bash_commands },
	{ .name = "bash options", .print = describe_bash_options },
	{ .name = "json schema", .print = describe_schema },
	{ .name = "bash values", .print = describe_bash_values },
	{ .name = "zsh commands", .print = describe_zsh_commands },
	{ .name = "zsh globals", .print = describe_zsh_globals },
	{ .name = "zsh options", .print = describe_zsh_options },
	{ .name = "fish commands", .print = describe_fish_commands },
	{ .name = "fish valued", .print = describe_fish_valued },
	{ .name = "fish options", .print = describe_fish_options },
	{ .name = "fish operands", .print = describe_fish_operands },
	{ .name = "fish columns", .print = describe_fish_columns },
};

enum { N_PLACE_HOLDERS = sizeof(place_holders) / sizeof(place_holders[0]) };

bool describe_is_listed(const struct command *cmd)
{
	return strncmp(cmd->name, "__", 2) != 0;
}

/* text: between the @. Fills in nothing for a place holder that is not ours. */
static int fill(const char *text, FILE *out, struct dbt_err *err)
{
	for (size_t i = 0; i < N_PLACE_HOLDERS; i++) {
		const struct place_holder *holder = &place_holders[i];
		size_t len = strlen(holder->name);
		const struct command *cmd;

		if (strncmp(text, holder->name, len) != 0 || (text[len] && text[len] != ' '))
			continue;
		if (!text[len]) {
			if (holder->of_command && !holder->optional)
				break;
			holder->print(NULL, out);
			return 0;
		}
		cmd = command_find(text + len + 1);
		if (!holder->of_command || !cmd)
			break;
		holder->print(cmd, out);
		return 0;
	}
	return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "the template has an unknown line '@%s@'",
	                   text);
}

int describe(FILE *template, FILE *out, struct dbt_err *err)
{
	dbt_autofree char *line = NULL;
	size_t cap = 0;
	ssize_t len;
	int r;

	while ((len = getline(&line, &cap, template)) > 0) {
		if (line[0] != '@' || len < 4 || strcmp(line + len - 2, "@\n") != 0) {
			(void)fputs(line, out);
			continue;
		}
		line[len - 2] = '\0';
		r = fill(line + 1, out, err);
		if (r < 0)
			return r;
	}
	if (ferror(template))
		return dbt_err_sys(err, -EIO, "cannot read the template");
	return 0;
}
