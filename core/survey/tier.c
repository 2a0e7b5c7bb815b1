#include "survey/tier.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	int rank;
} tiers[] = {
	[DBT_TIER_UNKNOWN] = { "unknown", -1 }, [DBT_TIER_RAM] = { "ram", 0 },
	[DBT_TIER_NVME] = { "nvme", 1 },        [DBT_TIER_SSD] = { "ssd", 2 },
	[DBT_TIER_HDD] = { "hdd", 3 },          [DBT_TIER_NETWORK] = { "network", 4 },
};

enum { N_TIERS = sizeof(tiers) / sizeof(tiers[0]) };

const char *dbt_tier_name(enum dbt_tier tier)
{
	return (unsigned)tier < N_TIERS ? tiers[tier].name : tiers[DBT_TIER_UNKNOWN].name;
}

int dbt_tier_parse(const char *name, enum dbt_tier *ret)
{
	for (size_t i = 0; i < N_TIERS; i++) {
		if (strcmp(tiers[i].name, name) == 0) {
			*ret = (enum dbt_tier)i;
			return 0;
		}
	}
	return -EINVAL;
}

int dbt_tier_rank(enum dbt_tier tier)
{
	return (unsigned)tier < N_TIERS ? tiers[tier].rank : -1;
}
