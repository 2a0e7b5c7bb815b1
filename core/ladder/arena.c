#include "ladder/arena.h"

#include "base/buf.h"
#include "survey/sysfs.h"
#include "sys/root.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
	HUGE_BYTES = 2 << 20,
	SMAPS_MAX = 4 << 20,
};

/* The number behind "KEY:" in text, times 1024; 0 when it is not there. */
static uint64_t kib_field(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	uint64_t kib;

	if (!line)
		return 0;
	line += strlen(key);
	return dbt_scan_u64(&line, &kib) ? kib * 1024 : 0;
}

/* Source: proc_pid_smaps(5), AnonHugePages. The arena is a mapping of its own, see below. */
static size_t huge_bytes_of(const struct dbt_ctx *ctx, const struct dbt_arena *arena)
{
	struct dbt_buf text = { 0 };
	char head[32];
	const char *entry = NULL;
	size_t bytes = 0;

	(void)snprintf(head, sizeof(head), "%" PRIxPTR "-", (uintptr_t)arena->data);
	if (dbt_root_read(ctx->root, "proc/self/smaps", SMAPS_MAX, &text) == 0)
		entry = strstr(dbt_buf_str(&text), head);
	if (entry)
		bytes = kib_field(entry, "AnonHugePages:");
	dbt_buf_release(&text);
	return bytes < arena->bytes ? bytes : arena->bytes;
}

int dbt_arena_new(const struct dbt_ctx *ctx, size_t bytes, enum dbt_pages pages,
                  struct dbt_arena *ret)
{
	struct dbt_arena arena = { 0 };
	size_t skip;

	if (bytes > SIZE_MAX / 2)
		return -ENOMEM;
	arena.bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	/* What cannot be touched on both sides keeps the kernel from joining it with another one. */
	arena.map_bytes = arena.bytes + 2 * (size_t)HUGE_BYTES;
	arena.map = mmap(NULL, arena.map_bytes, PROT_NONE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena.map == MAP_FAILED)
		return -ENOMEM;
	skip = HUGE_BYTES - (uintptr_t)arena.map % HUGE_BYTES;
	arena.data = (char *)arena.map + skip;
	if (mprotect(arena.data, arena.bytes, PROT_READ | PROT_WRITE) < 0) {
		(void)munmap(arena.map, arena.map_bytes);
		return -ENOMEM;
	}
	(void)madvise(arena.data, arena.bytes,
	              pages == DBT_PAGES_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(arena.data, 0, arena.bytes);
	if (pages == DBT_PAGES_HUGE)
		arena.huge_bytes = huge_bytes_of(ctx, &arena);
	*ret = arena;
	return 0;
}

void dbt_arena_free(struct dbt_arena *arena)
{
	if (arena->map)
		(void)munmap(arena->map, arena->map_bytes);
	*arena = (struct dbt_arena){ 0 };
}

/* What the group may still take; UINT64_MAX without a limit. Limits of enclosing groups show in
 * their own files only, so the whole way up is looked at. */
static uint64_t group_room(const struct dbt_ctx *ctx, const char *base, char *group,
                           const char *limit_name, const char *usage_name)
{
	uint64_t room = UINT64_MAX, limit, usage;
	char path[512];

	for (;;) {
		char *slash = strrchr(group, '/');
		int n = snprintf(path, sizeof(path), "%s%s/%s", base, group, limit_name);

		if (n < (int)sizeof(path) && dbt_root_read_u64(ctx->root, path, &limit) == 0) {
			(void)snprintf(path, sizeof(path), "%s%s/%s", base, group, usage_name);
			if (dbt_root_read_u64(ctx->root, path, &usage) < 0)
				usage = 0;
			if (limit < usage)
				room = 0;
			else if (limit - usage < room)
				room = limit - usage;
		}
		if (!slash)
			return room;
		*slash = '\0';
	}
}

/* Source: cgroups(7): lines of /proc/self/cgroup are "ID:CONTROLLERS:PATH", version 2 has ID 0. */
static uint64_t groups_room(const struct dbt_ctx *ctx)
{
	uint64_t room = UINT64_MAX, one;
	struct dbt_buf text = { 0 };
	char *save = NULL;

	if (dbt_root_read(ctx->root, "proc/self/cgroup", 1 << 16, &text) < 0 || !text.data) {
		dbt_buf_release(&text);
		return room;
	}
	for (char *line = strtok_r(text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!group)
			continue;
		*group++ = '\0';
		one = UINT64_MAX;
		if (controllers[1] == '\0')
			one = group_room(ctx, "sys/fs/cgroup", group, "memory.max",
			                 "memory.current");
		else if (strcmp(controllers + 1, "memory") == 0)
			one = group_room(ctx, "sys/fs/cgroup/memory", group,
			                 "memory.limit_in_bytes", "memory.usage_in_bytes");
		if (one < room)
			room = one;
	}
	dbt_buf_release(&text);
	return room;
}

uint64_t dbt_arena_limit(const struct dbt_ctx *ctx)
{
	struct dbt_buf text = { 0 };
	uint64_t available = 0, room;

	if (dbt_root_read(ctx->root, "proc/meminfo", 1 << 16, &text) == 0)
		available = kib_field(dbt_buf_str(&text), "MemAvailable:");
	dbt_buf_release(&text);
	room = groups_room(ctx);
	return (room < available ? room : available) / 4;
}
