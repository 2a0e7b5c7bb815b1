#include "ladder/caches.h"

#include "base/buf.h"
#include "base/units.h"
#include "sys/root.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { INDEXES = 16 };

static int read_field(const struct dbt_ctx *ctx, int cpu, int index, const char *field,
                      struct dbt_buf *buf)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu,
	               index, field);
	return dbt_root_read_line(ctx->root, path, buf);
}

void dbt_caches_read(const struct dbt_ctx *ctx, struct dbt_caches *ret)
{
	struct dbt_buf buf = { 0 };
	int cpu = sched_getcpu();

	*ret = (struct dbt_caches){ 0 };
	for (int i = 0; i < INDEXES && read_field(ctx, cpu < 0 ? 0 : cpu, i, "type", &buf) == 0;
	     i++) {
		unsigned level;
		uint64_t bytes;

		if (strcmp(dbt_buf_str(&buf), "Instruction") == 0 ||
		    read_field(ctx, cpu < 0 ? 0 : cpu, i, "level", &buf) < 0)
			continue;
		level = (unsigned)(dbt_buf_str(&buf)[0] - '0');
		if (level >= 1 && level <= DBT_CACHE_LEVELS &&
		    read_field(ctx, cpu < 0 ? 0 : cpu, i, "size", &buf) == 0 &&
		    dbt_units_parse_size(dbt_buf_str(&buf), &bytes) == 0)
			ret->bytes[level - 1] = bytes;
	}
	dbt_buf_release(&buf);
}
