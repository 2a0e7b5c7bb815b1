#include "cmd/recording.h"

#include "base/buf.h"
#include "base/vec.h"
#include "cmd/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1 };

/* The structs are written and read by these tables; what a reader does not know it passes over, what a file does not
 * have stays as it was. */
enum field_type {
	FIELD_TEXT = 0,
	FIELD_U64,
	FIELD_UNSIGNED,
	FIELD_INT,
	FIELD_U32,
	FIELD_REAL,
	FIELD_BOOL,
	FIELD_TIER,
	FIELD_CLASS,
	FIELD_INDEX,
};

struct field {
	const char *key;
	enum field_type type;
	size_t at;
};

#define F(type, key, kind, member)                                                                 \
	{                                                                                          \
		key, FIELD_##kind, offsetof(struct type, member)                                   \
	}

#define READS(type)                                                                                \
	F(type, "read_bytes", U64, reads.bytes), F(type, "requests", U64, reads.requests),         \
		F(type, "jumps", U64, reads.jumps),                                                \
		F(type, "again_bytes", U64, reads.again_bytes),                                    \
		F(type, "faults", U64, reads.faults)

#define SPEED(name, member)                                                                        \
	F(dbt_obs_place, name "_iops", REAL, speeds.member.iops),                                  \
		F(dbt_obs_place, name "_rate", U64, speeds.member.rate_bytes_s),                   \
		F(dbt_obs_place, name "_p50_ns", U64, speeds.member.lat_p50_ns),                   \
		F(dbt_obs_place, name "_proved", BOOL, speeds.member.proved)

static const struct field top_fields[] = {
	F(dbt_observation, "seconds", REAL, seconds),
	F(dbt_observation, "time_ns", U64, wall_ns),
	F(dbt_observation, "kernel", TEXT, kernel),
	F(dbt_observation, "traced", BOOL, traced),
	F(dbt_observation, "untraced", TEXT, untraced),
	F(dbt_observation, "traced_share", REAL, traced_share),
	F(dbt_observation, "root", BOOL, root),
	F(dbt_observation, "hidden", UNSIGNED, hidden),
	F(dbt_observation, "dropped", UNSIGNED, dropped),
	F(dbt_observation, "own_cpu_ns", U64, own_cpu_ns),
	F(dbt_observation, "lost_events", U64, lost_events),
	F(dbt_observation, "command", TEXT, command),
	F(dbt_observation, "command_seconds", REAL, command_seconds),
	F(dbt_observation, "target", INDEX, target),
	{ 0 },
};

static const struct field machine_fields[] = {
	F(dbt_obs_machine, "cpus", UNSIGNED, cpus),
	F(dbt_obs_machine, "busy", REAL, busy),
	F(dbt_obs_machine, "iowait", REAL, iowait),
	F(dbt_obs_machine, "idle", REAL, idle),
	F(dbt_obs_machine, "steal", REAL, steal),
	F(dbt_obs_machine, "io_some", REAL, io_some),
	F(dbt_obs_machine, "io_full", REAL, io_full),
	F(dbt_obs_machine, "memory_some", REAL, memory_some),
	F(dbt_obs_machine, "memory_full", REAL, memory_full),
	F(dbt_obs_machine, "memory", U64, memory_bytes),
	F(dbt_obs_machine, "available", U64, available_bytes),
	F(dbt_obs_machine, "limit", U64, limit_bytes),
	F(dbt_obs_machine, "limit_used", U64, limit_used_bytes),
	F(dbt_obs_machine, "limit_file", U64, limit_file_bytes),
	F(dbt_obs_machine, "swapped_in_pages", U64, swapped_in_pages),
	F(dbt_obs_machine, "refaulted_pages", U64, refaulted_pages),
	{ 0 },
};

static const struct field device_fields[] = {
	F(dbt_obs_device, "name", TEXT, name),
	F(dbt_obs_device, "devno", U64, devno),
	F(dbt_obs_device, "disk", BOOL, disk),
	F(dbt_obs_device, "reads", U64, reads),
	F(dbt_obs_device, "read_bytes", U64, read_bytes),
	F(dbt_obs_device, "read_ns", U64, read_ns),
	F(dbt_obs_device, "writes", U64, writes),
	F(dbt_obs_device, "write_bytes", U64, write_bytes),
	F(dbt_obs_device, "write_ns", U64, write_ns),
	F(dbt_obs_device, "busy_ns", U64, busy_ns),
	F(dbt_obs_device, "queue_ns", U64, queue_ns),
	F(dbt_obs_device, "traced_reads", U64, traced_reads),
	F(dbt_obs_device, "traced_jumps", U64, traced_jumps),
	{ 0 },
};

static const struct field place_fields[] = {
	F(dbt_obs_place, "devno", U64, devno),
	F(dbt_obs_place, "mount", TEXT, mount),
	F(dbt_obs_place, "source", TEXT, source),
	F(dbt_obs_place, "fstype", TEXT, fstype),
	F(dbt_obs_place, "stack", TEXT, stack),
	F(dbt_obs_place, "device", TEXT, device),
	F(dbt_obs_place, "tier", TIER, tier),
	F(dbt_obs_place, "network", BOOL, network),
	F(dbt_obs_place, "ram", BOOL, ram),
	F(dbt_obs_place, "free", U64, free_bytes),
	SPEED("random1", random1),
	SPEED("random4", random4),
	SPEED("stream1", stream1),
	SPEED("stream4", stream4),
	F(dbt_obs_place, "measured_ns", U64, speeds.measured_wall_ns),
	{ 0 },
};

static const struct field process_fields[] = {
	F(dbt_obs_process, "pid", INT, pid),
	F(dbt_obs_process, "parent", INT, parent),
	F(dbt_obs_process, "uid", U32, uid),
	F(dbt_obs_process, "user", TEXT, user),
	F(dbt_obs_process, "name", TEXT, name),
	F(dbt_obs_process, "command", TEXT, command),
	F(dbt_obs_process, "threads", UNSIGNED, threads),
	F(dbt_obs_process, "seconds", REAL, seconds),
	F(dbt_obs_process, "ticks", UNSIGNED, ticks),
	F(dbt_obs_process, "ticks_running", UNSIGNED, ticks_running),
	F(dbt_obs_process, "ticks_blocked", UNSIGNED, ticks_blocked),
	F(dbt_obs_process, "blocked_threads", UNSIGNED, blocked_threads),
	F(dbt_obs_process, "cpu_ns", U64, cpu_ns),
	F(dbt_obs_process, "top_thread_ns", U64, top_thread_ns),
	F(dbt_obs_process, "has_delay", BOOL, has_delay),
	F(dbt_obs_process, "delay_ns", U64, delay_ns),
	F(dbt_obs_process, "has_io", BOOL, has_io),
	F(dbt_obs_process, "has_files", BOOL, has_files),
	F(dbt_obs_process, "read_bytes", U64, read_bytes),
	F(dbt_obs_process, "written_bytes", U64, written_bytes),
	F(dbt_obs_process, "called_bytes", U64, called_bytes),
	F(dbt_obs_process, "major_faults", U64, major_faults),
	F(dbt_obs_process, "grown_bytes", U64, grown_bytes),
	F(dbt_obs_process, "other_mounts", BOOL, other_mounts),
	F(dbt_obs_process, "selected", BOOL, selected),
	F(dbt_obs_process, "ended", BOOL, ended),
	{ 0 },
};

static const struct field file_fields[] = {
	F(dbt_obs_file, "devno", U64, devno),
	F(dbt_obs_file, "ino", U64, ino),
	F(dbt_obs_file, "path", TEXT, path),
	F(dbt_obs_file, "size", U64, size_bytes),
	F(dbt_obs_file, "place", INDEX, place),
	F(dbt_obs_file, "database", TEXT, database),
	F(dbt_obs_file, "format", TEXT, format),
	F(dbt_obs_file, "declared", CLASS, declared),
	F(dbt_obs_file, "cached_before", REAL, cached_before),
	F(dbt_obs_file, "cached_after", REAL, cached_after),
	READS(dbt_obs_file),
	F(dbt_obs_file, "moved_bytes", U64, moved_bytes),
	F(dbt_obs_file, "moved_jumps", U64, moved_jumps),
	F(dbt_obs_file, "moves", U64, moves),
	F(dbt_obs_file, "how", UNSIGNED, how),
	{ 0 },
};

static const struct field use_fields[] = {
	F(dbt_obs_use, "process", INDEX, process),
	F(dbt_obs_use, "file", INDEX, file),
	F(dbt_obs_use, "how", UNSIGNED, how),
	READS(dbt_obs_use),
	{ 0 },
};

/* --- writing --- */

static json_t *text_json(const char *text)
{
	struct dbt_buf buf = { 0 };
	json_t *json = NULL;

	if (!text)
		return json_null();
	if (text_add_utf8(&buf, text, strlen(text)) == 0)
		json = json_string(dbt_buf_str(&buf));
	dbt_buf_release(&buf);
	return json;
}

static json_t *u64_json(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *field_json(const struct field *f, const void *item)
{
	const char *at = (const char *)item + f->at;

	switch (f->type) {
	case FIELD_TEXT:
		return text_json(*(char *const *)at);
	case FIELD_U64:
		return u64_json(*(const uint64_t *)at);
	case FIELD_UNSIGNED:
		return json_integer(*(const unsigned *)at);
	case FIELD_INT:
		return json_integer(*(const int *)at);
	case FIELD_U32:
		return json_integer(*(const uint32_t *)at);
	case FIELD_REAL:
		return isfinite(*(const double *)at) ? json_real(*(const double *)at) : json_null();
	case FIELD_BOOL:
		return json_boolean(*(const bool *)at);
	case FIELD_TIER:
		return json_string(dbt_tier_name(*(const enum dbt_tier *)at));
	case FIELD_CLASS:
		return *(const enum dbt_class *)at == DBT_CLASS_UNKNOWN
		               ? json_null()
		               : json_string(dbt_class_name(*(const enum dbt_class *)at));
	case FIELD_INDEX:
		return *(const size_t *)at == DBT_OBS_NONE ? json_null()
		                                           : u64_json(*(const size_t *)at);
	}
	return NULL;
}

static json_t *object_json(const struct field *fields, const void *item)
{
	json_t *object = json_object();

	for (; object && fields->key; fields++)
		if (json_object_set_new(object, fields->key, field_json(fields, item)) < 0) {
			json_decref(object);
			return NULL;
		}
	return object;
}

static json_t *list_json(const struct field *fields, const void *items, size_t n, size_t bytes)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < n; i++)
		if (json_array_append_new(
			    list, object_json(fields, (const char *)items + i * bytes)) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

#define LIST(fields, vec) list_json(fields, (vec).items, (vec).n, sizeof(*(vec).items))

static json_t *places_json(const struct dbt_observation *obs)
{
	json_t *list = LIST(place_fields, obs->places);

	for (size_t i = 0; list && i < obs->places.n; i++) {
		const struct dbt_obs_place *p = &obs->places.items[i];
		json_t *disks = json_array();
		int r = disks ? 0 : -1;

		for (size_t k = 0; r == 0 && k < p->n_disks; k++)
			r = json_array_append_new(disks, text_json(p->disks[k]));
		if (r < 0)
			json_decref(disks);
		if (r < 0 || json_object_set_new(json_array_get(list, i), "disks", disks) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

json_t *recording_encode(const struct dbt_observation *obs)
{
	json_t *top = object_json(top_fields, obs);

	if (!top)
		return NULL;
	if (json_object_set_new(top, "dbtier_recording", json_integer(VERSION)) < 0 ||
	    json_object_set_new(top, "machine", object_json(machine_fields, &obs->machine)) < 0 ||
	    json_object_set_new(top, "devices", LIST(device_fields, obs->devices)) < 0 ||
	    json_object_set_new(top, "places", places_json(obs)) < 0 ||
	    json_object_set_new(top, "processes", LIST(process_fields, obs->processes)) < 0 ||
	    json_object_set_new(top, "files", LIST(file_fields, obs->files)) < 0 ||
	    json_object_set_new(top, "uses", LIST(use_fields, obs->uses)) < 0) {
		json_decref(top);
		return NULL;
	}
	return top;
}

/* --- reading --- */

/* A number that is none of ours becomes 0: counts are never negative. */
static uint64_t whole_of(const json_t *v)
{
	json_int_t n = json_integer_value(v);

	return n < 0 ? 0 : (uint64_t)n;
}

static void parse_word(const struct field *f, const json_t *v, char *at)
{
	const char *word = json_string_value(v);

	if (f->type == FIELD_TIER && (!word || dbt_tier_parse(word, (enum dbt_tier *)at) < 0))
		*(enum dbt_tier *)at = DBT_TIER_UNKNOWN;
	if (f->type == FIELD_CLASS && (!word || dbt_class_parse(word, (enum dbt_class *)at) < 0))
		*(enum dbt_class *)at = DBT_CLASS_UNKNOWN;
}

static int parse_field(const struct field *f, const json_t *v, void *item)
{
	char *at = (char *)item + f->at;

	if (!v || (json_is_null(v) && f->type != FIELD_INDEX))
		return 0;
	switch (f->type) {
	case FIELD_TEXT:
		free(*(char **)at);
		*(char **)at = json_is_string(v) ? strdup(json_string_value(v)) : NULL;
		return json_is_string(v) && !*(char **)at ? -ENOMEM : 0;
	case FIELD_U64:
		*(uint64_t *)at = whole_of(v);
		return 0;
	case FIELD_UNSIGNED:
		*(unsigned *)at = whole_of(v) > UINT32_MAX ? 0 : (unsigned)whole_of(v);
		return 0;
	case FIELD_INT:
		*(int *)at = whole_of(v) > INT32_MAX ? 0 : (int)whole_of(v);
		return 0;
	case FIELD_U32:
		*(uint32_t *)at = (uint32_t)whole_of(v);
		return 0;
	case FIELD_REAL:
		*(double *)at = json_number_value(v);
		return 0;
	case FIELD_BOOL:
		*(bool *)at = json_is_true(v);
		return 0;
	case FIELD_TIER:
	case FIELD_CLASS:
		parse_word(f, v, at);
		return 0;
	case FIELD_INDEX:
		*(size_t *)at = json_is_integer(v) ? (size_t)whole_of(v) : DBT_OBS_NONE;
		return 0;
	}
	return 0;
}

static int parse_object(const struct field *fields, const json_t *object, void *item)
{
	int r = 0;

	for (; r == 0 && fields->key; fields++)
		r = parse_field(fields, json_object_get(object, fields->key), item);
	return r;
}

/* A vector of obs, whatever its items are. */
struct list {
	const char *key;
	const struct field *fields;
	size_t at; /* of the vector: items, n and cap lie as in all of them */
	size_t item_bytes;
};

struct any_vec {
	void *items;
	size_t n, cap;
};

#define LIST_OF(name, its_fields, member)                                                          \
	{                                                                                          \
		.key = (name), .fields = (its_fields),                                             \
		.at = offsetof(struct dbt_observation, member),                                    \
		.item_bytes = sizeof(*((struct dbt_observation *)NULL)->member.items)              \
	}

static const struct list lists[] = {
	LIST_OF("devices", device_fields, devices),
	LIST_OF("places", place_fields, places),
	LIST_OF("processes", process_fields, processes),
	LIST_OF("files", file_fields, files),
	LIST_OF("uses", use_fields, uses),
};

static int parse_list(const struct list *l, const json_t *json, struct dbt_observation *obs)
{
	const json_t *list = json_object_get(json, l->key);
	char *at = (char *)obs + l->at;
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		struct any_vec vec;
		void *grown;

		memcpy(&vec, at, sizeof(vec));
		grown = dbt_vec_grow(vec.items, vec.n, &vec.cap, l->item_bytes);
		if (!grown)
			return -ENOMEM;
		vec.items = grown;
		vec.n++;
		memcpy(at, &vec, sizeof(vec));
		r = parse_object(l->fields, json_array_get(list, i),
		                 (char *)grown + (vec.n - 1) * l->item_bytes);
	}
	return r;
}

static int parse_disks(const json_t *json, struct dbt_obs_place *p)
{
	const json_t *disks = json_object_get(json, "disks");
	size_t n = json_array_size(disks);

	p->disks = calloc(n ? n : 1, sizeof(*p->disks));
	if (!p->disks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_array_get(disks, i));

		p->disks[p->n_disks] = strdup(name ? name : "");
		if (!p->disks[p->n_disks])
			return -ENOMEM;
		p->n_disks++;
	}
	return 0;
}

static int parse_all(const json_t *json, struct dbt_observation *obs)
{
	int r = parse_object(top_fields, json, obs);

	if (r == 0)
		r = parse_object(machine_fields, json_object_get(json, "machine"), &obs->machine);
	for (size_t i = 0; r == 0 && i < sizeof(lists) / sizeof(lists[0]); i++)
		r = parse_list(&lists[i], json, obs);
	for (size_t i = 0; r == 0 && i < obs->places.n; i++)
		r = parse_disks(json_array_get(json_object_get(json, "places"), i),
		                &obs->places.items[i]);
	return r;
}

/* What the diagnosis takes for granted: names are there, indices lead somewhere, shares are shares. */
static bool is_sound(const struct dbt_observation *obs)
{
	bool ok = obs->seconds > 0 && obs->seconds < 1e9 && obs->machine.cpus > 0 &&
	          obs->traced_share >= 0 && obs->traced_share <= 1 &&
	          (obs->target == DBT_OBS_NONE || obs->target < obs->places.n);

	for (size_t i = 0; ok && i < obs->devices.n; i++)
		ok = obs->devices.items[i].name != NULL;
	for (size_t i = 0; ok && i < obs->places.n; i++)
		ok = obs->places.items[i].mount && obs->places.items[i].source &&
		     obs->places.items[i].fstype && obs->places.items[i].stack;
	for (size_t i = 0; ok && i < obs->processes.n; i++) {
		const struct dbt_obs_process *p = &obs->processes.items[i];

		ok = p->name && p->user && p->command && p->seconds >= 0 && p->seconds < 1e9 &&
		     (uint64_t)p->ticks_running + p->ticks_blocked <= p->ticks;
	}
	for (size_t i = 0; ok && i < obs->files.n; i++)
		ok = obs->files.items[i].place == DBT_OBS_NONE ||
		     obs->files.items[i].place < obs->places.n;
	for (size_t i = 0; ok && i < obs->uses.n; i++)
		ok = obs->uses.items[i].process < obs->processes.n &&
		     obs->uses.items[i].file < obs->files.n;
	return ok;
}

int recording_decode(const json_t *json, struct dbt_observation *ret, struct dbt_err *err)
{
	struct dbt_observation obs;
	int r;

	if (!json_is_integer(json_object_get(json, "dbtier_recording")))
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "it is no recording of dbtier");
	if (json_integer_value(json_object_get(json, "dbtier_recording")) != VERSION)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "it was recorded by another version of dbtier: use that one");
	dbt_observation_init(&obs);
	r = parse_all(json, &obs);
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot take it in");
	else if (!is_sound(&obs))
		r = dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                "it is a damaged recording: what it says cannot be");
	if (r < 0) {
		dbt_observation_release(&obs);
		return r;
	}
	*ret = obs;
	return 0;
}

/* --- files --- */

int recording_write(const struct dbt_observation *obs, const char *path, struct dbt_err *err)
{
	json_t *json = recording_encode(obs);
	FILE *out;
	int r = 0;

	if (!json)
		return dbt_err_sys(err, -ENOMEM, "cannot record");
	out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
	if (!out) {
		r = dbt_err_sys(err, -errno, "cannot make '%s'", path);
		json_decref(json);
		return r;
	}
	if (json_dumpf(json, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) < 0 ||
	    fputc('\n', out) == EOF)
		r = -EIO;
	json_decref(json);
	if (out != stdout && fclose(out) != 0)
		r = -errno;
	return r < 0 ? dbt_err_sys(err, r, "cannot write '%s', which is not complete now", path)
	             : 0;
}

int recording_read(const char *path, struct dbt_observation *ret, struct dbt_err *err)
{
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	json_error_t why;
	json_t *json;
	int r;

	if (!in)
		return dbt_err_sys(err, -errno, "cannot open '%s'", path);
	json = json_loadf(in, 0, &why);
	if (in != stdin)
		(void)fclose(in);
	if (!json)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "cannot replay '%s': no JSON at line %d: %s", path, why.line,
		                   why.text);
	r = recording_decode(json, ret, err);
	json_decref(json);
	return r < 0 ? dbt_err_wrap(err, "cannot replay '%s'", path) : 0;
}
