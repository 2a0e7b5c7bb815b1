#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int negative(int code)
{
	if (code == 0)
		return -EIO;
	return code < 0 ? code : -code;
}

const char *dbt_err_text(int code)
{
	static _Thread_local char text[128];
	const char *s = strerrordesc_np(abs(code));

	if (!s) {
		(void)snprintf(text, sizeof(text), "error %d", abs(code));
		return text;
	}
	(void)snprintf(text, sizeof(text), "%s", s);
	/* "No such file" reads as a sentence part, "RFS specific error" keeps its capitals. */
	if (text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z')
		text[0] = (char)(text[0] - 'A' + 'a');
	return text;
}

/* Appends at the end of text; a sentence that does not fit is cut, never an error of its own. */
__attribute__((format(printf, 2, 0))) static void append(char *text, const char *fmt, va_list ap)
{
	size_t used = strlen(text);

	(void)vsnprintf(text + used, DBT_ERR_TEXT_BYTES - used, fmt, ap);
}

static void append_str(char *text, const char *s)
{
	size_t used = strlen(text);

	(void)snprintf(text + used, DBT_ERR_TEXT_BYTES - used, "%s", s);
}

int dbt_err_set(struct dbt_err *err, enum dbt_err_kind kind, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return negative(code);
	err->kind = kind;
	err->code = negative(code);
	err->text[0] = '\0';
	va_start(ap, fmt);
	append(err->text, fmt, ap);
	va_end(ap);
	return err->code;
}

static enum dbt_err_kind kind_of(int code)
{
	switch (-code) {
	case ENOSPC:
	case EDQUOT:
		return DBT_ERR_NOSPACE;
	case ECANCELED:
		return DBT_ERR_INTERRUPTED;
	default:
		return DBT_ERR_SYSTEM;
	}
}

int dbt_err_sys(struct dbt_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	code = negative(code);
	if (!err)
		return code;
	err->kind = kind_of(code);
	err->code = code;
	err->text[0] = '\0';
	va_start(ap, fmt);
	append(err->text, fmt, ap);
	va_end(ap);
	append_str(err->text, ": ");
	append_str(err->text, code == -ECANCELED ? "interrupted" : dbt_err_text(code));
	return code;
}

int dbt_err_refuse(struct dbt_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -EPERM;
	err->kind = DBT_ERR_REFUSED;
	err->code = -EPERM;
	err->text[0] = '\0';
	va_start(ap, fmt);
	append(err->text, fmt, ap);
	va_end(ap);
	return err->code;
}

/* A caller that forgot to say what failed must not turn into success. */
static int code_of(struct dbt_err *err)
{
	if (err->kind == DBT_ERR_NONE)
		err->kind = DBT_ERR_SYSTEM;
	if (err->code >= 0)
		err->code = -EIO;
	return err->code;
}

int dbt_err_wrap(struct dbt_err *err, const char *fmt, ...)
{
	char inner[DBT_ERR_TEXT_BYTES];
	va_list ap;

	if (!err)
		return -EIO;
	memcpy(inner, err->text, sizeof(inner));
	err->text[0] = '\0';
	va_start(ap, fmt);
	append(err->text, fmt, ap);
	va_end(ap);
	append_str(err->text, ": ");
	append_str(err->text, inner);
	return code_of(err);
}

int dbt_err_add(struct dbt_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -EIO;
	append_str(err->text, "; ");
	va_start(ap, fmt);
	append(err->text, fmt, ap);
	va_end(ap);
	return code_of(err);
}

void dbt_err_clear(struct dbt_err *err)
{
	if (!err)
		return;
	err->kind = DBT_ERR_NONE;
	err->code = 0;
	err->text[0] = '\0';
}
