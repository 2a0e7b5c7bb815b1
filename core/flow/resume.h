/* Going on with the copies of a promotion that was killed. Its bytes were read once already: what its copies' marks say
 * of them still counts as long as each source is the same inode with the same size, mtime and ctime, which every write
 * and every change of a time or an attribute moves. What lies on the target is read again, and its digest decides. */
#ifndef DBT_FLOW_RESUME_H
#define DBT_FLOW_RESUME_H

#include "flow/flow.h"
#include "record/promotion.h"

/* What a promote command was told to promote. */
struct dbt_resume_wish {
	const char *const *names;
	size_t n;
	bool all_files;
};

/* Is p an interrupted promotion, still copying, of something that is to be promoted now? Then recover leaves it alone. */
bool dbt_resume_is_wanted(struct dbt_flow *flow, const struct dbt_promotion *p,
                          const struct dbt_resume_wish *wish);

/* Looks for an interrupted promotion of the same files. When it was planned just as p is, p becomes that promotion, with
 * its id and names, in this run's hands: *ret is true. Otherwise it is undone, and the caller is told why p starts
 * over. */
int dbt_resume_find(struct dbt_flow *flow, struct dbt_promotion *p, bool *ret, struct dbt_err *err);

#endif
