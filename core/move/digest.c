#include "move/digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct dbt_hasher {
	XXH3_state_t *state;
};

struct dbt_hasher *dbt_hasher_new(void)
{
	struct dbt_hasher *hasher = calloc(1, sizeof(*hasher));

	if (!hasher)
		return NULL;
	hasher->state = XXH3_createState();
	if (!hasher->state) {
		free(hasher);
		return NULL;
	}
	dbt_hasher_reset(hasher);
	return hasher;
}

void dbt_hasher_free(struct dbt_hasher *hasher)
{
	if (!hasher)
		return;
	(void)XXH3_freeState(hasher->state);
	free(hasher);
}

void dbt_hasher_reset(struct dbt_hasher *hasher)
{
	(void)XXH3_128bits_reset(hasher->state);
}

void dbt_hasher_copy(struct dbt_hasher *to, const struct dbt_hasher *from)
{
	XXH3_copyState(to->state, from->state);
}

void dbt_hasher_add(struct dbt_hasher *hasher, const void *data, size_t len)
{
	(void)XXH3_128bits_update(hasher->state, data, len);
}

struct dbt_digest dbt_hasher_digest(const struct dbt_hasher *hasher)
{
	XXH128_hash_t h = XXH3_128bits_digest(hasher->state);

	return (struct dbt_digest){ .set = true, .high = h.high64, .low = h.low64 };
}

bool dbt_digest_equal(const struct dbt_digest *a, const struct dbt_digest *b)
{
	return a->set && b->set && a->high == b->high && a->low == b->low;
}

const char *dbt_digest_hex(const struct dbt_digest *digest, char out[DBT_DIGEST_HEX_BYTES])
{
	(void)snprintf(out, DBT_DIGEST_HEX_BYTES, "%016" PRIx64 "%016" PRIx64, digest->high,
	               digest->low);
	return out;
}

int dbt_digest_parse(const char *hex, struct dbt_digest *ret)
{
	struct dbt_digest d = { .set = true };
	char half[17];

	if (strlen(hex) != DBT_DIGEST_HEX_BYTES - 1 ||
	    strspn(hex, "0123456789abcdef") != DBT_DIGEST_HEX_BYTES - 1)
		return -EINVAL;
	(void)snprintf(half, sizeof(half), "%.16s", hex);
	d.high = strtoull(half, NULL, 16);
	d.low = strtoull(hex + 16, NULL, 16);
	*ret = d;
	return 0;
}
