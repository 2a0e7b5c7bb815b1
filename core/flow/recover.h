/* Ending what interrupted runs left, and repairing drift that can be repaired without a doubt. Decides from what is
 * on disk, with the ledger as the guide. */
#ifndef DBT_FLOW_RECOVER_H
#define DBT_FLOW_RECOVER_H

#include "flow/flow.h"
#include "flow/resume.h"
#include "record/promotion.h"

enum dbt_recovery {
	DBT_RECOVERY_NONE = 0,   /* nothing was to do */
	DBT_RECOVERY_FINISHED,   /* an interrupted step was carried to its end */
	DBT_RECOVERY_UNDONE,     /* ... or taken back */
	DBT_RECOVERY_RETURNED,   /* the copy or a link was lost: the path is the original again */
	DBT_RECOVERY_REPROMOTED, /* what had lost its copy was promoted again: flow/repromote.h */
	DBT_RECOVERY_ENDED,      /* nothing of it was left on disk */
	DBT_RECOVERY_CLEANED,    /* leftovers were removed */
	DBT_RECOVERY_BUSY,       /* another run works on it: left alone */
	DBT_RECOVERY_WAITING,    /* at boot: its filesystem is not mounted yet: left alone */
	DBT_RECOVERY_FAILED,     /* err of the report says why */
};

struct dbt_recovered {
	int64_t id;
	char *path;
	enum dbt_recovery what;
	char *text; /* a sentence; NULL */
};

struct dbt_recovery_report {
	struct dbt_recovered *items; /* those where something was done or failed */
	size_t n, cap;
	size_t n_failed;
};

/* Goes through the whole ledger and adds to the report, which the caller releases in any case. Returns 0 also when
 * single promotions could not be recovered (n_failed); an error only when the ledger itself cannot be used. Half
 * copies of what is `wished` for (NULL: nothing) are left for dbt_promote, which goes on with them. */
int dbt_recover(struct dbt_flow *flow, const struct dbt_resume_wish *wished,
                struct dbt_recovery_report *ret, struct dbt_err *err);

/* The same while the system comes up, when a database that is not there may only be on a filesystem that is mounted
 * later: its promotion is left alone and reported as waiting. */
int dbt_recover_boot(struct dbt_flow *flow, struct dbt_recovery_report *ret, struct dbt_err *err);

/* Adds a line; text is copied, may be NULL. 0 or -ENOMEM. */
int dbt_recovery_report_add(struct dbt_recovery_report *report, const struct dbt_promotion *p,
                            enum dbt_recovery what, const char *text);

void dbt_recovery_report_release(struct dbt_recovery_report *report);

#endif
