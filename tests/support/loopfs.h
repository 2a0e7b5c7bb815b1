/* Real filesystems for tests: an image file, made with mkfs and mounted through a loop device. The
 * mounts are seen by this program and its children only, and end with it. Needs root; without it,
 * or without mkfs or the kernel's filesystem, loopfs_mount returns NULL and the test skips itself
 * with the reason. */
#ifndef TESTS_SUPPORT_LOOPFS_H
#define TESTS_SUPPORT_LOOPFS_H

/* "ext4", "xfs", "btrfs", "tmpfs", or "overlay" (its upper and lower directory on /tmp). Returns
 * the mount point (free it with loopfs_umount), or NULL and why. */
char *loopfs_mount(const char *fstype, const char **ret_why);

/* Unmounts and removes the image; frees point. NULL is fine. */
void loopfs_umount(char *point);

#endif
