/* The machine as a whole: counters of /proc before and after, and what passed between them. */
#ifndef DBT_OBSERVE_MACHINE_H
#define DBT_OBSERVE_MACHINE_H

#include "observe/observation.h"
#include "sys/ctx.h"

/* Counters since boot; a has_ that is false: this kernel does not keep them. */
struct dbt_machine_counters {
	uint64_t at_ns;
	unsigned cpus;
	uint64_t busy, iowait, idle, steal; /* clock ticks of all CPUs */
	bool has_pressure;
	uint64_t io_some_us, io_full_us, memory_some_us, memory_full_us;
	uint64_t swapped_in_pages, refaulted_pages;
	uint64_t memory_bytes, available_bytes;
	struct {
		struct dbt_obs_device *items;
		size_t n, cap;
	} devices;
};

/* Returns 0 or -errno: without /proc/stat there is nothing to tell. */
int dbt_machine_read(const struct dbt_ctx *ctx, struct dbt_machine_counters *ret);
void dbt_machine_release(struct dbt_machine_counters *counters);

/* Fills obs->machine, obs->devices (those that did something) and obs->seconds. */
int dbt_machine_between(const struct dbt_ctx *ctx, const struct dbt_machine_counters *before,
                        const struct dbt_machine_counters *after, struct dbt_observation *obs);

/* The memory limit that a process is under, by its cgroups (version 1 or 2), the tightest up to the root. False: none.
 * file_bytes: the part of used_bytes that is page cache. */
bool dbt_machine_limit(const struct dbt_ctx *ctx, int pid, uint64_t *ret_limit_bytes,
                       uint64_t *ret_used_bytes, uint64_t *ret_file_bytes);

/* Parsers, pure. The number behind "KEY" at the start of a line (blanks and a colon may follow it); false: none. */
bool dbt_machine_number(const char *text, const char *key, uint64_t *ret);

/* "some" or "full" of a pressure file: its total in microseconds. */
bool dbt_machine_pressure(const char *text, const char *line, uint64_t *ret_us);

/* One line of /proc/diskstats. */
bool dbt_machine_diskstat(const char *line, struct dbt_obs_device *ret, char name[64]);

#endif
