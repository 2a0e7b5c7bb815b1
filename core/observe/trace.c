#include "observe/trace.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "observe/ring.h"
#include "observe/words.h"
#include "sys/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	TRACEFS_MAGIC_NUMBER = 0x74726163,
	BUFFER_KB = 4096, /* of all CPUs together */
	MIN_CPU_KB = 64,
	MAX_CPUS = 1024,
	FORMAT_BYTES = 8192,
	PAGE_BYTES =
		65536, /* a sub-buffer is one page of memory; some machines have pages of 64 KiB */
};

/* The instance is called PREFIX + process number + "-" + its start time, so that the next run can tell whose it is. */
static const char PREFIX[] = "dbtier-";

struct event_spec {
	const char *dir; /* below events/ */
	enum dbt_trace_kind kind;
	bool required;
};

static const struct event_spec specs[] = {
	{ "filemap/mm_filemap_add_to_page_cache", DBT_TRACE_READ, true },
	{ "filemap/mm_filemap_fault", DBT_TRACE_FAULT, false }, /* since Linux 6.12 */
	{ "block/block_rq_issue", DBT_TRACE_BLOCK, false },
};

enum { N_SPECS = sizeof(specs) / sizeof(specs[0]) };

struct layout {
	int id; /* -1: this kernel has no such event */
	struct dbt_ring_field pid, dev, ino, index, order, sector, bytes, rwbs;
};

struct dbt_trace {
	const struct dbt_ctx *ctx;
	int root, dir; /* tracefs, the instance */
	char name[64];
	int on_fd;
	size_t data_at;
	struct dbt_ring_field commit;
	struct layout layouts[N_SPECS];
	int *cpu_fds;
	size_t n_cpus;
	uint64_t lost;
	const uint64_t *devnos; /* borrowed until all is set up */
	size_t n_devnos;
	struct {
		struct dbt_trace_event *items;
		size_t n, cap;
	} events;
	unsigned char page[PAGE_BYTES];
};

/* --- finding tracefs --- */

static bool is_tracefs(int fd)
{
	struct statfs st;

	return fd >= 0 && fstatfs(fd, &st) == 0 && st.f_type == TRACEFS_MAGIC_NUMBER;
}

/* Where nobody has mounted it, a mount that has no place in the tree and goes away with its descriptor. */
static int mount_detached(void)
{
	int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), fd, saved;

	if (fs < 0)
		return -errno;
	fd = syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0
	             ? -1
	             : (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	saved = errno;
	(void)close(fs);
	return fd < 0 ? -saved : fd;
}

static int open_tracefs(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	int code = -ENOENT;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (is_tracefs(fd))
			return fd;
		if (fd < 0 && errno == EACCES)
			code = -EACCES;
		if (fd >= 0)
			(void)close(fd);
	}
	if (geteuid() != 0)
		return code == -ENOENT ? -EACCES : code;
	return mount_detached();
}

/* --- small files of it --- */

static int read_text(int dir, const char *path, struct dbt_buf *buf)
{
	dbt_autoclose int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t got;
	int r;

	if (fd < 0)
		return -errno;
	dbt_buf_clear(buf);
	do {
		r = dbt_buf_reserve(buf, FORMAT_BYTES);
		if (r < 0)
			return r;
		got = read(fd, buf->data + buf->len, FORMAT_BYTES);
		if (got < 0)
			return -errno;
		buf->len += (size_t)got;
		buf->data[buf->len] = '\0';
	} while (got > 0 && buf->len < 1 << 20);
	return 0;
}

static int write_text(int dir, const char *path, const char *text)
{
	dbt_autoclose int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	return n < 0 ? -errno : 0;
}

/* --- instances --- */

/* Instances of runs that were killed. One whose process lives is somebody's. */
static void remove_leftovers(const struct dbt_ctx *ctx, int root)
{
	int fd = openat(root, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dbt_autoclosedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char boot[DBT_BOOT_ID_BYTES] = "";
	struct dbt_run self;
	struct dirent *de;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	if (dbt_procs_self_start(ctx, &self) == 0)
		memcpy(boot, self.boot_id, sizeof(boot));
	while ((de = readdir(dir))) {
		const char *at = de->d_name + strlen(PREFIX);
		uint64_t pid, start;

		if (strncmp(de->d_name, PREFIX, strlen(PREFIX)) != 0 ||
		    !dbt_next_number(&at, &pid) || *at++ != '-' || !dbt_next_number(&at, &start) ||
		    *at != '\0' || dbt_procs_is_alive(ctx, (int)pid, start, boot))
			continue;
		(void)ctx->sys->unlinkat(dirfd(dir), de->d_name, AT_REMOVEDIR);
	}
}

static int make_instance(struct dbt_trace *t)
{
	struct dbt_run self;
	char path[96];
	int r = dbt_procs_self_start(t->ctx, &self);

	if (r < 0)
		return r;
	(void)snprintf(t->name, sizeof(t->name), "%s%d-%llu", PREFIX, self.pid,
	               (unsigned long long)self.start_ticks);
	(void)snprintf(path, sizeof(path), "instances/%s", t->name);
	r = t->ctx->sys->mkdirat(t->root, path, 0700);
	if (r < 0 && r != -EEXIST) {
		t->name[0] = '\0';
		return r;
	}
	t->dir = openat(t->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->dir < 0 ? -errno : 0;
}

/* --- events --- */

static void read_layout(const char *format, struct layout *l)
{
	l->id = dbt_ring_find_id(format);
	l->pid = dbt_ring_find_field(format, "common_pid");
	l->dev = dbt_ring_find_field(format, "s_dev");
	if (l->dev.size_bytes == 0)
		l->dev = dbt_ring_find_field(format, "dev");
	l->ino = dbt_ring_find_field(format, "i_ino");
	l->index = dbt_ring_find_field(format, "index");
	l->order = dbt_ring_find_field(format, "order"); /* since Linux 6.3 */
	l->sector = dbt_ring_find_field(format, "sector");
	l->bytes = dbt_ring_find_field(format, "bytes"); /* since Linux 5.11 */
	l->rwbs = dbt_ring_find_field(format, "rwbs[10]");
	if (l->rwbs.size_bytes == 0)
		l->rwbs = dbt_ring_find_field(format, "rwbs[8]");
}

/* What is dropped in the kernel costs us nothing. A filter that the kernel does not take is no loss but of time. */
static void filter_event(const struct dbt_trace *t, size_t i)
{
	enum { MAX_FILTERED = 64 };
	struct dbt_buf text = { 0 };
	char path[128];
	int r = 0;

	if (t->n_devnos == 0 || t->n_devnos > MAX_FILTERED || specs[i].kind == DBT_TRACE_BLOCK)
		return;
	for (size_t k = 0; r == 0 && k < t->n_devnos; k++)
		r = dbt_buf_addf(&text, "%ss_dev == %llu", k ? " || " : "",
		                 (unsigned long long)major(t->devnos[k]) << 20 |
		                         minor(t->devnos[k]));
	(void)snprintf(path, sizeof(path), "events/%s/filter", specs[i].dir);
	if (r == 0)
		(void)write_text(t->dir, path, dbt_buf_str(&text));
	dbt_buf_release(&text);
}

static int enable_event(struct dbt_trace *t, size_t i, struct dbt_buf *buf)
{
	char path[128];
	int r;

	t->layouts[i].id = -1;
	(void)snprintf(path, sizeof(path), "events/%s/format", specs[i].dir);
	r = read_text(t->dir, path, buf);
	if (r < 0)
		return r;
	read_layout(dbt_buf_str(buf), &t->layouts[i]);
	filter_event(t, i);
	(void)snprintf(path, sizeof(path), "events/%s/enable", specs[i].dir);
	return write_text(t->dir, path, "1");
}

static int open_cpus(struct dbt_trace *t)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	char text[64];

	t->n_cpus = n < 1 ? 1 : n > MAX_CPUS ? MAX_CPUS : (size_t)n;
	t->cpu_fds = malloc(t->n_cpus * sizeof(*t->cpu_fds));
	if (!t->cpu_fds)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_cpus; i++) {
		(void)snprintf(text, sizeof(text), "per_cpu/cpu%zu/trace_pipe_raw", i);
		/* A CPU that is off has no buffer. */
		t->cpu_fds[i] = openat(t->dir, text, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	}
	return 0;
}

/* Buffers first, events last: nothing is recorded before there is room as we want it. */
static int set_up(struct dbt_trace *t, struct dbt_buf *buf)
{
	size_t kb;
	char text[32];
	int r = read_text(t->dir, "events/header_page", buf);

	if (r == -ENOENT) /* it stands at the top only */
		r = read_text(t->root, "events/header_page", buf);
	if (r < 0)
		return r;
	t->commit = dbt_ring_find_field(dbt_buf_str(buf), "commit");
	t->data_at = dbt_ring_find_field(dbt_buf_str(buf), "data").at;
	r = open_cpus(t);
	if (r < 0)
		return r;
	kb = BUFFER_KB / t->n_cpus;
	(void)snprintf(text, sizeof(text), "%zu", kb < MIN_CPU_KB ? (size_t)MIN_CPU_KB : kb);
	(void)write_text(t->dir, "tracing_on", "0");
	r = write_text(t->dir, "buffer_size_kb", text);
	/* When the buffer is full, what is new is dropped: that bounds the work of a poll. */
	(void)write_text(t->dir, "options/overwrite", "0");
	(void)write_text(t->dir, "options/record-cmd", "0");
	(void)write_text(t->dir, "trace_clock", "mono");
	for (size_t i = 0; r == 0 && i < N_SPECS; i++) {
		r = enable_event(t, i, buf);
		if (!specs[i].required)
			r = 0;
	}
	t->on_fd = openat(t->dir, "tracing_on", O_WRONLY | O_CLOEXEC);
	if (r == 0 && t->on_fd < 0)
		r = -errno;
	return r;
}

int dbt_trace_new(const struct dbt_ctx *ctx, const uint64_t *devnos, size_t n_devnos,
                  struct dbt_trace **ret, struct dbt_err *err)
{
	struct dbt_trace *t = calloc(1, sizeof(*t));
	struct dbt_buf buf = { 0 };
	int r;

	if (!t)
		return dbt_err_sys(err, -ENOMEM, "cannot trace");
	t->ctx = ctx;
	t->devnos = devnos;
	t->n_devnos = n_devnos;
	t->dir = t->on_fd = -1;
	t->root = open_tracefs();
	r = t->root < 0 ? t->root : 0;
	if (r == 0) {
		remove_leftovers(ctx, t->root);
		r = make_instance(t);
	}
	if (r == 0)
		r = set_up(t, &buf);
	dbt_buf_release(&buf);
	if (r < 0) {
		dbt_trace_free(t);
		if (r == -EACCES || r == -EPERM)
			return dbt_err_set(err, DBT_ERR_SYSTEM, r, "tracing needs root");
		return dbt_err_sys(err, r, "this kernel gives no trace of its page cache");
	}
	dbt_trace_resume(t);
	*ret = t;
	return 0;
}

void dbt_trace_free(struct dbt_trace *t)
{
	char path[96];

	if (!t)
		return;
	for (size_t i = 0; t->cpu_fds && i < t->n_cpus; i++)
		if (t->cpu_fds[i] >= 0)
			(void)close(t->cpu_fds[i]);
	if (t->on_fd >= 0)
		(void)close(t->on_fd);
	if (t->dir >= 0)
		(void)close(t->dir);
	/* Its descriptors are closed, so the kernel lets go of it; events end with it. */
	if (t->name[0]) {
		(void)snprintf(path, sizeof(path), "instances/%s", t->name);
		(void)t->ctx->sys->unlinkat(t->root, path, AT_REMOVEDIR);
	}
	if (t->root >= 0)
		(void)close(t->root);
	free(t->cpu_fds);
	free(t->events.items);
	free(t);
}

void dbt_trace_pause(struct dbt_trace *t)
{
	(void)!write(t->on_fd, "0", 1);
}

void dbt_trace_resume(struct dbt_trace *t)
{
	(void)!write(t->on_fd, "1", 1);
}

uint64_t dbt_trace_lost(const struct dbt_trace *t)
{
	return t->lost;
}

bool dbt_trace_has_faults(const struct dbt_trace *t)
{
	return t->layouts[DBT_TRACE_FAULT].id >= 0;
}

/* --- reading --- */

/* The kernel's own dev_t has 20 bits for the minor. */
static uint64_t devno_of(uint64_t kernel_dev)
{
	return makedev((unsigned)(kernel_dev >> 20), (unsigned)(kernel_dev & 0xfffff));
}

static bool decode(const struct dbt_trace *t, const unsigned char *event, size_t len,
                   struct dbt_trace_event *ret)
{
	static const struct dbt_ring_field type = { .at = 0, .size_bytes = 2 };
	const int id = (int)dbt_ring_get(type, event, len);
	const struct layout *l;
	size_t i;

	for (i = 0; i < N_SPECS && t->layouts[i].id != id; i++)
		;
	if (i == N_SPECS)
		return false;
	l = &t->layouts[i];
	ret->kind = specs[i].kind;
	ret->tid = (int)dbt_ring_get(l->pid, event, len);
	ret->devno = devno_of(dbt_ring_get(l->dev, event, len));
	if (ret->kind == DBT_TRACE_BLOCK) {
		/* "R", "RA", "RM", "FRA": what is no read is another matter. */
		const char *rwbs = (const char *)event + l->rwbs.at;

		ret->ino = 0;
		ret->off_bytes = dbt_ring_get(l->sector, event, len) * 512;
		ret->len_bytes = dbt_ring_get(l->bytes, event, len);
		return l->rwbs.size_bytes > 0 && l->rwbs.at + l->rwbs.size_bytes <= len &&
		       memchr(rwbs, 'R', 2) != NULL && ret->len_bytes > 0;
	}
	ret->ino = dbt_ring_get(l->ino, event, len);
	ret->off_bytes = dbt_ring_get(l->index, event, len) << 12;
	ret->len_bytes = 4096ULL << (dbt_ring_get(l->order, event, len) & 31);
	return ret->ino != 0;
}

/* Pages that one reader adds one behind the other are one read: that keeps what follows cheap. */
static bool extends(struct dbt_trace_event *last, const struct dbt_trace_event *e)
{
	if (last->kind != DBT_TRACE_READ || e->kind != DBT_TRACE_READ || last->tid != e->tid ||
	    last->ino != e->ino || last->devno != e->devno ||
	    last->off_bytes + last->len_bytes != e->off_bytes ||
	    e->time_ns - last->time_ns > 200000)
		return false;
	last->len_bytes += e->len_bytes;
	return true;
}

static int take_page(struct dbt_trace *t, size_t len, size_t first)
{
	const unsigned char *event;
	struct dbt_ring_page page;
	size_t event_len;

	if (!dbt_ring_open(&page, t->page, len, t->data_at, t->commit))
		return 0;
	t->lost += page.lost;
	while (dbt_ring_next(&page, &event, &event_len)) {
		struct dbt_trace_event e = { .time_ns = page.time_ns }, *slot;

		if (!decode(t, event, event_len, &e) ||
		    (t->events.n > first && extends(&t->events.items[t->events.n - 1], &e)))
			continue;
		slot = dbt_vec_push(&t->events);
		if (!slot)
			return -ENOMEM;
		*slot = e;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct dbt_trace_event *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

int dbt_trace_poll(struct dbt_trace *t,
                   int (*take)(void *data, const struct dbt_trace_event *event), void *data)
{
	int r = 0;

	t->events.n = 0;
	for (size_t i = 0; i < t->n_cpus; i++) {
		size_t first = t->events.n;
		ssize_t got;

		while (r == 0 && t->cpu_fds[i] >= 0 &&
		       (got = read(t->cpu_fds[i], t->page, sizeof(t->page))) > 0)
			r = take_page(t, (size_t)got, first);
	}
	if (t->events.n > 1)
		qsort(t->events.items, t->events.n, sizeof(*t->events.items), by_time);
	for (size_t i = 0; r == 0 && i < t->events.n; i++)
		r = take(data, &t->events.items[i]);
	return r;
}
