/* What was found in the archives of one promotion so far: every name once, judged before anything is made of it.
 *
 * An archive is foreign: nothing it says may reach outside the directory that is made for it. Refused are absolute
 * names, "..", control characters, names that dbtier gives itself, devices, FIFOs and sockets, links that are absolute
 * or lead out, entries below something that is no directory, and a second entry of a name with other contents.
 * A hard link becomes a symbolic one to the entry it names. Set-user-id bits, owners and attributes are not taken. */
#ifndef DBT_FLOW_UNPACK_ENTRIES_H
#define DBT_FLOW_UNPACK_ENTRIES_H

#include "base/err.h"
#include "move/archive.h"
#include "move/sink.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* More entries than this are refused: each is held in memory and in the ledger. */
enum { DBT_UNPACK_MOST_ENTRIES = 250000 };

struct dbt_unpack_entry {
	char *path;                    /* relative, of plain components */
	enum dbt_entry_type type;      /* FILE, DIRECTORY or LINK */
	bool hot;                      /* a file that goes to the fast tier */
	char *link;                    /* text of a LINK */
	struct dbt_sink_result result; /* of a FILE, once the sink is drained */
};

/* A second entry of the same name: its bytes are compared when all are known. */
struct dbt_unpack_twin {
	const struct dbt_unpack_entry *entry;
	const char *archive;
	struct dbt_digest digest;
};

struct dbt_unpack_entries {
	pthread_mutex_t mutex; /* several archives may be read at a time */
	void *tree;            /* of tsearch(3), by path */
	struct dbt_unpack_entry **items;
	size_t n, cap;
	struct {
		struct dbt_unpack_twin *items;
		size_t n, cap;
	} twins;
	size_t hard_links; /* that became symbolic ones */
	size_t set_bits;   /* files whose set-user-id, set-group-id or sticky bit was dropped */
};

void dbt_unpack_entries_init(struct dbt_unpack_entries *entries);
void dbt_unpack_entries_release(struct dbt_unpack_entries *entries);

/* Judges an entry of an archive. 1: *ret is the new one to be filled; 2: a file of that name was there already, the
 * bytes of this one are to be given to dbt_unpack_twin; 0: nothing more is to do. Errors are of kind REFUSED. hot: what
 * becomes of a file that is not empty. */
int dbt_unpack_judge(struct dbt_unpack_entries *entries, const struct dbt_entry *entry,
                     const char *archive, bool hot, struct dbt_unpack_entry **ret,
                     struct dbt_err *err);

int dbt_unpack_twin(struct dbt_unpack_entries *entries, const struct dbt_unpack_entry *entry,
                    const char *archive, const struct dbt_digest *digest, struct dbt_err *err);

/* Compares what came twice; after the sink was drained. */
int dbt_unpack_compare_twins(const struct dbt_unpack_entries *entries, struct dbt_err *err);

/* NULL when there is none. */
struct dbt_unpack_entry *dbt_unpack_find(const struct dbt_unpack_entries *entries,
                                         const char *path);

/* The one directory that everything lies in; NULL when there is none. free() it. */
char *dbt_unpack_top(const struct dbt_unpack_entries *entries);

/* Does a link of this text, at this depth (0: in the root), stay inside? ".." may only come first, so that it always
 * means a real directory, whatever other links there are. */
bool dbt_unpack_link_stays(const char *text, unsigned depth);

#endif
