#include "sys/lock.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>

int dbt_lock_dir(const struct dbt_ctx *ctx, int dirfd, uint64_t wait_ns)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	uint64_t end = ctx->sys->now_ns() + wait_ns;

	while (flock(dirfd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL)
			return -ENOTSUP;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (dbt_ctx_cancelled(ctx))
			return -ECANCELED;
		if (ctx->sys->now_ns() >= end)
			return -EAGAIN;
		(void)nanosleep(&nap, NULL);
	}
	return 0;
}

void dbt_unlock_dir(int dirfd)
{
	(void)flock(dirfd, LOCK_UN);
}
