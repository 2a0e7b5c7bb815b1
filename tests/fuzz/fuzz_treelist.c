/* The list of what is in a promoted directory, with any bytes in it and the right hash behind them: read without a
 * fault, and no path leads out of the directory. */
#include "move/digest.h"
#include "move/treelist.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char head[] = "dbtier tree 1\n";

static void write_list(const char *path, const uint8_t *data, size_t len)
{
	struct dbt_hasher *hasher = dbt_hasher_new();
	char hash[DBT_DIGEST_HEX_BYTES];
	struct dbt_digest digest;
	FILE *f = fopen(path, "w");
	uint64_t n = 0;

	if (!hasher || !f)
		abort();
	for (size_t i = 1; i < len; i++)
		n += data[i] == '\n' && data[i - 1] == '\0';
	dbt_hasher_add(hasher, head, sizeof(head) - 1);
	dbt_hasher_add(hasher, data, len);
	digest = dbt_hasher_digest(hasher);
	(void)fwrite(head, 1, sizeof(head) - 1, f);
	(void)fwrite(data, 1, len, f);
	(void)fprintf(f, "end %" PRIu64 " %s\n", n, dbt_digest_hex(&digest, hash));
	(void)fclose(f);
	dbt_hasher_free(hasher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dbt_tree_reader reader;
	struct dbt_tree_entry e;
	struct dbt_err err = { 0 };
	char path[64];

	(void)snprintf(path, sizeof(path), "/tmp/dbtier-fuzz-%d", (int)getpid());
	write_list(path, data, len);
	if (dbt_tree_reader_open(path, &reader, &err) == 0) {
		while (dbt_tree_reader_next(&reader, &e, &err) == 1)
			if (e.path[0] == '/' || strstr(e.path, "/../") ||
			    strncmp(e.path, "../", 3) == 0)
				abort();
		dbt_tree_reader_release(&reader);
	}
	(void)unlink(path);
	return 0;
}
