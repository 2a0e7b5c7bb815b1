/* A filesystem that shows a directory of another one, and lies about RENAME_EXCHANGE: it reports success and does a plain
 * rename, as some filesystems in user space have done, so that one of the two files is lost.
 *
 *	fuseodd BACKING DIR [TYPE]    in the foreground; ends with its parent, or when DIR is unmounted. Its type
 *	                              is "fuse.fuseodd", or another one, as of a filesystem on the network: "fuse.sshfs". */
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static int backing; /* the directory */

/* The path below the backing directory. */
static const char *below(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int result(int r)
{
	return r < 0 ? -errno : r;
}

static void *odd_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	(void)conn;
	config->use_ino = 1;
	config->hard_remove = 1;
	config->nullpath_ok = 0;
	config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
	return NULL;
}

static int odd_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	return result(fi ? fstat((int)fi->fh, st)
	                 : fstatat(backing, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int odd_readlink(const char *path, char *buf, size_t len)
{
	ssize_t n = readlinkat(backing, below(path), buf, len - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

static int odd_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                       struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	int fd = openat(backing, below(path), O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	(void)off;
	(void)fi;
	(void)flags;
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		fill(buf, entry->d_name, NULL, 0, 0);
	(void)closedir(dir);
	return 0;
}

static int odd_mkdir(const char *path, mode_t mode)
{
	return result(mkdirat(backing, below(path), mode));
}

static int odd_unlink(const char *path)
{
	return result(unlinkat(backing, below(path), 0));
}

static int odd_rmdir(const char *path)
{
	return result(unlinkat(backing, below(path), AT_REMOVEDIR));
}

static int odd_symlink(const char *text, const char *path)
{
	return result(symlinkat(text, backing, below(path)));
}

/* The lie. It is told on stderr whose files it cost. */
static int odd_rename(const char *from, const char *to, unsigned flags)
{
	if (flags & RENAME_EXCHANGE)
		(void)fprintf(stderr, "false exchange of %s and %s\n", from, to);
	return result(renameat2(backing, below(from), backing, below(to),
	                        flags & ~(unsigned)RENAME_EXCHANGE));
}

static int odd_link(const char *from, const char *to)
{
	return result(linkat(backing, below(from), backing, below(to), 0));
}

static int odd_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return result(fi ? fchmod((int)fi->fh, mode) : fchmodat(backing, below(path), mode, 0));
}

static int odd_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	(void)fi;
	return result(fchownat(backing, below(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int odd_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	int fd, r;

	if (fi)
		return result(ftruncate((int)fi->fh, size));
	fd = openat(backing, below(path), O_WRONLY);
	if (fd < 0)
		return -errno;
	r = result(ftruncate(fd, size));
	(void)close(fd);
	return r;
}

static int odd_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
	(void)fi;
	return result(utimensat(backing, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static int keep(int fd, struct fuse_file_info *fi)
{
	if (fd < 0)
		return -errno;
	fi->fh = (uint64_t)fd;
	return 0;
}

static int odd_open(const char *path, struct fuse_file_info *fi)
{
	return keep(openat(backing, below(path), fi->flags & ~O_DIRECT), fi);
}

static int odd_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return keep(openat(backing, below(path), (fi->flags & ~O_DIRECT) | O_CREAT, mode), fi);
}

static int odd_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return result(close((int)fi->fh));
}

static int odd_read(const char *path, char *buf, size_t len, off_t off, struct fuse_file_info *fi)
{
	(void)path;
	return result((int)pread((int)fi->fh, buf, len, off));
}

static int odd_write(const char *path, const char *buf, size_t len, off_t off,
                     struct fuse_file_info *fi)
{
	(void)path;
	return result((int)pwrite((int)fi->fh, buf, len, off));
}

static int odd_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)path;
	(void)data_only;
	return result(fsync((int)fi->fh));
}

static int odd_fsyncdir(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)path;
	(void)data_only;
	(void)fi;
	return result(fsync(backing));
}

static int odd_statfs(const char *path, struct statvfs *vfs)
{
	(void)path;
	return result(fstatvfs(backing, vfs));
}

static const struct fuse_operations ops = {
	.init = odd_init,
	.getattr = odd_getattr,
	.readlink = odd_readlink,
	.readdir = odd_readdir,
	.mkdir = odd_mkdir,
	.unlink = odd_unlink,
	.rmdir = odd_rmdir,
	.symlink = odd_symlink,
	.rename = odd_rename,
	.link = odd_link,
	.chmod = odd_chmod,
	.chown = odd_chown,
	.truncate = odd_truncate,
	.utimens = odd_utimens,
	.open = odd_open,
	.create = odd_create,
	.release = odd_release,
	.read = odd_read,
	.write = odd_write,
	.fsync = odd_fsync,
	.fsyncdir = odd_fsyncdir,
	.statfs = odd_statfs,
};

int main(int argc, char **argv)
{
	char options[64];
	char *args[] = { argv[0],
		         argc > 2 ? argv[2] : NULL,
		         (char[]){ "-f" },
		         (char[]){ "-s" },
		         (char[]){ "-o" },
		         options,
		         NULL };

	if (argc != 3 && argc != 4) {
		(void)fprintf(stderr, "usage: fuseodd BACKING DIR [TYPE]\n");
		return 2;
	}
	(void)snprintf(options, sizeof(options), "allow_other,default_permissions,subtype=%s",
	               argc > 3 ? argv[3] : "fuseodd");
	backing = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (backing < 0) {
		perror(argv[1]);
		return 1;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)umask(0);
	return fuse_main(6, args, &ops, NULL);
}
