/* Inside observe: what jobs would do on another device, and how many of them a device can feed. Pure. */
#ifndef DBT_OBSERVE_FORECAST_H
#define DBT_OBSERVE_FORECAST_H

#include "observe/diagnosis.h"

struct dbt_forecast {
	double factor;      /* so many times faster the jobs run; 0: there is no forecast */
	double waiting_now; /* share of the jobs' time that they wait for these reads */
	double waiting_then;
	double jobs_now, jobs_then; /* that keep the device, or the CPUs, busy; 0 unknown */
	char *basis;                /* the measurements behind it; NULL */
};

/* The files that the group reads from `from` (a place), as if they lay on `to`. The computing stays as it is. Returns 0 or
 * -ENOMEM; free() the basis. */
int dbt_forecast(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                 const struct dbt_diag_group *group, size_t from, size_t to,
                 struct dbt_forecast *ret);

#endif
