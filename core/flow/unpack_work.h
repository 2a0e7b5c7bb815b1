/* Inside of unpacking only: what its steps share. */
#ifndef DBT_FLOW_UNPACK_WORK_H
#define DBT_FLOW_UNPACK_WORK_H

#include "flow/unpack.h"
#include "flow/unpack_entries.h"
#include "move/sink.h"

#include <stdatomic.h>

/* A directory that is being filled under its temporary name. */
struct dbt_unpack_root {
	struct dbt_pmember *member; /* of the promotion */
	struct dbt_at at;           /* its final name */
	int fd;                     /* of the directory; -1: there is none */
	struct dbt_sink_space space;
};

struct dbt_unpack_work {
	struct dbt_flow *flow;
	struct dbt_promotion *p;
	const struct dbt_unpack_opts *opts;
	struct dbt_unpack_entries entries;
	struct dbt_sink *sink;
	struct dbt_unpack_root hot, cold;
	size_t n_archives;
	/* Who may read the archives may read what comes out of them, and nobody else. */
	uint32_t mode_mask, uid, gid;
	/* While the archives are read. */
	atomic_size_t next_archive, readers;
	_Atomic uint64_t done_bytes; /* packed */
	uint64_t busy_ns;            /* processor time of the readers; under the mutex of entries */
};

static inline struct dbt_unpack_root *dbt_unpack_visible(struct dbt_unpack_work *w)
{
	return w->cold.fd >= 0 ? &w->cold : &w->hot;
}

/* Reads the archives and fills the roots with their files, proved; checks the published checksums. */
int dbt_unpack_read(struct dbt_unpack_work *work, struct dbt_err *err);

/* Puts directories and links in place, looks whether the guess of what is hot was right, flushes, and makes everything
 * a member of the promotion. */
int dbt_unpack_build(struct dbt_unpack_work *work, struct dbt_err *err);

/* The names that a root may have before it is visible: NUMBER 0 and 1 are of the hot one, 2 and 3 of the cold one. */
enum { DBT_UNPACK_PART_BYTES = 64 };
void dbt_unpack_part(const struct dbt_promotion *p, unsigned number,
                     char out[DBT_UNPACK_PART_BYTES]);

#endif
