#include "observe/procinfo.h"

#include "base/cleanup.h"
#include "observe/tasks.h"
#include "observe/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_BYTES = 200 };

/* PF_KTHREAD of the flags in /proc/PID/stat. */
static const uint64_t KERNEL_THREAD = 0x00200000;

bool dbt_task_stat_parse(const char *text, struct dbt_task_stat *ret)
{
	/* Numbers of the fields behind the state, by proc(5): field 4 is the first. */
	enum {
		PARENT,
		FLAGS = 9 - 4,
		MAJOR = 12 - 4,
		USER = 14 - 4,
		SYSTEM,
		THREADS = 20 - 4,
		START = 22 - 4,
		DELAY = 42 - 4,
		N
	};
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	uint64_t v[N] = { 0 };
	size_t len;

	*ret = (struct dbt_task_stat){ 0 };
	if (!open || !close || close < open || close[1] != ' ' || close[2] == '\0')
		return false;
	len = (size_t)(close - open - 1);
	len = len < sizeof(ret->name) ? len : sizeof(ret->name) - 1;
	memcpy(ret->name, open + 1, len);
	ret->state = close[2];
	close += 3;
	if (dbt_next_numbers(&close, v, N) <= START)
		return false;
	ret->parent = (int)v[PARENT];
	ret->major_faults = v[MAJOR];
	ret->cpu_ticks = v[USER] + v[SYSTEM];
	ret->threads = (unsigned)v[THREADS];
	ret->start_ticks = v[START];
	ret->delay_ticks = v[DELAY];
	ret->kernel = (v[FLAGS] & KERNEL_THREAD) != 0;
	return true;
}

ssize_t dbt_procinfo_read_at(int dir, const char *path, char *text, size_t size)
{
	dbt_autoclose int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	return len;
}

ssize_t dbt_procinfo_read(int proc, int pid, const char *what, char *text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/%s", pid, what);
	return dbt_procinfo_read_at(proc, path, text, size);
}

char *dbt_procinfo_user(const char *passwd, uint32_t uid)
{
	char number[16];
	char *name = NULL;

	for (const char *line = passwd; *line; line += *line == '\n') {
		size_t len = strcspn(line, ":\n");
		const char *field = line + len;

		if (*field == ':')
			field = strchr(field + 1, ':');
		if (field && strtoul(field + 1, NULL, 10) == uid && field[1] != '\n')
			return strndup(line, len);
		line += strcspn(line, "\n");
	}
	(void)snprintf(number, sizeof(number), "%u", uid);
	name = strdup(number);
	return name;
}

char *dbt_procinfo_command(int proc, int pid, const char *name)
{
	char text[COMMAND_BYTES] = "";
	ssize_t len = dbt_procinfo_read(proc, pid, "cmdline", text, sizeof(text));

	while (len > 0 && text[len - 1] == '\0')
		len--;
	if (len <= 0)
		return strdup(name);
	for (ssize_t i = 0; i < len; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	return strndup(text, (size_t)len);
}

unsigned long dbt_procinfo_mounts(int proc, int pid)
{
	char path[64], text[64];
	ssize_t len;

	(void)snprintf(path, sizeof(path), "%d/ns/mnt", pid);
	len = readlinkat(proc, path, text, sizeof(text) - 1);
	if (len <= 0)
		return 0;
	text[len] = '\0';
	return strncmp(text, "mnt:[", 5) == 0 ? strtoul(text + 5, NULL, 10) : 0;
}
