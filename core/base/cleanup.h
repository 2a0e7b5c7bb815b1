/* Cleanup attributes: what can be dropped without asking (memory, read-only descriptors). A
 * descriptor that was written to is closed explicitly, because its close can fail. errno survives
 * each of them. */
#ifndef DBT_BASE_CLEANUP_H
#define DBT_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void dbt_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void dbt_cleanup_close(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	errno = saved;
}

static inline void dbt_cleanup_closedir(DIR **dir)
{
	int saved = errno;

	if (*dir)
		(void)closedir(*dir);
	errno = saved;
}

static inline void dbt_cleanup_fclose(FILE **file)
{
	int saved = errno;

	if (*file)
		(void)fclose(*file);
	errno = saved;
}

#define dbt_autofree     __attribute__((cleanup(dbt_cleanup_free)))
#define dbt_autoclose    __attribute__((cleanup(dbt_cleanup_close)))
#define dbt_autoclosedir __attribute__((cleanup(dbt_cleanup_closedir)))
#define dbt_autofclose   __attribute__((cleanup(dbt_cleanup_fclose)))

#endif
