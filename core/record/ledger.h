/* The ledger: one SQLite file per state directory with every promotion, each step of it, the last scan and the
 * measurements. The only user of SQLite. Journal mode DELETE and synchronous EXTRA: what a call reported as done
 * is on stable storage, and others may read the file without writing beside it. Every writing call is one
 * transaction. A damaged or foreign file is an error of kind LEDGER, never a guess. */
#ifndef DBT_RECORD_LEDGER_H
#define DBT_RECORD_LEDGER_H

#include "base/err.h"
#include "record/promotion.h"
#include "sys/ctx.h"

struct dbt_ledger;

enum dbt_ledger_open {
	DBT_LEDGER_READ = 0, /* -ENOENT without a message of its own when there is none yet */
	DBT_LEDGER_WRITE,    /* made when missing, with its directories */
};

int dbt_ledger_open(const struct dbt_ctx *ctx, const char *state_dir, enum dbt_ledger_open how,
                    struct dbt_ledger **ret, struct dbt_err *err);
void dbt_ledger_close(struct dbt_ledger *ledger);

/* The number for the promotions of one promote command. */
int dbt_ledger_next_run(struct dbt_ledger *ledger, int64_t *ret, struct dbt_err *err);

/* Records a new promotion and sets its id. An active promotion of a member's path, or one that uses a member's
 * copy, makes it an error of kind BUSY or REFUSED that names the other. A copy that waits for its removal, and that
 * this one uses again, waits no more; BUSY when another run is just removing it. */
int dbt_ledger_add(struct dbt_ledger *ledger, struct dbt_promotion *p, struct dbt_err *err);

/* Writes the promotion and its members as they are now, with a line in the list of steps. */
int dbt_ledger_save(struct dbt_ledger *ledger, const struct dbt_promotion *p, const char *step,
                    struct dbt_err *err);

/* Makes `owner` the one who works on it and loads it anew; a lock of the kernel's holds until dbt_ledger_save records it
 * without an owner, the ledger is closed or the process ends. Error BUSY while another run has it. Where the filesystem
 * has no such locks `is_alive` tells whether the recorded owner still runs. */
int dbt_ledger_claim(struct dbt_ledger *ledger, int64_t id, const struct dbt_run *owner,
                     bool (*is_alive)(void *data, const struct dbt_run *owner), void *data,
                     struct dbt_promotion *ret, struct dbt_err *err);

/* Was there a promotion with this token here? 1, 0 or a negative code. */
int dbt_ledger_has_token(struct dbt_ledger *ledger, const char *token, struct dbt_err *err);

/* All promotions in the order of their ids. */
int dbt_ledger_load(struct dbt_ledger *ledger, struct dbt_promotions *ret, struct dbt_err *err);

/* The steps of one promotion as text lines "time step", oldest first; free() it. */
int dbt_ledger_steps(struct dbt_ledger *ledger, int64_t id, char **ret, struct dbt_err *err);

/* --- the last scan: which names a later command may use ------------------------------------------------- */

struct dbt_scan_name {
	char *name;     /* of the database, or of one of its files */
	char *path;     /* what to work on: the database's path, or the file's */
	char *dir;      /* the database's directory */
	char *database; /* the database's name */
	char *format;
	char *tier;
	uint64_t size_bytes;
	bool is_member;
	bool promoted;
};

struct dbt_scan_names {
	struct dbt_scan_name *items;
	size_t n, cap;
};
void dbt_scan_names_release(struct dbt_scan_names *names);

/* Replaces what was remembered below `root` (a scanned path) by these names. */
int dbt_ledger_save_scan(struct dbt_ledger *ledger, const char *root,
                         const struct dbt_scan_names *names, struct dbt_err *err);

/* Those called `name`; NULL: all. */
int dbt_ledger_find_names(struct dbt_ledger *ledger, const char *name, struct dbt_scan_names *ret,
                          struct dbt_err *err);

/* --- measurements ---------------------------------------------------------------------------------------- */

/* One pattern measured on one filesystem. */
struct dbt_measurement {
	char *key;     /* identifies filesystem, devices and kernel; made by flow/remember.c */
	char *pattern; /* "random" or "stream" */
	unsigned jobs;
	uint64_t wall_ns;
	double iops;
	uint64_t rate_bytes_s;
	uint64_t lat_p50_ns;
	uint64_t span_bytes;
	bool proved;
};

struct dbt_measurements {
	struct dbt_measurement *items;
	size_t n, cap;
};
void dbt_measurements_release(struct dbt_measurements *list);

/* Replaces those of the same key, pattern and jobs. */
int dbt_ledger_save_measurements(struct dbt_ledger *ledger, const struct dbt_measurements *list,
                                 struct dbt_err *err);
int dbt_ledger_load_measurements(struct dbt_ledger *ledger, const char *key,
                                 struct dbt_measurements *ret, struct dbt_err *err);

/* --- how databases were seen to be read ------------------------------------------------------------------ */

struct dbt_observed {
	char *path;            /* absolute, of the file that was read */
	char *class_name;      /* dbt_class_name() */
	uint64_t wall_ns;      /* when */
	uint64_t rate_bytes_s; /* read from the device */
	double misses_s;       /* requests a second that were not in memory */
	uint64_t mean_bytes;
	double jumps;   /* share of the requests that began elsewhere */
	double waiting; /* share of their time that its readers waited */
};

struct dbt_observed_list {
	struct dbt_observed *items;
	size_t n, cap;
};
void dbt_observed_release(struct dbt_observed_list *list);

/* Replaces what was remembered of the same paths. */
int dbt_ledger_save_observed(struct dbt_ledger *ledger, const struct dbt_observed_list *list,
                             struct dbt_err *err);

/* Of one path; NULL: all, by path. None is an empty list. */
int dbt_ledger_load_observed(struct dbt_ledger *ledger, const char *path,
                             struct dbt_observed_list *ret, struct dbt_err *err);

#endif
