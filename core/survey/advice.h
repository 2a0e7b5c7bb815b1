/* What a move would gain, honestly: pure functions from access class and measurements to a
 * forecast. */
#ifndef DBT_SURVEY_ADVICE_H
#define DBT_SURVEY_ADVICE_H

#include "survey/database.h"
#include "survey/place.h"

#include <stdint.h>

enum dbt_verdict {
	DBT_VERDICT_LEAVE = 0, /* text says why */
	DBT_VERDICT_MOVE,
	DBT_VERDICT_UNKNOWN, /* no measurement to base it on */
};

struct dbt_advice {
	enum dbt_verdict verdict;
	double gain_low, gain_high; /* the range of the speed-up of its reads; 0 unknown */
	char *gain;                 /* "~12x (4 streams: 60 MB/s -> 3.0 GB/s)", or NULL */
	char *text;                 /* one line for people; never NULL on success */
};

/* to NULL: no faster place is known. free_memory_bytes: MemAvailable. Speeds may be empty. Returns
 * 0/-ENOMEM. */
int dbt_advice_for(const struct dbt_database *db, const struct dbt_place *from,
                   const struct dbt_speeds *from_speeds, const struct dbt_place *to,
                   const struct dbt_speeds *to_speeds, uint64_t free_memory_bytes,
                   struct dbt_advice *ret);

void dbt_advice_release(struct dbt_advice *advice);

#endif
