/* A file as directory fd + name, and what a file is: its identity. A path from outside is resolved
 * once, from then on only *at calls are made, so that a directory swapped for a link later cannot
 * redirect us. */
#ifndef DBT_SYS_AT_H
#define DBT_SYS_AT_H

#include "base/err.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dbt_at {
	int dirfd;   /* of the directory that holds the name, opened for reading so that it can be
	                synced */
	char *name;  /* one component, never followed */
	char *shown; /* the absolute path without links in its directory part; for messages and the
	                ledger */
};

/* Facts of one inode from statx. Times in ns since the epoch (before it: negative). */
struct dbt_ident {
	uint64_t dev; /* st_dev; on btrfs and overlay no block device has it */
	uint64_t ino;
	uint64_t size_bytes;
	uint64_t blocks512;
	int64_t mtime_ns;
	int64_t ctime_ns;
	int64_t btime_ns; /* 0 where the filesystem does not say */
	int64_t atime_ns;
	uint64_t mnt_id; /* 0: not told; dbt_ident_fd always tells it */
	uint32_t mode;   /* type and permissions */
	uint32_t uid;
	uint32_t gid;
	uint32_t nlink;
	uint64_t attrs;  /* STATX_ATTR_*: immutable, append, compressed ... */
	bool mount_root; /* a mount point; false where the kernel does not say */
};

/* Resolves path: links in the directory part are followed, the last component is not. "dir/", "."
 * and ".." name the directory itself. Errors: -ENOENT with a sentence when the directory part is
 * missing; the file itself need not exist. On success the caller releases. */
int dbt_at_resolve(const struct dbt_ctx *ctx, const char *path, struct dbt_at *ret,
                   struct dbt_err *err);

/* As dbt_at_resolve for a path that we recorded ourselves and that had no links then: a link in its
 * directory part now is an error (-ELOOP). */
int dbt_at_resolve_strict(const struct dbt_ctx *ctx, const char *path, struct dbt_at *ret,
                          struct dbt_err *err);

/* A sibling in the same directory; name is copied. */
int dbt_at_sibling(const struct dbt_at *at, const char *name, struct dbt_at *ret);
void dbt_at_release(struct dbt_at *at); /* zero-initialised and released are fine */

/* -errno only, the caller writes the sentence. Adds O_CLOEXEC and O_NOFOLLOW. */
int dbt_at_open(const struct dbt_ctx *ctx, const struct dbt_at *at, int flags, mode_t mode);

/* Opens what lies below an open directory: path is relative ("a/b"; "." is the directory itself), no part of it may
 * be a link or lead to another mount. -errno only. */
int dbt_at_open_beneath(const struct dbt_ctx *ctx, int dirfd, const char *path, int flags);

/* Identity of the name itself (a link is not followed) or of an open file. */
int dbt_at_ident(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_ident *ret);
int dbt_ident_fd(const struct dbt_ctx *ctx, int fd, struct dbt_ident *ret);
int dbt_ident_of(const struct dbt_ctx *ctx, int dirfd, const char *name, struct dbt_ident *ret);

/* The link's text; free() it. */
int dbt_at_readlink(const struct dbt_at *at, char **ret);

int dbt_at_sync_dir(const struct dbt_ctx *ctx, const struct dbt_at *at);

/* The same inode: device, number and birth time where both have one. Between boots device numbers
 * may change; any_dev leaves them out. */
bool dbt_ident_same_inode(const struct dbt_ident *a, const struct dbt_ident *b, bool any_dev);

/* ... and nobody wrote to it as far as size and mtime tell; with_ctime also its metadata is
 * untouched. What a directory holds shows in neither: of directories it is the inode alone. */
bool dbt_ident_same_content(const struct dbt_ident *a, const struct dbt_ident *b, bool with_ctime,
                            bool any_dev);

/* The canonical path of an open directory or file, from /proc/self/fd; free() it. -ENOENT when
 * deleted. */
int dbt_fd_path(int fd, char **ret);

#endif
