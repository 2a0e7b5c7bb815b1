/* What a running command has: the context for core, the parsed global options, the ledger's place.
 */
#ifndef DBT_CMD_APP_H
#define DBT_CMD_APP_H

#include "cmd/optable.h"
#include "sys/ctx.h"
#include "sys/root.h"

struct app {
	struct dbt_root root;
	struct dbt_ctx ctx;
	struct global_args args;
	char *state_dir; /* resolved: --state-dir, DBTIER_STATE_DIR, /var/lib/dbtier or XDG; owned
	                  */
	char *system_state_dir; /* root's, readable by others; NULL when that is state_dir itself */
};

/* Exit statuses, design: 0 done, 1 failed, 2 usage, 3 refused, 4 finished but unhealthy, 128 +
 * signal. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE_ERROR = 2, EXIT_REFUSED = 3, EXIT_UNHEALTHY = 4 };

/* msg.c: everything a person reads on stderr. Control characters are shown escaped. */
void msg_error(const struct dbt_err *err);
void msg_note(const struct app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints err and returns the exit status that its kind means. */
int msg_fail(const struct dbt_err *err);
int msg_exit_status(const struct dbt_err *err);

#endif
