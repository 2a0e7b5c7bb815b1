#include "support/loopfs.h"

#include "support/tree.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

/* The mount point is BASE/mnt, everything else that belongs to it lies beside it in BASE. The
 * command is a shell line that finds BASE as its working directory. */
static bool run(const char *base, const char *command)
{
	char line[4096];

	(void)snprintf(line, sizeof(line), "cd '%s' && { %s; } >/dev/null 2>&1", base, command);
	return system(line) == 0; // NOLINT(cert-env33-c): a test tool with words of our own
}

static bool mount_it(const char *fstype, const char *base)
{
	char mkfs[64];

	if (strcmp(fstype, "tmpfs") == 0)
		return run(base, "mount -t tmpfs -o size=64M tmpfs mnt");
	if (strcmp(fstype, "overlay") == 0)
		return run(base, "mkdir lower upper work && mount -t overlay -o "
		                 "lowerdir=lower,upperdir=upper,workdir=work overlay mnt");
	(void)snprintf(mkfs, sizeof(mkfs), "mkfs.%s -q image", fstype);
	return run(base, "truncate -s 400M image") && run(base, mkfs) &&
	       run(base, "mount -o loop image mnt");
}

/* In a mount namespace of this program's own: whatever happens to it, the mounts and their loop
 * devices go when it ends. */
static bool own_namespace(void)
{
	static bool done;

	if (!done)
		done = unshare(CLONE_NEWNS) == 0 &&
		       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return done;
}

/* In memory, where a flush costs nothing, if there is room for what a test may write; /dev/shm of a container is
 * often small. */
static char *new_base(void)
{
	struct statvfs fs;

	if (statvfs("/dev/shm", &fs) == 0 && access("/dev/shm", W_OK) == 0 &&
	    (uint64_t)fs.f_bavail * fs.f_frsize > (uint64_t)1 << 30)
		return tree_new_in("/dev/shm");
	return tree_new();
}

char *loopfs_mount(const char *fstype, const char **ret_why)
{
	char *base, *point;

	if (geteuid() != 0 || !own_namespace()) {
		*ret_why = "mounting needs root";
		return NULL;
	}
	base = new_base();
	tree_mkdir(base, "mnt", 0755);
	if (!mount_it(fstype, base)) {
		tree_remove(base);
		free(base);
		*ret_why = "mkfs, a loop device or the filesystem is missing here";
		return NULL;
	}
	point = tree_path(base, "mnt");
	assert_int_equal(chmod(point, 0755), 0);
	free(base);
	return point;
}

void loopfs_umount(char *point)
{
	if (!point)
		return;
	assert_int_equal(umount2(point, 0), 0);
	*strrchr(point, '/') = '\0';
	tree_remove(point);
	free(point);
}
