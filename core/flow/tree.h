/* A directory that moves as one name. Its member of the promotion stands for all that is in it; what that is tells
 * the list beside the ledger (move/treelist.h), written when the copy was proved.
 *
 *	treecheck.c    what may not be in it
 *	treecopy.c     copying all of it, with a list
 *	treefiles.c    the files among it, many at a time
 *	treepromote.c  the copying of a promotion
 *	treecompare.c  is it still what the list says, by names, inodes, sizes and times; or by reading
 *	treeguard.c    nobody writes to it
 *	treeremove.c   deleting it, entry by entry, each proved to be the listed one
 *
 * Before a whole tree is deleted it gets a name of its own (dbt_tree_gone_name) in its directory: what is only half
 * deleted is never found under the name of a copy or an original. */
#ifndef DBT_FLOW_TREE_H
#define DBT_FLOW_TREE_H

#include "flow/flow.h"
#include "move/tree.h"
#include "move/treelist.h"
#include "record/promotion.h"

enum { DBT_TREE_GONE_NAME_BYTES = 64 };

enum dbt_tree_side { DBT_TREE_SOURCE = 0, DBT_TREE_COPY };

/* ".dbtier-TOKEN-0-gone.part" */
const char *dbt_tree_gone_name(const struct dbt_promotion *p, char out[DBT_TREE_GONE_NAME_BYTES]);

/* The path of one of the lists, ".tree" or ".back"; free() it. NULL when out of memory. */
char *dbt_tree_list_path(const struct dbt_promotion *p, const char *ending);

/* The list that tells what the copy is, and the side of it: after a rollback has copied it back, what it was then. */
char *dbt_tree_list_of_copy(const struct dbt_promotion *p, enum dbt_tree_side *ret_side);

/* Removes the lists of a promotion that is over. What cannot be removed is a few bytes too much. */
void dbt_tree_remove_lists(const struct dbt_promotion *p);

/* Only that of a rollback that is given up. */
void dbt_tree_remove_back_list(const struct dbt_promotion *p);

/* --- checks --- */

struct dbt_tree_facts {
	uint64_t size_bytes; /* of all files */
	uint64_t need_bytes; /* on the target: without holes, in whole blocks */
	uint64_t n_files, n_entries;
};

/* Refuses what may not be in a directory that moves: what a copy could not be the same as (hard links, devices, sockets
 * and pipes, relative links that lead out of it), what lies on another mount, what is immutable, and what an earlier
 * promotion left. */
int dbt_tree_check_entry(const struct dbt_tree_visit *v, const char *shown, struct dbt_err *err);

/* All of that for the open directory, and its facts. */
int dbt_tree_check(const struct dbt_ctx *ctx, int fd, const char *shown, struct dbt_tree_facts *ret,
                   struct dbt_err *err);

/* --- copying --- */

struct dbt_tree_copy {
	const struct dbt_ctx *ctx;
	int src;              /* the open directory */
	int dst_dirfd;        /* in which the new one is made, */
	const char *dst_name; /* under this name */
	const char *shown_src, *shown_dst;
	const char *list;  /* path of the list to write */
	const char *token; /* to mark the copy with; NULL: no mark */
	const char
		*times; /* path of a list whose sources' times the copy gets; NULL: those of src */
	uint64_t limit_bytes_s, total_bytes;
	unsigned jobs; /* as in struct dbt_copy_opts */
	bool whole;    /* as in struct dbt_carry */
};

/* The copying of a promotion: p's member gets what was copied, and the list lies beside the ledger. */
int dbt_tree_promote(struct dbt_flow *flow, struct dbt_promotion *p, uint64_t limit_bytes_s,
                     unsigned jobs, struct dbt_err *err);

struct dbt_tree_copied {
	struct dbt_ident source,
		root; /* the directories themselves; source.size_bytes: of all files */
	struct dbt_digest digest;
	bool from_device;
};

/* Everything in src, proved file by file as a single file is, flushed, and listed. On an error what was made is left:
 * dbt_tree_remove_all. */
int dbt_tree_copy(const struct dbt_tree_copy *c, struct dbt_tree_copied *ret, struct dbt_err *err);

/* --- comparing --- */

enum dbt_tree_is {
	DBT_TREE_SAME = 0,
	DBT_TREE_TOUCHED, /* only ctimes differ, or owner and mode of a directory */
	DBT_TREE_CHANGED, /* something is missing, more, or another; or cannot be told */
};

/* Is the open directory what the list says of that side? why (may be NULL) gets a sentence about the first
 * difference. Errors are of the list, or of reading. */
int dbt_tree_compare(const struct dbt_ctx *ctx, int fd, const char *list, enum dbt_tree_side side,
                     const char *shown, enum dbt_tree_is *ret, struct dbt_err *why,
                     struct dbt_err *err);

/* The same by reading every byte from the device. *ret_same false: why says what differs. */
int dbt_tree_prove(const struct dbt_ctx *ctx, int fd, const char *list, const char *shown,
                   uint64_t total_bytes, bool *ret_same, bool *ret_from_device, struct dbt_err *why,
                   struct dbt_err *err);

/* Every file's metadata, the second against the first: refuses when the second lacks something that would be a loss. */
int dbt_tree_compare_meta(const struct dbt_ctx *ctx, int original, int copy, const char *list,
                          const char *shown, struct dbt_err *err);

/* Two directories of which no list tells, by reading: names, kinds, link texts, bytes. */
int dbt_tree_equal(const struct dbt_ctx *ctx, int a, int b, const char *shown_a,
                   const char *shown_b, bool *ret_same, struct dbt_err *err);

/* --- writers --- */

struct dbt_tree_guard {
	const struct dbt_ctx *ctx;
	int *fds; /* with leases */
	size_t n;
};

/* Nobody has anything below the open directory open for writing, by leases where they are granted and by /proc. list
 * NULL: all files are looked at once, no lease is kept. With a list as many leases as there may be open files are
 * held until dbt_tree_guard_release. path is the directory's present name. */
int dbt_tree_guard_take(const struct dbt_ctx *ctx, int fd, const char *path, const char *list,
                        struct dbt_tree_guard *ret, struct dbt_err *err);
bool dbt_tree_guard_is_unbroken(const struct dbt_tree_guard *guard);
void dbt_tree_guard_release(struct dbt_tree_guard *guard);

/* A process that has something below path open for writing: refused. */
int dbt_tree_check_processes(const struct dbt_ctx *ctx, int fd, const char *path,
                             struct dbt_err *err);

/* --- removing --- */

/* Everything in the directory of that name, which is one of our random ones, and itself. */
int dbt_tree_remove_all(const struct dbt_ctx *ctx, int dirfd, const char *name, const char *shown,
                        struct dbt_err *err);

/* Deletes what the list says of that side, each entry only if it is the very one, and last the directory itself.
 * *ret_left: how many names stayed because they are not. */
int dbt_tree_remove_listed(const struct dbt_ctx *ctx, int dirfd, const char *name, const char *list,
                           enum dbt_tree_side side, const char *shown, uint64_t *ret_left,
                           struct dbt_err *err);

#endif
