#include "cmd/app.h"

#include "base/cleanup.h"
#include "cmd/signals.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static const char system_state_dir[] = "/var/lib/dbtier";

static void on_log(void *data, enum dbt_log_level level, const char *text)
{
	struct app *app = data;

	if (level == DBT_LOG_DETAIL ? app->args.verbose == 0 : app->args.quiet)
		return;
	if (level == DBT_LOG_WARNING)
		msg_line(MSG_WARNING, "warning: ", text);
	else
		msg_line(MSG_INFO, "", text);
}

/* A relative directory is made absolute: the ledger's place must not follow a later chdir. */
static int absolute(const char *dir, char **ret, struct dbt_err *err)
{
	dbt_autofree char *cwd = NULL;

	if (*dir == '\0')
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "the state directory has an empty name");
	if (*dir == '/') {
		*ret = strdup(dir);
		return *ret ? 0 : dbt_err_sys(err, -ENOMEM, "cannot keep '%s'", dir);
	}
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return dbt_err_sys(err, -errno, "cannot tell the working directory");
	if (asprintf(ret, "%s/%s", cwd, dir) < 0) {
		*ret = NULL;
		return dbt_err_sys(err, -ENOMEM, "cannot keep '%s'", dir);
	}
	return 0;
}

/* As the XDG base directory specification says: a relative value is ignored. */
static int user_state_dir(char **ret, struct dbt_err *err)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int r;

	if (xdg && *xdg == '/')
		r = asprintf(ret, "%s/dbtier", xdg);
	else if (home && *home == '/')
		r = asprintf(ret, "%s/.local/state/dbtier", home);
	else
		return dbt_err_set(err, DBT_ERR_USAGE, -ENOENT,
		                   "HOME is not set; name the state directory with --state-dir");
	if (r < 0) {
		*ret = NULL;
		return dbt_err_sys(err, -ENOMEM, "cannot name the state directory");
	}
	return 0;
}

static int find_state_dir(struct app *app, struct dbt_err *err)
{
	const char *env = getenv("DBTIER_STATE_DIR");
	int r;

	if (app->args.state_dir)
		r = absolute(app->args.state_dir, &app->state_dir, err);
	else if (env && *env)
		r = absolute(env, &app->state_dir, err);
	else if (geteuid() == 0)
		r = absolute(system_state_dir, &app->state_dir, err);
	else
		r = user_state_dir(&app->state_dir, err);
	if (r < 0 || app->args.state_dir || (env && *env) || geteuid() == 0)
		return r;
	return absolute(system_state_dir, &app->system_state_dir, err);
}

static void progress_init(struct app *app)
{
	struct progress *p = &app->progress;

	*p = (struct progress){ .out = stderr, .sys = app->ctx.sys };
	if (app->args.progress)
		p->mode = strcmp(app->args.progress, "json") == 0 ? PROGRESS_JSON : PROGRESS_OFF;
	else if (!app->args.quiet && isatty(STDERR_FILENO))
		p->mode = PROGRESS_LINE;
}

int app_init(struct app *app, const struct global_args *args, const struct command *cmd,
             struct dbt_err *err)
{
	int r;

	*app = (struct app){ .root = { .fd = -1 }, .args = *args, .cmd = cmd };
	r = dbt_root_open(&app->root, NULL);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot open '/'");
	dbt_ctx_init(&app->ctx, &app->root);
	progress_init(app);
	app->ctx.log = on_log;
	app->ctx.log_data = app;
	app->ctx.progress = progress_report;
	app->ctx.progress_data = &app->progress;
	app->ctx.cancel = signals_cancel();
	r = find_state_dir(app, err);
	if (r < 0)
		app_release(app);
	return r;
}

int app_settings(struct app *app, struct dbt_err *err)
{
	return dbt_settings_load(&app->ctx, &app->settings, err);
}

void app_release(struct app *app)
{
	dbt_settings_release(&app->settings);
	progress_clear(&app->progress);
	dbt_root_close(&app->root);
	free(app->state_dir);
	free(app->system_state_dir);
	app->state_dir = app->system_state_dir = NULL;
}
