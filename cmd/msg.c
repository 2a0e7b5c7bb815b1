#include "cmd/msg.h"

#include "base/buf.h"
#include "cmd/app.h"
#include "cmd/signals.h"
#include "cmd/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Does stderr go to the journal? systemd names device and inode of the stream, see systemd.exec(5). */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void msg_line(enum msg_level level, const char *prefix, const char *text)
{
	struct dbt_buf buf = { 0 };
	int r = is_journal() ? dbt_buf_addf(&buf, "<%d>", (int)level) : 0;

	/* The journal names the program itself. */
	if (r == 0)
		r = dbt_buf_addf(&buf, "%s%s", buf.len ? "" : "dbtier: ", prefix);

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
	msg_line(MSG_ERROR, "", err->text);
}

static void tell(const struct app *app, enum msg_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
static void tell(const struct app *app, enum msg_level level, const char *fmt, va_list ap)
{
	char text[DBT_ERR_TEXT_BYTES];

	if (app->args.quiet)
		return;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	msg_line(level, "", text);
}

void msg_note(const struct app *app, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell(app, MSG_INFO, fmt, ap);
	va_end(ap);
}

void msg_tell(const struct app *app, enum msg_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell(app, level, fmt, ap);
	va_end(ap);
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
