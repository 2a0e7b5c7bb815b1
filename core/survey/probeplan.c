#include "survey/probeplan.h"

#include "base/cleanup.h"
#include "base/units.h"
#include "sys/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 4096,
	STREAM_BYTES = 1 << 20,
	MIN_OPS = 64,        /* fewer random reads say nothing */
	MAX_ALIGN = 1 << 16, /* a filesystem that asks for more is read through the cache */
	MAX_FILES = 128,     /* open at once */
	TRIES = 8,           /* places looked at in one stretch before it counts as cached */
};

/* Less than this lies on a few tracks of a disk, whose own cache would answer. */
static const uint64_t MIN_DATA_BYTES = 4U << 20;

/* The kernel writes dirty pages after 30 s, a laptop's settings after some minutes. */
static const uint64_t SETTLED_NS = 15ULL * 60 * 1000000000;

/* A stream longer than this ends before a second has passed only on memory. */
static const uint64_t MAX_STREAM_BYTES = 16ULL << 30;

void dbt_probe_plan_release(struct dbt_probe_plan *plan)
{
	for (size_t i = 0; i < plan->n_files; i++)
		if (plan->files[i].fd >= 0)
			(void)close(plan->files[i].fd);
	free(plan->files);
	free(plan->extents.items);
	free(plan->ops);
	*plan = (struct dbt_probe_plan){ 0 };
}

/* --- opening --- */

static int open_quietly(const struct dbt_ctx *ctx, const char *path, int flags)
{
	/* Without O_NOATIME the access time would be written some seconds later. The kernel grants
	 * it to the owner and root only. */
	int fd = ctx->sys->openat(AT_FDCWD, path, flags | O_NOATIME, 0);

	return fd == -EPERM ? ctx->sys->openat(AT_FDCWD, path, flags, 0) : fd;
}

static int size_of(int fd, const struct stat *st, uint64_t *ret)
{
	if (S_ISREG(st->st_mode)) {
		*ret = (uint64_t)st->st_size;
		return 0;
	}
	if (!S_ISBLK(st->st_mode))
		return -EINVAL;
	return ioctl(fd, BLKGETSIZE64, ret) < 0 ? -errno : 0;
}

/* O_DIRECT where statx says yes or nothing; where it lied the first read shows it. */
static bool try_direct(const struct dbt_ctx *ctx, int fd, uint32_t *align)
{
	struct dbt_dio dio;
	uint32_t need;
	int flags = fcntl(fd, F_GETFL);

	dbt_io_dio_limits(ctx, fd, &dio);
	need = dio.off_align > dio.mem_align ? dio.off_align : dio.mem_align;
	if (!dio.supported || need > MAX_ALIGN || flags < 0 ||
	    fcntl(fd, F_SETFL, flags | O_DIRECT) < 0)
		return false;
	if (need > *align)
		*align = need;
	return true;
}

static bool is_settled(const struct dbt_ctx *ctx, const struct stat *st)
{
	uint64_t now = ctx->sys->wall_ns(), written = (uint64_t)st->st_mtim.tv_sec * 1000000000 +
	                                              (uint64_t)st->st_mtim.tv_nsec;

	return S_ISREG(st->st_mode) && st->st_mtim.tv_sec > 0 && written < now &&
	       now - written > SETTLED_NS;
}

static int open_one(const struct dbt_ctx *ctx, const char *path, struct dbt_probe_plan *plan,
                    uint64_t *ret_size, struct dbt_err *err)
{
	struct dbt_probe_file *file = &plan->files[plan->n_files];
	struct stat st;
	int r, fd = open_quietly(ctx, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", path);
	r = fstat(fd, &st) < 0 ? -errno : size_of(fd, &st, ret_size);
	if (r < 0) {
		(void)close(fd);
		return r == -EINVAL
		               ? dbt_err_set(err, DBT_ERR_USAGE, r,
		                             "cannot probe '%s': neither a file nor a block device",
		                             path)
		               : dbt_err_sys(err, r, "cannot probe '%s'", path);
	}
	file->fd = fd;
	file->direct = try_direct(ctx, fd, &plan->align);
	file->settled = is_settled(ctx, &st);
	plan->n_files++;
	return 0;
}

/* A path and how much a probe could read there. */
struct candidate {
	const char *path;
	uint64_t size_bytes;
};

static int larger_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->size_bytes < y->size_bytes) - (x->size_bytes > y->size_bytes);
}

/* The paths to open: of more than a process should hold open, the largest. */
static struct candidate *choose_files(const struct dbt_ctx *ctx,
                                      const struct dbt_probe_target *target, size_t *ret_n)
{
	struct candidate *list = calloc(target->n_paths, sizeof(*list));
	struct statx stx;

	if (!list)
		return NULL;
	for (size_t i = 0; i < target->n_paths; i++) {
		list[i].path = target->paths[i];
		if (target->n_paths > MAX_FILES &&
		    ctx->sys->statx(AT_FDCWD, list[i].path, 0, STATX_SIZE, &stx) == 0)
			list[i].size_bytes = stx.stx_size;
	}
	*ret_n = target->n_paths;
	if (target->n_paths > MAX_FILES) {
		qsort(list, target->n_paths, sizeof(*list), larger_first);
		*ret_n = MAX_FILES;
	}
	return list;
}

/* Of several files some may be gone or not readable: the others do. */
static int open_all(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                    struct dbt_probe_plan *plan, struct dbt_err *err)
{
	dbt_autofree struct candidate *list = NULL;
	size_t n = 0, opened = 0;
	int r = 0, last = 0;

	plan->align = BLOCK_BYTES;
	list = choose_files(ctx, target, &n);
	plan->files = list ? calloc(n, sizeof(*plan->files)) : NULL;
	if (!plan->files)
		return dbt_err_sys(err, -ENOMEM, "cannot prepare a probe");
	for (size_t i = 0; i < n; i++) {
		r = open_one(ctx, list[i].path, plan, &list[opened].size_bytes, err);
		if (r < 0)
			last = r;
		else
			list[opened++].path = list[i].path;
	}
	if (opened == 0)
		return last;
	for (size_t i = 0; i < opened; i++) {
		r = dbt_extents_add(ctx, plan->files[i].fd, (uint32_t)i, list[i].size_bytes,
		                    plan->align, &plan->extents);
		if (r < 0)
			return dbt_err_sys(err, r, "cannot find the data of '%s'", list[i].path);
	}
	plan->block_bytes = plan->align;
	return 0;
}

/* Why there is too little to read, in words. */
static int too_little(const struct dbt_probe_target *target, const struct dbt_probe_plan *plan,
                      struct dbt_err *err)
{
	const struct dbt_extents *e = &plan->extents;
	char have[DBT_UNITS_TEXT_BYTES], need[DBT_UNITS_TEXT_BYTES], lost[DBT_UNITS_TEXT_BYTES];
	const char *more = target->n_paths > 1 ? " and others" : "";

	(void)dbt_units_size(e->data_bytes, have);
	(void)dbt_units_size(MIN_DATA_BYTES, need);
	if (e->compressed_bytes > 0)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA,
		                   "cannot measure the device below '%s'%s: %s of the data is "
		                   "compressed (or encoded), which the processor answers for as "
		                   "much as the device, and %s is not",
		                   target->paths[0], more,
		                   dbt_units_size(e->compressed_bytes, lost), have);
	if (e->unwritten_bytes > 0)
		return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA,
		                   "cannot measure the device below '%s'%s: %s is reserved but was "
		                   "never written, and only %s holds data",
		                   target->paths[0], more, dbt_units_size(e->unwritten_bytes, lost),
		                   have);
	return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA,
	                   "cannot measure the device below '%s'%s: it holds %s of data on the "
	                   "device, at least %s is needed",
	                   target->paths[0], more, have, need);
}

int dbt_probe_plan_open(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                        struct dbt_probe_plan *ret, struct dbt_err *err)
{
	struct dbt_probe_plan plan = { 0 };
	int r = open_all(ctx, target, &plan, err);

	if (r == 0 && plan.extents.data_bytes < MIN_DATA_BYTES)
		r = too_little(target, &plan, err);
	if (r < 0) {
		dbt_probe_plan_release(&plan);
		return r;
	}
	*ret = plan;
	return 0;
}

/* --- choosing --- */

/* splitmix64 (Steele, Lea, Flood 2014): good enough to scatter reads, seeded by the kernel. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* The extents as one long run of data: where its byte `at` lies. */
struct cursor {
	size_t extent;
	uint64_t before; /* data in the extents in front of this one */
};

static void seek_to(const struct dbt_extents *e, struct cursor *c, uint64_t at)
{
	if (at < c->before)
		*c = (struct cursor){ 0 };
	while (at - c->before >= e->items[c->extent].len_bytes) {
		c->before += e->items[c->extent].len_bytes;
		c->extent++;
	}
}

/* Linux 6.5, include/uapi/linux/mman.h. */
struct cachestat_range {
	uint64_t off, len;
};
struct cachestat {
	uint64_t nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted;
};
enum { SYS_CACHESTAT = 451 };

enum cached { NOT_CACHED, CACHED_CLEAN, CACHED };

/* A direct read passes by clean pages and leaves them, but makes the kernel write dirty ones first:
 * those must not be touched. Where cachestat(2) is missing (before Linux 6.5) or not allowed (to
 * others than the owner), the time of the last write tells them apart. */
static enum cached look_in_cache(const struct dbt_ctx *ctx, const struct dbt_probe_file *file,
                                 const struct dbt_read_op *op)
{
	struct cachestat_range range = { .off = op->off_bytes, .len = op->len_bytes };
	struct cachestat cs = { 0 };
	uint64_t cached = 0;

	/* Where neither call tells the truth (overlayfs, FUSE) the device's counters will. */
	if (dbt_io_cached(ctx, file->fd, op->off_bytes, op->len_bytes, &cached) < 0 || cached == 0)
		return NOT_CACHED;
	if (syscall(SYS_CACHESTAT, file->fd, &range, &cs, 0) == 0)
		return cs.nr_dirty == 0 && cs.nr_writeback == 0 ? CACHED_CLEAN : CACHED;
	return file->settled ? CACHED_CLEAN : CACHED;
}

static bool usable(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan,
                   const struct dbt_read_op *op, bool past_cache)
{
	const struct dbt_probe_file *file = &plan->files[op->file];
	enum cached cached = look_in_cache(ctx, file, op);

	if (cached == NOT_CACHED)
		return true;
	if (cached == CACHED_CLEAN && file->direct && past_cache) {
		plan->cached_used = true;
		return true;
	}
	plan->skipped_cached++;
	return false;
}

/* A random block out of [from, to) blocks of the data that may be read. */
static bool pick(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, uint64_t from, uint64_t to,
                 struct cursor *cursor, uint64_t *rng, bool past_cache, struct dbt_read_op *ret)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t at = (from + next_random(rng) % (to - from)) * plan->block_bytes;
		const struct dbt_extent *x;

		seek_to(&plan->extents, cursor, at);
		x = &plan->extents.items[cursor->extent];
		*ret = (struct dbt_read_op){ .file = x->file,
			                     .off_bytes = x->off_bytes + (at - cursor->before),
			                     .len_bytes = plan->block_bytes };
		if (usable(ctx, plan, ret, past_cache))
			return true;
	}
	return false;
}

static void shuffle(struct dbt_read_op *ops, size_t n, uint64_t *rng)
{
	for (size_t i = n; i > 1; i--) {
		size_t k = next_random(rng) % i;
		struct dbt_read_op tmp = ops[i - 1];

		ops[i - 1] = ops[k];
		ops[k] = tmp;
	}
}

static int all_cached(struct dbt_err *err)
{
	return dbt_err_set(err, DBT_ERR_SYSTEM, -ENODATA,
	                   "cannot measure the device: the data sits in memory (page cache), whose "
	                   "speed is not the device's");
}

/* One block out of each of max_ops equal stretches: spread over everything, none twice. */
static size_t pick_all(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, size_t max_ops,
                       uint64_t *rng, bool past_cache)
{
	uint64_t blocks = plan->extents.data_bytes / plan->block_bytes;
	size_t want = blocks < max_ops ? (size_t)blocks : max_ops, n = 0;
	struct cursor cursor = { 0 };

	plan->skipped_cached = 0;
	for (size_t i = 0; i < want; i++) {
		uint64_t from = (uint64_t)((unsigned __int128)blocks * i / want),
			 to = (uint64_t)((unsigned __int128)blocks * (i + 1) / want);

		if (pick(ctx, plan, from, to, &cursor, rng, past_cache, &plan->ops[n]))
			n++;
	}
	return n;
}

int dbt_probe_plan_random(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, size_t max_ops,
                          struct dbt_err *err)
{
	uint64_t rng;
	int r = ctx->sys->random(&rng, sizeof(rng));

	if (r < 0)
		return dbt_err_sys(err, r, "cannot choose what to read");
	free(plan->ops);
	plan->ops = calloc(max_ops, sizeof(*plan->ops));
	if (!plan->ops)
		return dbt_err_sys(err, -ENOMEM, "cannot choose what to read");
	plan->n_ops = pick_all(ctx, plan, max_ops, &rng, false);
	if (plan->n_ops < MIN_OPS)
		plan->n_ops = pick_all(ctx, plan, max_ops, &rng, true);
	if (plan->n_ops < MIN_OPS)
		return all_cached(err);
	/* Through the cache, read-ahead would fetch what nobody asked for. */
	for (size_t i = 0; i < plan->n_files; i++)
		if (!plan->files[i].direct)
			(void)posix_fadvise(plan->files[i].fd, 0, 0, POSIX_FADV_RANDOM);
	shuffle(plan->ops, plan->n_ops, &rng);
	plan->each = plan->n_ops;
	return 0;
}

/* The reads of one stream from data byte `from` up to `to`, in order; returns their number. */
static size_t fill_stream(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, uint64_t from,
                          uint64_t to, size_t max_ops, bool past_cache, struct dbt_read_op *ops)
{
	struct cursor cursor = { 0 };
	size_t n = 0, looked = 0;

	while (from < to && n < max_ops && looked++ < 4 * max_ops) {
		const struct dbt_extent *x;
		uint64_t left;

		seek_to(&plan->extents, &cursor, from);
		x = &plan->extents.items[cursor.extent];
		left = x->len_bytes - (from - cursor.before);
		if (left > to - from)
			left = to - from;
		if (left > STREAM_BYTES)
			left = STREAM_BYTES;
		ops[n] = (struct dbt_read_op){ .file = x->file,
			                       .off_bytes = x->off_bytes + (from - cursor.before),
			                       .len_bytes = (uint32_t)left };
		from += left;
		if (usable(ctx, plan, &ops[n], past_cache))
			n++;
	}
	return n;
}

static size_t fill_streams(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, unsigned jobs,
                           size_t max_ops, bool past_cache)
{
	uint64_t share = plan->extents.data_bytes / jobs / plan->align * plan->align;
	size_t least = max_ops;

	plan->skipped_cached = 0;
	for (unsigned k = 0; k < jobs; k++) {
		size_t n = fill_stream(ctx, plan, k * share, (k + 1) * share, max_ops, past_cache,
		                       plan->ops + k * max_ops);

		if (n < least)
			least = n;
	}
	return least;
}

int dbt_probe_plan_stream(const struct dbt_ctx *ctx, struct dbt_probe_plan *plan, unsigned jobs,
                          size_t max_ops, struct dbt_err *err)
{
	size_t least;

	if (max_ops > MAX_STREAM_BYTES / STREAM_BYTES / jobs)
		max_ops = MAX_STREAM_BYTES / STREAM_BYTES / jobs;
	free(plan->ops);
	plan->ops = calloc(max_ops * jobs, sizeof(*plan->ops));
	if (!plan->ops)
		return dbt_err_sys(err, -ENOMEM, "cannot choose what to read");
	least = fill_streams(ctx, plan, jobs, max_ops, false);
	if (least < 2)
		least = fill_streams(ctx, plan, jobs, max_ops, true);
	if (least < 2)
		return all_cached(err);
	/* Equal lists, so that all streams end together. */
	for (unsigned k = 1; k < jobs; k++)
		memmove(plan->ops + k * least, plan->ops + k * max_ops, least * sizeof(*plan->ops));
	plan->each = least;
	plan->n_ops = least * jobs;
	return 0;
}
