/* Error values. core never prints: a function that fails returns -errno and fills the struct
 * dbt_err of its caller with a sentence for people. The kind decides the exit status (cmd/msg.c),
 * the sentence may change.
 *
 * Wording: lower case, no full stop; what failed first, the name in single quotes, then the reason,
 * then what state things are in and what to do: "cannot copy 'a.db': no space left; nothing was
 * changed". Names go in raw: whoever shows the text escapes it. */
#ifndef DBT_BASE_ERR_H
#define DBT_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

enum dbt_err_kind {
	DBT_ERR_NONE = 0,
	DBT_ERR_SYSTEM,      /* a call failed; code tells which errno */
	DBT_ERR_USAGE,       /* the command line cannot be meant */
	DBT_ERR_UNKNOWN,     /* a name that matches nothing, or more than one thing */
	DBT_ERR_REFUSED,     /* a safety rule; the text says what would lift it */
	DBT_ERR_VERIFY,      /* bytes read back differ from the bytes written or recorded */
	DBT_ERR_CHANGED,     /* the world changed under the operation */
	DBT_ERR_BUSY,        /* another run of dbtier works on the same thing */
	DBT_ERR_NOSPACE,     /* the target is full or a quota is used up */
	DBT_ERR_LEDGER,      /* the ledger cannot be read or written */
	DBT_ERR_INTERRUPTED, /* cancelled by a signal */
};

enum { DBT_ERR_TEXT_BYTES = 2048 };

struct dbt_err {
	enum dbt_err_kind kind;
	int code; /* -errno, or -1 where no errno says it */
	char text[DBT_ERR_TEXT_BYTES];
};

/* Every function below accepts a NULL err and returns the negative code it was given (-EIO for 0),
 * so that a caller can write `return dbt_err_set(...)`. */

/* Replaces whatever err held. */
int dbt_err_set(struct dbt_err *err, enum dbt_err_kind kind, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* As dbt_err_set with the errno's text appended (": no such file or directory"). The kind follows
 * from the errno: ENOSPC and EDQUOT are NOSPACE, ECANCELED is INTERRUPTED, others SYSTEM. */
int dbt_err_sys(struct dbt_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* DBT_ERR_REFUSED with code -EPERM. */
int dbt_err_refuse(struct dbt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "TEXT: " before the sentence; returns err's code. */
int dbt_err_wrap(struct dbt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "; TEXT" behind the sentence: the state of things, what to do. Returns err's code. */
int dbt_err_add(struct dbt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void dbt_err_clear(struct dbt_err *err);

/* The text of an errno in lower case, static storage. Takes -errno or errno. */
const char *dbt_err_text(int code);

#endif
