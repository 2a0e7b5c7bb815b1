/* Which database a file that somebody reads belongs to, without reading it from its disk: by the names of the last
 * scan, by its first bytes where they are in memory, by its name. */
#ifndef DBT_FLOW_NAMING_H
#define DBT_FLOW_NAMING_H

#include "observe/observation.h"
#include "sys/ctx.h"

/* Sets database, format and declared class of the observed files where they can be told, and their shares in the page
 * cache. system_state_dir may be NULL. Returns 0 or -ENOMEM. */
int dbt_name_files(const struct dbt_ctx *ctx, const char *state_dir, const char *system_state_dir,
                   struct dbt_observation *obs);

#endif
