/* Is a path seen by other machines? An NFS client resolves a symbolic link on its own side, where
 * the target does not exist or is something else; Samba refuses links that lead out of a share. So
 * a link in an exported directory breaks the database for the others.
 *
 * Read are etc/exports, etc/exports.d/(name).exports and var/lib/nfs/etab (exports(5)), the shares of
 * etc/samba/smb.conf and var/lib/samba/usershares (smb.conf(5)). Not followed: include lines of
 * Samba, and directories of an exported path that are links. */
#ifndef DBT_SURVEY_EXPORTS_H
#define DBT_SURVEY_EXPORTS_H

#include "sys/ctx.h"

#include <stddef.h>

/* Returns 1 when something at path, above or below it is exported, and in *ret_line which line says
 * so ("/etc/exports:3: /mnt/store *(ro)"; free() it); 0 when not; -errno. path is absolute. */
int dbt_exports_find(const struct dbt_ctx *ctx, const char *path, char **ret_line);

/* The same for the text of one file; file is its name for *ret_line. */
int dbt_exports_match_nfs(const char *file, const char *text, size_t len, const char *path,
                          char **ret_line);

/* share: the name of what stands before the first section, NULL for none. */
int dbt_exports_match_samba(const char *file, const char *share, const char *text, size_t len,
                            const char *path, char **ret_line);

#endif
