/* The program describes itself: it fills templates (the manual page, the completion) from the same
 * tables that parse the command line and print the answers. */
#ifndef DBT_CMD_DESCRIBE_H
#define DBT_CMD_DESCRIBE_H

#include "base/err.h"
#include "cmd/optable.h"

#include <stdio.h>

/* Copies the template. A line "@KIND WHAT@" or "@KIND WHAT COMMAND@" is replaced by what the
 * program has to say about it: see the list in describe.c. An unknown one is an error. Returns 0 or
 * -errno. */
int describe(FILE *template, FILE *out, struct dbt_err *err);

/* Place holders in describe_man.c, describe_bash.c and so on; cmd is NULL without COMMAND. */
void describe_man_os(const struct command *cmd, FILE *out);
void describe_man_synopsis(const struct command *cmd, FILE *out);
void describe_man_options(const struct command *cmd, FILE *out);
void describe_man_columns(const struct command *cmd, FILE *out);
void describe_man_other_columns(const struct command *cmd, FILE *out);
void describe_bash_commands(const struct command *cmd, FILE *out);
void describe_bash_options(const struct command *cmd, FILE *out);
void describe_bash_values(const struct command *cmd, FILE *out);
void describe_zsh_commands(const struct command *cmd, FILE *out);
void describe_zsh_globals(const struct command *cmd, FILE *out);
void describe_zsh_options(const struct command *cmd, FILE *out);
void describe_fish_commands(const struct command *cmd, FILE *out);
void describe_fish_valued(const struct command *cmd, FILE *out);
void describe_fish_options(const struct command *cmd, FILE *out);
void describe_fish_operands(const struct command *cmd, FILE *out);
void describe_fish_columns(const struct command *cmd, FILE *out);
void describe_schema(const struct command *cmd, FILE *out);

bool describe_is_listed(const struct command *cmd);

#endif
