/* --help of the program and of each command, made from the tables. */
#ifndef DBT_CMD_HELP_H
#define DBT_CMD_HELP_H

#include "cmd/optable.h"

#include <stdio.h>

void help_program(FILE *out);
void help_command(const struct command *cmd, FILE *out);

#endif
