/* The answer of `diagnose` for programs: its tables, the machine and the verdict in one object. */
#include "cmd/diagnose_tables.h"

#include <stdlib.h>

/* --- remedies --- */

static const struct dbt_remedy *remedy_of(const void *row)
{
	const struct diagnose_row *r = row;

	return &r->d->remedies.items[r->at];
}

static json_t *remedy_kind(const void *row)
{
	return json_string(dbt_remedy_kind_name(remedy_of(row)->kind));
}

static json_t *remedy_text(const void *row)
{
	return table_json_text(remedy_of(row)->text);
}

static json_t *remedy_basis(const void *row)
{
	return table_json_text(remedy_of(row)->basis);
}

static json_t *positive_or_null(double value)
{
	return value > 0 ? diagnose_real(value) : json_null();
}

static json_t *remedy_factor(const void *row)
{
	return positive_or_null(remedy_of(row)->factor);
}

static json_t *remedy_jobs_now(const void *row)
{
	return positive_or_null(remedy_of(row)->jobs_now);
}

static json_t *remedy_jobs_then(const void *row)
{
	return positive_or_null(remedy_of(row)->jobs_then);
}

static const struct column remedy_columns[] = {
	{ .key = "kind", .shown = true, .get = remedy_kind },
	{ .key = "text", .shown = true, .get = remedy_text },
	{ .key = "basis", .shown = true, .get = remedy_basis },
	{ .key = "factor", .type = COLUMN_REAL, .shown = true, .get = remedy_factor },
	{ .key = "jobs_now", .type = COLUMN_REAL, .shown = true, .get = remedy_jobs_now },
	{ .key = "jobs_then", .type = COLUMN_REAL, .shown = true, .get = remedy_jobs_then },
	{ 0 },
};

static const struct table_spec diagnose_remedies = { .key = "remedies", .columns = remedy_columns };

/* --- all of it --- */

static json_t *rows_json(const struct table_spec *spec, const struct dbt_observation *obs,
                         const struct dbt_diagnosis *d, size_t n)
{
	struct diagnose_row *rows = diagnose_rows(obs, d, n);
	json_t *list = rows ? table_json_rows(spec, TABLE_ROWS(rows, n)) : NULL;

	free(rows);
	return list;
}

static json_t *machine_json(const struct dbt_observation *obs)
{
	const struct dbt_obs_machine *m = &obs->machine;

	return json_pack(
		"{s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "cpus", (int)m->cpus,
		"busy", diagnose_real(m->busy), "iowait", diagnose_real(m->iowait), "idle",
		diagnose_real(m->idle), "steal", diagnose_real(m->steal), "io_some",
		diagnose_real(m->io_some), "io_full", diagnose_real(m->io_full), "memory_some",
		diagnose_real(m->memory_some), "memory_full", diagnose_real(m->memory_full),
		"memory", table_json_size(m->memory_bytes), "available",
		table_json_size(m->available_bytes), "limit",
		m->limit_bytes ? table_json_size(m->limit_bytes) : json_null(), "limit_used",
		m->limit_bytes ? table_json_size(m->limit_used_bytes) : json_null(), "swapped_in",
		table_json_size(m->swapped_in_pages * 4096));
}

static json_t *observation_json(const struct dbt_observation *obs)
{
	return json_pack(
		"{s:o,s:o,s:o,s:b,s:o,s:o,s:b,s:i,s:i,s:o,s:o,s:o,s:o}", "seconds",
		diagnose_real(obs->seconds), "time", table_json_time(obs->wall_ns), "kernel",
		table_json_text(obs->kernel), "traced", (int)obs->traced, "untraced",
		table_json_text(obs->untraced), "traced_share", diagnose_real(obs->traced_share),
		"root", (int)obs->root, "hidden", (int)obs->hidden, "dropped", (int)obs->dropped,
		"own_cpu_seconds", diagnose_real((double)obs->own_cpu_ns / 1e9), "lost_events",
		table_json_size(obs->lost_events), "command", table_json_text(obs->command),
		"command_seconds", positive_or_null(obs->command_seconds));
}

static json_t *verdict_json(const struct dbt_observation *obs, const struct dbt_diagnosis *d)
{
	const char *path = d->file == DBT_OBS_NONE
	                           ? NULL
	                           : obs->files.items[d->files.items[d->file].file].path;

	return json_pack(
		"{s:s,s:o,s:o,s:o,s:o,s:o}", "kind", dbt_diag_kind_name(d->kind), "text",
		table_json_text(d->text), "file", table_json_text(path), "device",
		d->device == DBT_OBS_NONE
			? json_null()
			: table_json_text(
				  obs->devices.items[d->devices.items[d->device].device].name),
		"process",
		d->group == DBT_OBS_NONE
			? json_null()
			: table_json_text(
				  obs->processes.items[d->groups.items[d->group].first].name),
		"remedies", rows_json(&diagnose_remedies, obs, d, d->remedies.n));
}

json_t *diagnose_json(const struct dbt_observation *obs, const struct dbt_diagnosis *d)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "observation", observation_json(obs),
	                 "machine", machine_json(obs), "devices",
	                 rows_json(&diagnose_devices, obs, d, d->devices.n), "processes",
	                 rows_json(&diagnose_processes, obs, d, d->groups.n), "databases",
	                 rows_json(&diagnose_databases, obs, d, d->files.n), "verdict",
	                 verdict_json(obs, d));
}
