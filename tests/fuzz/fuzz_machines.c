/* Captured machines that nobody captured: the text of support/machine.h, mutated, unfolded into a tree
 * in memory. Whatever it says, every mount gets a verdict or an error, never a crash or an endless
 * walk, and can be captured again. The corpus is tests/fixtures/machines. */
#include "support/machine.h"
#include "survey/capture.h"
#include "survey/mounts.h"
#include "survey/place.h"
#include "sys/root.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct dbt_ctx *ctx)
{
	struct dbt_mounts *mounts;
	struct dbt_place place;
	struct dbt_err err;

	if (dbt_mounts_new(ctx, &mounts, &err) < 0)
		return;
	for (size_t i = 0; i < dbt_mounts_count(mounts); i++) {
		const struct dbt_mount *m = dbt_mounts_at(mounts, i);

		(void)dbt_mounts_by_path(mounts, m->target);
		if (dbt_place_of_mount(ctx, mounts, m->id, NULL, &place, &err) == 0)
			dbt_place_release(&place);
	}
	dbt_mounts_free(mounts);
}

static void capture(const struct dbt_ctx *ctx)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct dbt_err err;

	(void)dbt_capture_write(ctx, fd, "/dev/null", &err);
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *dir = machine_build("/dev/shm", (const char *)data, size);
	struct dbt_root root;
	struct dbt_ctx ctx;

	if (!dir)
		return 0;
	if (dbt_root_open(&root, dir) == 0) {
		dbt_ctx_init(&ctx, &root);
		ask(&ctx);
		capture(&ctx);
		dbt_root_close(&root);
	}
	machine_remove(dir);
	free(dir);
	return 0;
}
