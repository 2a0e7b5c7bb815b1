#include "observe/observe.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "observe/access.h"
#include "observe/machine.h"
#include "observe/trace.h"
#include "survey/mounts.h"
#include "survey/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The share of one CPU that observing may cost: 2 % was promised, and beginning and end want theirs. */
static const double TICK_SHARE = 0.005, WALK_SHARE = 0.004, TRACE_SHARE = 0.005;

static const uint64_t TICK_NS = 20000000, WALK_NS = 500000000, POLL_NS = 100000000,
		      LOOK_NS = 2000000000, PROCESS_LOOK_NS = 150000000;

/* A piece of work that is done now and then: the next time follows from what the last one cost. */
struct chore {
	uint64_t every_ns, next_ns;
	double share;
};

/* Read requests of a block device, one by one. */
struct blocks {
	uint64_t devno, end_bytes, reads, jumps;
};

/* Threads that read, but of which it is not known (yet) whose they are: looking at every short-lived one is dear. */
struct stranger {
	int tid;
	size_t process;
	unsigned events;
	uint64_t bytes;
};

enum {
	N_CACHED = 1024,
	MAX_FILES = 4000,
	N_STRANGERS = 256,
	STRANGE_EVENTS = 16,
	STRANGE_BYTES = 1 << 20
};

struct observer {
	const struct dbt_ctx *ctx;
	const struct dbt_observe_opts *opts;
	struct dbt_observation *obs;
	struct dbt_tasks *tasks;
	struct dbt_trace *trace;
	struct dbt_access *access;
	struct chore tick, walk, poll;
	uint64_t looked_ns; /* at files */
	uint64_t begin_ns, paused_ns, paused_since_ns;
	uint64_t last_lost;
	bool paused;
	struct {
		struct blocks *items;
		size_t n, cap;
	} blocks;
	size_t file_at[N_CACHED],
		use_at[N_CACHED]; /* where the last one of this number stands; see file_of */
	uint64_t looked_at_ns[N_STRANGERS];     /* the files of a process, out of turn */
	struct stranger strangers[N_STRANGERS]; /* by number of the thread, the last one */
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void done(const struct observer *o, struct chore *chore, uint64_t cost_ns)
{
	uint64_t wait = (uint64_t)((double)cost_ns / chore->share);

	chore->next_ns = o->ctx->sys->now_ns() + (wait > chore->every_ns ? wait : chore->every_ns);
}

/* --- events --- */

/* A head has to move when a request begins elsewhere than one of the last ones ended. */
static int take_block(struct observer *o, const struct dbt_trace_event *e)
{
	struct blocks *b = NULL;

	for (size_t i = 0; !b && i < o->blocks.n; i++)
		if (o->blocks.items[i].devno == e->devno)
			b = &o->blocks.items[i];
	if (!b) {
		b = dbt_vec_push(&o->blocks);
		if (!b)
			return -ENOMEM;
		b->devno = e->devno;
		b->end_bytes = e->off_bytes;
	}
	b->reads++;
	b->jumps += b->end_bytes != e->off_bytes;
	b->end_bytes = e->off_bytes + e->len_bytes;
	return 0;
}

static void add_blocks(struct observer *o)
{
	for (size_t i = 0; i < o->obs->devices.n; i++)
		for (size_t k = 0; k < o->blocks.n; k++)
			if (o->blocks.items[k].devno == o->obs->devices.items[i].devno) {
				o->obs->devices.items[i].traced_reads = o->blocks.items[k].reads;
				o->obs->devices.items[i].traced_jumps = o->blocks.items[k].jumps;
			}
}

static size_t process_of(struct observer *o, const struct dbt_trace_event *e)
{
	struct stranger *s = &o->strangers[(unsigned)e->tid % N_STRANGERS];

	if (s->tid != e->tid)
		*s = (struct stranger){ .tid = e->tid,
			                .process = dbt_tasks_process_of(o->tasks, e->tid, false) };
	if (s->process != DBT_OBS_NONE)
		return s->process;
	s->events++;
	s->bytes += e->len_bytes;
	if (s->events < STRANGE_EVENTS && s->bytes < STRANGE_BYTES)
		return DBT_OBS_NONE;
	s->events = 0;
	s->bytes = 0;
	s->process = dbt_tasks_process_of(o->tasks, e->tid, true);
	return s->process;
}

/* Events of one file come in rows: the vectors need not be searched for each. */
static struct dbt_obs_file *file_of(struct observer *o, const struct dbt_trace_event *e)
{
	size_t *at = &o->file_at[(e->ino ^ e->devno * 31) % N_CACHED];
	struct dbt_obs_file *file;

	if (*at < o->obs->files.n && o->obs->files.items[*at].ino == e->ino &&
	    o->obs->files.items[*at].devno == e->devno)
		return &o->obs->files.items[*at];
	file = dbt_observation_file(o->obs, e->devno, e->ino);
	if (file)
		*at = (size_t)(file - o->obs->files.items);
	return file;
}

static struct dbt_obs_use *use_of(struct observer *o, size_t process, size_t file)
{
	size_t *at = &o->use_at[(process * 61 + file) % N_CACHED];
	struct dbt_obs_use *use;

	if (*at < o->obs->uses.n && o->obs->uses.items[*at].process == process &&
	    o->obs->uses.items[*at].file == file)
		return &o->obs->uses.items[*at];
	use = dbt_observation_use(o->obs, process, file);
	if (use)
		*at = (size_t)(use - o->obs->uses.items);
	return use;
}

static bool may_look(struct observer *o, size_t process, uint64_t time_ns)
{
	uint64_t *last = &o->looked_at_ns[process % N_STRANGERS];

	if (time_ns - *last < PROCESS_LOOK_NS)
		return false;
	*last = time_ns;
	return true;
}

static int take_read(struct observer *o, const struct dbt_trace_event *e)
{
	struct dbt_access_read read = { .time_ns = e->time_ns,
		                        .off_bytes = e->off_bytes,
		                        .len_bytes = e->len_bytes };
	struct dbt_obs_file *file;
	struct dbt_obs_use *use = NULL;
	size_t process;

	if (o->obs->files.n >= MAX_FILES)
		return 0;
	/* Looking for the process may add files: the file's place counts, not its address. */
	process = process_of(o, e);
	file = file_of(o, e);
	if (!file)
		return -ENOMEM;
	read.file = (size_t)(file - o->obs->files.items);
	read.reader = process == DBT_OBS_NONE ? (1U << 20) + (size_t)e->tid : process;
	if (process != DBT_OBS_NONE) {
		use = use_of(o, process, read.file);
		if (!use)
			return -ENOMEM;
		/* While it has the file open its name can be had. Looking is dear: now and then is enough. */
		if (!file->path && !use->how && may_look(o, process, e->time_ns)) {
			if (dbt_tasks_look(o->tasks, process) < 0)
				return -ENOMEM;
			file = &o->obs->files.items[read.file];
			use = use_of(o, process, read.file);
		}
	}
	if (e->kind == DBT_TRACE_FAULT) {
		file->reads.faults++;
		if (use)
			use->reads.faults++;
		return 0;
	}
	return dbt_access_add(o->access, &read, &file->reads, use ? &use->reads : NULL);
}

static int take_event(void *data, const struct dbt_trace_event *e)
{
	struct observer *o = data;

	return e->kind == DBT_TRACE_BLOCK ? take_block(o, e) : take_read(o, e);
}

static int poll_trace(struct observer *o)
{
	uint64_t before = cpu_ns(), lost, now;
	int r = dbt_trace_poll(o->trace, take_event, o);

	lost = dbt_trace_lost(o->trace);
	if (lost != o->last_lost)
		dbt_access_gap(o->access);
	o->last_lost = lost;
	done(o, &o->poll, cpu_ns() - before);
	now = o->ctx->sys->now_ns();
	/* Dearer than it may be: nothing is recorded until the time has made up for it. */
	if (o->poll.next_ns > now + 2 * POLL_NS) {
		dbt_trace_pause(o->trace);
		o->paused = true;
		o->paused_since_ns = now;
	}
	return r;
}

static void resume_trace(struct observer *o)
{
	uint64_t now = o->ctx->sys->now_ns();

	o->paused = false;
	o->paused_ns += now - o->paused_since_ns;
	dbt_access_gap(o->access);
	dbt_trace_resume(o->trace);
	o->poll.next_ns = now + POLL_NS;
}

/* --- the loop --- */

static int work(struct observer *o)
{
	uint64_t now = o->ctx->sys->now_ns(), before;
	int r = 0;

	if (o->trace && now >= o->poll.next_ns) {
		if (o->paused)
			resume_trace(o);
		else
			r = poll_trace(o);
	}
	if (r == 0 && now >= o->walk.next_ns) {
		/* Without a trace it is all that tells about files. */
		bool look = !o->trace || now - o->looked_ns >= LOOK_NS;

		before = cpu_ns();
		r = dbt_tasks_walk(o->tasks, look);
		if (look)
			o->looked_ns = now;
		done(o, &o->walk, cpu_ns() - before);
	}
	if (r == 0 && now >= o->tick.next_ns) {
		before = cpu_ns();
		dbt_tasks_tick(o->tasks);
		done(o, &o->tick, cpu_ns() - before);
	}
	return r;
}

static uint64_t next_of(const struct observer *o)
{
	uint64_t next = o->tick.next_ns < o->walk.next_ns ? o->tick.next_ns : o->walk.next_ns;

	return o->trace && o->poll.next_ns < next ? o->poll.next_ns : next;
}

static void sleep_until(const struct observer *o, uint64_t next_ns)
{
	uint64_t now = o->ctx->sys->now_ns(), wait = next_ns > now ? next_ns - now : 0;
	struct timespec ts;

	/* So often the end is asked about. */
	if (wait > 50000000)
		wait = 50000000;
	ts = (struct timespec){ .tv_sec = 0, .tv_nsec = (long)wait };
	(void)nanosleep(&ts, NULL);
}

static int loop(struct observer *o)
{
	const uint64_t begin = o->ctx->sys->now_ns();
	struct dbt_progress progress = { .phase = "observe", .name = "this machine" };
	int r = 0;

	for (;;) {
		uint64_t passed = o->ctx->sys->now_ns() - begin;

		if ((o->opts->max_ns > 0 && passed >= o->opts->max_ns) ||
		    dbt_ctx_cancelled(o->ctx) ||
		    (o->opts->stop && o->opts->stop(o->opts->stop_data)))
			return 0;
		r = work(o);
		if (r < 0)
			return r;
		if (o->ctx->progress)
			o->ctx->progress(o->ctx->progress_data, &progress);
		sleep_until(o, next_of(o));
	}
}

static int keep_text(char **ret, const char *text)
{
	free(*ret);
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

/* The superblocks that have a device somewhere: nobody waits for files in memory. free() the array. */
static uint64_t *filesystems(const struct dbt_mounts *mounts, size_t *ret_n)
{
	size_t n = mounts ? dbt_mounts_count(mounts) : 0, kept = 0;
	uint64_t *devnos = calloc(n + 1, sizeof(*devnos));

	for (size_t i = 0; devnos && i < n; i++) {
		const struct dbt_mount *m = dbt_mounts_at(mounts, i);
		enum dbt_fs_kind kind = dbt_fs_kind_of(m->fstype);
		bool known = kind == DBT_FS_PSEUDO || kind == DBT_FS_RAM || kind == DBT_FS_OVERLAY;

		for (size_t k = 0; !known && k < kept; k++)
			known = devnos[k] == m->devno;
		if (!known)
			devnos[kept++] = m->devno;
	}
	*ret_n = kept;
	return devnos;
}

static int begin_trace(struct observer *o)
{
	dbt_autofree uint64_t *devnos = NULL;
	struct dbt_err why = { 0 };
	size_t n;

	if (o->opts->untraced)
		return keep_text(&o->obs->untraced, "tracing was not wanted");
	devnos = filesystems(o->opts->tasks.mounts, &n);
	if (!devnos)
		return -ENOMEM;
	if (dbt_trace_new(o->ctx, devnos, n, &o->trace, &why) < 0)
		return keep_text(&o->obs->untraced, why.text);
	o->obs->traced = true;
	return 0;
}

static int begin(struct observer *o)
{
	struct utsname uts;
	int r;

	o->access = dbt_access_new();
	if (!o->access)
		return -ENOMEM;
	o->obs->root = geteuid() == 0;
	if (uname(&uts) == 0 && keep_text(&o->obs->kernel, uts.release) < 0)
		return -ENOMEM;
	r = begin_trace(o);
	if (r == 0)
		r = dbt_tasks_new(o->ctx, &o->opts->tasks, o->obs, &o->tasks);
	if (r == 0)
		r = dbt_tasks_walk(o->tasks, true);
	o->looked_ns = o->walk.next_ns = o->ctx->sys->now_ns();
	/* The second walk soon: only then it is known who does something. */
	o->walk.next_ns += 100000000;
	return r;
}

/* The tightest limit of the processes that matter. */
static void find_limit(struct observer *o)
{
	struct dbt_obs_machine *m = &o->obs->machine;

	for (size_t i = 0; i < o->obs->processes.n; i++) {
		const struct dbt_obs_process *p = &o->obs->processes.items[i];
		uint64_t limit, used, file;

		if (p->ended || p->ticks_running + p->ticks_blocked == 0 ||
		    !dbt_machine_limit(o->ctx, p->pid, &limit, &used, &file) ||
		    (m->limit_bytes > 0 && m->limit_bytes <= limit))
			continue;
		m->limit_bytes = limit;
		m->limit_used_bytes = used;
		m->limit_file_bytes = file;
	}
}

static int end(struct observer *o, const struct dbt_machine_counters *before, uint64_t cpu_before)
{
	struct dbt_machine_counters after;
	uint64_t now;
	int r = 0;

	if (o->trace && !o->paused)
		r = dbt_trace_poll(o->trace, take_event, o);
	find_limit(o);
	dbt_tasks_finish(o->tasks);
	if (r == 0)
		r = dbt_machine_read(o->ctx, &after);
	if (r < 0)
		return r;
	r = dbt_machine_between(o->ctx, before, &after, o->obs);
	dbt_machine_release(&after);
	add_blocks(o);
	now = o->ctx->sys->now_ns();
	if (o->paused)
		o->paused_ns += now - o->paused_since_ns;
	o->obs->wall_ns = o->ctx->sys->wall_ns();
	o->obs->own_cpu_ns = cpu_ns() - cpu_before;
	o->obs->lost_events = o->trace ? dbt_trace_lost(o->trace) : 0;
	o->obs->traced_share = !o->trace ? 0
	                       : now > before->at_ns
	                               ? 1 - (double)o->paused_ns / (double)(now - before->at_ns)
	                               : 1;
	return r;
}

int dbt_observe(const struct dbt_ctx *ctx, const struct dbt_observe_opts *opts,
                struct dbt_observation *ret, struct dbt_err *err)
{
	struct dbt_observation obs;
	struct dbt_machine_counters before = { 0 };
	struct observer o = { .ctx = ctx,
		              .opts = opts,
		              .obs = &obs,
		              .tick = { .every_ns = TICK_NS, .share = TICK_SHARE },
		              .walk = { .every_ns = WALK_NS, .share = WALK_SHARE },
		              .poll = { .every_ns = POLL_NS, .share = TRACE_SHARE } };
	uint64_t cpu = cpu_ns();
	int r;

	dbt_observation_init(&obs);
	r = begin(&o);
	if (r == 0)
		r = dbt_machine_read(ctx, &before);
	if (r == 0)
		r = loop(&o);
	if (r == 0)
		r = end(&o, &before, cpu);
	/* The instance goes away, whatever happened. */
	dbt_trace_free(o.trace);
	dbt_tasks_free(o.tasks);
	dbt_access_free(o.access);
	free(o.blocks.items);
	dbt_machine_release(&before);
	if (r < 0) {
		dbt_observation_release(&obs);
		return dbt_err_sys(err, r, "cannot observe this machine");
	}
	*ret = obs;
	return 0;
}
