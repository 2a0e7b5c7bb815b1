/* Can those who read a file today also get to a directory elsewhere? A link is of no use to a
 * reader who may not enter the directories of its target. */
#ifndef DBT_SYS_REACH_H
#define DBT_SYS_REACH_H

#include "base/err.h"
#include "sys/at.h"
#include "sys/ctx.h"

/* source: the file or directory; target_dir: where its copy shall stand, with the same owner, group
 * and mode. A target_dir (or the end of it) that does not exist yet is taken to be passable once
 * made. Looks at permission bits and access control lists of the source, of every directory on the
 * way to it, and on the way to the target, for its owner, its group, every user and group that the
 * way to the source or its list names, and everybody else; root passes anyway and is left out. Who
 * is a member of several groups at once is not considered.
 *
 * *ret_problem: a sentence, or NULL when nobody is shut out; free() it:
 *   "others can read '/mnt/store/db/psc.dmnd' but not enter '/root/fast' (mode 0700)"
 *   "others can read '/srv/pool/psc.dmnd' but not follow a link there: '/srv/pool' is sticky and
 *    writable for all (fs.protected_symlinks)"
 * The link is taken to belong to the source's owner. Errors: a directory on the way cannot be
 * looked at. */
int dbt_reach_compare(const struct dbt_ctx *ctx, const struct dbt_at *source,
                      const char *target_dir, char **ret_problem, struct dbt_err *err);

#endif
