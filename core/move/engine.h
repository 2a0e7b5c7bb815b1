/* Inside move only: the state that the parts of the copy engine share. Blocks of 4 MiB of all files, one after the other,
 * pass through a ring of slots; block number i always uses slot i % SLOTS:
 *
 *	readers       FREE -> READING -> READY     open the files; read from the source's device, in any order
 *	the caller    READY -> HASHED              in order: XXH3 of each file; assigns the block to a window;
 *	                                           progress, rate limit, messages, cancellation
 *	writers       HASHED -> WRITING -> FREE    write to the target, leave holes out; end each file's source
 *	prover (1)    per window, in order: when all its blocks are written, flush, read back, hash, compare
 *
 * A window is 64 MiB, or the end of 128 files. Once proved it is never written again. One mutex guards states, counters
 * and lists; the buffers belong to whoever put their slot into READING, HASHED or WRITING. The first error stops
 * everybody.
 *
 * The digest that is compared at the end of a window is that of the file's bytes from its beginning: so one hash on each
 * side proves the windows and the file, and what is proved of a half copy can be told by its length and one digest. */
#ifndef DBT_MOVE_ENGINE_H
#define DBT_MOVE_ENGINE_H

#include "move/copy.h"
#include "move/stream.h"

#include <pthread.h>

enum {
	ENGINE_SLOTS = 8,
	ENGINE_WINDOWS = 3,        /* one fills, one is full, one is proved */
	ENGINE_WINDOW_FILES = 128, /* that end in it, at most */
	ENGINE_OTHER_FDS = 60, /* what the program and the blocks on their way have open besides */
	ENGINE_SMALL_BYTES = 1 << 20, /* up to here files are written through the page cache */
	ENGINE_SHARE_FILES = 3,       /* so many files in a window share one syncfs */
	ENGINE_LOG_LINES = 64
};
#define ENGINE_BLOCK        ((uint64_t)DBT_STREAM_BLOCK_BYTES)
#define ENGINE_WINDOW_BYTES ((uint64_t)64 << 20)

/* Lives from the claim of its first block until it is proved. */
struct engine_file {
	struct engine_file *next, *prev;
	size_t index;
	uint64_t size, n_blocks;
	bool open, failed_open;
	bool small, has_holes;
	struct dbt_copy_item item;
	struct dbt_stream src, dst;
	uint64_t start;          /* bytes that an earlier run copied */
	struct dbt_hasher *kept; /* of these; NULL: none */
	uint64_t blocks_done, data_bytes;
	struct dbt_digest digest;
	bool from_device;
};

enum engine_slot_state { SLOT_FREE = 0, SLOT_READING, SLOT_READY, SLOT_HASHED, SLOT_WRITING };

struct engine_slot {
	void *buf;
	enum engine_slot_state state;
	struct engine_file *file;
	struct engine_window *window;
	uint64_t off;
	size_t len;
};

/* A run of one file's bytes in a window. */
struct engine_part {
	struct engine_file *file;
	uint64_t off, end;
	bool last;
	struct dbt_digest digest; /* of the source from its beginning to end */
};

struct engine_window {
	struct engine_part parts[ENGINE_WINDOW_FILES + 1];
	size_t n_parts;
	uint64_t bytes, blocks, blocks_done;
	bool used, closed;
};

struct engine {
	const struct dbt_ctx *caller; /* for the caller's thread only */
	struct dbt_ctx ctx;           /* for everybody; its messages wait in log */
	const struct dbt_copy_many *many;
	const struct dbt_copy_opts *opts;
	struct engine_slot slots[ENGINE_SLOTS];
	struct engine_window windows[ENGINE_WINDOWS];

	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct engine_file files; /* head of the ring of those in work */
	size_t n_files;
	size_t window_files; /* that end in a window: fewer where few descriptors may be open */
	size_t max_files;    /* open at the same time */
	struct engine_file *reading; /* whose blocks are being claimed; NULL: the next file's */
	uint64_t reading_off;
	size_t next_file;
	uint64_t next_read, next_hash, next_write; /* block numbers */
	uint64_t next_window, next_proof;          /* window numbers */
	bool all_hashed, proof_done;
	bool share_flushes, target_known;
	uint64_t target_dev;
	uint64_t kept_done; /* bytes of half copies that were read again */
	bool stop;          /* an error happened, or the caller gave up */
	struct dbt_err err;
	struct {
		enum dbt_log_level level;
		char *text;
	} log[ENGINE_LOG_LINES];
	size_t n_log;

	pthread_t threads[2 * DBT_COPY_MAX_JOBS + 1];
	size_t n_threads;
};

void dbt_engine_fail(struct engine *e, const struct dbt_err *err);
bool dbt_engine_stopped(struct engine *e);

/* open.c: opens a file and gets its copy ready; called by the reader that claimed its first block. */
int dbt_engine_open(struct engine *e, struct engine_file *file, struct dbt_err *err);
/* All bytes are written: the source is not needed any more. */
int dbt_engine_written(struct engine *e, struct engine_file *file, struct dbt_err *err);
/* Ends a file and takes it off the list. */
void dbt_engine_close(struct engine *e, struct engine_file *file, bool failed);

/* write.c: a writer's thread; arg is the engine. */
void *dbt_engine_writer(void *arg);

/* prove.c: the prover's thread; arg is the engine. */
void *dbt_engine_prover(void *arg);

#endif
