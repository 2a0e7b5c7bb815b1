#include "base/cleanup.h"
#include "base/units.h"
#include "flow/unpack_sums.h"
#include "flow/unpack_work.h"
#include "move/archive.h"
#include "move/below.h"
#include "survey/dbkind.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_JOBS = 16 };

/* Decoders with threads hold whole blocks. Shared by all archives that are read at a time. */
#define DECODER_BYTES (88U << 20)

/* One archive, read by one thread. */
struct reader {
	struct dbt_unpack_work *work;
	const char *shown; /* of the archive */
	struct dbt_archive *archive;
	struct dbt_hasher *twin;
	/* The directory that the last file went to: most come one after the other. */
	const struct dbt_unpack_root *root;
	char *dir;
	int dirfd;
};

/* ---- one file ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int enter_dir(struct reader *r, const struct dbt_unpack_root *root, const char *path,
                     struct dbt_err *err)
{
	size_t len = (size_t)(base_name(path) - path);
	char *dir = strndup(path, len ? len - 1 : 0);

	if (!dir)
		return dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", r->shown);
	if (r->dirfd >= 0 && r->root == root && strcmp(r->dir, dir) == 0) {
		free(dir);
		return 0;
	}
	if (r->dirfd >= 0)
		(void)close(r->dirfd);
	free(r->dir);
	r->dir = dir;
	r->root = root;
	r->dirfd = dbt_below_open(r->work->flow->ctx, root->fd, dir, true);
	return r->dirfd < 0 ? dbt_err_sys(err, r->dirfd, "cannot make the directory of '%s'", path)
	                    : 0;
}

/* Bytes beyond what was declared, or fewer, are no file to be trusted. */
static int check_size(const struct reader *r, const struct dbt_entry *entry, const char *path,
                      uint64_t end, bool complete, struct dbt_err *err)
{
	if (!entry->sized)
		return 0;
	if (end > entry->size_bytes)
		return dbt_err_refuse(
			err, "'%s' in '%s' is larger than it says: nothing of the archive is used",
			path, r->shown);
	if (complete && end < entry->size_bytes && !entry->sparse)
		return dbt_err_refuse(
			err, "'%s' in '%s' is smaller than it says: nothing of the archive is used",
			path, r->shown);
	return 0;
}

/* Hands the entry's bytes, in order, to the sink or, for a second entry of a name, to the hash alone. */
static int pour(struct reader *r, const struct dbt_entry *entry, const char *path,
                struct dbt_sink_file *file, uint64_t *ret_end, struct dbt_err *err)
{
	const void *data;
	uint64_t off, end = 0;
	size_t len;
	int got;

	while ((got = dbt_archive_data(r->archive, &data, &len, &off, err)) == 1) {
		if (__builtin_add_overflow(off, len, &end))
			end = UINT64_MAX;
		got = check_size(r, entry, path, end, false, err);
		if (got < 0)
			return got;
		if (file)
			got = dbt_sink_write(r->work->sink, file, data, len, off, err);
		else
			dbt_hasher_add(r->twin, data, len);
		if (got < 0)
			return got;
	}
	if (got == 0)
		got = check_size(r, entry, path, end, true, err);
	*ret_end = entry->sized ? entry->size_bytes : end;
	return got;
}

static int unpack_file(struct reader *r, const struct dbt_entry *entry, struct dbt_unpack_entry *to,
                       struct dbt_err *err)
{
	struct dbt_unpack_work *w = r->work;
	const struct dbt_unpack_root *root = to->hot || w->cold.fd < 0 ? &w->hot : &w->cold;
	struct dbt_sink_want want = {
		.name = base_name(to->path),
		.shown = to->path,
		.space = &root->space,
		.mark = w->p->token,
		.sized = entry->sized && !entry->sparse,
		.size_bytes = entry->size_bytes,
		/* Nobody but the owner may write; zip files may carry no permissions at all. */
		.mode = (entry->mode ? (entry->mode & 0755) | 0400 : 0644) & w->mode_mask,
		.uid = w->uid,
		.gid = w->gid,
		.mtime_ns = entry->mtime_ns,
	};
	struct dbt_sink_file *file;
	uint64_t end = 0;
	int e = enter_dir(r, root, to->path, err);

	if (e < 0)
		return e;
	want.dirfd = r->dirfd;
	e = dbt_sink_begin(w->sink, &want, &to->result, &file, err);
	if (e == 0)
		e = pour(r, entry, to->path, file, &end, err);
	return e == 0 ? dbt_sink_end(w->sink, file, end, err) : e;
}

static int compare_later(struct reader *r, const struct dbt_entry *entry,
                         const struct dbt_unpack_entry *first, struct dbt_err *err)
{
	struct dbt_digest digest;
	uint64_t end;
	int e;

	dbt_hasher_reset(r->twin);
	e = pour(r, entry, first->path, NULL, &end, err);
	digest = dbt_hasher_digest(r->twin);
	return e == 0 ? dbt_unpack_twin(&r->work->entries, first, r->shown, &digest, err) : e;
}

/* ---- one archive ---- */

static int unpack_entries(struct reader *r, struct dbt_err *err)
{
	bool all = r->work->opts->plan.all_files || r->work->cold.fd < 0;
	struct dbt_entry entry;
	int e;

	while ((e = dbt_archive_next(r->archive, &entry, err)) == 1) {
		bool hot = all || dbt_dbkind_moves(base_name(entry.name));
		struct dbt_unpack_entry *to = NULL;

		e = dbt_unpack_judge(&r->work->entries, &entry, r->shown, hot, &to, err);
		if (e == 1)
			e = unpack_file(r, &entry, to, err);
		else if (e == 2)
			e = compare_later(r, &entry, to, err);
		if (e < 0)
			return e;
		if (atomic_load(dbt_sink_stopped(r->work->sink)))
			return dbt_err_sys(err, -ECANCELED, "unpacking '%s'", r->shown);
	}
	return e;
}

static struct dbt_archive_opts reader_opts(const struct dbt_unpack_work *w, const char *shown,
                                           const struct dbt_unpack_sums *sums, size_t jobs)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (struct dbt_archive_opts){
		.packed = { .shown = shown,
		            .sums = dbt_unpack_sums_wanted(sums),
		            .limit_bytes_s = w->opts->limit_bytes_s / jobs,
		            .stop = dbt_sink_stopped(w->sink),
		            .progress = (_Atomic uint64_t *)(uintptr_t)&w->done_bytes },
		.unpacker = { .threads = cpus > (long)jobs ? (unsigned)(cpus / (long)jobs) : 1,
		              .memory_bytes = DECODER_BYTES / jobs },
	};
}

static size_t n_jobs(const struct dbt_unpack_work *w)
{
	size_t jobs = w->opts->jobs ? w->opts->jobs : 1;

	jobs = jobs < w->n_archives ? jobs : w->n_archives;
	return jobs < MOST_JOBS ? jobs : MOST_JOBS;
}

/* The archive must be at the end what it was at the beginning, and what was published. */
static int check_archive(struct dbt_pmember *m, const struct dbt_ctx *ctx, int fd,
                         const struct dbt_unpack_sums *wanted, const struct dbt_packed_sums *found,
                         struct dbt_err *err)
{
	struct dbt_ident now;
	int r = dbt_ident_fd(ctx, fd, &now);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot look at '%s'", m->path);
	if (!dbt_ident_same_content(&now, &m->source, true, false))
		return dbt_err_set(err, DBT_ERR_CHANGED, -ESTALE, "'%s' changed while it was read",
		                   m->path);
	(void)dbt_digest_hex(&found->digest, m->xxh128);
	return dbt_unpack_sums_check(wanted, found, m->path, err);
}

static int read_archive(struct reader *r, struct dbt_pmember *m, struct dbt_err *err)
{
	const struct dbt_ctx *ctx = r->work->flow->ctx;
	struct dbt_unpack_sums wanted;
	struct dbt_packed_sums found;
	struct dbt_archive_opts opts;
	dbt_autoclose int fd = -1;
	struct dbt_at at;
	int e = dbt_at_resolve_strict(ctx, m->path, &at, err);

	if (e < 0)
		return e;
	fd = dbt_at_open(ctx, &at, O_RDONLY | O_NONBLOCK, 0);
	e = dbt_unpack_sums_find(ctx, &at, &wanted, err);
	dbt_at_release(&at);
	if (fd < 0)
		return dbt_err_sys(err, fd, "cannot open '%s'", m->path);
	if (e < 0)
		return e;
	opts = reader_opts(r->work, m->path, &wanted, n_jobs(r->work));
	e = dbt_archive_new(ctx, fd, &m->source, &opts, &r->archive, err);
	if (e == 0)
		e = unpack_entries(r, err);
	if (e == 0)
		e = dbt_archive_finish(r->archive, &found, err);
	if (e == 0)
		e = check_archive(m, ctx, fd, &wanted, &found, err);
	dbt_archive_free(r->archive);
	r->archive = NULL;
	return e;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static void *reader_main(void *arg)
{
	struct dbt_unpack_work *w = arg;
	struct reader r = { .work = w, .dirfd = -1, .twin = dbt_hasher_new() };
	struct dbt_err err;
	int e = r.twin ? 0 : dbt_err_sys(&err, -ENOMEM, "cannot unpack");

	for (size_t i; e == 0 && (i = atomic_fetch_add(&w->next_archive, 1)) < w->n_archives;) {
		r.shown = w->p->members[i].path;
		e = read_archive(&r, &w->p->members[i], &err);
	}
	if (e < 0)
		dbt_sink_fail(w->sink, &err);
	if (r.dirfd >= 0)
		(void)close(r.dirfd);
	free(r.dir);
	dbt_hasher_free(r.twin);
	(void)pthread_mutex_lock(&w->entries.mutex);
	w->busy_ns += cpu_ns();
	(void)pthread_mutex_unlock(&w->entries.mutex);
	atomic_fetch_sub(&w->readers, 1);
	return NULL;
}

/* ---- all of them ---- */

static uint64_t packed_bytes(const struct dbt_unpack_work *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->n_archives; i++)
		sum += w->p->members[i].source.size_bytes;
	return sum;
}

static void watch(struct dbt_unpack_work *w, const char *phase)
{
	const struct timespec nap = { .tv_nsec = 50000000 };
	const struct dbt_ctx *ctx = w->flow->ctx;
	struct dbt_progress progress = { .phase = phase,
		                         .name = w->p->path,
		                         .total_bytes = packed_bytes(w) };

	while (atomic_load(&w->readers) > 0) {
		progress.done_bytes = atomic_load(&w->done_bytes);
		if (ctx->progress)
			ctx->progress(ctx->progress_data, &progress);
		(void)nanosleep(&nap, NULL);
	}
}

/* Where the processor and not a disk set the pace, a faster disk would not help: that is worth a line. */
static void tell_limit(struct dbt_unpack_work *w, size_t jobs, uint64_t start_ns)
{
	uint64_t took_ns = w->flow->ctx->sys->now_ns() - start_ns;

	if (took_ns < 3000000000U || w->busy_ns < took_ns / 10 * 9 * jobs)
		return;
	dbt_ctx_log(w->flow->ctx, DBT_LOG_NOTE,
	            "the processor set the pace: unpacking kept %zu of them busy for %.0f s; an "
	            "archive packed by "
	            "zstd unpacks faster",
	            jobs, (double)took_ns / 1e9);
}

int dbt_unpack_read(struct dbt_unpack_work *w, struct dbt_err *err)
{
	uint64_t start_ns = w->flow->ctx->sys->now_ns();
	size_t jobs = n_jobs(w), n = 0;
	pthread_t threads[MOST_JOBS];
	struct dbt_err start;
	int r;

	atomic_store(&w->readers, jobs);
	for (; n < jobs; n++) {
		r = pthread_create(&threads[n], NULL, reader_main, w);
		if (r != 0) {
			(void)dbt_err_sys(&start, -r, "cannot start a thread");
			dbt_sink_fail(w->sink, &start);
			atomic_fetch_sub(&w->readers, jobs - n);
			break;
		}
	}
	watch(w, "unpack");
	for (size_t i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	r = dbt_sink_drain(w->sink, err);
	if (r == 0)
		r = dbt_unpack_compare_twins(&w->entries, err);
	if (r == 0)
		tell_limit(w, jobs, start_ns);
	return r;
}
