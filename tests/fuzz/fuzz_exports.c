/* Any text as an exports file and as an smb.conf. */
#include "survey/exports.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const paths[] = { "/mnt/store/psc.dmnd", "/", "/home/a b" };
	const char *text = (const char *)data;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char *line = NULL;

		if (dbt_exports_match_nfs("e", text, len, paths[i], &line) == 1)
			free(line);
		if (dbt_exports_match_samba("s", i ? "share" : NULL, text, len, paths[i], &line) ==
		    1)
			free(line);
	}
	return 0;
}
