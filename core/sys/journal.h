/* SQLite keeps changes that are not in the database file yet beside it: in NAME-wal or NAME-journal. Whoever opens NAME
 * replays what lies there, so such a file belongs to NAME, whoever put it there (sqlite.org/fileformat2.html,
 * sections 3 and 4). Symbolic links are resolved first: the files lie beside the real one. */
#ifndef DBT_SYS_JOURNAL_H
#define DBT_SYS_JOURNAL_H

#include <limits.h>
#include <stdbool.h>

enum { DBT_JOURNAL_NAME_BYTES = NAME_MAX + 16 };

/* Does an open file begin with SQLite's magic? */
bool dbt_journal_is_sqlite(int fd);

/* Does a journal that is not empty lie beside this name? Its name is in ret then. */
bool dbt_journal_beside(int dirfd, const char *name, char ret[DBT_JOURNAL_NAME_BYTES]);

#endif
