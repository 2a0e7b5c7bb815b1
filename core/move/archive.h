/* What is in an archive, entry by entry, in one pass over its bytes: tar (plain, gz, xz, zst, bz2, lz4), zip and 7z.
 * Nothing is written here; names and links come as the archive has them, whoever uses them judges them. */
#ifndef DBT_MOVE_ARCHIVE_H
#define DBT_MOVE_ARCHIVE_H

#include "base/err.h"
#include "move/packed.h"
#include "move/unpacker.h"

#include <stdbool.h>
#include <stdint.h>

enum dbt_entry_type {
	DBT_ENTRY_FILE = 0,
	DBT_ENTRY_DIRECTORY,
	DBT_ENTRY_LINK,      /* symbolic */
	DBT_ENTRY_HARD_LINK, /* another name of an entry before */
	DBT_ENTRY_OTHER,     /* device, FIFO, socket */
};

struct dbt_entry {
	const char *name; /* bytes; borrowed until the next call */
	const char *link; /* of links: their text, or the other name; likewise */
	enum dbt_entry_type type;
	bool sized; /* size_bytes is declared; formats that stream may tell it only afterwards */
	bool sparse;
	uint64_t size_bytes;
	uint32_t mode; /* permissions; 0 unknown */
	int64_t mtime_ns;
};

struct dbt_archive;

struct dbt_archive_opts {
	struct dbt_packed_opts packed;
	struct dbt_unpacker_opts unpacker;
};

/* fd stays the caller's, and open as long. An error of kind REFUSED when it is no archive of these kinds. */
int dbt_archive_new(const struct dbt_ctx *ctx, int fd, const struct dbt_ident *ident,
                    const struct dbt_archive_opts *opts, struct dbt_archive **ret,
                    struct dbt_err *err);
void dbt_archive_free(struct dbt_archive *archive);

/* Is the directory of everything at its end (zip, 7z)? Then a first pass over the entries costs little. */
bool dbt_archive_has_directory(const struct dbt_archive *archive);

/* 1 the next entry, 0 the end, negative with err filled. What was not read of the last entry is passed over. */
int dbt_archive_next(struct dbt_archive *archive, struct dbt_entry *ret, struct dbt_err *err);

/* 1 the next bytes of the entry and where in the file they belong (what is passed over is zeros), 0 its end, negative
 * with err filled. They may be more than was declared. */
int dbt_archive_data(struct dbt_archive *archive, const void **ret_data, size_t *ret_len,
                     uint64_t *ret_off, struct dbt_err *err);

/* After the last entry: reads to the end of the file. An archive that was cut short is an error. */
int dbt_archive_finish(struct dbt_archive *archive, struct dbt_packed_sums *ret,
                       struct dbt_err *err);

/* Do the first bytes look like an archive? May be wrong for packed files that are no tar inside. */
bool dbt_archive_magic(const unsigned char *head, size_t len);

#endif
