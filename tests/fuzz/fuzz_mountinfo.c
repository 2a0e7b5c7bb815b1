/* Any text as the kernel's table of mounts: entries or an error, and options that can be looked up. */
#include "survey/mounts.h"
#include "sys/root.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct dbt_root root;
static char dir[64];

static void tidy(void)
{
	char path[128];

	for (const char *const *name = (const char *const[]){ "/proc/self/mountinfo", "/proc/self",
	                                                      "/proc", "", NULL };
	     *name; name++) {
		(void)snprintf(path, sizeof(path), "%s%s", dir, *name);
		(void)remove(path);
	}
}

static void init(void)
{
	char path[128];

	if (*dir)
		return;
	(void)snprintf(dir, sizeof(dir), "/dev/shm/fuzz-mountinfo.XXXXXX");
	if (!mkdtemp(dir))
		abort();
	(void)snprintf(path, sizeof(path), "%s/proc", dir);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/proc/self", dir);
	(void)mkdir(path, 0700);
	if (dbt_root_open(&root, dir) < 0)
		abort();
	(void)atexit(tidy);
}

static void write_table(const uint8_t *data, size_t len)
{
	int fd = openat(root.fd, "proc/self/mountinfo", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
	                0600);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	(void)close(fd);
}

static void ask(const struct dbt_mounts *mounts)
{
	static const char *const keys[] = { "lowerdir", "upperdir", "subvol", "device", "x" };

	for (size_t i = 0; i < dbt_mounts_count(mounts); i++) {
		const struct dbt_mount *m = dbt_mounts_at(mounts, i);

		if (!m->target || !m->root || !m->source || !m->fstype || !m->vfs_options ||
		    !m->fs_options || !dbt_mounts_by_id(mounts, m->id))
			abort();
		(void)dbt_mounts_by_path(mounts, m->target);
		for (size_t k = 0; k < 2 * sizeof(keys) / sizeof(keys[0]); k++) {
			char *value = NULL;

			if (dbt_mount_option(m->fs_options, keys[k / 2], k % 2, &value) == 0)
				free(value);
		}
	}
	(void)dbt_mounts_by_path(mounts, "/mnt/store/psc.dmnd");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dbt_mounts *mounts;
	struct dbt_err err;
	struct dbt_ctx ctx;

	init();
	write_table(data, len);
	dbt_ctx_init(&ctx, &root);
	if (dbt_mounts_new(&ctx, &mounts, &err) == 0) {
		ask(mounts);
		dbt_mounts_free(mounts);
	}
	return 0;
}
