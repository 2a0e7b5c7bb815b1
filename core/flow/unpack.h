/* Straight from the archive: promotions of kind ARCHIVE. The files that are read while a database is searched are
 * unpacked to the fast tier, the others beside it, with links, so that a tool sees one complete directory.
 *
 * Two directories are made ("roots"): the hot one, TARGET/NAME, and the cold one, COLD/NAME, which is what a tool is
 * given and where the links are. Without a cold one everything goes to the hot one. Both are filled under temporary
 * names and become visible by one rename each, the visible one (cold, where there is one) last: that is the moment in
 * which the database appears, whole. The archive is the original: it is never written to, moved or deleted.
 *
 * Members in the ledger: the archives (role ARCHIVE, `source` and the hash of the packed bytes), the roots (role ROOT,
 * `part` is the temporary name beside the final one), then everything below the roots (role FILE). Of these `path` is
 * the final name and `source` what stands there; a link to the fast tier has in `copy` and `copied` the file it leads
 * to, everything else has copy equal to path. `xxh128` is of the file's bytes.
 *
 *	copying      nothing is visible; the temporary directories of the token may be there, half filled
 *	verified     they are complete, proved and flushed, each thing in them is on record; nothing is visible
 *	swapping     the hot root is visible, or about to be; the cold one may be
 *	promoted     both are visible
 *	rolling-back each is visible, or back under its temporary name, or partly or wholly removed from there
 *	failed, rolled-back: nothing is left
 */
#ifndef DBT_FLOW_UNPACK_H
#define DBT_FLOW_UNPACK_H

#include "flow/flow.h"
#include "flow/health.h"
#include "flow/plan.h"
#include "flow/recover.h"
#include "flow/rollback.h"
#include "record/promotion.h"

/* Is this argument of promote an archive to be unpacked? A path, or a name from the last scan; ledger may be NULL.
 * 1 and its path in *ret (free() it), 0 when it is anything else or nothing. */
int dbt_unpack_is_archive(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
                          char **ret);

/* Do two archives belong to one set, as the volumes nr.000.tar.gz and nr.001.tar.gz of a BLAST database do? */
bool dbt_unpack_same_set(const char *a, const char *b);

struct dbt_unpack_opts {
	struct dbt_plan_opts plan; /* reclaim must be false */
	const char *cold_to; /* NULL: the archive's directory; with plan.all_files: no cold root */
	unsigned jobs;       /* archives read at a time; 0: 1 */
	uint64_t limit_bytes_s; /* of packed bytes; 0: none */
};

/* The intent: archives and roots. Refusals as of any promotion, and where a name is taken. */
int dbt_unpack_plan(const struct dbt_ctx *ctx, char *const *archives, size_t n,
                    const struct dbt_unpack_opts *opts, struct dbt_promotion *ret,
                    struct dbt_err *err);

/* As dbt_promote. */
int dbt_unpack(struct dbt_flow *flow, struct dbt_promotion *p, const struct dbt_unpack_opts *opts,
               struct dbt_err *err);

/* p is claimed, in state promoted. Removes what was unpacked, whole: first the roots get their temporary names again.
 * Refuses when anything in them was changed or added since, when a process uses them, or when an archive is not there
 * as it was, so that what was unpacked may be the only one. */
int dbt_unpack_rollback(struct dbt_flow *flow, struct dbt_promotion *p,
                        const struct dbt_rollback_opts *opts, struct dbt_err *err);

/* What recover does with an interrupted one, or one of which nothing is left. */
int dbt_unpack_recover(struct dbt_flow *flow, struct dbt_promotion *p, enum dbt_recovery *ret,
                       struct dbt_err *err);
bool dbt_unpack_is_of_interest(struct dbt_flow *flow, const struct dbt_promotion *p);

/* As dbt_health_of and, with read, dbt_health_verify; of a promoted one. *detail is replaced. */
int dbt_unpack_health(const struct dbt_ctx *ctx, const struct dbt_promotion *p, bool read,
                      enum dbt_health *health, char **detail, struct dbt_err *err);

#endif
