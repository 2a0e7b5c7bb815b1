#include "sys/journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool dbt_journal_is_sqlite(int fd)
{
	char magic[16];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       memcmp(magic, "SQLite format 3", sizeof(magic)) == 0;
}

bool dbt_journal_beside(int dirfd, const char *name, char ret[DBT_JOURNAL_NAME_BYTES])
{
	static const char *const suffixes[] = { "-wal", "-journal" };
	struct stat st;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		(void)snprintf(ret, DBT_JOURNAL_NAME_BYTES, "%s%s", name, suffixes[i]);
		if (fstatat(dirfd, ret, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0)
			return true;
	}
	return false;
}
