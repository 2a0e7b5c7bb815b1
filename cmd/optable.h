/* One table of options per command. The same table parses the command line, prints --help, and
 * describes itself to the generator of completions and manual page: nothing is written twice. */
#ifndef DBT_CMD_OPTABLE_H
#define DBT_CMD_OPTABLE_H

#include "base/err.h"
#include "base/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum opt_kind {
	OPT_FLAG = 0, /* bool at .at, set true */
	OPT_COUNT,    /* unsigned at .at, one more each time it is given */
	OPT_STRING,   /* const char * at .at, borrowed from argv */
	OPT_STRINGS,  /* struct opt_strings at .at, may be given more than once */
	OPT_BYTES,    /* uint64_t at .at: 10G, 512K ... */
	OPT_NUMBER,   /* uint64_t at .at */
	OPT_RESERVE,  /* struct opt_reserve at .at: SIZE or N% */
	OPT_CHOICE,   /* const char * at .at: one of .choices (that very pointer) */
};

enum opt_complete {
	COMPLETE_NONE = 0,
	COMPLETE_DIR,
	COMPLETE_TARGET, /* a directory on a fast tier first, then any */
	COMPLETE_FILE,
	COMPLETE_COLUMNS,
	COMPLETE_CHOICES,
	COMPLETE_FORMATS,
};

struct opt_strings {
	const char **items; /* the array is freed by the dispatcher, the strings are argv's */
	size_t n, cap;
};

struct opt_reserve {
	bool set;
	struct dbt_amount amount;
};

struct opt_spec {
	const char *name; /* long name; NULL ends the table (at most 64 entries) */
	char letter;      /* 0: none */
	enum opt_kind kind;
	const char *metavar;
	size_t at;                  /* offsetof in the command's args struct */
	uint64_t least, most;       /* OPT_BYTES, OPT_NUMBER: what it takes; most 0: no limit */
	const char *help;           /* one line, lower case */
	const char *const *choices; /* OPT_CHOICE, NULL-terminated */
	bool optional_value;        /* OPT_CHOICE: --name alone means the first choice */
	enum opt_complete complete;
	unsigned conflicts; /* bits: two options of one table that share a bit exclude each other */
	bool hidden;        /* neither in --help nor in completions and manual */
	bool in_usage;      /* the usage line tells about it: left out of the list in --help */
	bool required;
};

enum operand_kind { OPERAND_NONE = 0, OPERAND_PATH, OPERAND_PLAIN_DB, OPERAND_ACTIVE_DB };

struct global_args {
	bool json, noheadings, raw, pairs, list, all_columns, bytes, quiet, no_color;
	bool help, version;
	bool describe; /* hidden: fill the template on stdin, see describe.h */
	unsigned verbose;
	const char *output;   /* -o COLS */
	const char *progress; /* "json", "none" or NULL: a line on a terminal */
	const char *state_dir;
	const char *sort; /* column; NULL: in the order of the answer */
	uint64_t width;   /* characters a line; 0: as the terminal has it */
};

extern const struct opt_spec global_opts[];

struct app;
struct table_spec;

struct command {
	const char *name;            /* beginning with "__": for programs, never listed */
	const char *operands;        /* "NAME|PATH... --to DIR", for the usage line */
	const char *summary;         /* one line */
	const char *help;            /* a paragraph below the usage; NULL none */
	const struct opt_spec *opts; /* NULL-terminated by .name == NULL; may be NULL */
	size_t args_bytes;           /* size of its args struct, zeroed before parsing */
	unsigned min_operands;
	unsigned max_operands; /* UINT_MAX: any number */
	enum operand_kind operand_kind;
	const struct table_spec *table; /* what --output and --json show; NULL: prints no table */
	/* Printed in its place when its own options ask for it; both NULL: there is no other. */
	const struct table_spec *other_table;
	bool (*wants_other_table)(const void *args);
	/* Returns the exit status. args: the filled struct of args_bytes. Messages by cmd/msg.h. */
	int (*run)(struct app *app, void *args, char **operands, size_t n_operands);
};

/* commands.c: the list in the order of the help, ended by NULL. A new command is a new file and
 * one line there. */
extern const struct command *const commands[];
const struct command *command_find(const char *name);

/* One walk over the words of a command line with up to two tables: the global one and, once it is
 * known, the command's. */
struct opt_use {
	const struct opt_spec *opts; /* may be NULL */
	void *args;
	uint64_t given; /* bit i: opts[i] was given */
};

enum { OPT_USES = 2 };

struct opt_parser {
	char **words;        /* argv + 1, ended by NULL */
	const char *cluster; /* what is left of "-nrb" */
	bool only_operands;  /* after "--" */
	struct opt_use uses[OPT_USES];
	const char *command; /* for messages; NULL: none yet */
};

/* Stores options until an operand comes. Returns 1 and the operand, 0 at the end, or an error of
 * the kind usage. */
int opt_next(struct opt_parser *parser, char **ret_operand, struct dbt_err *err);

/* Every option with .required was given? */
int opt_check_required(const struct opt_parser *parser, struct dbt_err *err);

/* The options as lines of a help text: "  -o, --output COLS   the columns to print". */
void opt_print_help(const struct opt_spec *opts, FILE *out);

/* "--output COLS", "--progress[=HOW]": buf is returned. */
enum { OPT_USAGE_BYTES = 128 };
const char *opt_usage(const struct opt_spec *opt, char buf[OPT_USAGE_BYTES]);

/* Frees the arrays that OPT_STRINGS options own in args. */
void opt_release(const struct opt_spec *opts, void *args);

#endif
