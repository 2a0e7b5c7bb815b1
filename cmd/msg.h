/* Everything a person reads on stderr, each line beginning with "dbtier: ". Control characters and
 * bytes that are no UTF-8 are shown escaped. */
#ifndef DBT_CMD_MSG_H
#define DBT_CMD_MSG_H

#include "base/err.h"

struct app;

/* The priorities of syslog, for a reader that sorts by them. */
enum msg_level { MSG_ERROR = 3, MSG_WARNING = 4, MSG_NOTICE = 5, MSG_INFO = 6 };

void msg_error(const struct dbt_err *err);

/* A line for people, unless -q. */
void msg_note(const struct app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints err and returns the exit status that its kind means. */
int msg_fail(const struct dbt_err *err);
int msg_exit_status(const struct dbt_err *err);

/* As msg_note, with a priority of its own. */
void msg_tell(const struct app *app, enum msg_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The line as it is written, newline included, in one write: also for the log of core. Where stderr is the journal,
 * the level stands in front in the way of sd-daemon(3). */
void msg_line(enum msg_level level, const char *prefix, const char *text);

#endif
