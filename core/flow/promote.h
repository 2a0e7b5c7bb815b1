/* Carrying out a planned promotion, and undoing one.
 *
 * What is true on disk in each state of the ledger, so that an interrupted run can be finished or undone:
 *
 *	copying      every path is the original. Beside the copies' final names there may be unfinished files
 *	             under the names recorded as `part`; a finished one is identified by the recorded inode.
 *	verified     every path is the original; every copy stands under its final name, flushed and proved.
 *	swapping     each path is the original, or the link with the original under the kept name beside it: both
 *	             read the same bytes. A link under a kept name is one whose exchange did not happen.
 *	promoted     every path is the link, every original under its kept name (or reclaimed).
 *	reclaiming   as promoted; the originals are being deleted, after the copies were proved again.
 *	rolling-back each path is the link or the returned file; a file under the name `back` may be unfinished.
 *	rolled-back  every path is a plain file. Links under kept names and copies may wait for removal.
 *	failed       every path is the original, nothing else is left (or copies wait for removal).
 */
#ifndef DBT_FLOW_PROMOTE_H
#define DBT_FLOW_PROMOTE_H

#include "flow/flow.h"
#include "record/promotion.h"

struct dbt_promote_run {
	uint64_t limit_bytes_s; /* 0: none */
	unsigned jobs;          /* reads, and writes, at the same time; 0: the default */
	bool allow_by_link;     /* --force: swap by hard link where names cannot be exchanged */
	bool resume; /* go on with the copies that an interrupted run left under p's temporary names */
};

/* Records the intent, copies, proves, swaps, records. p comes from dbt_plan_make; its id, states and times are
 * filled in. On an error everything is undone and p is in state failed, or err says what is left and that
 * recover removes it. */
int dbt_promote(struct dbt_flow *flow, struct dbt_promotion *p, const struct dbt_promote_run *run,
                struct dbt_err *err);

/* From verified (or an interrupted swapping) on: puts the links in place and records it. */
int dbt_promote_finish(struct dbt_flow *flow, struct dbt_promotion *p, bool allow_by_link,
                       struct dbt_err *err);

/* Brings every path back to the original, removes what was made, records failed with `why`. An error names what
 * could not be undone; the promotion then stays as it is, for recover. */
int dbt_promote_undo(struct dbt_flow *flow, struct dbt_promotion *p, const char *why,
                     struct dbt_err *err);

#endif
