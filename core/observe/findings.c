#include "observe/findings.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Fewer requests, or less than this, tell nothing about how a file is read. */
static const double MIN_REQUESTS = 8, MIN_CLASS_BYTES = 64 << 10;

/* From this share of jumps on, and below this size of a request, a file is read at random. */
static const double RANDOM_JUMPS = 0.5, RANDOM_BYTES = 1 << 20;

/* A read that the kernel asks for on its own in a row of neighbours. */
static const double SMALL_READ = 32 << 10;

static const char BY_TRACE[] = "page cache trace", BY_POSITION[] = "file positions",
		  BY_CACHE[] = "growth of the page cache", BY_IO[] = "/proc/PID/io, shared out";

/* --- how much was read of what --- */

static double traced_bytes(const struct dbt_observation *obs, const struct dbt_obs_use *u)
{
	const struct dbt_obs_process *p = &obs->processes.items[u->process];

	/* Pages of a file that is written come into the page cache as well: then the process has read less from
	 * devices than came. A file that was never seen open may have been written. */
	if (p->has_io && (u->how == 0 || (u->how & DBT_OBS_WRITES)) &&
	    (2 * p->read_bytes < u->reads.bytes ||
	     ((u->how & DBT_OBS_WRITES) && 2 * p->written_bytes >= u->reads.bytes)))
		return 0;
	return (double)u->reads.bytes;
}

/* How likely it is that what a process read came from this file, when nothing was traced. */
static double weight(const struct dbt_observation *obs, const struct dbt_obs_use *u,
                     const char **ret_source)
{
	const struct dbt_obs_file *f = &obs->files.items[u->file];
	const double grown = f->cached_before >= 0 && f->cached_after > f->cached_before
	                             ? (f->cached_after - f->cached_before) * (double)f->size_bytes
	                             : 0;

	if (u->how == (DBT_OBS_OPEN | DBT_OBS_WRITES) && f->moved_bytes == 0)
		return 0;
	*ret_source = f->moved_bytes > 0 ? BY_POSITION : grown > 0 ? BY_CACHE : BY_IO;
	if (f->moved_bytes > 0)
		return (double)f->moved_bytes;
	if (grown > 0)
		return grown;
	return f->place != DBT_OBS_NONE && !obs->places.items[f->place].ram &&
	                       obs->places.items[f->place].tier != DBT_TIER_NVME
	               ? (double)f->size_bytes / 1e3
	               : 0;
}

double dbt_use_bytes(const struct dbt_observation *obs, const struct dbt_obs_use *use,
                     double *ret_requests, const char **ret_source)
{
	const struct dbt_obs_process *p = &obs->processes.items[use->process];
	double own, all = 0, bytes;
	const char *source = BY_TRACE, *other;

	*ret_requests = -1;
	own = obs->traced ? traced_bytes(obs, use) : weight(obs, use, &source);
	for (size_t i = 0; i < obs->uses.n; i++)
		if (obs->uses.items[i].process == use->process)
			all += obs->traced ? traced_bytes(obs, &obs->uses.items[i])
			                   : weight(obs, &obs->uses.items[i], &other);
	*ret_source = source;
	if (own <= 0 || all <= 0)
		return 0;
	/* What the process read by its own account, shared out; else what was seen, for the whole time. */
	bytes = p->has_io                                  ? (double)p->read_bytes * own / all
	        : obs->traced && obs->traced_share > 0.001 ? own / obs->traced_share
	                                                   : 0;
	/* Its account counts pages that another process asked for with it only once. */
	if (obs->traced && own > bytes)
		bytes = own;
	if (obs->traced && use->reads.bytes > 0)
		*ret_requests = (double)use->reads.requests * bytes / (double)use->reads.bytes;
	return bytes;
}

/* --- files --- */

static bool is_sequential(enum dbt_class class)
{
	return class == DBT_CLASS_STREAM || class == DBT_CLASS_STREAM_PER_QUERY ||
	       class == DBT_CLASS_LOAD_ALL || class == DBT_CLASS_SCAN_MMAP;
}

/* Is the file read through a mapping? Where a descriptor is open as well, touches of the mapping decide. */
static bool is_mapped(const struct dbt_obs_file *f)
{
	if (!(f->how & DBT_OBS_MAPPED))
		return false;
	return !(f->how & DBT_OBS_OPEN) || f->reads.faults > 0 || f->moves == 0;
}

/* The class that the reads themselves show. Of a stream it cannot be seen whether it is kept in memory, or walked anew
 * for each query: what is declared says that, where it agrees. */
static enum dbt_class class_of(const struct dbt_obs_file *f, const struct dbt_diag_file *d)
{
	const bool mapped = is_mapped(f);
	bool random;

	if (f->moves > 4 && d->jumps < 0)
		random = f->moved_jumps * 2 > f->moves;
	else if (d->requests < MIN_REQUESTS || d->bytes < MIN_CLASS_BYTES || d->jumps < 0)
		return DBT_CLASS_UNKNOWN;
	else
		random = d->jumps >= RANDOM_JUMPS && d->mean_bytes < RANDOM_BYTES;
	if (random)
		return mapped ? DBT_CLASS_RANDOM_MMAP : DBT_CLASS_RANDOM_PREAD;
	if (mapped)
		return DBT_CLASS_SCAN_MMAP;
	return is_sequential(f->declared) && f->declared != DBT_CLASS_SCAN_MMAP ? f->declared
	                                                                        : DBT_CLASS_STREAM;
}

bool dbt_diag_is_random(const struct dbt_diag_file *d)
{
	if (d->class != DBT_CLASS_UNKNOWN)
		return !is_sequential(d->class);
	return d->mean_bytes >= 0 && d->mean_bytes <= SMALL_READ;
}

/* Of many small reads and few large ones the many take longer: a seek each, and 100 MB/s, on a disk that may have a head.
 * Good enough to put files in order. */
static double seconds_of(const struct dbt_observation *obs, const struct dbt_diag_file *f)
{
	size_t place = obs->files.items[f->file].place;
	enum dbt_tier tier =
		place == DBT_OBS_NONE ? DBT_TIER_UNKNOWN : obs->places.items[place].tier;
	const bool flash = tier == DBT_TIER_NVME || tier == DBT_TIER_SSD;

	return (f->requests > 0 ? f->requests * (flash ? 0.1e-3 : 5e-3) : 0) +
	       f->bytes / (flash ? 1e9 : 100e6);
}

static int by_wait(const void *a, const void *b)
{
	const struct dbt_diag_file *x = a, *y = b;

	if (x->selected != y->selected)
		return x->selected ? -1 : 1;
	return (x->waited < y->waited) - (x->waited > y->waited);
}

static bool is_readable(const struct dbt_observation *obs, const struct dbt_obs_file *f)
{
	return f->place == DBT_OBS_NONE || !obs->places.items[f->place].ram;
}

/* Adds up what its readers read of it. False: all that came of it was written. */
static bool sum_uses(const struct dbt_observation *obs, struct dbt_diag_file *sum)
{
	bool read = false, counted = obs->traced;

	for (size_t k = 0; k < obs->uses.n; k++) {
		const struct dbt_obs_use *u = &obs->uses.items[k];
		double n, bytes;

		if (u->file != sum->file)
			continue;
		bytes = dbt_use_bytes(obs, u, &n, &sum->source);
		sum->readers += bytes > 0;
		sum->bytes += bytes;
		sum->requests += n > 0 ? n : 0;
		sum->selected |= obs->processes.items[u->process].selected;
		read |= traced_bytes(obs, u) > 0;
	}
	if (!counted)
		sum->requests = -1;
	return read;
}

static struct dbt_diag_file figures_of(const struct dbt_observation *obs, size_t i)
{
	const struct dbt_obs_file *f = &obs->files.items[i];
	struct dbt_diag_file sum = {
		.file = i, .mean_bytes = -1, .jumps = -1, .again = -1, .source = BY_TRACE
	};
	const double t = obs->seconds > 0 ? obs->seconds : 1;
	bool read = sum_uses(obs, &sum);

	if (sum.requests > 0)
		sum.mean_bytes = sum.bytes / sum.requests;
	if (f->reads.requests > 0 && f->reads.bytes > 0 && read) {
		sum.jumps = (double)f->reads.jumps / (double)f->reads.requests;
		sum.again = (double)f->reads.again_bytes / (double)f->reads.bytes;
	}
	sum.waited = seconds_of(obs, &sum);
	sum.rate = sum.bytes / t;
	sum.misses_s = sum.requests >= 0 ? sum.requests / t : -1;
	sum.class = class_of(f, &sum);
	sum.fits_declared = sum.class != DBT_CLASS_UNKNOWN && sum.class == f->declared;
	return sum;
}

int dbt_find_files(const struct dbt_observation *obs, struct dbt_diagnosis *d)
{
	for (size_t i = 0; i < obs->files.n; i++) {
		const struct dbt_obs_file *f = &obs->files.items[i];
		struct dbt_diag_file sum, *slot;

		if (!is_readable(obs, f))
			continue;
		sum = figures_of(obs, i);
		/* A database that is open shows that nothing is read of it. */
		if (sum.bytes <= 0 && (!f->format || f->how == 0))
			continue;
		slot = dbt_vec_push(&d->files);
		if (!slot)
			return -ENOMEM;
		*slot = sum;
	}
	if (d->files.n > 1)
		qsort(d->files.items, d->files.n, sizeof(*d->files.items), by_wait);
	return 0;
}

/* --- groups --- */

/* What a process did: the sum is for shares and for the order. */
static double activity(const struct dbt_obs_process *p)
{
	double ticks = (double)(p->ticks_running + p->ticks_blocked);

	return p->ticks > 0 ? ticks / p->ticks * p->seconds : (double)p->cpu_ns / 1e9;
}

/* Programs that run others' programs: their own name tells nothing. */
static bool is_interpreter(const char *name)
{
	static const char *const names[] = { "python", "perl", "java", "R",    "Rscript",
		                             "bash",   "sh",   "ruby", "node", "dash" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (strncmp(name, names[i], len) == 0 &&
		    name[len + strspn(name + len, "0123456789.")] == '\0')
			return true;
	}
	return false;
}

/* The first two words of the command lines are the same: the interpreter and the script. */
static bool same_script(const char *a, const char *b)
{
	unsigned words = 0;

	for (; *a && *a == *b; a++, b++)
		if (*a == ' ' && ++words == 2)
			return true;
	/* One of them has no more words than the other has in common with it. */
	return *a == *b || (words > 0 && (*a == '\0' || *a == ' ') && (*b == '\0' || *b == ' '));
}

bool dbt_diag_is_alike(const struct dbt_obs_process *a, const struct dbt_obs_process *b)
{
	return a->uid == b->uid && a->selected == b->selected && strcmp(a->name, b->name) == 0 &&
	       (!is_interpreter(a->name) || same_script(a->command, b->command));
}

static void add_process(const struct dbt_observation *obs, size_t i, struct dbt_diag_group *g)
{
	const struct dbt_obs_process *p = &obs->processes.items[i];
	double top = p->seconds > 0.05 ? (double)p->top_thread_ns / 1e9 / p->seconds : 0;

	if (g->n == 0 || activity(p) > activity(&obs->processes.items[g->first]))
		g->first = i;
	g->n++;
	g->threads = p->threads > g->threads ? p->threads : g->threads;
	g->seconds += p->seconds;
	g->top_thread = top > g->top_thread ? top : g->top_thread;
	g->selected |= p->selected;
	g->cpus += (double)p->cpu_ns / 1e9; /* seconds so far */
	if (p->ticks > 0) {
		g->running += p->seconds * p->ticks_running / p->ticks;
		g->blocked += p->seconds * p->ticks_blocked / p->ticks;
	}
	if (p->has_io && g->read_rate >= 0) {
		g->read_rate += (double)p->read_bytes;
		g->write_rate += (double)p->written_bytes;
	} else {
		g->read_rate = g->write_rate = -1;
	}
	if (p->has_delay && g->delay >= 0)
		g->delay += (double)p->delay_ns / 1e9;
	else
		g->delay = -1;
}

static void settle(const struct dbt_observation *obs, struct dbt_diag_group *g)
{
	double t = obs->seconds > 0 ? obs->seconds : 1;

	g->jobs = g->seconds / t;
	g->cpus /= t;
	g->running = g->seconds > 0 ? g->running / g->seconds : 0;
	g->blocked = g->seconds > 0 ? g->blocked / g->seconds : 0;
	g->delay = g->delay >= 0 && g->seconds > 0 ? g->delay / g->seconds : -1;
	if (g->read_rate >= 0) {
		g->read_rate /= t;
		g->write_rate /= t;
	}
}

static int add_files(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                     struct dbt_diag_group *g)
{
	const struct dbt_obs_process *first = &obs->processes.items[g->first];

	g->files = calloc(d->files.n ? d->files.n : 1, sizeof(*g->files));
	if (!g->files)
		return -ENOMEM;
	for (size_t f = 0; f < d->files.n; f++)
		for (size_t u = 0; u < obs->uses.n; u++)
			if (obs->uses.items[u].file == d->files.items[f].file &&
			    dbt_diag_is_alike(first,
			                      &obs->processes.items[obs->uses.items[u].process])) {
				g->files[g->n_files++] = f;
				break;
			}
	return 0;
}

static int by_activity(const void *a, const void *b)
{
	const struct dbt_diag_group *x = a, *y = b;
	double p = (x->running + x->blocked) * x->seconds,
	       q = (y->running + y->blocked) * y->seconds;

	if (x->selected != y->selected)
		return x->selected ? -1 : 1;
	return (p < q) - (p > q);
}

/* Less than this of the time is nothing that anybody would look for; of a CPU, what a job still gets that has to share it
 * with several others. */
static const double MIN_ACTIVITY = 0.02, MIN_CPUS = 0.005;

static struct dbt_diag_group *group_like(struct dbt_diagnosis *d, const struct dbt_observation *obs,
                                         size_t process)
{
	for (size_t k = 0; k < d->groups.n; k++)
		if (dbt_diag_is_alike(&obs->processes.items[d->groups.items[k].first],
		                      &obs->processes.items[process]))
			return &d->groups.items[k];
	return dbt_vec_push(&d->groups);
}

/* A process that is seen at its start and sleeps from then on was found running in a large share of few ticks: only CPU
 * time proves that it computes. */
static bool is_worth_naming(const struct dbt_observation *obs, const struct dbt_diag_group *g)
{
	double running = g->cpus >= MIN_CPUS ? g->running : 0;

	return g->selected || (running + g->blocked) * g->seconds >= MIN_ACTIVITY * obs->seconds;
}

static void drop_small(const struct dbt_observation *obs, struct dbt_diagnosis *d)
{
	size_t kept = 0;

	for (size_t k = 0; k < d->groups.n; k++) {
		struct dbt_diag_group *g = &d->groups.items[k];

		if (is_worth_naming(obs, g))
			d->groups.items[kept++] = *g;
		else
			free(g->files);
	}
	d->groups.n = kept;
}

int dbt_find_groups(const struct dbt_observation *obs, struct dbt_diagnosis *d)
{
	int r = 0;

	for (size_t i = 0; i < obs->processes.n; i++) {
		struct dbt_diag_group *g = group_like(d, obs, i);

		if (!g)
			return -ENOMEM;
		add_process(obs, i, g);
	}
	for (size_t k = 0; r == 0 && k < d->groups.n; k++) {
		settle(obs, &d->groups.items[k]);
		r = add_files(obs, d, &d->groups.items[k]);
	}
	drop_small(obs, d);
	if (d->groups.n > 1)
		qsort(d->groups.items, d->groups.n, sizeof(*d->groups.items), by_activity);
	return r;
}

/* --- devices --- */

static bool is_below(const struct dbt_obs_place *p, const char *device)
{
	for (size_t i = 0; i < p->n_disks; i++)
		if (strcmp(p->disks[i], device) == 0)
			return true;
	return p->device && strcmp(p->device, device) == 0;
}

static size_t place_on(const struct dbt_observation *obs, const char *device)
{
	size_t found = DBT_OBS_NONE;

	for (size_t i = 0; i < obs->places.n; i++)
		if (is_below(&obs->places.items[i], device) &&
		    (found == DBT_OBS_NONE ||
		     obs->places.items[found].speeds.measured_wall_ns == 0))
			found = i;
	return found;
}

/* The measurement that matches what the device is doing: requests that jump, or streams. */
static void compare_with_probe(const struct dbt_observation *obs, struct dbt_diag_device *v)
{
	const struct dbt_speeds *s;
	double now;

	v->load = -1;
	if (v->place == DBT_OBS_NONE)
		return;
	s = &obs->places.items[v->place].speeds;
	v->by_rate = v->mean_bytes > SMALL_READ;
	if (v->by_rate) {
		v->ceiling = (double)(v->jumps > 0.2 && s->stream4.rate_bytes_s > 0
		                              ? s->stream4.rate_bytes_s
		                              : s->stream1.rate_bytes_s);
		now = v->read_rate;
	} else {
		v->ceiling =
			v->queue > 1.5 && s->random4.iops > 0 ? s->random4.iops : s->random1.iops;
		now = v->reads_s;
	}
	if (v->ceiling > 0)
		v->load = now / v->ceiling;
}

static int by_busy(const void *a, const void *b)
{
	const struct dbt_diag_device *x = a, *y = b;

	return (x->busy < y->busy) - (x->busy > y->busy);
}

int dbt_find_devices(const struct dbt_observation *obs, struct dbt_diagnosis *d)
{
	const double t = obs->seconds > 0 ? obs->seconds : 1;

	for (size_t i = 0; i < obs->devices.n; i++) {
		const struct dbt_obs_device *v = &obs->devices.items[i];
		const double n = (double)(v->reads + v->writes);
		struct dbt_diag_device *slot = dbt_vec_push(&d->devices);

		if (!slot)
			return -ENOMEM;
		*slot = (struct dbt_diag_device){
			.device = i,
			.place = place_on(obs, v->name),
			.reads_s = (double)v->reads / t,
			.read_rate = (double)v->read_bytes / t,
			.writes_s = (double)v->writes / t,
			.write_rate = (double)v->write_bytes / t,
			.mean_bytes = v->reads ? (double)v->read_bytes / (double)v->reads : -1,
			.latency_ns = n > 0 ? (double)(v->read_ns + v->write_ns) / n : 0,
			.queue = (double)v->queue_ns / 1e9 / t,
			.busy = (double)v->busy_ns / 1e9 / t,
			.jumps = v->traced_reads > 0
			                 ? (double)v->traced_jumps / (double)v->traced_reads
			                 : -1,
		};
		slot->busy = slot->busy > 1 ? 1 : slot->busy;
		compare_with_probe(obs, slot);
	}
	if (d->devices.n > 1)
		qsort(d->devices.items, d->devices.n, sizeof(*d->devices.items), by_busy);
	return 0;
}

size_t dbt_diag_device_of(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                          size_t place)
{
	if (place == DBT_OBS_NONE)
		return DBT_OBS_NONE;
	for (size_t i = 0; i < d->devices.n; i++) /* the busiest first */
		if (is_below(&obs->places.items[place],
		             obs->devices.items[d->devices.items[i].device].name))
			return i;
	return DBT_OBS_NONE;
}
