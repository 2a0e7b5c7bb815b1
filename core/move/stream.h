/* Reading a file's bytes from its device rather than from memory, and writing them so that they get there: one
 * open file, with O_DIRECT where the filesystem takes it and the page cache kept out of the way elsewhere. */
#ifndef DBT_MOVE_STREAM_H
#define DBT_MOVE_STREAM_H

#include "sys/ctx.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DBT_STREAM_ALIGN = 4096,         /* of every offset and buffer */
	DBT_STREAM_BLOCK_BYTES = 4 << 20 /* of one read or write */
};

struct dbt_stream {
	int fd;               /* borrowed, no O_DIRECT */
	int direct_fd;        /* the same file with O_DIRECT, own; -1 when it is not possible */
	atomic_bool buffered; /* O_DIRECT was refused at work: use fd from then on */
	bool keep_cache;      /* pages that others had cached stay cached */
	bool sure_direct; /* the filesystem names its limits: O_DIRECT does not end in the page cache */
};

/* Borrows fd, which stays open at least as long. access is O_RDONLY or O_RDWR, as fd was opened. Never fails:
 * without O_DIRECT it works buffered. */
void dbt_stream_init(const struct dbt_ctx *ctx, struct dbt_stream *stream, int fd, int access);
/* The same for a file that is written in one piece and flushed together with others: through the page cache. */
void dbt_stream_init_buffered(struct dbt_stream *stream, int fd);
void dbt_stream_release(struct dbt_stream *stream);

/* Reads up to len bytes at off (aligned) into buf (aligned, with room for len rounded up to the alignment).
 * Returns the bytes read, short only at the end of the file, or -errno. Safe from several threads. */
ssize_t dbt_stream_read(const struct dbt_ctx *ctx, struct dbt_stream *stream, void *buf, size_t len,
                        uint64_t off);

/* Writes len bytes at off (aligned); what follows the last whole sector goes through the page cache. buf may be
 * read up to len rounded up to the alignment. */
int dbt_stream_write(const struct dbt_ctx *ctx, struct dbt_stream *stream, const void *buf,
                     size_t len, uint64_t off);

/* Takes a flushed range out of the page cache, so that the next read comes from the device. */
void dbt_stream_drop(struct dbt_stream *stream, uint64_t off, uint64_t len);

/* Will reads of this stream come from the device? True with O_DIRECT on a filesystem that names its limits, or
 * where no page of the range is in the cache now. */
bool dbt_stream_reads_device(const struct dbt_ctx *ctx, struct dbt_stream *stream, uint64_t off,
                             uint64_t len);

/* An aligned block buffer, free(); NULL when out of memory. */
void *dbt_stream_alloc(size_t len);

#endif
