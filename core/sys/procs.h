/* Which processes use a file, and which process is this one. Looks only at /proc: no other
 * filesystem is asked anything that could hang on a dead mount. */
#ifndef DBT_SYS_PROCS_H
#define DBT_SYS_PROCS_H

#include "base/err.h"
#include "sys/at.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a process uses a file; several may hold. */
enum dbt_proc_how {
	DBT_PROC_FD_READ = 1 << 0, /* open, but not for writing */
	DBT_PROC_FD_WRITE = 1 << 1,
	DBT_PROC_MAPPED_READ = 1 << 2, /* mapped; the descriptor may be closed */
	DBT_PROC_MAPPED_WRITE =
		1 << 3,            /* mapped shared and writable: memory stores reach the file */
	DBT_PROC_CMDLINE = 1 << 4, /* named on its command line: may still open it */
	DBT_PROC_CWD = 1 << 5,     /* its working directory is the directory or lies below */

	DBT_PROC_READS = DBT_PROC_FD_READ | DBT_PROC_MAPPED_READ,
	DBT_PROC_WRITES = DBT_PROC_FD_WRITE | DBT_PROC_MAPPED_WRITE,
};

/* What to look for. For a directory with a path, whatever lies below the path counts as well. */
struct dbt_procs_file {
	const struct dbt_ident *ident; /* borrowed */
	const char *path; /* absolute, its present name; NULL: command lines are not looked at */
};

struct dbt_proc {
	int pid;
	uint32_t uid; /* effective */
	char name
		[64]; /* the command name as the kernel has it (15 bytes for programs), raw bytes */
	unsigned how; /* enum dbt_proc_how */
	size_t file;  /* index of the file in the question */
};

struct dbt_procs {
	struct dbt_proc *items; /* by process, then file; a process appears once a file */
	size_t n, cap;
	bool blind;        /* some processes could not be inspected: an empty list proves nothing */
	unsigned n_hidden; /* how many of them were seen at least by number */
};

/* All users of n_files files in one walk through /proc, the calling process left out. A process on
 * the way from init to this one (a shell, sudo) is no user just because the path is on its command
 * line. Processes in other PID namespaces are not seen. ret is written on success only; release it
 * with dbt_procs_release. */
int dbt_procs_users_of(const struct dbt_ctx *ctx, const struct dbt_procs_file *files,
                       size_t n_files, struct dbt_procs *ret, struct dbt_err *err);

/* The same for one file; path may be NULL. */
int dbt_procs_users(const struct dbt_ctx *ctx, const struct dbt_ident *file, const char *path,
                    struct dbt_procs *ret, struct dbt_err *err);

void dbt_procs_release(struct dbt_procs *procs);

/* Users in at least one of these ways. */
size_t dbt_procs_count(const struct dbt_procs *procs, unsigned how);

/* "open for writing, mapped": for messages; the buffer is returned. */
enum { DBT_PROC_HOW_TEXT_BYTES = 128 };
const char *dbt_proc_how_text(unsigned how, char out[DBT_PROC_HOW_TEXT_BYTES]);

/* Identifies one run of one process, also after its number was given to another. */
enum { DBT_BOOT_ID_BYTES = 40 };
struct dbt_run {
	int pid;
	uint64_t start_ticks; /* since boot, in clock ticks: field 22 of /proc/PID/stat */
	char boot_id[DBT_BOOT_ID_BYTES];
};

/* The calling process. 0 or -errno. */
int dbt_procs_self_start(const struct dbt_ctx *ctx, struct dbt_run *ret);

/* That very process still runs. A zombie does not. */
bool dbt_procs_is_alive(const struct dbt_ctx *ctx, int pid, uint64_t start_ticks,
                        const char *boot_id);

/* The parent's number, 0 for init (and the kernel's own), or -errno. */
int dbt_procs_parent(const struct dbt_ctx *ctx, int pid);

#endif
