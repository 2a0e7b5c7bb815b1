/* dbtier scan: which databases are where, and what is worth moving. */
#include "base/cleanup.h"
#include "base/vec.h"
#include "cmd/app.h"
#include "cmd/table.h"
#include "flow/inventory.h"
#include "survey/dbkind.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

struct scan_args {
	bool no_probe, fresh, one_file_system, all, follow, deep;
	uint64_t min_size_bytes;
	struct opt_strings formats, excludes;
};

enum { GROUP_MEASURE = 1 };

#define AT(member) offsetof(struct scan_args, member)

static const struct opt_spec opts[] = {
	{ .name = "no-probe",
	  .at = AT(no_probe),
	  .conflicts = GROUP_MEASURE,
	  .help = "measure no device; use what was measured within a day" },
	{ .name = "fresh",
	  .at = AT(fresh),
	  .conflicts = GROUP_MEASURE,
	  .help = "measure each device again, whatever is remembered" },
	{ .name = "min-size",
	  .kind = OPT_BYTES,
	  .metavar = "SIZE",
	  .at = AT(min_size_bytes),
	  .help = "leave out smaller databases" },
	{ .name = "format",
	  .kind = OPT_STRINGS,
	  .metavar = "ID",
	  .complete = COMPLETE_FORMATS,
	  .at = AT(formats),
	  .help = "list only databases of this format; may be repeated" },
	{ .name = "all",
	  .at = AT(all),
	  .help = "list unrecognised files too, from --min-size or 1M on" },
	{ .name = "deep",
	  .at = AT(deep),
	  .help = "read archives to their end, not only their first 8M" },
	{ .name = "exclude",
	  .kind = OPT_STRINGS,
	  .metavar = "GLOB",
	  .at = AT(excludes),
	  .help = "pass over names or paths that fit; may be repeated" },
	{ .name = "one-file-system",
	  .letter = 'x',
	  .at = AT(one_file_system),
	  .help = "stay on the file system of each PATH" },
	{ .name = "follow",
	  .letter = 'L',
	  .at = AT(follow),
	  .help = "look behind symbolic links that dbtier did not make" },
	{ 0 },
};

/* ---- columns ---- */

static const struct dbt_database *db_of(const void *row)
{
	return ((const struct dbt_inventory_item *)row)->db;
}

static const struct dbt_place *place_of(const void *row)
{
	const struct dbt_inventory_item *item = row;

	return item->place ? &item->place->place : NULL;
}

static json_t *get_name(const void *row)
{
	return table_json_name(db_of(row)->name);
}

static json_t *get_format(const void *row)
{
	return table_json_text(db_of(row)->format);
}

static json_t *get_path(const void *row)
{
	return table_json_name(db_of(row)->path);
}

static json_t *get_size(const void *row)
{
	return table_json_size(db_of(row)->size_bytes);
}

static json_t *get_files(const void *row)
{
	return table_json_size(db_of(row)->n_members + db_of(row)->more_files);
}

static json_t *get_access(const void *row)
{
	return table_json_text(dbt_database_access(db_of(row)));
}

/* Unset where the hot files differ. */
static json_t *get_class(const void *row)
{
	const struct dbt_database *db = db_of(row);

	return db->mixed ? json_null() : table_json_text(dbt_class_name(db->class));
}

static json_t *get_observed(const void *row)
{
	const struct dbt_database *db = db_of(row);
	bool observed = false;

	for (size_t i = 0; i < db->n_members; i++)
		observed |= db->members[i].observed;
	return json_boolean(observed);
}

static json_t *get_tier(const void *row)
{
	const struct dbt_place *place = place_of(row);

	return table_json_text(dbt_tier_name(place ? place->tier : DBT_TIER_UNKNOWN));
}

static json_t *get_device(const void *row)
{
	const struct dbt_place *place = place_of(row);

	return table_json_text(place ? place->source : NULL);
}

static json_t *get_mount(const void *row)
{
	const struct dbt_place *place = place_of(row);

	return table_json_name(place ? place->mount : NULL);
}

static json_t *get_cached(const void *row)
{
	double cached = ((const struct dbt_inventory_item *)row)->cached;

	return cached < 0 ? json_null() : table_json_real(cached);
}

static json_t *get_complete(const void *row)
{
	return json_boolean(db_of(row)->complete);
}

static json_t *get_state(const void *row)
{
	const struct dbt_database *db = db_of(row);

	return table_json_text(db->promoted                         ? "promoted"
	                       : strcmp(db->format, "archive") == 0 ? "archive"
	                                                            : "plain");
}

static json_t *get_gain(const void *row)
{
	return table_json_text(((const struct dbt_inventory_item *)row)->advice.gain);
}

static json_t *get_advice(const void *row)
{
	const struct dbt_database *db = db_of(row);
	dbt_autofree char *text = NULL;

	/* The reason holds names and what files say: any bytes. */
	if (!db->complete && asprintf(&text, "incomplete: %s", db->incomplete) < 0)
		text = NULL;
	if (!db->complete)
		return text ? table_json_text(text) : NULL;
	return table_json_text(((const struct dbt_inventory_item *)row)->advice.text);
}

static json_t *get_note(const void *row)
{
	return table_json_text(db_of(row)->note);
}

static json_t *get_holds(const void *row)
{
	return table_json_text(db_of(row)->holds);
}

static json_t *member_name(const void *row)
{
	return table_json_name(((const struct dbt_member *)row)->name);
}

static json_t *member_path(const void *row)
{
	return table_json_name(((const struct dbt_member *)row)->path);
}

static json_t *member_size(const void *row)
{
	return table_json_size(((const struct dbt_member *)row)->size_bytes);
}

static json_t *member_access(const void *row)
{
	return table_json_text(dbt_class_word(((const struct dbt_member *)row)->class));
}

static json_t *member_class(const void *row)
{
	return table_json_text(dbt_class_name(((const struct dbt_member *)row)->class));
}

static json_t *member_observed(const void *row)
{
	return json_boolean(((const struct dbt_member *)row)->observed);
}

static json_t *member_hot(const void *row)
{
	return json_boolean(((const struct dbt_member *)row)->hot);
}

static const struct column member_columns[] = {
	{ .key = "name", .type = COLUMN_NAME, .get = member_name },
	{ .key = "path", .type = COLUMN_NAME, .get = member_path },
	{ .key = "size", .type = COLUMN_SIZE, .get = member_size },
	{ .key = "access", .get = member_access },
	{ .key = "class", .get = member_class },
	{ .key = "observed", .type = COLUMN_BOOL, .get = member_observed },
	{ .key = "hot", .type = COLUMN_BOOL, .get = member_hot },
	{ 0 },
};

static const struct table_spec member_table = { .key = "children", .columns = member_columns };

static json_t *get_children(const void *row)
{
	const struct dbt_database *db = db_of(row);
	size_t n = db->n_members > 1 ? db->n_members : 0;

	return table_json_rows(&member_table, TABLE_ROWS(db->members, n));
}

static const struct column columns[] = {
	{ .key = "name",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = get_name,
	  .help = "name of the database, as promote takes it" },
	{ .key = "format", .shown = true, .get = get_format, .help = "format, by content" },
	{ .key = "path",
	  .type = COLUMN_NAME,
	  .get = get_path,
	  .help = "what its tool is given: file, base name or directory" },
	{ .key = "size",
	  .type = COLUMN_SIZE,
	  .shown = true,
	  .get = get_size,
	  .help = "size of all its files" },
	{ .key = "files", .type = COLUMN_COUNT, .get = get_files, .help = "number of its files" },
	{ .key = "access",
	  .shown = true,
	  .get = get_access,
	  .help = "how its tool reads it: random, mapped, stream, loaded, mixed or cold" },
	{ .key = "class", .get = get_class, .help = "the same, finer" },
	{ .key = "observed",
	  .type = COLUMN_BOOL,
	  .get = get_observed,
	  .help = "that is what diagnose saw, not what the format declares" },
	{ .key = "tier",
	  .shown = true,
	  .get = get_tier,
	  .help = "class of the slowest device that holds its hot files" },
	{ .key = "device", .get = get_device, .help = "what is mounted there" },
	{ .key = "mount",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = get_mount,
	  .help = "mount point" },
	{ .key = "cached",
	  .type = COLUMN_REAL,
	  .get = get_cached,
	  .help = "share of it in the page cache, 0 to 1" },
	{ .key = "complete",
	  .type = COLUMN_BOOL,
	  .get = get_complete,
	  .help = "no file is missing or cut short" },
	{ .key = "state", .shown = true, .get = get_state, .help = "plain, promoted or archive" },
	{ .key = "gain",
	  .get = get_gain,
	  .help = "what a move would gain, with the measurements behind it" },
	{ .key = "advice",
	  .shown = true,
	  .wrap = true,
	  .get = get_advice,
	  .help = "what to do with it" },
	{ .key = "note", .get = get_note, .wrap = true, .help = "what to know before moving it" },
	{ .key = "holds",
	  .get = get_holds,
	  .wrap = true,
	  .help = "of an archive: the databases that seem to be in it, and what tells" },
	{ .key = "children",
	  .type = COLUMN_LIST,
	  .json_only = true,
	  .nested = &member_table,
	  .get = get_children,
	  .help = "its files, where there is more than one" },
	{ 0 },
};

static const struct table_spec table = { .key = "databases", .columns = columns };

/* ---- the command ---- */

static int check_formats(const struct opt_strings *formats, struct dbt_err *err)
{
	for (size_t i = 0; i < formats->n; i++)
		if (!dbt_format_by_id(formats->items[i]))
			return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "unknown format '%s'",
			                   formats->items[i]);
	return 0;
}

/* Something was passed over: the survey says why by an error number. */
static void tell_trouble(const struct app *app, const struct dbt_scan_trouble *trouble)
{
	if (trouble->code == -ENODATA)
		msg_note(app, "'%s' is empty, though it is called like a database", trouble->path);
	else if (trouble->code == -EBADMSG)
		msg_note(app,
		         "'%s' is not what its name says, or its beginning is damaged: it was "
		         "passed "
		         "over, with the files beside it",
		         trouble->path);
	else
		msg_note(app, "cannot look at '%s': %s", trouble->path,
		         dbt_err_text(trouble->code));
}

/* What could not be looked at, once for all. */
static void tell_troubles(const struct app *app, const struct dbt_inventory *inventory)
{
	enum { SHOWN = 10 };
	uint64_t total = 0, shown = 0;

	for (size_t i = 0; i < inventory->n_scans; i++) {
		const struct dbt_scan_result *scan = &inventory->scans[i];

		total += scan->troubles_total;
		for (size_t k = 0; k < scan->n_troubles && shown < SHOWN; k++, shown++)
			tell_trouble(app, &scan->troubles[k]);
	}
	if (total > shown)
		msg_note(app, "... and at %llu more", (unsigned long long)(total - shown));
}

static int print(const struct app *app, const struct dbt_inventory *inventory, struct dbt_err *err)
{
	if (inventory->n_items == 0 && !app->args.json) {
		msg_note(app, "no database found");
		return 0;
	}
	return table_print(&table, &app->args, TABLE_ROWS(inventory->items, inventory->n_items),
	                   stdout, err);
}

static int scan(struct app *app, const struct scan_args *args, char **operands, size_t n_operands)
{
	static const char *const here[] = { "." };
	const struct dbt_inventory_opts options = {
		.scan = { .min_size_bytes = args->min_size_bytes,
		          .one_file_system = args->one_file_system,
		          .follow = args->follow,
		          .deep = args->deep,
		          .unknown_bytes = !args->all             ? 0
		                           : args->min_size_bytes ? args->min_size_bytes
		                                                  : 1 << 20,
		          .exclude = args->excludes.items,
		          .n_exclude = args->excludes.n,
		          .formats = args->formats.items,
		          .n_formats = args->formats.n },
		.no_probe = args->no_probe,
		.fresh = args->fresh,
		.state_dir = app->state_dir,
		.system_state_dir = app->system_state_dir,
	};
	struct dbt_inventory inventory;
	struct dbt_err err = { 0 };
	int r, failed;

	failed = dbt_inventory_make(&app->ctx, n_operands ? (const char *const *)operands : here,
	                            n_operands ? n_operands : 1, &options, &inventory, &err);
	progress_clear(&app->progress);
	if (failed < 0 && inventory.n_scans == 0) {
		dbt_inventory_release(&inventory);
		return msg_fail(&err);
	}
	if (failed < 0)
		msg_error(&err);
	tell_troubles(app, &inventory);
	r = print(app, &inventory, &err);
	if (r == 0 && inventory.partial)
		r = dbt_err_set(&err, DBT_ERR_INTERRUPTED, -ECANCELED,
		                "interrupted; this is what was found until then");
	dbt_inventory_release(&inventory);
	if (r < 0)
		return msg_fail(&err);
	return failed < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* The patterns of the configuration count like those of the command line. */
static int join_excludes(const struct dbt_settings *settings, struct opt_strings *excludes,
                         struct dbt_err *err)
{
	for (size_t i = 0; i < settings->n_exclude; i++) {
		const char **slot = dbt_vec_push(excludes);

		if (!slot)
			return dbt_err_sys(err, -ENOMEM, "cannot keep the patterns");
		*slot = settings->exclude[i];
	}
	return 0;
}

static int run(struct app *app, void *data, char **operands, size_t n_operands)
{
	struct scan_args *args = data;
	struct dbt_err err = { 0 };
	int r = app_settings(app, &err);

	if (r == 0)
		r = check_formats(&args->formats, &err);
	if (r == 0)
		r = join_excludes(&app->settings, &args->excludes, &err);
	return r < 0 ? msg_fail(&err) : scan(app, args, operands, n_operands);
}

const struct command cmd_scan = {
	.name = "scan",
	.operands = "[PATH...]",
	.summary = "find databases, tell where they lie and what to move",
	.help = "Looks below each PATH (without one: the working directory) and recognises "
		"databases by\n"
		"their content. Later commands know them by the names shown here.",
	.opts = opts,
	.args_bytes = sizeof(struct scan_args),
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_PATH,
	.table = &table,
	.run = run,
};
