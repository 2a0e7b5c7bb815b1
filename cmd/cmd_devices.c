/* devices: what every mounted filesystem, or the one behind each path, really lies on. */
#include "base/cleanup.h"
#include "base/vec.h"
#include "cmd/app.h"
#include "cmd/table.h"
#include "flow/remember.h"
#include "survey/capture.h"
#include "survey/mounts.h"
#include "survey/override.h"
#include "survey/place.h"
#include "survey/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct devices_args {
	const char *sysroot;
	const char *capture;
};

struct device {
	struct dbt_place place;
	struct dbt_speeds speeds; /* the last measurement; zero: none */
};

struct devices {
	struct device *items;
	size_t n, cap;
};

static void devices_release(struct devices *list)
{
	for (size_t i = 0; i < list->n; i++)
		dbt_place_release(&list->items[i].place);
	free(list->items);
}

/* --- the table --- */

static const struct dbt_place *place(const void *row)
{
	return &((const struct device *)row)->place;
}

static const struct dbt_speeds *speeds(const void *row)
{
	return &((const struct device *)row)->speeds;
}

static json_t *get_mount(const void *row)
{
	const struct dbt_place *p = place(row);

	return table_json_name(*p->mount ? p->mount : NULL);
}

static json_t *get_fstype(const void *row)
{
	const struct dbt_place *p = place(row);

	return table_json_text(*p->fstype ? p->fstype : NULL);
}

static json_t *get_tier(const void *row)
{
	return table_json_text(dbt_tier_name(place(row)->tier));
}

static json_t *get_disks(const void *row)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < place(row)->n_disks; i++)
		if (json_array_append_new(list, table_json_text(place(row)->disks[i].name)) < 0) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

static json_t *get_stack(const void *row)
{
	return table_json_text(place(row)->stack);
}

static json_t *get_size(const void *row)
{
	return place(row)->size_bytes ? table_json_size(place(row)->size_bytes) : json_null();
}

static json_t *get_free(const void *row)
{
	return place(row)->size_bytes && *place(row)->mount
	               ? table_json_size(place(row)->free_bytes)
	               : json_null();
}

/* Disks that differ have no one answer. */
static json_t *get_rota(const void *row)
{
	const struct dbt_place *p = place(row);

	for (size_t i = 0; i < p->n_disks; i++)
		if (p->disks[i].rota < 0 || p->disks[i].rota != p->disks[0].rota)
			return json_null();
	return p->n_disks > 0 ? json_boolean(p->disks[0].rota) : json_null();
}

/* Each different word once, "sata,usb". */
static json_t *words(const struct dbt_place *p, size_t at)
{
	char text[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < p->n_disks; i++) {
		const char *word = *(char *const *)((const char *)&p->disks[i] + at);
		bool seen = !word;

		for (size_t k = 0; k < i && !seen; k++) {
			const char *other = *(char *const *)((const char *)&p->disks[k] + at);

			seen = other && strcmp(other, word) == 0;
		}
		if (!seen && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
			                         used ? "," : "", word);
	}
	return table_json_text(used ? text : NULL);
}

static json_t *get_tran(const void *row)
{
	return words(place(row), offsetof(struct dbt_disk, tran));
}

static json_t *get_model(const void *row)
{
	return words(place(row), offsetof(struct dbt_disk, model));
}

static json_t *get_rand_iops(const void *row)
{
	const struct dbt_speed *s = &speeds(row)->random1;

	return s->iops > 0 ? table_json_real(round(s->iops * 10) / 10) : json_null();
}

static json_t *get_rand_lat(const void *row)
{
	const struct dbt_speed *s = &speeds(row)->random1;

	return s->lat_p50_ns ? table_json_size(s->lat_p50_ns) : json_null();
}

static json_t *get_seq_rate(const void *row)
{
	const struct dbt_speed *s = &speeds(row)->stream1;

	return s->rate_bytes_s ? table_json_size(s->rate_bytes_s) : json_null();
}

static json_t *get_evidence(const void *row)
{
	return table_json_strings((const char *const *)place(row)->evidence,
	                          place(row)->n_evidence);
}

static json_t *get_note(const void *row)
{
	return table_json_text(place(row)->note);
}

static const struct column columns[] = {
	{ .key = "mount",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = get_mount,
	  .help = "mount point" },
	{ .key = "fstype", .shown = true, .get = get_fstype, .help = "filesystem type" },
	{ .key = "tier",
	  .shown = true,
	  .get = get_tier,
	  .help = "class of the device: ram, nvme, ssd, hdd, network or unknown" },
	{ .key = "disks", .type = COLUMN_LIST, .get = get_disks, .help = "disks at the bottom" },
	{ .key = "stack",
	  .shown = true,
	  .get = get_stack,
	  .help = "layers from the filesystem to the disks" },
	{ .key = "size",
	  .type = COLUMN_SIZE,
	  .shown = true,
	  .get = get_size,
	  .help = "size of the filesystem" },
	{ .key = "free",
	  .type = COLUMN_SIZE,
	  .shown = true,
	  .get = get_free,
	  .help = "free for an ordinary user" },
	{ .key = "rota",
	  .type = COLUMN_BOOL,
	  .get = get_rota,
	  .help = "the kernel says the disks rotate" },
	{ .key = "tran", .shown = true, .get = get_tran, .help = "how the disks are attached" },
	{ .key = "model", .get = get_model, .help = "models of the disks" },
	{ .key = "rand_iops",
	  .type = COLUMN_REAL,
	  .get = get_rand_iops,
	  .help = "random 4k reads a second, one at a time, as measured last" },
	{ .key = "rand_lat_ns",
	  .type = COLUMN_NS,
	  .get = get_rand_lat,
	  .help = "median time of such a read" },
	{ .key = "seq_rate",
	  .type = COLUMN_RATE,
	  .get = get_seq_rate,
	  .help = "one stream, as measured last" },
	{ .key = "evidence",
	  .type = COLUMN_LIST,
	  .get = get_evidence,
	  .help = "why the tier was decided" },
	{ .key = "note",
	  .shown = true,
	  .wrap = true,
	  .get = get_note,
	  .help = "what to know about it" },
	{ 0 },
};

static const struct table_spec table = { .key = "devices", .columns = columns };

static int print_table(const struct app *app, const struct devices *list, struct dbt_err *err)
{
	return table_print(&table, &app->args, TABLE_ROWS(list->items, list->n), stdout, err);
}

/* --- gathering --- */

struct survey {
	struct app *app;
	const struct dbt_ctx *ctx; /* on the running system or a captured one */
	const struct dbt_root *root;
	struct dbt_mounts *mounts;
	struct devices *list;
};

/* The place is moved into the list. With a measurement of the last day it is judged again. */
static int add_place(struct survey *s, struct dbt_place *p, const struct dbt_speeds *found)
{
	struct device *d = dbt_vec_push(s->list);

	if (!d) {
		dbt_place_release(p);
		return -ENOMEM;
	}
	d->place = *p;
	if (found)
		d->speeds = *found;
	return 0;
}

/* True when something is remembered. A ledger that cannot be read is no reason to fail. */
static bool recall(const struct survey *s, const struct dbt_place *p, struct dbt_speeds *ret)
{
	struct dbt_err err;
	int r;

	if (!s->root->live || *p->mount == '\0')
		return false;
	r = dbt_remember_get_speeds(s->ctx, s->app->state_dir, p, DBT_REMEMBER_DAY_NS, ret, &err);
	if (r == 0 && s->app->system_state_dir)
		r = dbt_remember_get_speeds(s->ctx, s->app->system_state_dir, p,
		                            DBT_REMEMBER_DAY_NS, ret, &err);
	return r > 0;
}

static int add_mount(struct survey *s, const struct dbt_mount *mount, struct dbt_err *err)
{
	struct dbt_speeds found = { 0 };
	struct dbt_place p, judged;
	int r = dbt_place_of_mount(s->ctx, s->mounts, mount->id, NULL, &p, err);

	if (r < 0)
		return r;
	if (recall(s, &p, &found) &&
	    dbt_place_of_mount(s->ctx, s->mounts, mount->id, &found, &judged, err) == 0) {
		dbt_place_release(&p);
		p = judged;
	}
	return add_place(s, &p, &found) < 0 ? dbt_err_sys(err, -ENOMEM, "cannot list the devices")
	                                    : 0;
}

/* Every mount that a path leads to and that can hold files of somebody. */
static bool is_listed(const struct survey *s, const struct dbt_mount *m)
{
	return dbt_fs_kind_of(m->fstype) != DBT_FS_PSEUDO && strncmp(m->target, "/sys/", 5) != 0 &&
	       dbt_mounts_by_path(s->mounts, m->target) == m;
}

static int add_all(struct survey *s, struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < dbt_mounts_count(s->mounts); i++) {
		const struct dbt_mount *m = dbt_mounts_at(s->mounts, i);

		if (is_listed(s, m))
			r = add_mount(s, m, err);
	}
	return r;
}

static int add_captured_path(struct survey *s, const char *path, struct dbt_err *err)
{
	const struct dbt_mount *mount;

	if (*path != '/')
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' is relative: a captured machine has no working directory",
		                   path);
	mount = dbt_mounts_by_path(s->mounts, path);
	if (!mount)
		return dbt_err_set(err, DBT_ERR_UNKNOWN, -ENOENT,
		                   "no mount of the captured machine leads to '%s'", path);
	return add_mount(s, mount, err);
}

static int add_live_path(struct survey *s, const char *path, struct dbt_err *err)
{
	dbt_autoclose int fd = open(path, O_PATH | O_CLOEXEC);
	struct dbt_speeds found = { 0 };
	struct dbt_place p, judged;
	int r;

	if (fd < 0)
		return dbt_err_sys(err, -errno, "cannot open '%s'", path);
	r = dbt_place_of_fd(s->ctx, s->mounts, fd, NULL, &p, err);
	if (r < 0)
		return dbt_err_wrap(err, "'%s'", path);
	if (recall(s, &p, &found) &&
	    dbt_place_of_fd(s->ctx, s->mounts, fd, &found, &judged, err) == 0) {
		dbt_place_release(&p);
		p = judged;
	}
	return add_place(s, &p, &found) < 0 ? dbt_err_sys(err, -ENOMEM, "cannot list the devices")
	                                    : 0;
}

/* Paths that cannot be told are reported; the others are listed. Returns the exit status. */
static int survey_paths(struct survey *s, char **paths, size_t n, struct dbt_err *err)
{
	int status = EXIT_DONE, r;

	for (size_t i = 0; i < n; i++) {
		r = s->root->live ? add_live_path(s, paths[i], err)
		                  : add_captured_path(s, paths[i], err);
		if (r < 0)
			status = msg_fail(err);
	}
	return status;
}

/* Places read the configuration silently; here is where it is looked over. Somebody else's machine is described
 * all the same, whatever its file holds. */
static int check_configuration(struct survey *s, struct dbt_err *err)
{
	struct dbt_overrides overrides = { 0 };

	if (s->root->live)
		return app_settings(s->app, err);
	if (dbt_overrides_load(s->ctx, true, &overrides) == 0)
		dbt_overrides_release(&overrides);
	return 0;
}

static int survey(struct survey *s, char **paths, size_t n)
{
	struct dbt_err err;
	int status = EXIT_DONE;

	if (check_configuration(s, &err) < 0 || dbt_mounts_new(s->ctx, &s->mounts, &err) < 0)
		return msg_fail(&err);
	if (dbt_mounts_garbled(s->mounts) > 0)
		msg_note(s->app, "%zu lines of the mount table could not be understood",
		         dbt_mounts_garbled(s->mounts));
	if (n > 0)
		status = survey_paths(s, paths, n, &err);
	else if (add_all(s, &err) < 0)
		status = msg_fail(&err);
	if ((s->list->n > 0 || status == EXIT_DONE) && print_table(s->app, s->list, &err) < 0)
		status = msg_fail(&err);
	dbt_mounts_free(s->mounts);
	return status;
}

/* --- capture --- */

static int write_capture(const struct dbt_ctx *ctx, const char *name, struct dbt_err *err)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), r;

	if (fd < 0)
		return dbt_err_sys(err, -errno, "cannot make '%s'", name);
	r = dbt_capture_write(ctx, fd, name, err);
	if (close(fd) < 0 && r == 0)
		r = dbt_err_sys(err, -errno, "cannot write '%s'", name);
	if (r < 0)
		(void)unlink(name);
	return r;
}

static int capture(const struct app *app, const struct dbt_ctx *ctx, const char *name, size_t n)
{
	struct dbt_err err;

	if (n > 0) {
		(void)dbt_err_set(&err, DBT_ERR_USAGE, -EINVAL,
		                  "--capture takes the whole machine, no paths");
		return msg_fail(&err);
	}
	if (write_capture(ctx, name, &err) < 0)
		return msg_fail(&err);
	msg_note(app,
	         "wrote '%s': mounts, block devices and drivers; no serial numbers, no names of "
	         "hosts and users. Look into it with tar -tvf before you pass it on",
	         name);
	return EXIT_DONE;
}

static int run(struct app *app, void *data, char **operands, size_t n_operands)
{
	const struct devices_args *args = data;
	struct devices list = { 0 };
	struct dbt_root root = app->root;
	struct dbt_ctx ctx = app->ctx;
	struct survey s = { .app = app, .ctx = &ctx, .root = &root, .list = &list };
	struct dbt_err err;
	int status, r = 0;

	if (args->sysroot)
		r = dbt_root_open(&root, args->sysroot);
	if (r < 0) {
		(void)dbt_err_sys(&err, r, "cannot open '%s'", args->sysroot);
		return msg_fail(&err);
	}
	ctx.root = &root;
	status = args->capture ? capture(app, &ctx, args->capture, n_operands)
	                       : survey(&s, operands, n_operands);
	if (args->sysroot)
		dbt_root_close(&root);
	devices_release(&list);
	return status;
}

static const struct opt_spec opts[] = {
	{ .name = "sysroot",
	  .kind = OPT_STRING,
	  .at = offsetof(struct devices_args, sysroot),
	  .metavar = "DIR",
	  .complete = COMPLETE_DIR,
	  .help = "answer from a captured machine, unpacked there" },
	{ .name = "capture",
	  .kind = OPT_STRING,
	  .at = offsetof(struct devices_args, capture),
	  .metavar = "FILE",
	  .complete = COMPLETE_FILE,
	  .help = "write what describes the devices to a tar file" },
	{ 0 },
};

const struct command cmd_devices = {
	.name = "devices",
	.operands = "[PATH...]",
	.summary = "tell which disks filesystems lie on, and how that is known",
	.help = "Follows each mount down to its disks: partitions, encryption, LVM, RAID, loop "
		"files,\n"
		"btrfs members, overlay layers. Flags that say nothing (virtual and USB disks) "
		"give\n"
		"the tier unknown until 'dbtier probe' has measured. --output +evidence shows why.",
	.opts = opts,
	.args_bytes = sizeof(struct devices_args),
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_PATH,
	.table = &table,
	.run = run,
};
