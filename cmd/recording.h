/* An observation as JSON: what --record writes and --replay reads. It holds figures and names, no contents of files. */
#ifndef DBT_CMD_RECORDING_H
#define DBT_CMD_RECORDING_H

#include "base/err.h"
#include "observe/observation.h"

#include <jansson.h>

/* NULL: out of memory. */
json_t *recording_encode(const struct dbt_observation *obs);

/* Kind USAGE for what is no recording, or one that contradicts itself. On success the caller releases. */
int recording_decode(const json_t *json, struct dbt_observation *ret, struct dbt_err *err);

/* Takes the names of users, directories and commands out, and keeps what a diagnosis needs: the kind of a file by its
 * ending, names of programs and devices. Returns 0 or -ENOMEM. */
int recording_mask(struct dbt_observation *obs);

/* To and from a file; "-" is stdout or stdin. */
int recording_write(const struct dbt_observation *obs, const char *path, struct dbt_err *err);
int recording_read(const char *path, struct dbt_observation *ret, struct dbt_err *err);

#endif
