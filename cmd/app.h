/* What a running command has: the context for core, the parsed global options, the ledger's place.
 */
#ifndef DBT_CMD_APP_H
#define DBT_CMD_APP_H

#include "cmd/msg.h"
#include "cmd/optable.h"
#include "cmd/progress.h"
#include "flow/settings.h"
#include "sys/ctx.h"
#include "sys/root.h"

struct app {
	struct dbt_root root; /* the running system */
	struct dbt_ctx ctx;
	struct global_args args;
	const struct command *cmd;
	size_t n_plain; /* operands before a "--" */
	struct progress progress;
	char *state_dir; /* --state-dir, DBTIER_STATE_DIR, /var/lib/dbtier for root, or below
	                    XDG_STATE_HOME; absolute; owned; need not exist yet */
	struct dbt_settings settings; /* once app_settings has read them */
	char *system_state_dir; /* root's, readable by others; NULL when that is state_dir itself;
	                           owned */
};

/* Exit statuses: see the manual. An interrupted run ends with 128 + the signal. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE_ERROR = 2,
	EXIT_REFUSED = 3,
	EXIT_UNHEALTHY = 4,
};

/* args are moved into app. On success the caller releases; app must not move afterwards: the
 * context points into it. */
int app_init(struct app *app, const struct global_args *args, const struct command *cmd,
             struct dbt_err *err);
void app_release(struct app *app);

/* Reads the configuration into app->settings. Only commands that follow it do: a slip in a file must not keep
 * anybody from a rollback. */
int app_settings(struct app *app, struct dbt_err *err);

#endif
