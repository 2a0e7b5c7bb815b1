#include "cmd/diagnose_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- cells --- */

json_t *diagnose_real(double value)
{
	return value < 0 ? json_null() : table_json_real(round(value * 1000) / 1000);
}

static json_t *whole_or_null(double value)
{
	return value < 0 ? json_null() : table_json_size((uint64_t)(value + 0.5));
}

static json_t *name_of_class(enum dbt_class class)
{
	return class == DBT_CLASS_UNKNOWN ? json_null() : table_json_text(dbt_class_name(class));
}

/* --- devices --- */

static const struct dbt_diag_device *device_of(const void *row)
{
	const struct diagnose_row *r = row;

	return &r->d->devices.items[r->at];
}

static const struct dbt_obs_device *raw_device_of(const void *row)
{
	return &((const struct diagnose_row *)row)->obs->devices.items[device_of(row)->device];
}

static const struct dbt_obs_place *device_place(const void *row)
{
	size_t place = device_of(row)->place;

	return place == DBT_OBS_NONE
	               ? NULL
	               : &((const struct diagnose_row *)row)->obs->places.items[place];
}

static json_t *device_name(const void *row)
{
	return table_json_text(raw_device_of(row)->name);
}

static json_t *device_tier(const void *row)
{
	const struct dbt_obs_place *p = device_place(row);

	return p ? table_json_text(dbt_tier_name(p->tier)) : json_null();
}

static json_t *device_mount(const void *row)
{
	const struct dbt_obs_place *p = device_place(row);

	return table_json_name(p ? p->mount : NULL);
}

static json_t *device_stack(const void *row)
{
	const struct dbt_obs_place *p = device_place(row);

	return table_json_text(p ? p->stack : NULL);
}

static json_t *device_disk(const void *row)
{
	return json_boolean(raw_device_of(row)->disk);
}

static json_t *device_reads(const void *row)
{
	return diagnose_real(device_of(row)->reads_s);
}

static json_t *device_rate(const void *row)
{
	return whole_or_null(device_of(row)->read_rate);
}

static json_t *device_writes(const void *row)
{
	return diagnose_real(device_of(row)->writes_s);
}

static json_t *device_write_rate(const void *row)
{
	return whole_or_null(device_of(row)->write_rate);
}

static json_t *device_mean(const void *row)
{
	return whole_or_null(device_of(row)->mean_bytes);
}

static json_t *device_latency(const void *row)
{
	return whole_or_null(device_of(row)->latency_ns);
}

static json_t *device_queue(const void *row)
{
	return diagnose_real(device_of(row)->queue);
}

static json_t *device_busy(const void *row)
{
	return diagnose_real(device_of(row)->busy);
}

static json_t *device_jumps(const void *row)
{
	return diagnose_real(device_of(row)->jumps);
}

static json_t *device_ceiling(const void *row)
{
	const struct dbt_diag_device *v = device_of(row);

	return v->ceiling > 0 ? diagnose_real(v->ceiling) : json_null();
}

static json_t *device_ceiling_of(const void *row)
{
	const struct dbt_diag_device *v = device_of(row);

	return v->ceiling > 0 ? json_string(v->by_rate ? "bytes" : "reads") : json_null();
}

static json_t *device_load(const void *row)
{
	return diagnose_real(device_of(row)->load);
}

static const struct column device_columns[] = {
	{ .key = "device", .shown = true, .get = device_name, .help = "the kernel's name" },
	{ .key = "tier", .shown = true, .get = device_tier, .help = "class of what lies on it" },
	{ .key = "mount",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = device_mount,
	  .help = "filesystem that it carries, or is part of" },
	{ .key = "stack", .get = device_stack, .help = "layers from that filesystem down" },
	{ .key = "disk",
	  .type = COLUMN_BOOL,
	  .get = device_disk,
	  .help = "no other device lies below" },
	{ .key = "reads_s",
	  .type = COLUMN_REAL,
	  .shown = true,
	  .get = device_reads,
	  .help = "reads a second" },
	{ .key = "rate",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .get = device_rate,
	  .help = "bytes read a second" },
	{ .key = "writes_s", .type = COLUMN_REAL, .get = device_writes, .help = "writes a second" },
	{ .key = "write_rate",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .get = device_write_rate,
	  .help = "bytes written a second" },
	{ .key = "mean",
	  .type = COLUMN_SIZE,
	  .shown = true,
	  .get = device_mean,
	  .help = "mean size of a read" },
	{ .key = "latency_ns",
	  .type = COLUMN_NS,
	  .shown = true,
	  .get = device_latency,
	  .help = "mean time of a request" },
	{ .key = "queue",
	  .type = COLUMN_REAL,
	  .shown = true,
	  .get = device_queue,
	  .help = "requests in flight, on average" },
	{ .key = "busy",
	  .type = COLUMN_SHARE,
	  .shown = true,
	  .get = device_busy,
	  .help = "share of the time with a request in flight" },
	{ .key = "jumps",
	  .type = COLUMN_SHARE,
	  .get = device_jumps,
	  .help = "share of the reads that began elsewhere" },
	{ .key = "ceiling",
	  .type = COLUMN_REAL,
	  .get = device_ceiling,
	  .help = "what a probe measured for this pattern" },
	{ .key = "ceiling_of",
	  .get = device_ceiling_of,
	  .help = "its unit: reads or bytes a second" },
	{ .key = "load",
	  .type = COLUMN_SHARE,
	  .shown = true,
	  .get = device_load,
	  .help = "share of that ceiling" },
	{ 0 },
};

const struct table_spec diagnose_devices = { .key = "devices", .columns = device_columns };

/* --- processes --- */

static const struct dbt_diag_group *group_of(const void *row)
{
	const struct diagnose_row *r = row;

	return &r->d->groups.items[r->at];
}

static const struct dbt_obs_process *first_of(const void *row)
{
	return &((const struct diagnose_row *)row)->obs->processes.items[group_of(row)->first];
}

static json_t *group_name(const void *row)
{
	return table_json_name(first_of(row)->name);
}

static json_t *group_count(const void *row)
{
	return table_json_size(group_of(row)->n);
}

static json_t *group_pid(const void *row)
{
	return json_integer(first_of(row)->pid);
}

static json_t *group_user(const void *row)
{
	return table_json_text(first_of(row)->user);
}

static json_t *group_threads(const void *row)
{
	return json_integer(group_of(row)->threads);
}

static json_t *group_jobs(const void *row)
{
	return diagnose_real(group_of(row)->jobs);
}

static json_t *group_running(const void *row)
{
	return diagnose_real(group_of(row)->running);
}

static json_t *group_blocked(const void *row)
{
	return diagnose_real(group_of(row)->blocked);
}

static json_t *group_delay(const void *row)
{
	return diagnose_real(group_of(row)->delay);
}

static json_t *group_cpus(const void *row)
{
	return diagnose_real(group_of(row)->cpus);
}

static json_t *group_top(const void *row)
{
	return diagnose_real(group_of(row)->top_thread);
}

static json_t *group_rate(const void *row)
{
	return whole_or_null(group_of(row)->read_rate);
}

static json_t *group_write_rate(const void *row)
{
	return whole_or_null(group_of(row)->write_rate);
}

static json_t *group_command(const void *row)
{
	return table_json_name(first_of(row)->command);
}

static json_t *group_selected(const void *row)
{
	return json_boolean(group_of(row)->selected);
}

static const char *shown_name(const struct dbt_obs_file *f)
{
	const char *slash = f->path ? strrchr(f->path, '/') : NULL;

	return f->path ? slash && slash[1] ? slash + 1 : f->path : "?";
}

/* The few that most was read of; every one in JSON would be hundreds of libraries. */
static json_t *group_files(const void *row)
{
	enum { SHOWN = 3 };
	const struct diagnose_row *r = row;
	const struct dbt_diag_group *g = group_of(row);
	const char *names[SHOWN];
	size_t n = 0;

	for (size_t i = 0; i < g->n_files && n < SHOWN; i++) {
		const struct dbt_diag_file *f = &r->d->files.items[g->files[i]];
		const struct dbt_obs_file *raw = &r->obs->files.items[f->file];

		if (raw->path && (f->bytes > 0 || raw->format))
			names[n++] = shown_name(raw);
	}
	return table_json_strings(names, n);
}

static const struct column process_columns[] = {
	{ .key = "name",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = group_name,
	  .help = "name of the program" },
	{ .key = "count",
	  .type = COLUMN_COUNT,
	  .shown = true,
	  .get = group_count,
	  .help = "processes of one user with this name" },
	{ .key = "pid",
	  .type = COLUMN_COUNT,
	  .shown = true,
	  .get = group_pid,
	  .help = "number of the one that did most" },
	{ .key = "user", .shown = true, .get = group_user, .help = "whose they are" },
	{ .key = "threads",
	  .type = COLUMN_COUNT,
	  .shown = true,
	  .get = group_threads,
	  .help = "threads of one of them" },
	{ .key = "jobs",
	  .type = COLUMN_REAL,
	  .get = group_jobs,
	  .help = "of them at a time, on average" },
	{ .key = "blocked",
	  .type = COLUMN_SHARE,
	  .shown = true,
	  .get = group_blocked,
	  .help = "share of their time in state D with no thread computing" },
	{ .key = "running",
	  .type = COLUMN_SHARE,
	  .shown = true,
	  .get = group_running,
	  .help = "share of their time with a thread that computes or wants to" },
	{ .key = "delay",
	  .type = COLUMN_SHARE,
	  .get = group_delay,
	  .help = "waiting for block I/O by the kernel's delay accounting" },
	{ .key = "cpus",
	  .type = COLUMN_REAL,
	  .shown = true,
	  .get = group_cpus,
	  .help = "CPUs that they kept busy" },
	{ .key = "top_thread",
	  .type = COLUMN_SHARE,
	  .get = group_top,
	  .help = "share of a CPU that the busiest thread had" },
	{ .key = "rate",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .get = group_rate,
	  .help = "bytes a second read from devices" },
	{ .key = "write_rate",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .get = group_write_rate,
	  .help = "bytes a second written to devices" },
	{ .key = "files",
	  .type = COLUMN_LIST,
	  .shown = true,
	  .get = group_files,
	  .help = "what they read most of, or have open of databases" },
	{ .key = "command", .type = COLUMN_NAME, .get = group_command, .help = "its command line" },
	{ .key = "selected",
	  .type = COLUMN_BOOL,
	  .get = group_selected,
	  .help = "it was asked about" },
	{ 0 },
};

const struct table_spec diagnose_processes = { .key = "processes", .columns = process_columns };

/* --- databases --- */

static const struct dbt_diag_file *file_of(const void *row)
{
	const struct diagnose_row *r = row;

	return &r->d->files.items[r->at];
}

static const struct dbt_obs_file *raw_file_of(const void *row)
{
	return &((const struct diagnose_row *)row)->obs->files.items[file_of(row)->file];
}

static const struct dbt_obs_place *file_place(const void *row)
{
	size_t place = raw_file_of(row)->place;

	return place == DBT_OBS_NONE
	               ? NULL
	               : &((const struct diagnose_row *)row)->obs->places.items[place];
}

static json_t *file_name(const void *row)
{
	const struct dbt_obs_file *f = raw_file_of(row);

	return f->path ? table_json_name(shown_name(f))
	               : json_sprintf("inode %llu", (unsigned long long)f->ino);
}

static json_t *file_path(const void *row)
{
	return table_json_name(raw_file_of(row)->path);
}

static json_t *file_database(const void *row)
{
	return table_json_name(raw_file_of(row)->database);
}

static json_t *file_format(const void *row)
{
	return table_json_text(raw_file_of(row)->format);
}

static json_t *file_size(const void *row)
{
	return table_json_size(raw_file_of(row)->size_bytes);
}

static json_t *file_rate(const void *row)
{
	return whole_or_null(file_of(row)->rate);
}

static json_t *file_misses(const void *row)
{
	return diagnose_real(file_of(row)->misses_s);
}

static json_t *file_mean(const void *row)
{
	return whole_or_null(file_of(row)->mean_bytes);
}

static json_t *file_jumps(const void *row)
{
	return diagnose_real(file_of(row)->jumps);
}

static json_t *file_again(const void *row)
{
	return diagnose_real(file_of(row)->again);
}

static json_t *file_class(const void *row)
{
	return name_of_class(file_of(row)->class);
}

static json_t *file_declared(const void *row)
{
	return name_of_class(raw_file_of(row)->declared);
}

static json_t *file_cached(const void *row)
{
	return diagnose_real(raw_file_of(row)->cached_after);
}

static json_t *file_readers(const void *row)
{
	return json_integer(file_of(row)->readers);
}

static json_t *file_tier(const void *row)
{
	const struct dbt_obs_place *p = file_place(row);

	return p ? table_json_text(dbt_tier_name(p->tier)) : json_null();
}

static json_t *file_mount(const void *row)
{
	const struct dbt_obs_place *p = file_place(row);

	return table_json_name(p ? p->mount : NULL);
}

static json_t *file_source(const void *row)
{
	return table_json_text(file_of(row)->bytes > 0 ? file_of(row)->source : NULL);
}

static const struct column database_columns[] = {
	{ .key = "name",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = file_name,
	  .help = "name of the file" },
	{ .key = "path", .type = COLUMN_NAME, .get = file_path, .help = "the whole of it" },
	{ .key = "database",
	  .type = COLUMN_NAME,
	  .get = file_database,
	  .help = "database that it belongs to" },
	{ .key = "format", .shown = true, .get = file_format, .help = "its format" },
	{ .key = "size", .type = COLUMN_SIZE, .shown = true, .get = file_size, .help = "its size" },
	{ .key = "tier",
	  .shown = true,
	  .get = file_tier,
	  .help = "class of the device it lies on" },
	{ .key = "mount", .type = COLUMN_NAME, .get = file_mount, .help = "mount point" },
	{ .key = "rate",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .get = file_rate,
	  .help = "bytes a second read from the device" },
	{ .key = "misses_s",
	  .type = COLUMN_REAL,
	  .shown = true,
	  .get = file_misses,
	  .help = "requests a second that were not in memory" },
	{ .key = "mean",
	  .type = COLUMN_SIZE,
	  .shown = true,
	  .get = file_mean,
	  .help = "mean size of such a request" },
	{ .key = "jumps",
	  .type = COLUMN_SHARE,
	  .shown = true,
	  .get = file_jumps,
	  .help = "share of them that did not go on where one ended" },
	{ .key = "again",
	  .type = COLUMN_SHARE,
	  .get = file_again,
	  .help = "share of the bytes read before within ten seconds" },
	{ .key = "class", .shown = true, .get = file_class, .help = "how it is read, as observed" },
	{ .key = "declared",
	  .shown = true,
	  .get = file_declared,
	  .help = "how its format is read, by the catalogue" },
	{ .key = "cached",
	  .type = COLUMN_SHARE,
	  .shown = true,
	  .get = file_cached,
	  .help = "share of it in the page cache" },
	{ .key = "readers",
	  .type = COLUMN_COUNT,
	  .shown = true,
	  .get = file_readers,
	  .help = "processes that read it from the device" },
	{ .key = "source", .get = file_source, .help = "where the figures come from" },
	{ 0 },
};

const struct table_spec diagnose_databases = { .key = "databases", .columns = database_columns };

/* --- rows --- */

struct diagnose_row *diagnose_rows(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                                   size_t n)
{
	struct diagnose_row *rows = calloc(n ? n : 1, sizeof(*rows));

	for (size_t i = 0; rows && i < n; i++)
		rows[i] = (struct diagnose_row){ obs, d, i };
	return rows;
}
