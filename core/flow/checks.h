/* The rules of safety that a promotion must pass before anything is written. Each refusal says what would lift it.
 * `force` lifts only those that cannot lose data. */
#ifndef DBT_FLOW_CHECKS_H
#define DBT_FLOW_CHECKS_H

#include "base/err.h"
#include "survey/place.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdbool.h>

/* One file that is to move: regular, not empty, one name, not immutable, nobody writes to it, no live SQLite
 * journal, its directory writable, the kept name free. Fills its identity. */
int dbt_check_source(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_ident *ret,
                     struct dbt_err *err);

/* A directory that is to move: no mount point or subvolume, not immutable, its own directory writable, the kept name
 * free. What is in it: flow/tree.h. */
int dbt_check_source_dir(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_ident *ret,
                         struct dbt_err *err);

/* No journal of SQLite with changes in it lies beside an open file. */
int dbt_check_no_journal(const struct dbt_at *at, int fd, struct dbt_err *err);

/* Nobody has it open for writing: by a lease where the filesystem grants one, else by /proc. */
int dbt_check_no_writer(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_err *err);

/* The pair of filesystems: not the same, not the same disks, not network, RAM, overlay; target writable and faster.
 * speeds may be empty. */
struct dbt_pair {
	const struct dbt_place *from, *to;
	const struct dbt_speeds *from_speeds, *to_speeds;
	const char *source, *target; /* for messages */
	bool force, reclaim;
};
int dbt_check_pair(const struct dbt_ctx *ctx, const struct dbt_pair *pair, struct dbt_err *err);

/* A directory that is there already and shall hold copies: nobody but the caller, root and the owner of the directory
 * that it mirrors (`like`) may write to it. */
int dbt_check_set_dir(const struct dbt_ctx *ctx, const struct dbt_at *dir,
                      const struct dbt_ident *like, struct dbt_err *err);

/* The directory that was given with --to: nobody may replace the files of others there. */
int dbt_check_target_dir(const struct dbt_ctx *ctx, int target_fd, const char *target,
                         struct dbt_err *err);

/* Room on the target for `bytes` in `files` files with a reserve left over. */
int dbt_check_space(const struct dbt_ctx *ctx, int target_fd, const char *target, uint64_t bytes,
                    uint64_t files, uint64_t reserve_bytes, struct dbt_err *err);

/* What an ordinary filesystem must keep free: 5 % of it, at most 10 GiB; twice that on "/". */
uint64_t dbt_default_reserve(const struct dbt_place *place);

/* Does systemd-tmpfiles empty the target? must_last: that is a refusal, else a warning that quotes the line. */
int dbt_check_cleaner(const struct dbt_ctx *ctx, const char *target, bool must_last,
                      struct dbt_err *err);

/* A place where a copy may be the only one: not in RAM, not emptied at boot or by age. */
int dbt_check_durable_target(const struct dbt_ctx *ctx, const char *target, struct dbt_err *err);

#endif
