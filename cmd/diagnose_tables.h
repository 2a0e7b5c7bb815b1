/* The rows and columns of `diagnose`. */
#ifndef DBT_CMD_DIAGNOSE_TABLES_H
#define DBT_CMD_DIAGNOSE_TABLES_H

#include "cmd/table.h"
#include "observe/diagnosis.h"

/* One row of any of the tables: a place in one of the diagnosis's lists. */
struct diagnose_row {
	const struct dbt_observation *obs;
	const struct dbt_diagnosis *d;
	size_t at;
};

extern const struct table_spec diagnose_devices, diagnose_processes, diagnose_databases;

/* Everything as one JSON object; NULL: out of memory. */
json_t *diagnose_json(const struct dbt_observation *obs, const struct dbt_diagnosis *d);

/* A cell: three digits behind the point, null below 0. */
json_t *diagnose_real(double value);

/* n rows over a list; free() them. NULL: out of memory. */
struct diagnose_row *diagnose_rows(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                                   size_t n);

#endif
