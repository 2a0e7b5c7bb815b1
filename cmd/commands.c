/* The commands, in the order in which --help lists them, and the options that all of them have. A
 * new command is a file cmd_NAME.c that defines `const struct command cmd_NAME`, and one line in
 * the list here. */
#include "cmd/optable.h"

#include <string.h>

/* clang-format off */
#define COMMANDS(X) \
	X(scan) \
	X(formats) \
	X(devices) \
	X(probe) \
	X(diagnose) \
	X(ladder) \
	X(promote) \
	X(status) \
	X(verify) \
	X(rollback) \
	X(reclaim) \
	X(recover) \
	X(config) \
	X(complete)
/* clang-format on */

#define DECLARE(name) extern const struct command cmd_##name;
#define POINT(name)   &cmd_##name,

COMMANDS(DECLARE)

const struct command *const commands[] = { COMMANDS(POINT) NULL };

enum { GROUP_FORMAT = 1, GROUP_LOUDNESS = 2, GROUP_COLUMNS = 4 };

static const char *const progress_choices[] = { "json", "none", NULL };

#define AT(member) offsetof(struct global_args, member)

const struct opt_spec global_opts[] = {
	{ .name = "json",
	  .letter = 'J',
	  .at = AT(json),
	  .conflicts = GROUP_FORMAT,
	  .help = "print the table as JSON" },
	{ .name = "output",
	  .letter = 'o',
	  .kind = OPT_STRING,
	  .at = AT(output),
	  .metavar = "COLS",
	  .complete = COMPLETE_COLUMNS,
	  .conflicts = GROUP_COLUMNS,
	  .help = "columns to print; +COLS adds to the usual ones" },
	{ .name = "output-all",
	  .letter = 'O',
	  .at = AT(all_columns),
	  .conflicts = GROUP_COLUMNS,
	  .help = "print all columns" },
	{ .name = "pairs",
	  .letter = 'P',
	  .at = AT(pairs),
	  .conflicts = GROUP_FORMAT,
	  .help = "print rows as KEY=\"value\" for a shell" },
	{ .name = "list",
	  .letter = 'l',
	  .at = AT(list),
	  .conflicts = GROUP_FORMAT,
	  .help = "print an aligned list, as without it" },
	{ .name = "raw",
	  .letter = 'r',
	  .at = AT(raw),
	  .conflicts = GROUP_FORMAT,
	  .help = "print the table without alignment" },
	{ .name = "noheadings",
	  .letter = 'n',
	  .at = AT(noheadings),
	  .help = "print the table without headings" },
	{ .name = "bytes",
	  .letter = 'b',
	  .at = AT(bytes),
	  .help = "print sizes in bytes, rates in bytes a second" },
	{ .name = "sort",
	  .kind = OPT_STRING,
	  .at = AT(sort),
	  .metavar = "COL",
	  .complete = COMPLETE_COLUMNS,
	  .help = "order the rows by that column" },
	{ .name = "width",
	  .kind = OPT_NUMBER,
	  .at = AT(width),
	  .metavar = "N",
	  .least = 10,
	  .most = 10000,
	  .help = "print the table for so many characters a line" },
	{ .name = "quiet",
	  .letter = 'q',
	  .at = AT(quiet),
	  .conflicts = GROUP_LOUDNESS,
	  .help = "print errors only, no remarks" },
	{ .name = "verbose",
	  .letter = 'v',
	  .kind = OPT_COUNT,
	  .at = AT(verbose),
	  .conflicts = GROUP_LOUDNESS,
	  .help = "tell more about what is done and why" },
	{ .name = "progress",
	  .kind = OPT_CHOICE,
	  .at = AT(progress),
	  .metavar = "json|none",
	  .choices = progress_choices,
	  .complete = COMPLETE_CHOICES,
	  .help = "report progress as JSON on stderr, or not at all" },
	{ .name = "no-color",
	  .at = AT(no_color),
	  .help = "print without colors, as with NO_COLOR" },
	{ .name = "state-dir",
	  .kind = OPT_STRING,
	  .at = AT(state_dir),
	  .metavar = "DIR",
	  .complete = COMPLETE_DIR,
	  .help = "directory of the ledger" },
	{ .name = "help",
	  .letter = 'h',
	  .at = AT(help),
	  .in_usage = true,
	  .help = "print a help text" },
	{ .name = "version",
	  .letter = 'V',
	  .at = AT(version),
	  .in_usage = true,
	  .help = "print the version" },
	{ .name = "describe",
	  .at = AT(describe),
	  .hidden = true,
	  .help = "fill a template of the manual or the completion" },
	{ 0 },
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}
