#include "sys/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Filesystem types that the headers of Debian 12 have no names for: statfs(2) and the sources of
 * each. */
#define MAGIC_LUSTRE 0x0bd00bd0
#define MAGIC_GFS2   0x01161970
#define MAGIC_GPFS   0x47504653
#define MAGIC_BEEGFS 0x19830326

/* Leases that this thread holds, and whether SIGIO has to be unblocked after the last of them. A
 * signal mask belongs to a thread, so does this. */
static _Thread_local unsigned held;
static _Thread_local bool unblock_after;

static const char *network_name(uint32_t magic)
{
	switch (magic) {
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case CEPH_SUPER_MAGIC:
	case V9FS_MAGIC:
	case AFS_SUPER_MAGIC:
	case AFS_FS_MAGIC:
	case CODA_SUPER_MAGIC:
	case OCFS2_SUPER_MAGIC:
	case MAGIC_LUSTRE:
	case MAGIC_GFS2:
	case MAGIC_GPFS:
	case MAGIC_BEEGFS:
		return "a network filesystem does not see the writers of other machines";
	case FUSE_SUPER_MAGIC:
		return "a FUSE filesystem does not see who writes behind it";
	default:
		return NULL;
	}
}

static void sigio_only(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGIO);
}

static int block_sigio(void)
{
	sigset_t set, old;
	int r;

	if (held > 0)
		return 0;
	sigio_only(&set);
	r = pthread_sigmask(SIG_BLOCK, &set, &old);
	if (r != 0)
		return -r;
	unblock_after = sigismember(&old, SIGIO) == 0;
	return 0;
}

static void unblock_sigio(void)
{
	const struct timespec now = { 0 };
	sigset_t set;

	if (held > 0 || !unblock_after)
		return;
	sigio_only(&set);
	while (sigtimedwait(&set, NULL, &now) > 0 || errno == EINTR)
		;
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* To this thread only. Must come before F_SETLEASE, which makes the process the owner of a
 * descriptor that has none. */
static int own(int fd, pid_t tid)
{
	const struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = tid };

	return fcntl(fd, F_SETOWN_EX, &owner) < 0 ? -errno : 0;
}

static void give_back(const struct dbt_ctx *ctx, int fd)
{
	(void)ctx->sys->lease(fd, F_SETLEASE, F_UNLCK);
	(void)own(fd, 0);
}

/* Returns 1, -errno, or 0 with the reason. */
static int take(const struct dbt_ctx *ctx, int fd, bool overlay, const char **ret_why)
{
	int r = own(fd, (pid_t)syscall(SYS_gettid));

	if (r < 0)
		return r;
	r = ctx->sys->lease(fd, F_SETLEASE, F_RDLCK);
	if (r < 0)
		(void)own(fd, 0);
	switch (-r) {
	case 0:
		if (!overlay)
			return 1;
		give_back(ctx, fd);
		*ret_why = "an overlay does not see writers that have the file mapped";
		return 0;
	case EINVAL:
	case EOPNOTSUPP:
		*ret_why = "the filesystem grants no leases";
		return 0;
	case EACCES:
	case EPERM:
		*ret_why = "a lease is for the file's owner or root";
		return 0;
	default:
		return r;
	}
}

int dbt_lease_take(const struct dbt_ctx *ctx, int fd, const char **ret_why)
{
	const char *network;
	struct statfs fs;
	int r;

	if (fstatfs(fd, &fs) < 0)
		return -errno;
	network = network_name((uint32_t)fs.f_type);
	if (network) {
		*ret_why = network;
		return 0;
	}
	r = block_sigio();
	if (r < 0)
		return r;
	r = take(ctx, fd, (uint32_t)fs.f_type == OVERLAYFS_SUPER_MAGIC, ret_why);
	if (r == 1)
		held++;
	else
		unblock_sigio();
	return r;
}

bool dbt_lease_broken(const struct dbt_ctx *ctx, int fd)
{
	/* a break that is under way already shows the type the lease will have: F_UNLCK */
	return ctx->sys->lease(fd, F_GETLEASE, 0) != F_RDLCK;
}

void dbt_lease_drop(const struct dbt_ctx *ctx, int fd)
{
	give_back(ctx, fd);
	if (held > 0)
		held--;
	unblock_sigio();
}
