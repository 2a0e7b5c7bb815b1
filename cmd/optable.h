/* One table of options per command. The same table parses the command line, prints --help, and
 * describes itself to the generator of completions and manual page: nothing is written twice. */
#ifndef DBT_CMD_OPTABLE_H
#define DBT_CMD_OPTABLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_kind {
	OPT_FLAG = 0, /* bool at .at, set true */
	OPT_STRING,   /* const char * at .at, borrowed from argv */
	OPT_STRINGS,  /* struct opt_strings at .at, may be given more than once */
	OPT_BYTES,    /* uint64_t at .at: 10G, 512K ... */
	OPT_NUMBER,   /* uint64_t at .at */
	OPT_RESERVE,  /* struct opt_reserve at .at: SIZE or N% */
	OPT_CHOICE,   /* const char * at .at, one of .choices; the value may be optional */
};

enum opt_complete {
	COMPLETE_NONE = 0,
	COMPLETE_DIR,
	COMPLETE_FILE,
	COMPLETE_COLUMNS,
	COMPLETE_CHOICES
};

struct opt_strings {
	const char **items; /* owned: free(items) */
	size_t n, cap;
};

struct opt_reserve {
	bool set;
	uint64_t bytes;
	double percent; /* > 0: percent of the filesystem counts, not bytes */
};

struct opt_spec {
	const char *name; /* long name; NULL ends the table */
	char letter;      /* 0: none */
	enum opt_kind kind;
	const char *metavar;
	size_t at;                  /* offsetof in the command's args struct */
	const char *help;           /* one line, lower case */
	const char *const *choices; /* OPT_CHOICE, NULL-terminated */
	bool optional_value;        /* --progress[=json] */
	enum opt_complete complete;
	unsigned conflicts; /* bit group: two options of one command that share a bit exclude each
	                       other */
	bool hidden;
};

enum operand_kind { OPERAND_NONE = 0, OPERAND_PATH, OPERAND_PLAIN_DB, OPERAND_ACTIVE_DB };

struct command;
struct global_args {
	bool json, noheadings, raw, bytes, quiet, no_color;
	unsigned verbose;
	const char *output; /* -o COLS */
	const char *state_dir;
};

/* What a command's run gets besides its own args. */
struct app;

struct command {
	const char *name;
	const char *operands;        /* "NAME|PATH... --to DIR", for the usage line */
	const char *summary;         /* one line */
	const char *help;            /* a few lines below the usage; NULL none */
	const struct opt_spec *opts; /* NULL-terminated by .name == NULL; may be NULL */
	size_t args_bytes;           /* size of its args struct, zeroed before parsing */
	unsigned min_operands,
		max_operands; /* max 0 with OPERAND_NONE: none allowed; UINT_MAX: any */
	enum operand_kind operand_kind;
	const struct table_spec *table; /* what --output and --json show; NULL: prints no table */
	int (*run)(struct app *app, void *args, char **operands, size_t n_operands);
};

#endif
