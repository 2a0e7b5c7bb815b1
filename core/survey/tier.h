/* The classes of device, by what they can do. Order is not speed: dbt_tier_rank gives that. */
#ifndef DBT_SURVEY_TIER_H
#define DBT_SURVEY_TIER_H

enum dbt_tier {
	DBT_TIER_UNKNOWN = 0,
	DBT_TIER_RAM,
	DBT_TIER_NVME,
	DBT_TIER_SSD,
	DBT_TIER_HDD,
	DBT_TIER_NETWORK,
};

const char *dbt_tier_name(enum dbt_tier tier);            /* "nvme"; static */
int dbt_tier_parse(const char *name, enum dbt_tier *ret); /* 0 or -EINVAL */
int dbt_tier_rank(enum dbt_tier tier);                    /* 0 fastest ... ; unknown has -1 */

#endif
