#include "survey/stats.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* A helper is woken for this many names at least: waking costs as much as a few of them. Portions are
 * small, so that on a cold disk all helpers read the same stretch of the inode table. */
enum { MIN_SHARED = 48, PORTION = 16, MAX_HELPERS = 3 };

struct dbt_stats {
	const struct dbt_ctx *ctx;
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	/* Under the lock: */
	bool stop;
	unsigned round; /* counts jobs */
	unsigned busy;  /* helpers inside the job */
	/* The job; written while no helper is busy. */
	int dirfd;
	struct dbt_stat *items;
	size_t n;
	atomic_size_t next;
	pthread_t threads[MAX_HELPERS];
	unsigned n_threads;
};

void dbt_stat_one(const struct dbt_ctx *ctx, int dirfd, int flags, struct dbt_stat *item)
{
	struct statx stx;

	item->code = ctx->sys->statx(dirfd, item->name, flags | AT_NO_AUTOMOUNT,
	                             STATX_TYPE | STATX_SIZE | STATX_INO | STATX_NLINK, &stx);
	if (item->code < 0)
		return;
	item->mode = stx.stx_mode;
	item->nlink = stx.stx_nlink;
	item->size_bytes = stx.stx_size;
	item->dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	item->ino = stx.stx_ino;
}

static void take_part(struct dbt_stats *s)
{
	for (;;) {
		size_t first = atomic_fetch_add(&s->next, PORTION),
		       end = first + PORTION < s->n ? first + PORTION : s->n;

		if (first >= s->n)
			return;
		for (size_t i = first; i < end; i++)
			dbt_stat_one(s->ctx, s->dirfd, AT_SYMLINK_NOFOLLOW, &s->items[i]);
	}
}

static void *helper(void *arg)
{
	struct dbt_stats *s = arg;
	unsigned seen = 0;

	(void)pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->stop && s->round == seen)
			(void)pthread_cond_wait(&s->work, &s->lock);
		if (s->stop)
			break;
		seen = s->round;
		s->busy++;
		(void)pthread_mutex_unlock(&s->lock);
		take_part(s);
		(void)pthread_mutex_lock(&s->lock);
		if (--s->busy == 0)
			(void)pthread_cond_signal(&s->idle);
	}
	(void)pthread_mutex_unlock(&s->lock);
	return NULL;
}

static unsigned helpers_wanted(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	n = CPU_COUNT(&set) - 1;
	return n < 0 ? 0U : n < MAX_HELPERS ? (unsigned)n : (unsigned)MAX_HELPERS;
}

struct dbt_stats *dbt_stats_new(const struct dbt_ctx *ctx)
{
	unsigned want = helpers_wanted();
	struct dbt_stats *s = want ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	s->ctx = ctx;
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_cond_init(&s->work, NULL);
	(void)pthread_cond_init(&s->idle, NULL);
	while (s->n_threads < want &&
	       pthread_create(&s->threads[s->n_threads], NULL, helper, s) == 0)
		s->n_threads++;
	if (s->n_threads == 0) {
		dbt_stats_free(s);
		return NULL;
	}
	return s;
}

void dbt_stats_free(struct dbt_stats *s)
{
	if (!s)
		return;
	(void)pthread_mutex_lock(&s->lock);
	s->stop = true;
	(void)pthread_cond_broadcast(&s->work);
	(void)pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < s->n_threads; i++)
		(void)pthread_join(s->threads[i], NULL);
	(void)pthread_cond_destroy(&s->idle);
	(void)pthread_cond_destroy(&s->work);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

void dbt_stats_run(struct dbt_stats *s, const struct dbt_ctx *ctx, int dirfd,
                   struct dbt_stat *items, size_t n)
{
	if (!s || n < MIN_SHARED) {
		for (size_t i = 0; i < n; i++)
			dbt_stat_one(ctx, dirfd, AT_SYMLINK_NOFOLLOW, &items[i]);
		return;
	}
	(void)pthread_mutex_lock(&s->lock);
	/* A helper that woke late for the job before finds nothing left, but may still look. */
	while (s->busy > 0)
		(void)pthread_cond_wait(&s->idle, &s->lock);
	s->dirfd = dirfd;
	s->items = items;
	s->n = n;
	atomic_store(&s->next, 0);
	s->round++;
	(void)pthread_cond_broadcast(&s->work);
	(void)pthread_mutex_unlock(&s->lock);
	take_part(s);
	(void)pthread_mutex_lock(&s->lock);
	/* Helpers that have not woken yet have nothing to wait for: all portions are taken. */
	while (s->busy > 0)
		(void)pthread_cond_wait(&s->idle, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
}
