/* A command that is run to be observed: it begins when the observer is ready. */
#ifndef DBT_CMD_RUNNER_H
#define DBT_CMD_RUNNER_H

#include "base/err.h"
#include "sys/sys.h"

#include <stdbool.h>
#include <stddef.h>

struct runner {
	char **words; /* ended by NULL; the array is owned, the words are not */
	const struct dbt_sys *sys;
	int pid;
	int go;     /* closing it lets the command begin; -1: it has */
	int report; /* the errno of a failed exec comes from here */
	uint64_t begin_ns;
	bool ended;
	double seconds; /* from its begin to its end */
	int status;     /* as a shell says it: 128 + the signal that killed it */
	int failed;     /* errno: it could not be run; 0 */
};

/* Makes the process, which waits. */
int runner_start(struct runner *runner, char *const *words, size_t n_words,
                 const struct dbt_sys *sys, struct dbt_err *err);

/* Lets it begin, the first time; true once it has ended. */
bool runner_poll(struct runner *runner);

/* A command that still runs is left running. */
void runner_release(struct runner *runner);

#endif
