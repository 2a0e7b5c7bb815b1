/* XXH3 with 128 bits, the only user of xxHash. It proves that two runs of bytes are identical against faults
 * of disks, cables and programs; it is no signature against somebody who chooses the bytes. */
#ifndef DBT_MOVE_DIGEST_H
#define DBT_MOVE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DBT_DIGEST_HEX_BYTES = 33 };

struct dbt_digest {
	bool set; /* an unset digest is equal to nothing, not even to another unset one */
	uint64_t high, low;
};

struct dbt_hasher;

struct dbt_hasher *dbt_hasher_new(void); /* NULL when out of memory */
void dbt_hasher_free(struct dbt_hasher *hasher);
void dbt_hasher_reset(struct dbt_hasher *hasher);
void dbt_hasher_copy(struct dbt_hasher *to, const struct dbt_hasher *from);
void dbt_hasher_add(struct dbt_hasher *hasher, const void *data, size_t len);
struct dbt_digest dbt_hasher_digest(const struct dbt_hasher *hasher);

bool dbt_digest_equal(const struct dbt_digest *a, const struct dbt_digest *b);

/* 32 hex digits in the canonical order, as xxh128sum prints them. out is returned. */
const char *dbt_digest_hex(const struct dbt_digest *digest, char out[DBT_DIGEST_HEX_BYTES]);

/* 0 or -EINVAL. */
int dbt_digest_parse(const char *hex, struct dbt_digest *ret);

#endif
