/* Counts a text of 2^BITS letters in one WAY and prints the counts: runcount WAY BITS. For callgrind. */
#include "ladder/dnatext.h"
#include "sys/root.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	const unsigned bits = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	const size_t n = (size_t)1 << bits;
	struct dbt_counts c = { 0 };
	struct dbt_dnatext text;
	struct dbt_root root;
	struct dbt_ctx ctx;

	if (bits < DBT_DNA_SMALL_INDEX_BITS || dbt_root_open(&root, NULL) < 0)
		return 2;
	dbt_ctx_init(&ctx, &root);
	if (dbt_dnatext_new(&ctx, bits, &text) < 0)
		return 1;
	if (strcmp(argv[1], "order") == 0)
		dbt_count_order(dbt_dnatext_letters(&text, DBT_PAGES_SMALL), n, &c);
	else if (strcmp(argv[1], "shuffled") == 0)
		dbt_count_index(dbt_dnatext_letters(&text, DBT_PAGES_SMALL),
		                dbt_dnatext_order(&text, DBT_PAGES_SMALL), n, &c);
	else if (strcmp(argv[1], "dependent") == 0)
		dbt_count_dependent(dbt_dnatext_letters(&text, DBT_PAGES_SMALL),
		                    dbt_dnatext_order(&text, DBT_PAGES_SMALL), n, &c);
	else
		dbt_dnatext_count_small_index(&text, &c);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c.n[0], c.n[1], c.n[2], c.n[3]);
	dbt_dnatext_free(&text);
	dbt_root_close(&root);
	return 0;
}
