#include "base/buf.h"
#include "sys/procs.h"
#include "sys/root.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stat_line {
	char state;
	int parent;
	uint64_t start_ticks;
};

/* text: what follows the command name in /proc/PID/stat, from field 3 on. */
static bool parse_stat(const char *text, struct stat_line *ret)
{
	char *at, *end;

	if (text[0] != ' ' || text[1] == '\0')
		return false;
	ret->state = text[1];
	ret->parent = (int)strtol(text + 2, &at, 10);
	for (int field = 5; field < 22; field++)
		(void)strtoll(at, &at, 10);
	ret->start_ticks = strtoull(at, &end, 10);
	return end != at;
}

/* pid 0 is the calling process. Returns 0 or -errno. */
static int read_stat(const struct dbt_ctx *ctx, int pid, struct stat_line *ret)
{
	struct dbt_buf buf = { 0 };
	char name[64];
	const char *rest;
	int r;

	if (pid == 0)
		(void)snprintf(name, sizeof(name), "proc/self/stat");
	else
		(void)snprintf(name, sizeof(name), "proc/%d/stat", pid);
	r = dbt_root_read_line(ctx->root, name, &buf);
	if (r == 0) {
		rest = strrchr(dbt_buf_str(&buf), ')'); /* the name may hold anything */
		if (!rest || !parse_stat(rest + 1, ret))
			r = -EINVAL;
	}
	dbt_buf_release(&buf);
	return r;
}

int dbt_procs_parent(const struct dbt_ctx *ctx, int pid)
{
	struct stat_line line = { 0 };
	int r = read_stat(ctx, pid, &line);

	return r < 0 ? r : line.parent;
}

int dbt_procs_self_start(const struct dbt_ctx *ctx, struct dbt_run *ret)
{
	struct dbt_run run = { .pid = (int)getpid() };
	struct dbt_buf boot = { 0 };
	struct stat_line line = { 0 };
	int r = read_stat(ctx, 0, &line);

	run.start_ticks = line.start_ticks;
	if (r == 0)
		r = dbt_root_read_line(ctx->root, "proc/sys/kernel/random/boot_id", &boot);
	if (r == 0 && (boot.len == 0 || boot.len >= sizeof(run.boot_id)))
		r = -EINVAL;
	if (r == 0) {
		memcpy(run.boot_id, boot.data, boot.len + 1);
		*ret = run;
	}
	dbt_buf_release(&boot);
	return r;
}

bool dbt_procs_is_alive(const struct dbt_ctx *ctx, int pid, uint64_t start_ticks,
                        const char *boot_id)
{
	struct dbt_buf boot = { 0 };
	struct stat_line line = { 0 };
	bool same_boot;

	if (pid <= 0)
		return false;
	same_boot = dbt_root_read_line(ctx->root, "proc/sys/kernel/random/boot_id", &boot) == 0 &&
	            strcmp(dbt_buf_str(&boot), boot_id) == 0;
	dbt_buf_release(&boot);
	if (!same_boot)
		return false;
	/* hidepid hides it from us, kill() still tells that it exists: then it counts as alive */
	if (read_stat(ctx, pid, &line) < 0)
		return ctx->root->live && kill(pid, 0) < 0 && errno == EPERM;
	return line.start_ticks == start_ticks && line.state != 'Z' && line.state != 'X';
}
