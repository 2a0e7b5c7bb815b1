/* dbtier: finds big databases on slow disks, says what a move would gain, and moves them safely.
 *
 * A map of the program, from the outside in:
 *
 *   cmd/main.c          this file: from the words of the command line to the exit status
 *   cmd/commands.c      the list of commands and the options that all of them have
 *   cmd/cmd_NAME.c      one command each: its options, its columns, one call into core
 *   cmd/optable.c       the walk over options; help.c and describe.c print the same tables
 *   cmd/table.c         answers as text or JSON from one column table; text.c: odd file names
 *   cmd/app.c           what every command gets; progress.c, msg.c: stderr; signals.c
 *
 *   core/flow/          the order of the steps: plan, promote, rollback, recover, status
 *   core/observe/       what runs on the machine, what it waits for, and what would help
 *   core/record/        the ledger: intent and commit of every step (SQLite)
 *   core/move/          copy, prove, swap: each changes one thing, safely
 *   core/survey/        reads only: mounts, devices, probes, database formats, advice
 *   core/ladder/        measures the hierarchy from cache to disk; cmd/ladder*.c, svg.c show it
 *   core/sys/           the door to the kernel; core/base/: errors, buffers, units
 *
 * core never prints and never exits; includes point down this list only. */
#include "base/nearest.h"
#include "base/vec.h"
#include "cmd/app.h"
#include "cmd/describe.h"
#include "cmd/help.h"
#include "cmd/signals.h"
#include "cmd/table.h"
#include "cmd/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A command line, understood. */
struct call {
	const struct command *cmd;
	struct global_args globals;
	void *args; /* of cmd; owned */
	struct {
		char **items;
		size_t n, cap;
	} operands;
	size_t n_plain; /* of them, before a "--" */
};

static void call_release(struct call *call)
{
	if (call->cmd)
		opt_release(call->cmd->opts, call->args);
	free(call->args);
	free(call->operands.items);
}

static int unknown_command(const char *name, struct dbt_err *err)
{
	const char *words[64], *near;
	size_t n = 0;

	for (size_t i = 0; commands[i] && n < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(commands[i]->name, "__", 2) != 0)
			words[n++] = commands[i]->name;
	near = dbt_nearest(name, words, n);
	(void)dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "unknown command '%s'%s%s%s", name,
	                  near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	return dbt_err_add(err, "see 'dbtier --help'");
}

/* The first operand is the command: from here on its options count as well. */
static int take_command(struct call *call, struct opt_parser *parser, const char *name,
                        struct dbt_err *err)
{
	call->cmd = command_find(name);
	if (!call->cmd)
		return unknown_command(name, err);
	call->args = calloc(1, call->cmd->args_bytes ? call->cmd->args_bytes : 1);
	if (!call->args)
		return dbt_err_sys(err, -ENOMEM, "cannot start '%s'", name);
	parser->command = call->cmd->name;
	parser->uses[1] = (struct opt_use){ .opts = call->cmd->opts, .args = call->args };
	return 0;
}

static int take_operand(struct call *call, char *word, struct dbt_err *err)
{
	char **slot = dbt_vec_push(&call->operands);

	if (!slot)
		return dbt_err_sys(err, -ENOMEM, "cannot keep '%s'", word);
	*slot = word;
	return 0;
}

static int check_operands(const struct call *call, struct dbt_err *err)
{
	const struct command *cmd = call->cmd;

	if (call->operands.n < cmd->min_operands)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' wants %s; see 'dbtier %s --help'", cmd->name,
		                   cmd->operands, cmd->name);
	if (call->operands.n > cmd->max_operands)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' has no use for '%s'; see 'dbtier %s --help'", cmd->name,
		                   call->operands.items[cmd->max_operands], cmd->name);
	return 0;
}

static int check_format(const struct call *call, struct dbt_err *err)
{
	const struct command *cmd = call->cmd;

	if (cmd->other_table && cmd->wants_other_table(call->args))
		return table_check_output(cmd->other_table, &call->globals, err);
	if (cmd->table)
		return table_check_output(cmd->table, &call->globals, err);
	if (call->globals.json || call->globals.output)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' prints no table; see 'dbtier %s --help'", cmd->name,
		                   cmd->name);
	return 0;
}

/* Understands the words. --help and --version win over whatever else is missing. */
static int parse(struct call *call, char **words, struct dbt_err *err)
{
	struct opt_parser parser = { .words = words };
	char *word;
	int r;

	parser.uses[0] = (struct opt_use){ .opts = global_opts, .args = &call->globals };
	while ((r = opt_next(&parser, &word, err)) > 0) {
		if (call->cmd && !parser.only_operands)
			call->n_plain++;
		r = call->cmd ? take_operand(call, word, err)
		              : take_command(call, &parser, word, err);
		if (r < 0)
			return r;
	}
	if (r < 0 || !call->cmd || call->globals.help || call->globals.version)
		return r;
	r = opt_check_required(&parser, err);
	if (r == 0)
		r = check_operands(call, err);
	if (r == 0)
		r = check_format(call, err);
	return r;
}

static int run_command(struct call *call)
{
	struct dbt_err err;
	struct app app;
	int status;

	if (app_init(&app, &call->globals, call->cmd, &err) < 0)
		return msg_fail(&err);
	app.n_plain = call->n_plain;
	status = call->cmd->run(&app, call->args, call->operands.items, call->operands.n);
	app_release(&app);
	return status;
}

static int run(struct call *call)
{
	struct dbt_err err;

	if (call->globals.version) {
		(void)printf("dbtier %s\n", DBTIER_VERSION);
		return EXIT_DONE;
	}
	if (call->globals.describe)
		return describe(stdin, stdout, &err) < 0 ? msg_fail(&err) : EXIT_DONE;
	if (call->globals.help && call->cmd) {
		help_command(call->cmd, stdout);
		return EXIT_DONE;
	}
	if (call->globals.help) {
		help_program(stdout);
		return EXIT_DONE;
	}
	if (!call->cmd) {
		help_program(stderr);
		return EXIT_USAGE_ERROR;
	}
	return run_command(call);
}

/* The other end of the pipe was closed. Which of several writes failed, and why, stdio does not
 * tell; the pipe itself does. */
static bool reader_is_gone(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* A full disk behind stdout is a failure; a reader that went away ends the program as it would end
 * any other, once the work is done. */
static int close_stdout(int status)
{
	bool failed = ferror(stdout) != 0, gone;
	int code = 0;

	if (fflush(stdout) != 0) {
		failed = true;
		code = errno;
	}
	gone = failed && reader_is_gone();
	if (fclose(stdout) != 0 && !failed) {
		failed = true;
		code = errno;
	}
	if (!failed)
		return status;
	if (gone) {
		if (status == EXIT_DONE || status == EXIT_UNHEALTHY)
			signals_die_of_pipe();
		return status;
	}
	msg_line(MSG_ERROR, "cannot write the answer: ",
	         code ? dbt_err_text(code) : "an earlier write failed");
	return status == EXIT_DONE ? EXIT_FAILED : status;
}

/* A file that is opened while 0, 1 or 2 is free must not become stdin, stdout or stderr: the ledger
 * would receive messages. The stand-ins are read-only, so that writing to them is an error. */
static void occupy_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

int main(int argc, char **argv)
{
	struct call call = { 0 };
	struct dbt_err err;
	int status;

	occupy_standard_fds();
	/* Only how bytes become characters follows the user's locale: numbers and dates are the
	 * same for everyone. */
	(void)setlocale(LC_CTYPE, "");
	signals_init();
	if (parse(&call, argv + (argc > 0), &err) < 0)
		status = msg_fail(&err);
	else
		status = run(&call);
	call_release(&call);
	return close_stdout(status);
}
