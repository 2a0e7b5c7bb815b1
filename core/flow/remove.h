/* Removing what dbtier made and no longer needs: links, copies, temporary files, the directory of a set. Each is
 * unlinked only after its inode or its text proves it ours. */
#ifndef DBT_FLOW_REMOVE_H
#define DBT_FLOW_REMOVE_H

#include "flow/flow.h"
#include "record/promotion.h"

/* Removes the temporary names of p on both sides: unfinished copies, our links under the kept and copied-back
 * names, scratch files, and a copied-back file that did not come to its name. What does not exist is fine. */
int dbt_remove_temporaries(struct dbt_flow *flow, const struct dbt_promotion *p,
                           struct dbt_err *err);

/* Removes each finished copy of p. Kept, with copy_left set and
 * a remark to the user: a copy that some process has open, mapped or named on its command line, one that cannot
 * be reached now, and one that cannot be unlinked. Taken-over copies and files that are not ours are left
 * alone. Never removes a copy that a path's link still leads to. */
int dbt_remove_copies(struct dbt_flow *flow, struct dbt_promotion *p, struct dbt_err *err);

/* Deletes the kept original of a directory that is reclaimed: gives it a name of its own, then removes it entry by
 * entry, or goes on where that was interrupted. What is not the original's stays, with a warning. */
int dbt_remove_kept_tree(struct dbt_flow *flow, const struct dbt_promotion *p, struct dbt_err *err);

/* Removes the directories made for a set, where they are empty; after the other two. made_dir stays on record until it
 * is gone, or files that are not ours are in it. */
void dbt_remove_set_dirs(struct dbt_flow *flow, struct dbt_promotion *p);

#endif
