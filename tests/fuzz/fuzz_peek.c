/* Feeds foreign bytes to the look into archives, as packed files of each kind: whatever they say, it ends, in bounded
 * memory, and what it guesses can be said. The first byte chooses the name, and whether all is read. */
#include "survey/peek.h"
#include "sys/root.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct memory {
	const uint8_t *data;
	size_t len;
};

static ssize_t read_memory(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off)
{
	const struct memory *m = file->read_data;
	size_t n;

	if (off >= m->len)
		return 0;
	n = m->len - off < len ? (size_t)(m->len - off) : len;
	memcpy(buf, m->data + off, n);
	return (ssize_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* Less than scan allows: a fuzzer finds what takes long, too. */
	static const struct dbt_peek_limits few = { .packed_bytes = 1 << 20, .ns = 100000000 };
	static struct dbt_root root = { .fd = -1 };
	static struct dbt_ctx ctx;
	struct memory memory;
	struct dbt_peek peek;
	struct dbt_buf text = { 0 };

	if (len < 1)
		return 0;
	if (root.fd < 0) {
		if (dbt_root_open(&root, NULL) < 0)
			abort();
		dbt_ctx_init(&ctx, &root);
	}
	memory = (struct memory){ .data = data + 1, .len = len - 1 };
	const struct dbt_candidate file = { .name = data[0] & 1 ? "x.zip" : "x.tar.gz",
		                            .size_bytes = data[0] & 2 ? memory.len * 3 : memory.len,
		                            .head = memory.data,
		                            .head_len = memory.len < DBT_HEAD_BYTES
		                                                ? memory.len
		                                                : DBT_HEAD_BYTES,
		                            .read = read_memory,
		                            .read_data = &memory };
	(void)dbt_peek_magic(&file);
	if (dbt_peek(&ctx, &file, &few, &peek) < 0)
		return 0;
	if (peek.whole && peek.damaged)
		abort();
	if (dbt_guess_say(&peek.guess, &text) < 0 || (text.len > 0) != dbt_guess_any(&peek.guess))
		abort();
	dbt_buf_release(&text);
	dbt_guess_release(&peek.guess);
	return 0;
}
