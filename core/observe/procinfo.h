/* Inside observe: what /proc/PID tells of a process, in small pieces. proc is a descriptor of /proc. */
#ifndef DBT_OBSERVE_PROCINFO_H
#define DBT_OBSERVE_PROCINFO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* At most size - 1 bytes and a NUL; their number or -errno. */
ssize_t dbt_procinfo_read_at(int dir, const char *path, char *text, size_t size);
ssize_t dbt_procinfo_read(int proc, int pid, const char *what, char *text, size_t size);

/* The name in the text of /etc/passwd, else the number: asking the name services could hang on a network. free() it; NULL:
 * out of memory. */
char *dbt_procinfo_user(const char *passwd, uint32_t uid);

/* The begin of the command line, with blanks between the words; name where there is none. free() it. */
char *dbt_procinfo_command(int proc, int pid, const char *name);

/* The number of the mount namespace; 0 unknown. */
unsigned long dbt_procinfo_mounts(int proc, int pid);

#endif
