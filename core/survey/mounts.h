/* A snapshot of the mount table (proc/self/mountinfo) of the running or a captured machine; the
 * only user of libmount. Entries stay in the kernel's order: a later one hides an earlier one with
 * the same target. */
#ifndef DBT_SURVEY_MOUNTS_H
#define DBT_SURVEY_MOUNTS_H

#include "base/err.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dbt_mount {
	uint64_t id; /* as in statx's stx_mnt_id */
	uint64_t parent_id;
	uint64_t devno; /* of the superblock; on btrfs, overlay, NFS ... no block device has it */
	char *target;   /* decoded: "\040" is a blank here */
	char *root;     /* the directory of the filesystem mounted there */
	char *source;   /* "" where the kernel says none */
	char *fstype;
	char *vfs_options; /* of this mount: "rw,noatime" */
	char *fs_options;  /* of the superblock: "rw,lowerdir=..." */
	bool read_only;    /* either of the two */
};

struct dbt_mounts;

/* Lines that libmount cannot read are skipped and counted; a table with no readable line at all is
 * an error. */
int dbt_mounts_new(const struct dbt_ctx *ctx, struct dbt_mounts **ret, struct dbt_err *err);
void dbt_mounts_free(struct dbt_mounts *mounts); /* NULL is fine */

size_t dbt_mounts_count(const struct dbt_mounts *mounts);
const struct dbt_mount *dbt_mounts_at(const struct dbt_mounts *mounts, size_t i);
size_t dbt_mounts_garbled(const struct dbt_mounts *mounts); /* lines skipped */

/* NULL when there is none. */
const struct dbt_mount *dbt_mounts_by_id(const struct dbt_mounts *mounts, uint64_t id);

/* The mount that an absolute path without links leads to, by its text: what a captured machine
 * allows. Files of the running system are found by their mount id instead. */
const struct dbt_mount *dbt_mounts_by_path(const struct dbt_mounts *mounts, const char *path);

/* The value of a "key=value" option in a comma-separated list, with libmount's quoting; free() it.
 * nth counts repeated keys from 0. -ENOENT when absent. */
int dbt_mount_option(const char *options, const char *key, size_t nth, char **ret);

#endif
