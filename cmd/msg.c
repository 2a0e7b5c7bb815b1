#include "cmd/msg.h"

#include "base/buf.h"
#include "cmd/app.h"
#include "cmd/signals.h"
#include "cmd/text.h"

#include <stdio.h>

void msg_line(const char *prefix, const char *text)
{
	struct dbt_buf buf = { 0 };
	int r = dbt_buf_addf(&buf, "dbtier: %s", prefix);

	if (r == 0)
		r = text_add_escaped(&buf, text);
	if (r == 0)
		r = dbt_buf_addc(&buf, '\n');
	progress_hide();
	(void)fputs(r == 0 ? dbt_buf_str(&buf) : "dbtier: out of memory\n", stderr);
	dbt_buf_release(&buf);
}

void msg_error(const struct dbt_err *err)
{
	msg_line("", err->text);
}

void msg_note(const struct app *app, const char *fmt, ...)
{
	char text[DBT_ERR_TEXT_BYTES];
	va_list ap;

	if (app->args.quiet)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	msg_line("", text);
}

int msg_exit_status(const struct dbt_err *err)
{
	int signo = atomic_load(signals_cancel());

	switch (err->kind) {
	case DBT_ERR_USAGE:
		return EXIT_USAGE_ERROR;
	case DBT_ERR_REFUSED:
		return EXIT_REFUSED;
	case DBT_ERR_INTERRUPTED:
		return signo ? 128 + signo : EXIT_FAILED;
	case DBT_ERR_NONE: /* a failure all the same, only without its reason */
	case DBT_ERR_SYSTEM:
	case DBT_ERR_UNKNOWN:
	case DBT_ERR_VERIFY:
	case DBT_ERR_CHANGED:
	case DBT_ERR_BUSY:
	case DBT_ERR_NOSPACE:
	case DBT_ERR_LEDGER:
		break;
	}
	return EXIT_FAILED;
}

int msg_fail(const struct dbt_err *err)
{
	msg_error(err);
	return msg_exit_status(err);
}
