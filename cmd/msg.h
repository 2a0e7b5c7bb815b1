/* Everything a person reads on stderr, each line beginning with "dbtier: ". Control characters and
 * bytes that are no UTF-8 are shown escaped. */
#ifndef DBT_CMD_MSG_H
#define DBT_CMD_MSG_H

#include "base/err.h"

struct app;

void msg_error(const struct dbt_err *err);

/* A line for people, unless -q. */
void msg_note(const struct app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints err and returns the exit status that its kind means. */
int msg_fail(const struct dbt_err *err);
int msg_exit_status(const struct dbt_err *err);

/* The line as it is written, newline included, in one write: also for the log of core. */
void msg_line(const char *prefix, const char *text);

#endif
