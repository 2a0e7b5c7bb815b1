#include "sys/ctx.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

void dbt_ctx_init(struct dbt_ctx *ctx, const struct dbt_root *root)
{
	*ctx = (struct dbt_ctx){ .sys = &dbt_sys_real, .root = root };
}

void dbt_ctx_log(const struct dbt_ctx *ctx, enum dbt_log_level level, const char *fmt, ...)
{
	char text[DBT_ERR_TEXT_BYTES];
	va_list ap;

	if (!ctx->log)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ctx->log(ctx->log_data, level, text);
}

bool dbt_ctx_cancelled(const struct dbt_ctx *ctx)
{
	return ctx->cancel && atomic_load_explicit(ctx->cancel, memory_order_relaxed) != 0;
}
