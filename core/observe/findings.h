/* Inside observe: the figures of a diagnosis, before anything is concluded from them. Pure. */
#ifndef DBT_OBSERVE_FINDINGS_H
#define DBT_OBSERVE_FINDINGS_H

#include "observe/diagnosis.h"

/* Each fills its list, largest first. 0 or -ENOMEM. Files come before groups. */
int dbt_find_files(const struct dbt_observation *obs, struct dbt_diagnosis *d);
int dbt_find_groups(const struct dbt_observation *obs, struct dbt_diagnosis *d);
int dbt_find_devices(const struct dbt_observation *obs, struct dbt_diagnosis *d);

/* Bytes that a process read of a file from the device, and in how many requests (below 0: unknown). */
double dbt_use_bytes(const struct dbt_observation *obs, const struct dbt_obs_use *use,
                     double *ret_requests, const char **ret_source);

/* They count as one line: the same program of the same user. */
bool dbt_diag_is_alike(const struct dbt_obs_process *a, const struct dbt_obs_process *b);

/* The class is one that jumps: latency counts, not throughput. */
bool dbt_diag_is_random(const struct dbt_diag_file *file);

/* The device that the file waits for: the disk below its place that is busiest. DBT_OBS_NONE: none was seen. */
size_t dbt_diag_device_of(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                          size_t place);

#endif
