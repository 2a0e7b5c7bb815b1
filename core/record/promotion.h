/* A promotion as the ledger records it: what was moved, what each file was before, where its copy is, how far
 * things are. The one shape that record, flow and cmd share. */
#ifndef DBT_RECORD_PROMOTION_H
#define DBT_RECORD_PROMOTION_H

#include "sys/at.h"
#include "sys/procs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* planned -> copying -> verified -> swapping -> promoted -> (reclaiming -> promoted)
 *                                                        -> rolling-back -> rolled-back
 * failed: everything undone. What is true in each state: flow/promote.c. */
enum dbt_state {
	DBT_STATE_PLANNED = 0,
	DBT_STATE_COPYING,
	DBT_STATE_VERIFIED,
	DBT_STATE_SWAPPING,
	DBT_STATE_PROMOTED,
	DBT_STATE_RECLAIMING,
	DBT_STATE_ROLLING_BACK,
	DBT_STATE_ROLLED_BACK,
	DBT_STATE_FAILED,
};

/* What a promotion was made of. */
enum dbt_kind {
	DBT_KIND_FILES = 0, /* files copied to the fast tier, their paths links to the copies */
	DBT_KIND_ARCHIVE, /* files unpacked from archives, which are the originals; flow/unpack.h */
};

const char *dbt_kind_name(enum dbt_kind kind); /* "archive"; static */
int dbt_kind_parse(const char *name, enum dbt_kind *ret);

/* What a member of it is. */
enum dbt_role {
	DBT_ROLE_FILE = 0, /* of the database; of an archive also a directory or a link in it */
	DBT_ROLE_ARCHIVE,  /* the archive that the others were unpacked from */
	DBT_ROLE_ROOT,     /* a directory that was made for what was unpacked */
};

const char *dbt_state_name(enum dbt_state state); /* "rolled-back"; static */
int dbt_state_parse(const char *name, enum dbt_state *ret);

/* Is there anything of it on disk that a later run may have to touch? */
bool dbt_state_is_active(enum dbt_state state); /* neither rolled back nor failed */

/* How a rollback was asked for; recorded before it starts, so that recover ends it in the same way. */
enum dbt_rollback_mode {
	DBT_ROLLBACK_PLAIN = 0,
	DBT_ROLLBACK_KEEP_CHANGES, /* the copy was changed: copy it back */
	DBT_ROLLBACK_DISCARD_CHANGES,
};

/* Where things differ for what was unpacked from an archive: flow/unpack.h. */
struct dbt_pmember {
	char *path; /* absolute, without links in its directory part */
	char *kept; /* name of the original beside it: ".psc.dmnd.dbtier-original" */
	char *copy; /* absolute path of the copy */
	char *part; /* name of the copy while it is made, in the copy's directory */
	char *back; /* name, beside path, of the file that a rollback copies back; NULL: none */
	struct dbt_ident source;   /* the original before the promotion */
	struct dbt_ident copied;   /* the copy when it was finished; ino 0: not made yet */
	struct dbt_ident returned; /* the file that a rollback copied back; ino 0: none */
	char xxh128[33];           /* hex; "" before the proof */
	bool from_device;          /* the proof read the device */
	bool taken_over;           /* the copy stood there before: never delete it */
	bool reclaimed;            /* the original is deleted */
	bool copy_left;            /* rolled back, but the copy still waits for its removal */
	enum dbt_role role;
	bool never_swapped; /* this run knows that its path was not exchanged; not recorded */
};

struct dbt_promotion {
	int64_t id;          /* 0: not recorded yet */
	int64_t run;         /* the promote command that made it; all of one command share it */
	char *name;          /* of the database or file */
	char *format;        /* id of the catalogue, or "file" */
	char *path;          /* what status shows: the file, or the set's path */
	char *target;        /* directory that was given with --to, without links */
	char *target_uuid;   /* of its filesystem; NULL unknown */
	char *target_mount;  /* its mount point then */
	uint64_t target_ino; /* of the directory, to tell it from an empty mount point */
	char *made_dir; /* absolute path of the directory made for a set; NULL: none was made */
	enum dbt_kind kind;
	char token[17]; /* random hex in every temporary name of this promotion */
	char *lists; /* path beside the ledger; with ".tree" behind it, of a directory: what is in it (move/treelist.h);
	                with ".back": what a rollback copied back. Not recorded */
	bool is_set;
	bool reclaim;   /* asked to delete the originals once promoted */
	bool keep_copy; /* rollback --keep-copy */
	bool by_link;   /* the filesystem has no exchange: swapped by hard link and rename */
	enum dbt_rollback_mode rollback_mode;
	enum dbt_state state;
	struct dbt_run owner; /* who works on it at the moment; pid 0: nobody */
	uint64_t created_ns, promoted_ns, ended_ns; /* wall; 0: not yet */
	uint64_t elapsed_ns;                        /* of the promote command's work on it */
	char *error;                                /* the sentence of the last failure; NULL */
	struct dbt_pmember *members;                /* at least one */
	size_t n_members;
};

uint64_t dbt_pmember_size(const struct dbt_pmember *m); /* bytes of the file, 0 for others */
/* Is it a directory that moved as one name? Then it has one member, whose source.size_bytes are those of all files in
 * it, whose identities are those of the directory itself, and whose xxh128 is dbt_tree_digest_add's. */
bool dbt_promotion_is_tree(const struct dbt_promotion *p);

uint64_t dbt_promotion_size(const struct dbt_promotion *p);     /* bytes, all members */
bool dbt_promotion_is_reclaimed(const struct dbt_promotion *p); /* no original is left */
bool dbt_promotion_waits(const struct dbt_promotion *p);        /* some copy waits for removal */

/* Recorded in .error of a promotion that recover returned because its copy had vanished, or was out of reach. In the
 * second case the copy is kept until it is promoted again, deleted by hand, or its path promoted elsewhere. */
#define DBT_PROMOTION_COPY_LOST      "the copy had vanished"
#define DBT_PROMOTION_COPY_UNMOUNTED "the filesystem of the copy was not mounted"
bool dbt_promotion_lost_copies(const struct dbt_promotion *p);
bool dbt_promotion_keeps_copies(const struct dbt_promotion *p); /* out of reach, that is */

/* Deep copy into an empty struct; 0 or -ENOMEM (ret is then empty). */
int dbt_promotion_clone(const struct dbt_promotion *p, struct dbt_promotion *ret);
void dbt_promotion_release(struct dbt_promotion *p);

struct dbt_promotions {
	struct dbt_promotion *items;
	size_t n, cap;
};
void dbt_promotions_release(struct dbt_promotions *list);

/* Did anybody promote this path after p? What failed was undone and does not count. */
bool dbt_promotion_is_superseded(const struct dbt_promotion *p, const struct dbt_promotions *all);

#endif
