/* Reads below a root directory: /proc, /sys, /run and /etc of the running system, or the same files
 * of a captured machine. Paths are relative to the root and have no leading slash
 * ("sys/block/sda/dev"). Links resolve inside the root. Nothing here writes. */
#ifndef DBT_SYS_ROOT_H
#define DBT_SYS_ROOT_H

#include "base/buf.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_root {
	int fd;
	bool live; /* the running system: devices may be opened, counters change */
};

/* path NULL or "/" is the running system. Returns 0 or -errno. */
int dbt_root_open(struct dbt_root *root, const char *path);
void dbt_root_close(struct dbt_root *root);

/* Replaces buf's contents by the file's, at most max_bytes (-EFBIG beyond). Returns 0 or -errno. */
int dbt_root_read(const struct dbt_root *root, const char *path, size_t max_bytes,
                  struct dbt_buf *buf);

/* As dbt_root_read, at most 64 KiB, with the white space at the end removed. */
int dbt_root_read_line(const struct dbt_root *root, const char *path, struct dbt_buf *buf);

/* A file that holds one non-negative number. -EINVAL when it holds something else. */
int dbt_root_read_u64(const struct dbt_root *root, const char *path, uint64_t *ret);

/* The text of a symbolic link. */
int dbt_root_readlink(const struct dbt_root *root, const char *path, struct dbt_buf *buf);

bool dbt_root_exists(const struct dbt_root *root, const char *path);

/* Caller closes with closedir(). Returns 0 or -errno. */
int dbt_root_opendir(const struct dbt_root *root, const char *path, DIR **ret);

/* An open descriptor for reading; caller closes. Returns it or -errno. */
int dbt_root_openfile(const struct dbt_root *root, const char *path);

#endif
