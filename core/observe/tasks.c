#include "observe/tasks.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "observe/files.h"
#include "observe/machine.h"
#include "observe/procinfo.h"
#include "observe/words.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_FOLLOWED = 256,
	MAX_THREADS = 64, /* of one process; the others are taken to do as these do */
	MAX_OPEN = 400,   /* descriptors kept for ticks */
	STAT_BYTES = 1024,
	IO_TICKS = 5, /* between two looks at a process's account of I/O */
};

struct thread {
	int tid, fd; /* -1: gone */
	uint64_t first_ticks, cpu_ticks;
	bool listed;
};

struct task {
	int pid, parent;
	uint64_t start_ticks;
	uint64_t cpu_ticks, major_faults; /* as last seen */
	bool seen;                        /* in this walk */
	size_t at;                        /* in obs->processes; DBT_OBS_NONE: not followed */
	uint64_t followed_ns, last_ns;
	uint64_t first_cpu, first_faults, first_delay, delay_ticks;
	uint64_t first_private, last_private;
	struct dbt_obs_process first; /* its io figures when it was first followed */
	int stat_fd;                  /* -1: not followed, or gone */
	unsigned listed_threads;      /* when they were last listed */
	struct {
		struct thread *items;
		size_t n, cap;
	} threads;
};

struct dbt_tasks {
	const struct dbt_ctx *ctx;
	struct dbt_tasks_opts opts;
	struct dbt_observation *obs;
	int proc; /* a descriptor of /proc */
	uint64_t begin_ns, begin_ticks;
	double tick_ns; /* a clock tick in ns */
	size_t followed, open;
	bool first_walk;
	unsigned long own_mounts; /* the number of our mount namespace; 0 unknown */
	struct dbt_buf passwd;
	struct dbt_files *files;
	struct {
		struct task *items; /* by pid, ascending */
		size_t n, cap;
	} tasks;
};

/* --- who is who --- */

static struct task *find_task(struct dbt_tasks *t, int pid)
{
	size_t low = 0, high = t->tasks.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->tasks.items[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->tasks.n && t->tasks.items[low].pid == pid ? &t->tasks.items[low] : NULL;
}

static bool is_asked_for(struct dbt_tasks *t, int pid)
{
	for (unsigned depth = 0; pid > 0 && depth < 64; depth++) {
		const struct task *task;

		for (size_t i = 0; i < t->opts.n_pids; i++)
			if (t->opts.pids[i] == pid)
				return true;
		task = find_task(t, pid);
		pid = task ? task->parent : 0;
	}
	return false;
}

/* --- following --- */

/* What /proc/PID/io says, into the figures of a process. */
static void read_io(const struct dbt_tasks *t, int pid, struct dbt_obs_process *p)
{
	char text[STAT_BYTES];

	if (dbt_procinfo_read(t->proc, pid, "io", text, sizeof(text)) <= 0)
		return;
	p->has_io = dbt_machine_number(text, "read_bytes", &p->read_bytes) &&
	            dbt_machine_number(text, "write_bytes", &p->written_bytes) &&
	            dbt_machine_number(text, "rchar", &p->called_bytes);
}

static uint64_t private_memory(const struct dbt_tasks *t, int pid)
{
	uint64_t v[3]; /* size, resident, shared */
	char text[STAT_BYTES];
	const char *at = text;

	if (dbt_procinfo_read(t->proc, pid, "statm", text, sizeof(text)) <= 0 ||
	    dbt_next_numbers(&at, v, 3) < 3 || v[1] < v[2])
		return 0;
	return (v[1] - v[2]) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct thread *find_thread(struct task *task, int tid)
{
	for (size_t i = 0; i < task->threads.n; i++)
		if (task->threads.items[i].tid == tid)
			return &task->threads.items[i];
	return NULL;
}

static void drop_thread(struct dbt_tasks *t, struct thread *thread)
{
	if (thread->fd < 0)
		return;
	(void)close(thread->fd);
	thread->fd = -1;
	t->open--;
}

/* young: it began while we watched, so all it has done counts. */
static int add_thread(struct dbt_tasks *t, struct task *task, int tid, bool young)
{
	struct thread *thread = dbt_vec_push(&task->threads);
	struct dbt_task_stat stat;
	char path[64], text[STAT_BYTES];
	ssize_t len;

	if (!thread)
		return -ENOMEM;
	thread->tid = tid;
	thread->listed = true;
	(void)snprintf(path, sizeof(path), "%d/task/%d/stat", task->pid, tid);
	thread->fd = t->open < MAX_OPEN ? openat(t->proc, path, O_RDONLY | O_CLOEXEC) : -1;
	if (thread->fd < 0)
		return 0;
	t->open++;
	len = pread(thread->fd, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	if (dbt_task_stat_parse(text, &stat)) {
		thread->cpu_ticks = stat.cpu_ticks;
		thread->first_ticks =
			young || stat.start_ticks > t->begin_ticks ? 0 : stat.cpu_ticks;
	}
	return 0;
}

static int list_threads(struct dbt_tasks *t, struct task *task, bool young)
{
	dbt_autoclosedir DIR *dir = NULL;
	struct dirent *de;
	char path[64];
	int fd, r = 0;

	(void)snprintf(path, sizeof(path), "%d/task", task->pid);
	fd = openat(t->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* gone */
	dir = fdopendir(fd);
	if (!dir) {
		int r_open = errno == ENOMEM ? -ENOMEM : 0; /* else it ended just now */

		(void)close(fd);
		return r_open;
	}
	for (size_t i = 0; i < task->threads.n; i++)
		task->threads.items[i].listed = false;
	while (r == 0 && (de = readdir(dir))) {
		int tid = (int)strtol(de->d_name, NULL, 10);
		struct thread *known = tid > 0 ? find_thread(task, tid) : NULL;

		if (known)
			known->listed = true;
		else if (tid > 0 && task->threads.n < MAX_THREADS)
			r = add_thread(t, task, tid, young);
	}
	task->listed_threads = 0;
	for (size_t i = 0; i < task->threads.n; i++) {
		if (!task->threads.items[i].listed)
			drop_thread(t, &task->threads.items[i]);
		task->listed_threads += task->threads.items[i].listed;
	}
	return r;
}

static int follow(struct dbt_tasks *t, struct task *task, const struct dbt_task_stat *stat)
{
	const bool young = stat->start_ticks > t->begin_ticks;
	char text[4096];
	struct dbt_obs_process *p;
	uint64_t uid = 0;
	unsigned long ns;

	if (t->followed >= MAX_FOLLOWED) {
		t->obs->dropped++;
		return 0;
	}
	p = dbt_vec_push(&t->obs->processes);
	if (!p)
		return -ENOMEM;
	task->at = t->obs->processes.n - 1;
	t->followed++;
	if (dbt_procinfo_read(t->proc, task->pid, "status", text, sizeof(text)) > 0)
		(void)dbt_machine_number(text, "Uid", &uid);
	*p = (struct dbt_obs_process){
		.pid = task->pid,
		.parent = stat->parent,
		.uid = (uint32_t)uid,
		.threads = stat->threads,
		.user = dbt_procinfo_user(dbt_buf_str(&t->passwd), (uint32_t)uid),
		.name = strdup(stat->name),
		.command = dbt_procinfo_command(t->proc, task->pid, stat->name)
	};
	if (!p->user || !p->name || !p->command)
		return -ENOMEM;
	ns = dbt_procinfo_mounts(t->proc, task->pid);
	p->other_mounts = ns != 0 && t->own_mounts != 0 && ns != t->own_mounts;
	p->selected = is_asked_for(t, task->pid);
	task->followed_ns = task->last_ns =
		young ? t->begin_ns + (uint64_t)((double)(stat->start_ticks - t->begin_ticks) *
	                                         t->tick_ns)
		      : t->ctx->sys->now_ns();
	task->first_private = task->last_private = private_memory(t, task->pid);
	if (young) {
		task->first_private = 0;
	} else {
		read_io(t, task->pid, &task->first);
		task->first_cpu = stat->cpu_ticks;
		task->first_faults = stat->major_faults;
		task->first_delay = stat->delay_ticks;
	}
	(void)snprintf(text, sizeof(text), "%d/stat", task->pid);
	task->stat_fd = t->open < MAX_OPEN ? openat(t->proc, text, O_RDONLY | O_CLOEXEC) : -1;
	t->open += task->stat_fd >= 0;
	return list_threads(t, task, young);
}

/* --- a walk --- */

static bool does_something(const struct dbt_tasks *t, const struct task *task,
                           const struct dbt_task_stat *stat)
{
	return stat->state == 'D' || stat->state == 'R' || t->opts.n_paths > 0 ||
	       (task->cpu_ticks != stat->cpu_ticks && !t->first_walk) ||
	       (task->major_faults != stat->major_faults && !t->first_walk);
}

/* It became another program by execve(2). */
static int rename_process(const struct dbt_tasks *t, struct dbt_obs_process *p, const char *name)
{
	char *new_name = strdup(name), *command = dbt_procinfo_command(t->proc, p->pid, name);

	if (!new_name || !command) {
		free(new_name);
		free(command);
		return -ENOMEM;
	}
	free(p->name);
	free(p->command);
	p->name = new_name;
	p->command = command;
	return 0;
}

static int update(struct dbt_tasks *t, struct task *task, const struct dbt_task_stat *stat,
                  bool files)
{
	struct dbt_obs_process *p;
	uint64_t memory;
	int r = 0;

	if (task->at == DBT_OBS_NONE) {
		if (does_something(t, task, stat) || is_asked_for(t, task->pid))
			r = follow(t, task, stat);
		else
			return 0;
		files = true;
	} else if (stat->threads > 1 || task->threads.n > 1) {
		r = list_threads(t, task, false);
	}
	task->cpu_ticks = stat->cpu_ticks;
	task->major_faults = stat->major_faults;
	task->delay_ticks = stat->delay_ticks;
	if (r < 0 || task->at == DBT_OBS_NONE)
		return r;
	p = &t->obs->processes.items[task->at];
	if (strcmp(p->name, stat->name) != 0) {
		r = rename_process(t, p, stat->name);
		if (r < 0)
			return r;
		files = true;
	}
	p->threads = stat->threads > p->threads ? stat->threads : p->threads;
	task->last_ns = t->ctx->sys->now_ns();
	read_io(t, task->pid, p);
	memory = private_memory(t, task->pid);
	task->last_private = memory > task->last_private ? memory : task->last_private;
	return files ? dbt_files_look(t->files, task->at) : 0;
}

static struct task *insert_task(struct dbt_tasks *t, int pid)
{
	struct task *task = find_task(t, pid);
	size_t at;

	if (task)
		return task;
	if (!dbt_vec_push(&t->tasks))
		return NULL;
	for (at = t->tasks.n - 1; at > 0 && t->tasks.items[at - 1].pid > pid; at--)
		t->tasks.items[at] = t->tasks.items[at - 1];
	t->tasks.items[at] = (struct task){ .pid = pid, .at = DBT_OBS_NONE, .stat_fd = -1 };
	return &t->tasks.items[at];
}

static void end_task(struct dbt_tasks *t, struct task *task)
{
	if (task->stat_fd >= 0) {
		(void)close(task->stat_fd);
		task->stat_fd = -1;
		t->open--;
	}
	for (size_t i = 0; i < task->threads.n; i++)
		drop_thread(t, &task->threads.items[i]);
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void finish_task(struct dbt_tasks *t, const struct task *task)
{
	struct dbt_obs_process *p = &t->obs->processes.items[task->at];
	uint64_t top = 0, others = 0, whole = minus(task->cpu_ticks, task->first_cpu);

	for (size_t i = 0; i < task->threads.n; i++) {
		const struct thread *th = &task->threads.items[i];
		uint64_t own = minus(th->cpu_ticks, th->first_ticks);

		if (th->tid == task->pid)
			continue;
		others += own;
		top = own > top ? own : top;
	}
	/* What the others did not do, the first one did. */
	if (whole > others && whole - others > top)
		top = whole - others;
	p->seconds = (double)minus(task->last_ns, task->followed_ns) / 1e9;
	p->cpu_ns = (uint64_t)((double)whole * t->tick_ns);
	p->top_thread_ns = (uint64_t)((double)top * t->tick_ns);
	p->delay_ns = (uint64_t)((double)minus(task->delay_ticks, task->first_delay) * t->tick_ns);
	p->major_faults = minus(task->major_faults, task->first_faults);
	p->grown_bytes = minus(task->last_private, task->first_private);
	if (p->has_io && (task->first.has_io || task->first_cpu == 0)) {
		p->read_bytes = minus(p->read_bytes, task->first.read_bytes);
		p->written_bytes = minus(p->written_bytes, task->first.written_bytes);
		p->called_bytes = minus(p->called_bytes, task->first.called_bytes);
	}
}

static int look_at_process(struct dbt_tasks *t, int pid, bool files)
{
	char text[STAT_BYTES];
	struct dbt_task_stat stat;
	struct task *task;

	if (pid == (int)getpid() ||
	    dbt_procinfo_read(t->proc, pid, "stat", text, sizeof(text)) <= 0 ||
	    !dbt_task_stat_parse(text, &stat) || stat.kernel || stat.state == 'Z')
		return 0;
	task = insert_task(t, pid);
	if (!task)
		return -ENOMEM;
	if (task->start_ticks != 0 && task->start_ticks != stat.start_ticks) {
		/* The number went to another process. */
		if (task->at != DBT_OBS_NONE)
			finish_task(t, task);
		end_task(t, task);
		free(task->threads.items);
		*task = (struct task){ .pid = pid, .at = DBT_OBS_NONE, .stat_fd = -1 };
	}
	if (task->start_ticks == 0) {
		task->start_ticks = stat.start_ticks;
		if (t->first_walk) {
			task->cpu_ticks = stat.cpu_ticks;
			task->major_faults = stat.major_faults;
		}
	}
	task->parent = stat.parent;
	task->seen = true;
	return update(t, task, &stat, files);
}

int dbt_tasks_walk(struct dbt_tasks *t, bool files)
{
	int fd = openat(t->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	dbt_autoclosedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (!dir)
		return fd < 0 ? -errno : -ENOMEM;
	for (size_t i = 0; i < t->tasks.n; i++)
		t->tasks.items[i].seen = false;
	while (r == 0 && (de = readdir(dir)))
		if (isdigit((unsigned char)de->d_name[0]))
			r = look_at_process(t, (int)strtol(de->d_name, NULL, 10), files);
	for (size_t i = 0; i < t->tasks.n; i++)
		if (!t->tasks.items[i].seen) {
			end_task(t, &t->tasks.items[i]);
			if (t->tasks.items[i].at != DBT_OBS_NONE)
				t->obs->processes.items[t->tasks.items[i].at].ended = true;
		}
	t->first_walk = false;
	return r;
}

size_t dbt_tasks_process_of(struct dbt_tasks *t, int tid, bool ask)
{
	struct task *task = find_task(t, tid);
	char text[4096];
	uint64_t pid = 0;

	if (task && task->at != DBT_OBS_NONE)
		return task->at;
	for (size_t i = 0; i < t->tasks.n; i++)
		if (t->tasks.items[i].at != DBT_OBS_NONE && find_thread(&t->tasks.items[i], tid))
			return t->tasks.items[i].at;
	if (!ask || dbt_procinfo_read(t->proc, tid, "status", text, sizeof(text)) <= 0 ||
	    !dbt_machine_number(text, "Tgid", &pid))
		return DBT_OBS_NONE;
	if (look_at_process(t, (int)pid, true) < 0)
		return DBT_OBS_NONE;
	task = find_task(t, (int)pid);
	if (task && task->at == DBT_OBS_NONE) {
		struct dbt_task_stat stat;

		/* It read from a device: that is doing something. */
		if (dbt_procinfo_read(t->proc, (int)pid, "stat", text, sizeof(text)) > 0 &&
		    dbt_task_stat_parse(text, &stat) && !stat.kernel && follow(t, task, &stat) == 0)
			(void)update(t, task, &stat, true);
	}
	return task ? task->at : DBT_OBS_NONE;
}

int dbt_tasks_look(struct dbt_tasks *t, size_t process)
{
	return dbt_files_look(t->files, process);
}

/* --- a tick --- */

static bool read_stat(int fd, struct dbt_task_stat *ret)
{
	char text[STAT_BYTES];
	ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	return len > 0 && dbt_task_stat_parse(text, ret) && ret->state != 'Z' && ret->state != 'X';
}

/* The process as a whole: its sums, whether it became another program, and how many threads there are: a worker may
 * come and go between two walks. False: it is gone. */
static bool tick_whole(struct dbt_tasks *t, struct task *task, struct dbt_task_stat *stat)
{
	struct dbt_obs_process *p = &t->obs->processes.items[task->at];

	if (!read_stat(task->stat_fd, stat))
		return false;
	task->cpu_ticks = stat->cpu_ticks;
	task->major_faults = stat->major_faults;
	task->delay_ticks = stat->delay_ticks;
	p->threads = stat->threads > p->threads ? stat->threads : p->threads;
	if (strcmp(p->name, stat->name) != 0)
		(void)rename_process(t, p, stat->name);
	if (stat->threads != task->listed_threads && task->threads.n < MAX_THREADS)
		(void)list_threads(t, task, true);
	return true;
}

static void tick_process(struct dbt_tasks *t, struct task *task)
{
	struct dbt_obs_process *p = &t->obs->processes.items[task->at];
	struct dbt_task_stat stat;
	unsigned blocked = 0;
	bool running = false;

	if (!tick_whole(t, task, &stat))
		return;
	/* Of a single thread the state is known now. */
	running = stat.state == 'R';
	blocked = stat.state == 'D';
	for (size_t i = 0; stat.threads > 1 && i < task->threads.n; i++) {
		struct thread *thread = &task->threads.items[i];
		struct dbt_task_stat own;

		if (thread->fd < 0 || thread->tid == task->pid)
			continue;
		if (!read_stat(thread->fd, &own)) {
			drop_thread(t, thread);
			continue;
		}
		thread->cpu_ticks = own.cpu_ticks;
		running |= own.state == 'R';
		blocked += own.state == 'D';
	}
	/* So that what a short run read is known when it has ended. */
	if (p->ticks % IO_TICKS == 0)
		read_io(t, task->pid, p);
	task->last_ns = t->ctx->sys->now_ns();
	p->ticks++;
	p->ticks_running += running;
	p->ticks_blocked += !running && blocked > 0;
	p->blocked_threads += blocked;
}

void dbt_tasks_tick(struct dbt_tasks *t)
{
	for (size_t i = 0; i < t->tasks.n; i++)
		if (t->tasks.items[i].at != DBT_OBS_NONE && t->tasks.items[i].stat_fd >= 0)
			tick_process(t, &t->tasks.items[i]);
	dbt_files_tick(t->files);
}

/* --- the ends --- */

/* The clock that start times are given in, now: that of a process which just began would be this. */
static uint64_t now_ticks(const struct dbt_tasks *t)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_BOOTTIME, &ts) < 0)
		return 0;
	return (uint64_t)(((double)ts.tv_sec * 1e9 + (double)ts.tv_nsec) / t->tick_ns);
}

int dbt_tasks_new(const struct dbt_ctx *ctx, const struct dbt_tasks_opts *opts,
                  struct dbt_observation *obs, struct dbt_tasks **ret)
{
	struct dbt_tasks *t = calloc(1, sizeof(*t));
	long hz = sysconf(_SC_CLK_TCK);
	int r;

	if (!t)
		return -ENOMEM;
	t->ctx = ctx;
	t->opts = *opts;
	t->obs = obs;
	t->first_walk = true;
	t->tick_ns = 1e9 / (hz > 0 ? (double)hz : 100.0);
	t->begin_ns = ctx->sys->now_ns();
	t->begin_ticks = now_ticks(t);
	t->proc = openat(ctx->root->fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = t->proc < 0 ? -errno : 0;
	if (r == 0) {
		(void)dbt_root_read(ctx->root, "etc/passwd", 1 << 20, &t->passwd);
		t->own_mounts = dbt_procinfo_mounts(t->proc, (int)getpid());
		r = dbt_files_new(ctx, opts, t->proc, obs, &t->files);
	}
	if (r < 0) {
		dbt_tasks_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void dbt_tasks_free(struct dbt_tasks *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->tasks.n; i++) {
		end_task(t, &t->tasks.items[i]);
		free(t->tasks.items[i].threads.items);
	}
	free(t->tasks.items);
	dbt_files_free(t->files);
	dbt_buf_release(&t->passwd);
	if (t->proc >= 0)
		(void)close(t->proc);
	free(t);
}

void dbt_tasks_finish(struct dbt_tasks *t)
{
	uint64_t delays = 0;
	char text[16];

	(void)dbt_tasks_walk(t, false);
	for (size_t i = 0; i < t->tasks.n; i++)
		if (t->tasks.items[i].at != DBT_OBS_NONE)
			finish_task(t, &t->tasks.items[i]);
	if (dbt_procinfo_read_at(t->proc, "sys/kernel/task_delayacct", text, sizeof(text)) > 0)
		delays = strtoull(text, NULL, 10);
	for (size_t i = 0; i < t->obs->processes.n; i++)
		t->obs->processes.items[i].has_delay = delays != 0;
	t->obs->hidden = dbt_files_hidden(t->files);
}
