/* Any text as a configuration file: lines that are understood, or kept as such with the reason. */
#include "survey/override.h"
#include "sys/config.h"
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
	(void)unlinkat(root.fd, "etc/dbtier.conf", 0);
	(void)unlinkat(root.fd, "etc", AT_REMOVEDIR);
	(void)rmdir(dir);
}

static void init(void)
{
	if (*dir)
		return;
	(void)snprintf(dir, sizeof(dir), "/dev/shm/fuzz-config.XXXXXX");
	if (!mkdtemp(dir) || dbt_root_open(&root, dir) < 0 || mkdirat(root.fd, "etc", 0700) < 0)
		abort();
	(void)atexit(tidy);
}

static void write_file(const uint8_t *data, size_t len)
{
	int fd = openat(root.fd, "etc/dbtier.conf", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dbt_config config;
	struct dbt_overrides overrides;
	struct dbt_ctx ctx;

	init();
	write_file(data, len);
	dbt_ctx_init(&ctx, &root);
	if (dbt_config_load(&ctx, &config) == 0) {
		for (size_t i = 0; i < config.n; i++)
			if (!config.items[i].value || !config.items[i].where ||
			    (config.items[i].key != DBT_CONFIG_NONE &&
			     !dbt_config_key_name(config.items[i].key)))
				abort();
		dbt_config_release(&config);
	}
	if (dbt_overrides_load(&ctx, false, &overrides) == 0) {
		(void)dbt_override_find(&overrides, "", "sda");
		dbt_overrides_release(&overrides);
	}
	return 0;
}
