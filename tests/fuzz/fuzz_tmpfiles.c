/* Any text as a tmpfiles.d file: the parser must survive it, and every rule must be able to judge a
 * path. */
#include "survey/tmpfiles.h"
#include "sys/root.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const paths[] = { "/tmp/a/psc.dmnd", "/", "/.x/{a}", "/var/tmp/x" };
	static struct dbt_root root = { .fd = -1 };
	struct dbt_tmpfiles_rules rules = { 0 };
	struct dbt_ctx ctx;

	if (root.fd < 0 && dbt_root_open(&root, "/proc") < 0)
		return 0;
	dbt_ctx_init(&ctx, &root);
	if (dbt_tmpfiles_parse(&ctx, "a.conf", (const char *)data, len, &rules) == 0)
		for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
			struct dbt_tmpfiles_hit hit = { 0 };

			if (dbt_tmpfiles_match(&rules, paths[i], &hit) == 1)
				dbt_tmpfiles_hit_release(&hit);
		}
	dbt_tmpfiles_rules_release(&rules);
	return 0;
}
