/* Which processes do something, and what state they are in: all of them are looked at now and then (a walk), those
 * that do something are followed closely (ticks). */
#ifndef DBT_OBSERVE_TASKS_H
#define DBT_OBSERVE_TASKS_H

#include "observe/observation.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>

struct dbt_mounts;

struct dbt_tasks_opts {
	const int *pids; /* what the user asks about; their descendants belong to it */
	size_t n_pids;
	const char *const *paths; /* absolute: who has a file there open belongs to it */
	size_t n_paths;
	const struct dbt_mounts *mounts; /* borrowed; may be NULL */
};

struct dbt_tasks;

/* obs: where processes, files and uses are added; borrowed until freed. */
int dbt_tasks_new(const struct dbt_ctx *ctx, const struct dbt_tasks_opts *opts,
                  struct dbt_observation *obs, struct dbt_tasks **ret);
void dbt_tasks_free(struct dbt_tasks *tasks);

/* Looks at all processes. files: also at what the followed ones have open and mapped. 0 or -errno. */
int dbt_tasks_walk(struct dbt_tasks *tasks, bool files);

/* Looks at the state of those that are followed. */
void dbt_tasks_tick(struct dbt_tasks *tasks);

/* The followed process (an index of obs->processes) that a thread belongs to. ask: look for it, and follow it from now
 * on. DBT_OBS_NONE for others, kernel threads and what is gone. */
size_t dbt_tasks_process_of(struct dbt_tasks *tasks, int tid, bool ask);

/* Looks at the files of a followed process out of turn: it reads one whose name is not known. 0 or -ENOMEM. */
int dbt_tasks_look(struct dbt_tasks *tasks, size_t process);

/* Puts the sums into obs->processes. */
void dbt_tasks_finish(struct dbt_tasks *tasks);

/* The fields of /proc/PID/stat that matter; pure. False for what is none. */
struct dbt_task_stat {
	char name[64];
	char state;
	int parent;
	bool kernel;
	uint64_t major_faults, cpu_ticks, start_ticks, delay_ticks;
	unsigned threads;
};
bool dbt_task_stat_parse(const char *text, struct dbt_task_stat *ret);

#endif
