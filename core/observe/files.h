/* Which files the followed processes have open and mapped. Looks at /proc only, and asks no server; what the page
 * cache holds of a file is asked of the kernel. */
#ifndef DBT_OBSERVE_FILES_H
#define DBT_OBSERVE_FILES_H

#include "observe/observation.h"
#include "observe/tasks.h"
#include "sys/ctx.h"

#include <stddef.h>

struct dbt_files;

/* proc: a descriptor of /proc; borrowed, as obs and what opts points to. */
int dbt_files_new(const struct dbt_ctx *ctx, const struct dbt_tasks_opts *opts, int proc,
                  struct dbt_observation *obs, struct dbt_files **ret);
void dbt_files_free(struct dbt_files *files);

/* Adds what the process (an index of obs->processes) uses. 0 or -ENOMEM. */
int dbt_files_look(struct dbt_files *files, size_t process);

/* Follows the positions of descriptors, where nothing is traced. */
void dbt_files_tick(struct dbt_files *files);

/* How many processes did not let us look. */
unsigned dbt_files_hidden(const struct dbt_files *files);

#endif
