/* Where unpacked bytes go: files that are made, written, flushed, read back from their device and compared, several at
 * a time, while more bytes come. One pool of blocks for all bounds the memory.
 *
 *	the callers     cut the stream into blocks of 1 MiB and hash it, as a whole and by windows of 64 MiB
 *	writers (2)     write the blocks; one of zeros only, which a sparse member leaves out, is left out here too
 *	provers (2)     per window, once it is written: flush, read back, hash, compare; after the last window of a
 *	                file its mode and times are on record and flushed as well
 *
 * A file under the hands of a sink has a name that nobody else knows; whoever called makes it visible afterwards. */
#ifndef DBT_MOVE_SINK_H
#define DBT_MOVE_SINK_H

#include "base/err.h"
#include "move/digest.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_sink;
struct dbt_sink_file;

/* Room that has to be left on a filesystem. */
struct dbt_sink_space {
	int fd; /* of a directory there; borrowed */
	const char *shown;
	uint64_t reserve_bytes;
};

struct dbt_sink_want {
	int dirfd;         /* borrowed for the call */
	const char *name;  /* must not exist */
	const char *shown; /* for messages; borrowed until the sink is drained */
	const struct dbt_sink_space *space;
	const char *mark; /* token of the promotion; NULL: no mark */
	bool sized;       /* size_bytes is reserved first */
	uint64_t size_bytes;
	uint32_t mode;
	uint32_t uid, gid; /* whose it shall be, where this user may give it away */
	int64_t mtime_ns;
};

/* What became of a file; filled by the time that dbt_sink_drain returns 0. */
struct dbt_sink_result {
	struct dbt_digest digest; /* of the bytes that came, equal to that of the bytes read back */
	struct dbt_ident ident;
	bool from_device; /* every read-back is known to have come from the device */
};

int dbt_sink_new(const struct dbt_ctx *ctx, struct dbt_sink **ret, struct dbt_err *err);
/* Gives up whatever is under way; unfinished files stay for the caller to remove. */
void dbt_sink_free(struct dbt_sink *sink);

/* True once something failed, here or because of dbt_sink_fail: whoever works for this sink may end. */
atomic_bool *dbt_sink_stopped(struct dbt_sink *sink);
/* Makes err the failure of the whole, unless there was one before. */
void dbt_sink_fail(struct dbt_sink *sink, const struct dbt_err *err);

/* Each file is filled by one thread, several files by several. result is the caller's, until the sink is drained. After
 * an error the whole is to be given up: dbt_sink_fail. */
int dbt_sink_begin(struct dbt_sink *sink, const struct dbt_sink_want *want,
                   struct dbt_sink_result *result, struct dbt_sink_file **ret, struct dbt_err *err);
/* Bytes at off, at or behind the last ones; what lies between reads as zeros. */
int dbt_sink_write(struct dbt_sink *sink, struct dbt_sink_file *file, const void *data, size_t len,
                   uint64_t off, struct dbt_err *err);
/* size_bytes: of the whole file, at or behind the last byte. */
int dbt_sink_end(struct dbt_sink *sink, struct dbt_sink_file *file, uint64_t size_bytes,
                 struct dbt_err *err);
/* Waits until every file is proved. The first failure of all is the error. */
int dbt_sink_drain(struct dbt_sink *sink, struct dbt_err *err);

#endif
