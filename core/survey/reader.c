#include "survey/reader.h"

#include "base/cleanup.h"
#include "survey/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	POLL_NS = 2 * 1000 * 1000,
	MAX_JOBS = 64,
	STACK_BYTES = 256 << 10,
};
/* Asking whether there is enough sorts all samples: not more often than this, or a slow processor
 * would be kept from reading by it. */
static const uint64_t ASK_NS = 20000000;
/* A disk that wakes up takes up to 15 s; one that retries a bad sector up to 30 s. */
static const uint64_t PATIENCE_NS = 30000000000;

struct timing {
	uint64_t start_ns;
	_Atomic uint64_t end_ns; /* 0: not (yet) done */
};

/* Shared by the threads and their master, freed by whoever leaves last: a thread that hangs in the
 * kernel keeps what it needs. */
struct run {
	atomic_uint users;
	const struct dbt_sys *sys;
	struct dbt_probe_file *files;
	size_t n_files;
	struct dbt_read_op *ops;
	struct timing *timings;
	size_t n_ops, each;
	uint32_t align;
	uint32_t buffer_bytes;
	bool shared;
	atomic_size_t next;
	atomic_bool stop;
	atomic_int failed;
	atomic_uint running;
	atomic_uint_fast64_t issued_bytes, waited_ns;
};

struct job {
	struct run *run;
	unsigned number;
};

static void run_leave(struct run *run)
{
	if (atomic_fetch_sub(&run->users, 1) > 1)
		return;
	for (size_t i = 0; i < run->n_files; i++)
		(void)close(run->files[i].fd);
	free(run->files);
	free(run->ops);
	free(run->timings);
	free(run);
}

/* include/uapi/linux/ioprio.h: the class in the top three bits, idle is 3; 0 is this thread. */
static void be_idle(void)
{
	enum { WHO_PROCESS = 1, CLASS_IDLE = 3, CLASS_SHIFT = 13 };

	(void)syscall(SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE << CLASS_SHIFT);
}

static void drop_direct(const struct dbt_probe_file *file)
{
	int flags = fcntl(file->fd, F_GETFL);

	if (flags >= 0)
		(void)fcntl(file->fd, F_SETFL, flags & ~O_DIRECT);
}

/* One read. A filesystem that accepted O_DIRECT and then refuses the read gets it again through the
 * cache; what came into the cache by us goes out again. */
static int read_one(struct run *run, const struct dbt_read_op *op, void *buffer)
{
	const struct dbt_probe_file *file = &run->files[op->file];
	ssize_t got = run->sys->pread(file->fd, buffer, op->len_bytes, op->off_bytes);

	if (got == -EINVAL && file->direct) {
		drop_direct(file);
		got = run->sys->pread(file->fd, buffer, op->len_bytes, op->off_bytes);
	}
	if (got >= 0 && !(fcntl(file->fd, F_GETFL) & O_DIRECT))
		(void)posix_fadvise(file->fd, (off_t)op->off_bytes, op->len_bytes,
		                    POSIX_FADV_DONTNEED);
	if (got < 0)
		return (int)got;
	return (size_t)got == op->len_bytes ? 0 : -EIO;
}

static bool take_next(struct run *run, unsigned number, size_t *at, size_t *ret)
{
	if (run->shared)
		*ret = atomic_fetch_add(&run->next, 1);
	else
		*ret = (*at)++ + number * run->each;
	return *ret < (run->shared ? run->n_ops : (number + 1) * run->each);
}

static void work(struct run *run, unsigned number, void *buffer)
{
	size_t at = 0, i;
	int r;

	while (!atomic_load(&run->stop) && take_next(run, number, &at, &i)) {
		atomic_fetch_add(&run->issued_bytes, run->ops[i].len_bytes);
		run->timings[i].start_ns = run->sys->now_ns();
		r = read_one(run, &run->ops[i], buffer);
		if (r == -EINTR)
			continue;
		if (r < 0) {
			int none = 0;

			(void)atomic_compare_exchange_strong(&run->failed, &none, r);
			atomic_store(&run->stop, true);
			return;
		}
		atomic_store(&run->timings[i].end_ns, run->sys->now_ns());
	}
}

/* How long this thread has been ready to run without a processor; 0 where the kernel does not say
 * (CONFIG_SCHED_INFO). Documentation/scheduler/sched-stats.rst: running, waiting, slices. */
static uint64_t waited_for_cpu(const struct run *run)
{
	dbt_autoclose int fd =
		run->sys->openat(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC, 0);
	char text[128];
	const char *at = text;
	uint64_t ran, waited;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return dbt_scan_u64(&at, &ran) && dbt_scan_u64(&at, &waited) ? waited : 0;
}

static void *job_main(void *arg)
{
	struct job *job = arg;
	struct run *run = job->run;
	void *buffer = NULL;
	uint64_t waited;

	be_idle();
	if (posix_memalign(&buffer, run->align, run->buffer_bytes) == 0) {
		waited = waited_for_cpu(run);
		work(run, job->number, buffer);
		atomic_fetch_add(&run->waited_ns, waited_for_cpu(run) - waited);
	} else {
		atomic_store(&run->failed, -ENOMEM);
	}
	free(buffer);
	free(job);
	atomic_fetch_sub(&run->running, 1);
	run_leave(run);
	return NULL;
}

/* Signals belong to the master, which looks at the cancel flag. */
static int start_one(struct run *run, unsigned number)
{
	struct job *job = malloc(sizeof(*job));
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int r;

	if (!job)
		return -ENOMEM;
	*job = (struct job){ .run = run, .number = number };
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	atomic_fetch_add(&run->users, 1);
	atomic_fetch_add(&run->running, 1);
	r = pthread_create(&thread, &attr, job_main, job);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	if (r != 0) {
		atomic_fetch_sub(&run->running, 1);
		atomic_fetch_sub(&run->users, 1);
		free(job);
	}
	return -r;
}

static struct run *run_new(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, bool shared)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->timings = calloc(plan->n_ops, sizeof(*run->timings));
	if (!run->timings) {
		free(run);
		return NULL;
	}
	atomic_init(&run->users, 1);
	run->sys = ctx->sys;
	run->files = plan->files;
	run->n_files = plan->n_files;
	run->ops = plan->ops;
	run->n_ops = plan->n_ops;
	run->each = plan->each;
	run->align = plan->align;
	run->shared = shared;
	for (size_t i = 0; i < plan->n_ops; i++)
		if (plan->ops[i].len_bytes > run->buffer_bytes)
			run->buffer_bytes = plan->ops[i].len_bytes;
	plan->files = NULL;
	plan->n_files = 0;
	plan->ops = NULL;
	return run;
}

static size_t collect(const struct run *run, struct dbt_sample *samples)
{
	size_t n = 0;

	for (size_t i = 0; i < run->n_ops; i++) {
		uint64_t end = atomic_load(&run->timings[i].end_ns);

		if (end == 0)
			continue;
		samples[n++] = (struct dbt_sample){ .start_ns = run->timings[i].start_ns,
			                            .end_ns = end,
			                            .len_bytes = run->ops[i].len_bytes };
	}
	return n;
}

/* Until everything is read, the time is up, there is enough, or someone asks to stop. */
static void supervise(const struct dbt_ctx *ctx, struct run *run, uint64_t max_ns,
                      dbt_enough *enough, void *data, struct dbt_reading *out)
{
	uint64_t start = ctx->sys->now_ns(), now = start, asked = start;
	struct timespec pause = { .tv_nsec = POLL_NS };

	while (atomic_load(&run->running) > 0) {
		(void)nanosleep(&pause, NULL);
		now = ctx->sys->now_ns();
		out->interrupted = dbt_ctx_cancelled(ctx);
		if (out->interrupted || now - start >= max_ns)
			break;
		if (!enough || now - asked < ASK_NS)
			continue;
		asked = now;
		if (enough(data, out->samples, collect(run, out->samples)))
			break;
	}
	atomic_store(&run->stop, true);
	out->n = collect(run, out->samples);
	out->elapsed_ns = now - start;
	start = ctx->sys->now_ns();
	/* The user who interrupts does not wait for a dead disk. */
	while (atomic_load(&run->running) > 0 && ctx->sys->now_ns() - start < PATIENCE_NS &&
	       !dbt_ctx_cancelled(ctx))
		(void)nanosleep(&pause, NULL);
}

int dbt_reader_run(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, unsigned jobs,
                   bool shared, uint64_t max_ns, dbt_enough *enough, void *data,
                   struct dbt_reading *ret)
{
	struct dbt_reading out = { 0 };
	struct run *run;
	int r = 0;

	if (jobs == 0 || jobs > MAX_JOBS)
		return -EINVAL;
	out.samples = calloc(plan->n_ops, sizeof(*out.samples));
	run = out.samples ? run_new(ctx, plan, shared) : NULL;
	if (!run) {
		free(out.samples);
		return -ENOMEM;
	}
	for (unsigned i = 0; r == 0 && i < jobs; i++)
		r = start_one(run, i);
	if (r < 0)
		atomic_store(&run->stop, true);
	supervise(ctx, run, max_ns, enough, data, &out);
	if (r == 0 && atomic_load(&run->running) > 0 && !out.interrupted)
		r = -ETIMEDOUT;
	out.failed = atomic_load(&run->failed);
	out.read_bytes = atomic_load(&run->issued_bytes);
	out.waited_ns = atomic_load(&run->waited_ns) / jobs;
	run_leave(run);
	if (r < 0) {
		free(out.samples);
		return r;
	}
	*ret = out;
	return 0;
}
