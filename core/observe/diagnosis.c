#include "observe/diagnosis.h"

#include "base/units.h"
#include "observe/forecast.h"
#include "observe/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* From this share of their time on, jobs that wait are what matters. */
static const double STALLED = 0.3;

/* ... and from this many jobs on that wait at any time. */
static const double STALLED_JOBS = 0.2;

/* Below this gain a move is not worth its trouble. */
static const double WORTH = 1.3;

/* Of what is read, so much was read ten seconds before: memory is too small for it. */
static const double READ_AGAIN = 0.3;

/* Pressure on memory, and pages swapped in a second, that make it the cause. */
static const double MEMORY_PRESSURE = 0.2, SWAPPED_PAGES_S = 100;

static const double BUSY_CPUS = 0.85, BUSY_JOB = 0.7;

/* The page cache needs some room besides the database. */
static const double CACHE_ROOM = 1.2;

const char *dbt_diag_kind_name(enum dbt_diag_kind kind)
{
	static const char *const names[] = {
		[DBT_DIAG_NOTHING] = "nothing to see", [DBT_DIAG_STORAGE] = "storage-bound",
		[DBT_DIAG_NETWORK] = "network",        [DBT_DIAG_WRITES] = "waiting for writes",
		[DBT_DIAG_MEMORY] = "memory-bound",    [DBT_DIAG_CPU] = "CPU-bound",
	};

	return names[kind];
}

const char *dbt_remedy_kind_name(enum dbt_remedy_kind kind)
{
	static const char *const names[] = {
		[DBT_REMEDY_LEAVE] = "leave",   [DBT_REMEDY_PROMOTE] = "promote",
		[DBT_REMEDY_WARM] = "warm",     [DBT_REMEDY_JOBS] = "jobs",
		[DBT_REMEDY_MEMORY] = "memory", [DBT_REMEDY_WRITER] = "writer",
		[DBT_REMEDY_PROBE] = "probe",
	};

	return names[kind];
}

/* --- what there is --- */

/* State D has other reasons than a disk: vfork(2), a lock of some driver. Who neither reads nor writes waits for none. */
static bool does_io(const struct dbt_judge *j, const struct dbt_diag_group *g)
{
	if (g->read_rate < 0 || g->read_rate + g->write_rate >= 4096)
		return true;
	for (size_t i = 0; i < g->n_files; i++)
		if (j->d->files.items[g->files[i]].bytes > 0)
			return true;
	return false;
}

/* The group that waits most; without one that waits, the one that computes most: of what the user asked about, if
 * anything. */
static const struct dbt_diag_group *most(const struct dbt_judge *j, bool blocked)
{
	const struct dbt_diag_group *best = NULL;
	bool asked = false;

	for (size_t i = 0; i < j->d->groups.n; i++)
		asked |= j->d->groups.items[i].selected;
	for (size_t i = 0; i < j->d->groups.n; i++) {
		const struct dbt_diag_group *g = &j->d->groups.items[i];
		double mine = (blocked ? g->blocked : g->running) * g->seconds,
		       other = best ? (blocked ? best->blocked : best->running) * best->seconds : 0;

		if (g->selected == asked && (!blocked || does_io(j, g)) && mine > other)
			best = g;
	}
	return best;
}

static bool is_stalled(const struct dbt_diag_group *g)
{
	return g && g->blocked >= STALLED && g->blocked * g->jobs >= STALLED_JOBS;
}

/* The file the group waited most for; DBT_OBS_NONE when it read none. */
static size_t main_file(const struct dbt_judge *j, const struct dbt_diag_group *g)
{
	for (size_t i = 0; g && i < g->n_files; i++)
		if (j->d->files.items[g->files[i]].bytes > 0)
			return g->files[i];
	return DBT_OBS_NONE;
}

/* Memory that a file could stay in: what is free, or what the limit leaves. */
static double room(const struct dbt_obs_machine *m)
{
	double free_bytes = (double)m->available_bytes, limit;

	if (m->limit_bytes == 0)
		return free_bytes;
	limit = (double)m->limit_bytes - (double)m->limit_used_bytes + (double)m->limit_file_bytes;
	return limit < free_bytes ? limit : free_bytes;
}

/* What the group reads from one place. */
static double read_set(const struct dbt_judge *j, const struct dbt_diag_group *g, size_t place)
{
	double bytes = 0;

	for (size_t i = 0; i < g->n_files; i++) {
		const struct dbt_diag_file *f = &j->d->files.items[g->files[i]];

		if (f->bytes > 0 && j->obs->files.items[f->file].place == place)
			bytes += (double)j->obs->files.items[f->file].size_bytes;
	}
	return bytes;
}

/* --- memory --- */

/* Of the file that the group waits for: what others do to their files is not its matter. */
static double share_again(const struct dbt_judge *j)
{
	size_t file = main_file(j, j->g);

	return file == DBT_OBS_NONE || j->d->files.items[file].again < 0
	               ? 0
	               : j->d->files.items[file].again;
}

/* The share of what is read that was dropped from memory shortly before, where memory is full: a database that is larger
 * than memory is read again as well, but then it takes no limit to drop it. */
static double share_refaulted(const struct dbt_judge *j)
{
	const struct dbt_obs_machine *m = &j->obs->machine;
	const bool full = m->limit_bytes > 0 ? m->limit_used_bytes >= m->limit_bytes / 10 * 9
	                                     : m->available_bytes < m->memory_bytes / 20;
	double read = 0;

	for (size_t i = 0; i < j->obs->processes.n; i++)
		read += (double)j->obs->processes.items[i].read_bytes;
	return full && read > 0 ? (double)m->refaulted_pages * 4096 / read : 0;
}

static bool judge_memory(struct dbt_judge *j)
{
	const struct dbt_obs_machine *m = &j->obs->machine;
	const double swapped = (double)m->swapped_in_pages / j->obs->seconds,
		     seen_again = share_again(j), refaulted = share_refaulted(j),
		     again = seen_again > refaulted ? seen_again : refaulted;
	const bool swaps = swapped >= SWAPPED_PAGES_S, thrashes = again >= READ_AGAIN;
	char size[DBT_UNITS_TEXT_BYTES];
	size_t file = main_file(j, j->g);

	if (!swaps && !thrashes && m->memory_some < MEMORY_PRESSURE)
		return false;
	dbt_judge_say_group(j, j->g);
	dbt_judge_say(j,
	              " waits %.0f %% of the time because memory is short: ", j->g->blocked * 100);
	if (swaps)
		dbt_judge_say(j, "%.0f pages a second come back from swap", swapped);
	else if (thrashes)
		dbt_judge_say(
			j, "%.0f %% of what is read was read seconds before and dropped meanwhile",
			again < 1 ? again * 100 : 100);
	else
		dbt_judge_say(j, "processes wait for memory %.0f %% of the time (PSI)",
		              m->memory_some * 100);
	if (thrashes && file != DBT_OBS_NONE) {
		dbt_judge_say(j, ", of ");
		dbt_judge_say_file(j, file);
	}
	dbt_judge_verdict(j, DBT_DIAG_MEMORY);
	if (m->limit_bytes > 0)
		dbt_judge_say(
			j,
			"give the jobs more memory: their cgroup allows %s, the files they read "
			"have "
			"%s",
			dbt_units_size(m->limit_bytes, size),
			file == DBT_OBS_NONE
				? "more"
				: dbt_units_size(j->obs->files.items[j->d->files.items[file].file]
		                                         .size_bytes,
		                                 (char[DBT_UNITS_TEXT_BYTES]){ 0 }));
	else
		dbt_judge_say(j, "run fewer jobs at a time, or add memory");
	(void)dbt_judge_remedy(j, DBT_REMEDY_MEMORY);
	dbt_judge_say(j, "do not move anything for this: a faster disk makes the same pages come "
	                 "back sooner, "
	                 "memory keeps them");
	(void)dbt_judge_remedy(j, DBT_REMEDY_LEAVE);
	return true;
}

/* --- writes --- */

static const struct dbt_diag_group *writer(const struct dbt_judge *j)
{
	const struct dbt_diag_group *best = NULL;

	for (size_t i = 0; i < j->d->groups.n; i++) {
		const struct dbt_diag_group *g = &j->d->groups.items[i];

		if (g->write_rate > 0 && (!best || g->write_rate > best->write_rate))
			best = g;
	}
	/* What a job writes may be written once more by a program that serves its disk. */
	return best && j->g->write_rate * 3 > best->write_rate ? j->g : best;
}

/* The device that stalls: that of the file, else the busiest. */
static size_t stalling_device(const struct dbt_judge *j)
{
	size_t file = main_file(j, j->g), at = DBT_OBS_NONE;

	if (file != DBT_OBS_NONE)
		at = dbt_diag_device_of(j->obs, j->d,
		                        j->obs->files.items[j->d->files.items[file].file].place);
	return at == DBT_OBS_NONE && j->d->devices.n > 0 ? 0 : at;
}

/* Who waits for a disk keeps it busy, or is held back by a limit and reads all the same. State D on an idle disk without
 * reads is another matter. */
static const double BUSY_DISK = 0.2, SOME_READS = 64 << 10;

static bool is_for_a_device(struct dbt_judge *j)
{
	size_t file = main_file(j, j->g), at = stalling_device(j);
	const struct dbt_obs_place *place =
		file == DBT_OBS_NONE ? NULL : dbt_judge_place_of(j, file);

	if ((place && place->network) || at == DBT_OBS_NONE)
		return true;
	return j->d->devices.items[at].busy >= BUSY_DISK ||
	       (file != DBT_OBS_NONE && j->d->files.items[file].bytes >= SOME_READS);
}

static bool judge_writes(struct dbt_judge *j)
{
	size_t at = stalling_device(j);
	const struct dbt_diag_group *w = writer(j);
	const struct dbt_diag_device *v;
	const struct dbt_obs_device *raw;
	char rate[DBT_UNITS_TEXT_BYTES];

	/* Jobs that wait for their own writes may do so on another device than the one they read. */
	if (j->g->write_rate > 2 * j->g->read_rate && j->d->devices.n > 0)
		at = 0;
	if (at == DBT_OBS_NONE)
		return false;
	v = &j->d->devices.items[at];
	raw = &j->obs->devices.items[v->device];
	if (v->busy < 0.5 || raw->write_bytes < 2 * raw->read_bytes || raw->write_ns < raw->read_ns)
		return false;
	dbt_judge_say_group(j, j->g);
	dbt_judge_say(j, " waits %.0f %% of the time for ", j->g->blocked * 100);
	dbt_judge_say_device(j, at);
	dbt_judge_say(j, ", which is %.0f %% busy with writes: %s", v->busy * 100,
	              dbt_units_rate((uint64_t)v->write_rate, rate));
	if (w) {
		dbt_judge_say(j, ", most of them by ");
		dbt_judge_say_group(j, w);
	}
	j->d->device = at;
	dbt_judge_verdict(j, DBT_DIAG_WRITES);
	if (w && w != j->g) {
		dbt_judge_say(j, "let ");
		dbt_judge_say_group(j, w);
		dbt_judge_say(j,
		              " write elsewhere or at another time; do not move databases for it");
	} else {
		dbt_judge_say(j, "write to another disk, or less at a time; a database that is "
		                 "moved changes "
		                 "nothing");
	}
	(void)dbt_judge_remedy(j, DBT_REMEDY_WRITER);
	return true;
}

/* --- storage --- */

static void say_class(struct dbt_judge *j, const struct dbt_diag_file *f)
{
	const struct dbt_obs_file *file = &j->obs->files.items[f->file];
	char size[DBT_UNITS_TEXT_BYTES];
	unsigned n;

	if (f->class == DBT_CLASS_UNKNOWN)
		return;
	dbt_judge_say(j, ", read %s", dbt_class_name(f->class));
	if (file->declared != DBT_CLASS_UNKNOWN && !f->fits_declared)
		dbt_judge_say(j, " (declared: %s)", dbt_class_name(file->declared));
	if (f->mean_bytes > 0)
		dbt_judge_say(j, " in requests of %s",
		              dbt_units_size((uint64_t)f->mean_bytes, size));
	n = dbt_judge_readers_of(j, file->place);
	if (n > 1)
		dbt_judge_say(j, " by %u interleaved readers", n);
}

static void remedy_warm(struct dbt_judge *j, size_t file, size_t place)
{
	const double set = read_set(j, j->g, place), free_bytes = room(&j->obs->machine);
	char size[DBT_UNITS_TEXT_BYTES], memory[DBT_UNITS_TEXT_BYTES];

	if (set <= 0 || set * CACHE_ROOM > free_bytes)
		return;
	dbt_judge_say(
		j, "it fits in memory (%s of %s free): read it once before the jobs start (cat ",
		dbt_units_size((uint64_t)set, size), dbt_units_size((uint64_t)free_bytes, memory));
	dbt_judge_say_files(j, file);
	dbt_judge_say(j, " >/dev/null), then only the first one waits");
	(void)dbt_judge_remedy(j, DBT_REMEDY_WARM);
}

static void say_times(struct dbt_judge *j, const struct dbt_forecast *f)
{
	char now[DBT_UNITS_TEXT_BYTES], then[DBT_UNITS_TEXT_BYTES];
	double seconds = j->obs->command_seconds > 0 ? j->obs->command_seconds : 3600;

	dbt_judge_say(j, "~%.1fx faster: %s", f->factor,
	              j->obs->command_seconds > 0 ? "the run of "
	                                          : "what takes an hour now takes ");
	if (j->obs->command_seconds > 0)
		dbt_judge_say(j, "%s would take ",
		              dbt_units_duration((uint64_t)(seconds * 1e9), now));
	dbt_judge_say(j, "%s", dbt_units_duration((uint64_t)(seconds / f->factor * 1e9), then));
}

static void remedy_move(struct dbt_judge *j, size_t file, struct dbt_forecast *f)
{
	const struct dbt_obs_place *to =
		j->obs->target == DBT_OBS_NONE ? NULL : &j->obs->places.items[j->obs->target];
	struct dbt_remedy *r;

	if (!to) {
		dbt_judge_say(
			j, "no faster place with enough room is known here (--to DIR names one)");
		(void)dbt_judge_remedy(j, DBT_REMEDY_LEAVE);
		return;
	}
	if (f->factor <= 0) {
		dbt_judge_say(j,
		              "a move to %s may help: how much is not known before both sides were "
		              "measured "
		              "(dbtier probe)",
		              to->mount);
		(void)dbt_judge_remedy(j, DBT_REMEDY_PROBE);
		return;
	}
	if (f->factor < WORTH) {
		dbt_judge_say(j, "do not move it: from %s the jobs would run %.1fx as fast",
		              to->mount, f->factor);
		r = dbt_judge_remedy(j, DBT_REMEDY_LEAVE);
	} else {
		dbt_judge_say(j, "promote ");
		dbt_judge_say_files(j, file);
		dbt_judge_say(j, " to %s: ", to->mount);
		say_times(j, f);
		r = dbt_judge_remedy(j, DBT_REMEDY_PROMOTE);
	}
	r->factor = f->factor;
	r->basis = f->basis;
	f->basis = NULL;
}

static void remedy_jobs(struct dbt_judge *j, const struct dbt_forecast *f)
{
	struct dbt_remedy *r;

	if (f->jobs_now <= 0)
		return;
	dbt_judge_say(
		j,
		"%u job%s of this kind keep%s the disk busy; more only wait in turn (now %.1f run)",
		dbt_judge_whole(f->jobs_now), dbt_judge_whole(f->jobs_now) == 1 ? "" : "s",
		dbt_judge_whole(f->jobs_now) == 1 ? "s" : "", j->g->jobs);
	if (f->jobs_then > 0)
		dbt_judge_say(j, "; after the move %u at a time", dbt_judge_whole(f->jobs_then));
	r = dbt_judge_remedy(j, DBT_REMEDY_JOBS);
	r->jobs_now = f->jobs_now;
	r->jobs_then = f->jobs_then;
}

static int judge_storage(struct dbt_judge *j)
{
	size_t file = main_file(j, j->g), at = stalling_device(j);
	const struct dbt_obs_place *place =
		file == DBT_OBS_NONE ? NULL : dbt_judge_place_of(j, file);
	struct dbt_forecast f = { 0 };
	int r;

	j->d->file = file;
	j->d->device = at;
	dbt_judge_say_group(j, j->g);
	dbt_judge_say(j, " waits %.0f %% of the time for reads", j->g->blocked * 100);
	if (file != DBT_OBS_NONE) {
		dbt_judge_say(j, " of ");
		dbt_judge_say_files(j, file);
		say_class(j, &j->d->files.items[file]);
	} else {
		dbt_judge_say(j, " of files that could not be told");
	}
	if (place && place->network)
		dbt_judge_say(j, ", from %s (%s)", place->source, place->fstype);
	else if (at != DBT_OBS_NONE) {
		dbt_judge_say(j, ", on ");
		dbt_judge_say_device(j, at);
		dbt_judge_say(j, ", %.0f %% busy", j->d->devices.items[at].busy * 100);
	}
	dbt_judge_verdict(j, place && place->network ? DBT_DIAG_NETWORK : DBT_DIAG_STORAGE);
	if (file == DBT_OBS_NONE) {
		dbt_judge_say(j, "run it as root to see which file it is");
		(void)dbt_judge_remedy(j, DBT_REMEDY_PROBE);
		return 0;
	}
	r = dbt_forecast(j->obs, j->d, j->g,
	                 j->obs->files.items[j->d->files.items[file].file].place, j->obs->target,
	                 &f);
	if (r < 0)
		return r;
	remedy_warm(j, file, j->obs->files.items[j->d->files.items[file].file].place);
	if (place && place->network) {
		dbt_judge_say(
			j, "a copy on a local disk would not wait for the network; dbtier does not "
			   "promote "
			   "from network filesystems without --force");
		(void)dbt_judge_remedy(j, DBT_REMEDY_LEAVE);
	} else {
		remedy_move(j, file, &f);
		remedy_jobs(j, &f);
	}
	free(f.basis);
	return 0;
}

/* --- nobody waits --- */

/* Something that is read lies in memory: worth a word, since a move would then gain nothing. */
static void say_cached(struct dbt_judge *j)
{
	for (size_t i = 0; i < j->g->n_files; i++) {
		const struct dbt_obs_file *f =
			&j->obs->files.items[j->d->files.items[j->g->files[i]].file];

		if (f->cached_after < 0.5 || !f->path || f->size_bytes < 1 << 20)
			continue;
		dbt_judge_say(j, "; ");
		dbt_judge_say_file(j, j->g->files[i]);
		dbt_judge_say(j, " is in memory to %.0f %%", f->cached_after * 100);
		return;
	}
}

static void judge_cpu(struct dbt_judge *j)
{
	const struct dbt_obs_machine *m = &j->obs->machine;
	bool one = j->g->top_thread >= BUSY_CPUS && j->g->jobs < 1.5 && m->busy < BUSY_CPUS &&
	           j->g->cpus < 1.5;

	dbt_judge_say_group(j, j->g);
	if (one)
		dbt_judge_say(j,
		              " is held up by one thread, which keeps a CPU %.0f %% busy while "
		              "%.0f %% of "
		              "all CPUs are idle",
		              j->g->top_thread * 100, (m->idle > 0 ? m->idle : 0) * 100);
	else
		dbt_judge_say(j, " computes %.0f %% of the time and keeps %.1f of %u CPUs busy",
		              j->g->running * 100, j->g->cpus, m->cpus);
	dbt_judge_say(j, "; it waits %.0f %% of the time for reads", j->g->blocked * 100);
	say_cached(j);
	dbt_judge_verdict(j, DBT_DIAG_CPU);
	dbt_judge_say(j,
	              "do not move anything for this: a faster disk could take away %.0f %% of the "
	              "time at "
	              "most",
	              j->g->blocked * 100);
	if (one)
		dbt_judge_say(j, "; more threads, or more jobs at a time, can");
	(void)dbt_judge_remedy(j, DBT_REMEDY_LEAVE);
}

static void judge_nothing(struct dbt_judge *j)
{
	const struct dbt_obs_machine *m = &j->obs->machine;

	dbt_judge_say(j, "nobody waits for a disk, and the CPUs are %.0f %% idle",
	              (m->idle > 0 ? m->idle : 0) * 100);
	if (j->g) {
		dbt_judge_say(j, "; most was done by ");
		dbt_judge_say_group(j, j->g);
		dbt_judge_say(j, ", which waited %.0f %% of the time for reads",
		              j->g->blocked * 100);
		say_cached(j);
	}
	dbt_judge_verdict(j, DBT_DIAG_NOTHING);
	dbt_judge_say(j, "do not move anything for this");
	(void)dbt_judge_remedy(j, DBT_REMEDY_LEAVE);
}

static int judge_all(struct dbt_judge *j)
{
	const struct dbt_diag_group *waits = most(j, true), *works = most(j, false);

	if (is_stalled(waits)) {
		j->g = waits;
		j->d->group = (size_t)(waits - j->d->groups.items);
		if (judge_memory(j) || judge_writes(j))
			return 0;
		if (is_for_a_device(j))
			return judge_storage(j);
	}
	j->g = works;
	if (works)
		j->d->group = (size_t)(works - j->d->groups.items);
	if (works && (works->running >= BUSY_JOB || j->obs->machine.busy >= BUSY_CPUS) &&
	    works->running * works->jobs >= STALLED_JOBS)
		judge_cpu(j);
	else
		judge_nothing(j);
	return 0;
}

int dbt_diagnose(const struct dbt_observation *obs, struct dbt_diagnosis *ret)
{
	struct dbt_diagnosis d = { .group = DBT_OBS_NONE,
		                   .file = DBT_OBS_NONE,
		                   .device = DBT_OBS_NONE };
	struct dbt_judge j = { .obs = obs, .d = &d };
	int r = dbt_find_files(obs, &d);

	if (r == 0)
		r = dbt_find_groups(obs, &d);
	if (r == 0)
		r = dbt_find_devices(obs, &d);
	if (r == 0)
		r = judge_all(&j);
	dbt_buf_release(&j.text);
	if (r == 0 && j.failed)
		r = -ENOMEM;
	if (r < 0) {
		dbt_diagnosis_release(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void dbt_diagnosis_release(struct dbt_diagnosis *d)
{
	for (size_t i = 0; i < d->groups.n; i++)
		free(d->groups.items[i].files);
	for (size_t i = 0; i < d->remedies.n; i++) {
		free(d->remedies.items[i].text);
		free(d->remedies.items[i].basis);
	}
	free(d->groups.items);
	free(d->files.items);
	free(d->devices.items);
	free(d->remedies.items);
	free(d->text);
	*d = (struct dbt_diagnosis){ 0 };
}
