#include "observe/machine.h"

#include "base/buf.h"
#include "base/vec.h"
#include "observe/words.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { TEXT_BYTES = 1 << 20 };

bool dbt_machine_number(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) != 0 || (line[len] != ' ' && line[len] != ':'))
			continue;
		line += len + strspn(line + len, ": \t");
		if (!isdigit((unsigned char)*line))
			return false;
		*ret = strtoull(line, NULL, 10);
		return true;
	}
	return false;
}

bool dbt_machine_pressure(const char *text, const char *line, uint64_t *ret_us)
{
	const char *at = strstr(text, line), *total = at ? strstr(at, "total=") : NULL;

	if (!total)
		return false;
	*ret_us = strtoull(total + strlen("total="), NULL, 10);
	return true;
}

bool dbt_machine_diskstat(const char *line, struct dbt_obs_device *ret, char name[64])
{
	/* Reads, merged, sectors, ms; the same of writes; in flight, busy ms, ms of all requests. */
	enum {
		READS,
		READ_SECTORS = 2,
		READ_MS,
		WRITES,
		WRITTEN_SECTORS = 6,
		WRITE_MS,
		BUSY_MS = 9,
		QUEUE_MS,
		N
	};
	uint64_t numbers[2], v[N];
	size_t len;

	*ret = (struct dbt_obs_device){ 0 };
	if (dbt_next_numbers(&line, numbers, 2) < 2)
		return false;
	line += strspn(line, " ");
	len = strcspn(line, " ");
	if (len == 0 || len >= 64)
		return false;
	memcpy(name, line, len);
	name[len] = '\0';
	line += len;
	if (dbt_next_numbers(&line, v, N) < N)
		return false;
	ret->devno = makedev((unsigned)numbers[0], (unsigned)numbers[1]);
	ret->reads = v[READS];
	ret->read_bytes = v[READ_SECTORS] * 512;
	ret->read_ns = v[READ_MS] * 1000000;
	ret->writes = v[WRITES];
	ret->write_bytes = v[WRITTEN_SECTORS] * 512;
	ret->write_ns = v[WRITE_MS] * 1000000;
	ret->busy_ns = v[BUSY_MS] * 1000000;
	ret->queue_ns = v[QUEUE_MS] * 1000000;
	return true;
}

/* --- reading --- */

static int read_cpus(const struct dbt_ctx *ctx, struct dbt_buf *buf, struct dbt_machine_counters *c)
{
	uint64_t v[8] = { 0 };
	const char *text;
	int r = dbt_root_read(ctx->root, "proc/stat", TEXT_BYTES, buf);

	if (r < 0)
		return r;
	/* user nice system idle iowait irq softirq steal; guest time is part of user */
	text = dbt_buf_str(buf);
	if (strncmp(text, "cpu ", 4) != 0)
		return -EINVAL;
	text += 4;
	if (dbt_next_numbers(&text, v, 8) < 5)
		return -EINVAL;
	c->busy = v[0] + v[1] + v[2] + v[5] + v[6];
	c->idle = v[3];
	c->iowait = v[4];
	c->steal = v[7];
	for (const char *at = strstr(dbt_buf_str(buf), "\ncpu"); at; at = strstr(at + 1, "\ncpu"))
		c->cpus++;
	return 0;
}

static void read_memory(const struct dbt_ctx *ctx, struct dbt_buf *buf,
                        struct dbt_machine_counters *c)
{
	uint64_t older = 0;

	if (dbt_root_read(ctx->root, "proc/meminfo", TEXT_BYTES, buf) == 0) {
		if (dbt_machine_number(dbt_buf_str(buf), "MemTotal", &c->memory_bytes))
			c->memory_bytes *= 1024;
		if (dbt_machine_number(dbt_buf_str(buf), "MemAvailable", &c->available_bytes))
			c->available_bytes *= 1024;
	}
	if (dbt_root_read(ctx->root, "proc/vmstat", TEXT_BYTES, buf) == 0) {
		(void)dbt_machine_number(dbt_buf_str(buf), "pswpin", &c->swapped_in_pages);
		/* One figure before Linux 5.9. */
		if (!dbt_machine_number(dbt_buf_str(buf), "workingset_refault_file",
		                        &c->refaulted_pages))
			(void)dbt_machine_number(dbt_buf_str(buf), "workingset_refault", &older);
		c->refaulted_pages += older;
	}
}

static void read_pressure(const struct dbt_ctx *ctx, struct dbt_buf *buf,
                          struct dbt_machine_counters *c)
{
	c->has_pressure = dbt_root_read(ctx->root, "proc/pressure/io", TEXT_BYTES, buf) == 0 &&
	                  dbt_machine_pressure(dbt_buf_str(buf), "some", &c->io_some_us) &&
	                  dbt_machine_pressure(dbt_buf_str(buf), "full", &c->io_full_us) &&
	                  dbt_root_read(ctx->root, "proc/pressure/memory", TEXT_BYTES, buf) == 0 &&
	                  dbt_machine_pressure(dbt_buf_str(buf), "some", &c->memory_some_us) &&
	                  dbt_machine_pressure(dbt_buf_str(buf), "full", &c->memory_full_us);
}

static int read_devices(const struct dbt_ctx *ctx, struct dbt_buf *buf,
                        struct dbt_machine_counters *c)
{
	int r = dbt_root_read(ctx->root, "proc/diskstats", TEXT_BYTES, buf);
	char *line, *save = NULL;

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (line = strtok_r(buf->data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct dbt_obs_device d, *slot;
		char name[64];

		if (!dbt_machine_diskstat(line, &d, name))
			continue;
		slot = dbt_vec_push(&c->devices);
		if (!slot)
			return -ENOMEM;
		*slot = d;
		slot->name = strdup(name);
		if (!slot->name)
			return -ENOMEM;
	}
	return 0;
}

int dbt_machine_read(const struct dbt_ctx *ctx, struct dbt_machine_counters *ret)
{
	struct dbt_buf buf = { 0 };
	int r;

	*ret = (struct dbt_machine_counters){ .at_ns = ctx->sys->now_ns() };
	r = read_cpus(ctx, &buf, ret);
	if (r == 0) {
		read_memory(ctx, &buf, ret);
		read_pressure(ctx, &buf, ret);
		r = read_devices(ctx, &buf, ret);
	}
	dbt_buf_release(&buf);
	if (r < 0)
		dbt_machine_release(ret);
	return r;
}

void dbt_machine_release(struct dbt_machine_counters *c)
{
	for (size_t i = 0; i < c->devices.n; i++)
		free(c->devices.items[i].name);
	free(c->devices.items);
	*c = (struct dbt_machine_counters){ 0 };
}

/* --- what passed --- */

/* Counters can go back: iowait of a CPU that went off, a device that came anew. */
static uint64_t passed(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

static const struct dbt_obs_device *device_before(const struct dbt_machine_counters *c,
                                                  const struct dbt_obs_device *now)
{
	for (size_t i = 0; i < c->devices.n; i++)
		if (c->devices.items[i].devno == now->devno &&
		    strcmp(c->devices.items[i].name, now->name) == 0)
			return &c->devices.items[i];
	return NULL;
}

static bool has_below(const struct dbt_ctx *ctx, const struct dbt_obs_device *d)
{
	char path[128];
	DIR *dir;
	bool found = false;
	struct dirent *de;

	(void)snprintf(path, sizeof(path), "sys/dev/block/%u:%u/partition", major(d->devno),
	               minor(d->devno));
	if (dbt_root_exists(ctx->root, path))
		return true;
	(void)snprintf(path, sizeof(path), "sys/dev/block/%u:%u/slaves", major(d->devno),
	               minor(d->devno));
	if (dbt_root_opendir(ctx->root, path, &dir) < 0)
		return false;
	while (!found && (de = readdir(dir)))
		found = de->d_name[0] != '.';
	(void)closedir(dir);
	return found;
}

static int add_device(const struct dbt_ctx *ctx, const struct dbt_obs_device *was,
                      const struct dbt_obs_device *now, struct dbt_observation *obs)
{
	struct dbt_obs_device d = { .devno = now->devno,
		                    .reads = passed(was->reads, now->reads),
		                    .read_bytes = passed(was->read_bytes, now->read_bytes),
		                    .read_ns = passed(was->read_ns, now->read_ns),
		                    .writes = passed(was->writes, now->writes),
		                    .write_bytes = passed(was->write_bytes, now->write_bytes),
		                    .write_ns = passed(was->write_ns, now->write_ns),
		                    .busy_ns = passed(was->busy_ns, now->busy_ns),
		                    .queue_ns = passed(was->queue_ns, now->queue_ns) },
			      *slot;

	if (d.reads + d.writes == 0)
		return 0;
	slot = dbt_vec_push(&obs->devices);
	if (!slot)
		return -ENOMEM;
	*slot = d;
	slot->name = strdup(now->name);
	slot->disk = !has_below(ctx, now);
	return slot->name ? 0 : -ENOMEM;
}

int dbt_machine_between(const struct dbt_ctx *ctx, const struct dbt_machine_counters *before,
                        const struct dbt_machine_counters *after, struct dbt_observation *obs)
{
	static const struct dbt_obs_device never;
	struct dbt_obs_machine *m = &obs->machine;
	const double busy = (double)passed(before->busy, after->busy),
		     idle = (double)passed(before->idle, after->idle),
		     iowait = (double)passed(before->iowait, after->iowait),
		     steal = (double)passed(before->steal, after->steal),
		     all = busy + idle + iowait + steal,
		     us = (double)passed(before->at_ns, after->at_ns) / 1e3;
	int r = 0;

	obs->seconds = us / 1e6;
	m->cpus = after->cpus ? after->cpus : 1;
	m->memory_bytes = after->memory_bytes;
	m->available_bytes = after->available_bytes;
	m->swapped_in_pages = passed(before->swapped_in_pages, after->swapped_in_pages);
	m->refaulted_pages = passed(before->refaulted_pages, after->refaulted_pages);
	if (all > 0) {
		m->busy = busy / all;
		m->idle = idle / all;
		m->iowait = iowait / all;
		m->steal = steal / all;
	}
	if (before->has_pressure && after->has_pressure && us > 0) {
		m->io_some = (double)passed(before->io_some_us, after->io_some_us) / us;
		m->io_full = (double)passed(before->io_full_us, after->io_full_us) / us;
		m->memory_some = (double)passed(before->memory_some_us, after->memory_some_us) / us;
		m->memory_full = (double)passed(before->memory_full_us, after->memory_full_us) / us;
	}
	for (size_t i = 0; r == 0 && i < after->devices.n; i++) {
		const struct dbt_obs_device *now = &after->devices.items[i],
					    *was = device_before(before, now);

		r = add_device(ctx, was ? was : &never, now, obs);
	}
	return r;
}

/* --- the limit of a cgroup --- */

struct limit {
	const struct dbt_ctx *ctx;
	struct dbt_buf buf;
	uint64_t bytes, used, file;
};

static bool read_number(struct limit *l, const char *dir, const char *name, uint64_t *ret)
{
	char path[4400];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return dbt_root_read_u64(l->ctx->root, path, ret) == 0;
}

/* One directory of the hierarchy. "max" is no number, and version 1 says nearly 2^63 for none. */
static void look_at_level(struct limit *l, const char *dir, bool v2)
{
	uint64_t bytes, used, file = 0;
	char path[4400];

	if (!read_number(l, dir, v2 ? "memory.max" : "memory.limit_in_bytes", &bytes) ||
	    bytes >= 1ULL << 60 || (l->bytes > 0 && bytes >= l->bytes) ||
	    !read_number(l, dir, v2 ? "memory.current" : "memory.usage_in_bytes", &used))
		return;
	(void)snprintf(path, sizeof(path), "%s/memory.stat", dir);
	if (dbt_root_read(l->ctx->root, path, TEXT_BYTES, &l->buf) == 0)
		(void)dbt_machine_number(dbt_buf_str(&l->buf), v2 ? "file" : "total_cache", &file);
	l->bytes = bytes;
	l->used = used;
	l->file = file;
}

/* base: where the hierarchy is mounted; path: of the process in it, with a leading slash. */
static void look_up(struct limit *l, const char *base, const char *path, bool v2)
{
	char dir[4096];
	char *slash;

	(void)snprintf(dir, sizeof(dir), "%s%s", base, strcmp(path, "/") == 0 ? "" : path);
	for (;;) {
		look_at_level(l, dir, v2);
		slash = strrchr(dir, '/');
		if (!slash || (size_t)(slash - dir) < strlen(base))
			return;
		*slash = '\0';
	}
}

bool dbt_machine_limit(const struct dbt_ctx *ctx, int pid, uint64_t *ret_limit_bytes,
                       uint64_t *ret_used_bytes, uint64_t *ret_file_bytes)
{
	struct limit l = { .ctx = ctx };
	struct dbt_buf text = { 0 };
	char *line, *save = NULL, path[64];

	(void)snprintf(path, sizeof(path), "proc/%d/cgroup", pid);
	if (dbt_root_read(ctx->root, path, TEXT_BYTES, &text) < 0) {
		dbt_buf_release(&text);
		return false;
	}
	/* "4:memory:/job" of version 1, "0::/system.slice/x" of version 2 */
	for (line = text.len ? strtok_r(text.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':'), *in = names ? strchr(names + 1, ':') : NULL;

		if (!in)
			continue;
		*in++ = '\0';
		names++;
		if (*names == '\0')
			look_up(&l, "sys/fs/cgroup", in, true);
		else if (strcmp(names, "memory") == 0)
			look_up(&l, "sys/fs/cgroup/memory", in, false);
	}
	dbt_buf_release(&text);
	dbt_buf_release(&l.buf);
	*ret_limit_bytes = l.bytes;
	*ret_used_bytes = l.used;
	*ret_file_bytes = l.file;
	return l.bytes > 0;
}
