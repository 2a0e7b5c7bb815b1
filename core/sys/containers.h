/* Would a container follow the link? Inside one only the bound directories are there: a link whose
 * target is not bound leads nowhere, or to another file of that name. */
#ifndef DBT_SYS_CONTAINERS_H
#define DBT_SYS_CONTAINERS_H

#include "base/err.h"
#include "sys/ctx.h"

/* source_dir: where the link stands (or will); target: what it says; both absolute and canonical.
 *
 * Looks at every process in another mount namespace through /proc/PID/mountinfo, without entering:
 * does it have the source's filesystem mounted so that it sees source_dir, and does the target's
 * path lead to the same place there as here? Namespaces that share our root directory (services
 * with a private /tmp, and batch jobs) count only for processes of ordinary users. Without such a
 * process an installed container runtime is reason for a hint.
 *
 * *ret_text: a sentence, or NULL when there is no reason to worry; free() it. Processes that may
 * not be looked at are left out. Returns 0 or -errno. */
int dbt_containers_check(const struct dbt_ctx *ctx, const char *source_dir, const char *target,
                         char **ret_text, struct dbt_err *err);

#endif
