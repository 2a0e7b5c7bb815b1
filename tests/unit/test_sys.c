#include "base/buf.h"
#include "support/tree.h"
#include "sys/at.h"
#include "sys/io.h"
#include "sys/lock.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* The real system with one thing changed, per test. */
struct fixture {
	struct dbt_sys sys;
	struct dbt_ctx ctx;
	char *dir; /* canonical */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char *dir = tree_new();

	f->sys = dbt_sys_real;
	f->ctx = (struct dbt_ctx){ .sys = &f->sys };
	f->dir = realpath(dir, NULL);
	free(dir);
	*state = f;
	return f->dir ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tree_remove(f->dir);
	free(f->dir);
	free(f);
	return 0;
}

static int no_openat2(int dirfd, const char *name, const struct open_how *how)
{
	(void)dirfd;
	(void)name;
	(void)how;
	return -ENOSYS;
}

/* ---- at ---- */

/* Resolves DIR/path; checks the name and the shown path (below DIR). */
static void check_resolve(struct fixture *f, const char *path, const char *name, const char *shown)
{
	char *full = tree_path(f->dir, path), *wanted = tree_path(f->dir, shown);
	struct dbt_err err = { 0 };
	struct dbt_at at;

	if (dbt_at_resolve(&f->ctx, full, &at, &err) < 0)
		fail_msg("%s: %s", path, err.text);
	assert_string_equal(at.name, name);
	assert_string_equal(at.shown, wanted);
	dbt_at_release(&at);
	dbt_at_release(&at); /* twice is fine */
	free(full);
	free(wanted);
}

static void resolve_follows_links_in_the_directory_only(void **state)
{
	struct fixture *f = *state;

	tree_put(f->dir, "real/sub/file", "x");
	tree_symlink(f->dir, "link", "real");
	tree_symlink(f->dir, "real/sub/last", "file");
	check_resolve(f, "real/sub/file", "file", "real/sub/file");
	check_resolve(f, "link/sub/file", "file", "real/sub/file");
	check_resolve(f, "link/sub/last", "last", "real/sub/last");
	check_resolve(f, "real//sub/./../sub/file", "file", "real/sub/file");
	check_resolve(f, "real/sub/not-there", "not-there", "real/sub/not-there");
	/* What ends in a slash, "." or ".." is the directory itself. */
	check_resolve(f, "real/sub/", "sub", "real/sub");
	check_resolve(f, "real/sub/.", "sub", "real/sub");
	check_resolve(f, "real/sub/..", "real", "real");
	check_resolve(f, "link/", "real", "real");
	check_resolve(f, "link", "link", "link");
	/* Names are bytes. */
	check_resolve(f, "real/a\nb \xff", "a\nb \xff", "real/a\nb \xff");
}

static void resolve_takes_relative_paths(void **state)
{
	struct fixture *f = *state;
	int back = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct dbt_err err;
	struct dbt_at at;
	char *wanted = tree_path(f->dir, "file");

	assert_true(back >= 0);
	assert_int_equal(chdir(f->dir), 0);
	assert_int_equal(dbt_at_resolve(&f->ctx, "file", &at, &err), 0);
	assert_string_equal(at.shown, wanted);
	dbt_at_release(&at);
	assert_int_equal(dbt_at_resolve_strict(&f->ctx, "./file", &at, &err), 0);
	dbt_at_release(&at);
	f->sys.openat2 = no_openat2;
	tree_mkdir(f->dir, "sub", 0755);
	free(wanted);
	wanted = tree_path(f->dir, "sub/file");
	assert_int_equal(dbt_at_resolve_strict(&f->ctx, "sub/file", &at, &err), 0);
	assert_string_equal(at.shown, wanted);
	dbt_at_release(&at);
	assert_int_equal(fchdir(back), 0);
	close(back);
	free(wanted);
}

static void resolve_says_what_is_wrong(void **state)
{
	struct fixture *f = *state;
	struct dbt_err err;
	struct dbt_at at;
	char *path = tree_path(f->dir, "no/such");

	assert_int_equal(dbt_at_resolve(&f->ctx, path, &at, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
	assert_true(dbt_at_resolve(&f->ctx, "", &at, &err) < 0);
	assert_int_equal(err.kind, DBT_ERR_USAGE);
	assert_true(dbt_at_resolve(&f->ctx, "/", &at, &err) < 0);
	assert_true(dbt_at_resolve(&f->ctx, "/..", &at, &err) < 0);
	free(path);
}

/* With openat2 and without it: a link in the directory part is -ELOOP, a plain path is fine. */
static void strict_resolve_meets_no_link(void **state)
{
	struct fixture *f = *state;
	struct dbt_err err;
	struct dbt_at at;
	char *plain = tree_path(f->dir, "real/sub/file"),
	     *linked = tree_path(f->dir, "link/sub/file"), *last = tree_path(f->dir, "link"),
	     *through = tree_path(f->dir, "real/file/x");

	tree_put(f->dir, "real/sub/file", "x");
	tree_put(f->dir, "real/file", "x");
	tree_symlink(f->dir, "link", "real");
	for (int round = 0; round < 2; round++) {
		assert_int_equal(dbt_at_resolve_strict(&f->ctx, plain, &at, &err), 0);
		assert_string_equal(at.shown, plain);
		dbt_at_release(&at);
		assert_int_equal(dbt_at_resolve_strict(&f->ctx, last, &at, &err), 0);
		dbt_at_release(&at);
		assert_int_equal(dbt_at_resolve_strict(&f->ctx, linked, &at, &err), -ELOOP);
		assert_int_equal(dbt_at_resolve_strict(&f->ctx, through, &at, &err), -ENOTDIR);
		f->sys.openat2 = no_openat2;
	}
	free(plain);
	free(linked);
	free(last);
	free(through);
}

static void a_sibling_shares_the_directory(void **state)
{
	struct fixture *f = *state;
	char *path = tree_path(f->dir, "file"), *wanted = tree_path(f->dir, ".file.kept");
	struct dbt_at at, sibling;
	struct dbt_err err;

	assert_int_equal(dbt_at_resolve(&f->ctx, path, &at, &err), 0);
	assert_int_equal(dbt_at_sibling(&at, ".file.kept", &sibling), 0);
	assert_string_equal(sibling.shown, wanted);
	dbt_at_release(&at);
	assert_int_equal(dbt_at_sync_dir(&f->ctx, &sibling), 0);
	dbt_at_release(&sibling);
	free(path);
	free(wanted);
}

static void open_does_not_follow(void **state)
{
	struct fixture *f = *state;
	char *path = tree_path(f->dir, "link"), *text = NULL;
	struct dbt_ident ident;
	struct dbt_err err;
	struct dbt_at at;

	tree_put(f->dir, "file", "x");
	tree_symlink(f->dir, "link", "file");
	assert_int_equal(dbt_at_resolve(&f->ctx, path, &at, &err), 0);
	assert_int_equal(dbt_at_open(&f->ctx, &at, O_RDONLY, 0), -ELOOP);
	assert_int_equal(dbt_at_ident(&f->ctx, &at, &ident), 0);
	assert_true(S_ISLNK(ident.mode));
	assert_int_equal(dbt_at_readlink(&at, &text), 0);
	assert_string_equal(text, "file");
	free(text);
	dbt_at_release(&at);
	free(path);
}

static void the_path_of_a_descriptor(void **state)
{
	struct fixture *f = *state;
	char *dir = tree_path(f->dir, "gone (deleted)"), *plain = tree_path(f->dir, "gone"), *got;
	int fd;

	tree_mkdir(f->dir, "gone (deleted)", 0755);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	/* A name that really ends so. */
	assert_int_equal(dbt_fd_path(fd, &got), 0);
	assert_string_equal(got, dir);
	free(got);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(dbt_fd_path(fd, &got), -ENOENT);
	close(fd);

	/* Removed, while another of the name that /proc shows is there. */
	tree_mkdir(f->dir, "gone", 0755);
	fd = open(plain, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(rmdir(plain), 0);
	tree_mkdir(f->dir, "gone (deleted)", 0755);
	assert_int_equal(dbt_fd_path(fd, &got), -ENOENT);
	close(fd);
	free(dir);
	free(plain);
}

/* ---- identity ---- */

static void identity_tells_what_changed(void **state)
{
	struct fixture *f = *state;
	char *path = tree_path(f->dir, "file"), *other = tree_path(f->dir, "other");
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1, .tv_nsec = 7 } };
	struct dbt_ident a, b;
	int fd;

	tree_put(f->dir, "file", "0123456789");
	assert_int_equal(dbt_ident_of(&f->ctx, AT_FDCWD, path, &a), 0);
	assert_int_equal(a.size_bytes, 10);
	assert_int_equal(a.nlink, 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(dbt_ident_fd(&f->ctx, fd, &b), 0);
	assert_true(dbt_ident_same_content(&a, &b, true, false));

	/* Metadata only: seen with ctime, not without. */
	assert_int_equal(usleep(20000), 0);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(dbt_ident_fd(&f->ctx, fd, &b), 0);
	assert_false(dbt_ident_same_content(&a, &b, true, false));
	assert_true(dbt_ident_same_content(&a, &b, false, false));

	/* Same size, other mtime. */
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(dbt_ident_fd(&f->ctx, fd, &b), 0);
	assert_int_equal(b.mtime_ns, 1000000007);
	assert_false(dbt_ident_same_content(&a, &b, false, false));
	assert_true(dbt_ident_same_inode(&a, &b, false));

	/* Another file under the name. */
	tree_put(f->dir, "other", "0123456789");
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(dbt_ident_of(&f->ctx, AT_FDCWD, path, &b), 0);
	assert_false(dbt_ident_same_inode(&a, &b, true));
	close(fd);
	free(path);
	free(other);
}

/* Device numbers may change between boots; a reused inode number has another birth time. */
static void identity_across_a_reboot(void **state)
{
	struct dbt_ident a = { .dev = 1, .ino = 5, .btime_ns = 100, .mode = S_IFREG | 0644 }, b = a;

	(void)state;
	b.dev = 2;
	assert_false(dbt_ident_same_inode(&a, &b, false));
	assert_true(dbt_ident_same_inode(&a, &b, true));
	b.btime_ns = 101;
	assert_false(dbt_ident_same_inode(&a, &b, true));
	b.btime_ns = 0;
	assert_true(dbt_ident_same_inode(&a, &b, true));
	b.mode = S_IFLNK | 0777;
	assert_false(dbt_ident_same_inode(&a, &b, true));
}

static int far_statx(int dirfd, const char *name, int flags, unsigned mask, struct statx *ret)
{
	int r = dbt_sys_real.statx(dirfd, name, flags, mask, ret);

	ret->stx_mtime.tv_sec = INT64_MAX / 1000;
	ret->stx_ctime.tv_sec = INT64_MIN / 1000;
	ret->stx_atime.tv_sec = -1;
	ret->stx_atime.tv_nsec = 999999999;
	return r;
}

static void times_beyond_64_bits_end_at_the_limit(void **state)
{
	struct fixture *f = *state;
	struct dbt_ident ident;

	f->sys.statx = far_statx;
	assert_int_equal(dbt_ident_of(&f->ctx, AT_FDCWD, f->dir, &ident), 0);
	assert_true(ident.mtime_ns == INT64_MAX);
	assert_true(ident.ctime_ns == INT64_MIN);
	assert_true(ident.atime_ns == -1);
}

/* ---- io ---- */

static unsigned calls;

/* Every other call is interrupted; the rest move at most three bytes. */
static ssize_t slow_pread(int fd, void *buf, size_t len, uint64_t off)
{
	if (calls++ % 2 == 0)
		return -EINTR;
	return dbt_sys_real.pread(fd, buf, len < 3 ? len : 3, off);
}

static ssize_t slow_pwrite(int fd, const void *buf, size_t len, uint64_t off)
{
	if (calls++ % 2 == 0)
		return -EINTR;
	return dbt_sys_real.pwrite(fd, buf, len < 3 ? len : 3, off);
}

static void reads_and_writes_are_whole(void **state)
{
	struct fixture *f = *state;
	char *path = tree_path(f->dir, "file"), buf[32] = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	f->sys.pread = slow_pread;
	f->sys.pwrite = slow_pwrite;
	assert_true(fd >= 0);
	assert_int_equal(dbt_io_pwrite(&f->ctx, fd, "0123456789", 10, 5), 0);
	assert_int_equal(dbt_io_pread(&f->ctx, fd, buf, sizeof(buf), 5), 10);
	assert_string_equal(buf, "0123456789");
	assert_int_equal(dbt_io_pread(&f->ctx, fd, buf, 4, 7), 4);
	assert_memory_equal(buf, "2345", 4);
	assert_int_equal(dbt_io_pread(&f->ctx, fd, buf, 4, 100), 0);
	assert_int_equal(dbt_io_pwrite(&f->ctx, fd, NULL, 0, 0), 0);
	close(fd);
	free(path);
}

static ssize_t broken_pread(int fd, void *buf, size_t len, uint64_t off)
{
	return calls++ == 0 ? dbt_sys_real.pread(fd, buf, len < 3 ? len : 3, off) : -EIO;
}

static ssize_t zero_pwrite(int fd, const void *buf, size_t len, uint64_t off)
{
	(void)fd;
	(void)buf;
	(void)len;
	(void)off;
	return 0;
}

/* With O_DIRECT: what follows a read that ended inside a sector is unaligned. */
static ssize_t direct_pread(int fd, void *buf, size_t len, uint64_t off)
{
	return off % 512 ? -EINVAL : dbt_sys_real.pread(fd, buf, len, off);
}

static void failures_come_through(void **state)
{
	struct fixture *f = *state;
	char *path = tree_path(f->dir, "file"), buf[32];
	int fd;

	tree_put(f->dir, "file", "0123456789");
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	calls = 0;
	f->sys.pread = broken_pread;
	assert_int_equal(dbt_io_pread(&f->ctx, fd, buf, sizeof(buf), 0), -EIO);
	f->sys.pwrite = zero_pwrite;
	assert_int_equal(dbt_io_pwrite(&f->ctx, fd, "x", 1, 0), -EIO);
	f->sys.pread = direct_pread;
	assert_int_equal(dbt_io_pread(&f->ctx, fd, buf, sizeof(buf), 0), 10);
	assert_int_equal(dbt_io_pread(&f->ctx, fd, buf, sizeof(buf), 7), -EINVAL);
	close(fd);
	free(path);
}

static int old_statx(int dirfd, const char *name, int flags, unsigned mask, struct statx *ret)
{
	int r = dbt_sys_real.statx(dirfd, name, flags, mask & 0xfffU, ret);

	ret->stx_mask &= 0xfffU;
	return r;
}

static void alignments_without_an_answer_are_a_page(void **state)
{
	struct fixture *f = *state;
	struct dbt_dio dio;
	int fd;
	char *path = tree_path(f->dir, "file");

	tree_put(f->dir, "file", "x");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	dbt_io_dio_limits(&f->ctx, fd, &dio);
	if (dio.known && dio.supported)
		assert_true(dio.mem_align >= 4 && dio.off_align >= 512 && dio.off_align <= 65536);
	f->sys.statx = old_statx;
	dbt_io_dio_limits(&f->ctx, fd, &dio);
	assert_false(dio.known);
	assert_true(dio.supported);
	assert_int_equal(dio.mem_align, 4096);
	assert_int_equal(dio.off_align, 4096);
	close(fd);
	free(path);
}

static void cached_pages_are_counted(void **state)
{
	enum { BYTES = 1 << 20 };
	struct fixture *f = *state;
	char *path = tree_path(f->dir, "file"), *data = calloc(1, BYTES);
	uint64_t bytes = 1;
	int fd, r;

	tree_put_bytes(f->dir, "file", data, BYTES);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(dbt_io_cached(&f->ctx, fd, 0, 0, &bytes), 0);
	assert_int_equal(bytes, 0);
	r = dbt_io_cached(&f->ctx, fd, 0, BYTES, &bytes);
	if (r == 0) {
		assert_int_equal(bytes, BYTES); /* just written */
		assert_int_equal(fsync(fd), 0);
		assert_int_equal(posix_fadvise(fd, 0, BYTES / 2, POSIX_FADV_DONTNEED), 0);
		assert_int_equal(dbt_io_cached(&f->ctx, fd, 0, BYTES, &bytes), 0);
		assert_true(bytes <= BYTES);
		assert_int_equal(dbt_io_cached(&f->ctx, fd, BYTES / 2, BYTES / 2, &bytes), 0);
		assert_int_equal(bytes, BYTES / 2);
	} else {
		assert_int_equal(r, -ENOTSUP); /* overlayfs */
	}
	close(fd);
	free(path);
	free(data);
}

/* ---- root ---- */

static void a_captured_root_keeps_its_links_inside(void **state)
{
	struct fixture *f = *state;
	struct dbt_buf buf = { 0 };
	struct dbt_root root;
	uint64_t value;
	DIR *dir;

	tree_put(f->dir, "sys/block/sda/size", "1953525168\n");
	tree_put(f->dir, "sys/block/sda/model", "  Some Disk  \n\n");
	tree_put(f->dir, "sys/block/sda/bad", "12x\n");
	tree_put(f->dir, "sys/block/sda/minus", "-1\n");
	tree_put(f->dir, "sys/block/sda/empty", "");
	tree_put(f->dir, "sys/block/sda/huge", "18446744073709551616\n");
	tree_symlink(f->dir, "sys/absolute", "/sys/block/sda");
	tree_symlink(f->dir, "sys/out", "../../../../../../../../etc/passwd");
	assert_int_equal(dbt_root_open(&root, f->dir), 0);
	assert_false(root.live);

	assert_int_equal(dbt_root_read_u64(&root, "sys/absolute/size", &value), 0);
	assert_int_equal(value, 1953525168);
	assert_int_equal(dbt_root_read_u64(&root, "sys/block/sda/bad", &value), -EINVAL);
	assert_int_equal(dbt_root_read_u64(&root, "sys/block/sda/minus", &value), -EINVAL);
	assert_int_equal(dbt_root_read_u64(&root, "sys/block/sda/empty", &value), -EINVAL);
	assert_int_equal(dbt_root_read_u64(&root, "sys/block/sda/huge", &value), -EINVAL);
	assert_int_equal(dbt_root_read_u64(&root, "sys/nothing", &value), -ENOENT);
	assert_int_equal(dbt_root_read_line(&root, "sys/block/sda/model", &buf), 0);
	assert_string_equal(buf.data, "  Some Disk");
	assert_int_equal(dbt_root_read(&root, "sys/block/sda/model", 4, &buf), -EFBIG);
	assert_int_equal(dbt_root_readlink(&root, "sys/absolute", &buf), 0);
	assert_string_equal(buf.data, "/sys/block/sda");
	assert_int_equal(dbt_root_readlink(&root, "sys/block", &buf), -EINVAL);
	assert_int_equal(dbt_root_readlink(&root, "sys/nothing", &buf), -ENOENT);

	/* The link leads to etc/passwd inside, which is not there; the real one is. */
	assert_int_equal(dbt_root_read(&root, "sys/out", 65536, &buf), -ENOENT);
	assert_false(dbt_root_exists(&root, "sys/out"));
	assert_true(dbt_root_exists(&root, "sys/absolute"));
	assert_int_equal(dbt_root_opendir(&root, "sys/absolute", &dir), 0);
	closedir(dir);
	assert_int_equal(dbt_root_opendir(&root, "sys/block/sda/size", &dir), -ENOTDIR);
	dbt_root_close(&root);
	dbt_root_close(&root);
	dbt_buf_release(&buf);
}

static void a_fifo_in_a_captured_root_does_not_hang(void **state)
{
	struct fixture *f = *state;
	struct dbt_buf buf = { 0 };
	struct dbt_root root;
	char *path = tree_path(f->dir, "fifo");

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(dbt_root_open(&root, f->dir), 0);
	assert_int_equal(dbt_root_read(&root, "fifo", 100, &buf), 0);
	assert_int_equal(buf.len, 0);
	dbt_root_close(&root);
	dbt_buf_release(&buf);
	free(path);
}

static void the_live_root_is_known(void **state)
{
	struct dbt_buf buf = { 0 };
	struct dbt_root root;

	(void)state;
	assert_int_equal(dbt_root_open(&root, "/"), 0);
	assert_true(root.live);
	dbt_root_close(&root);
	assert_int_equal(dbt_root_open(&root, NULL), 0);
	assert_true(root.live);
	assert_int_equal(dbt_root_read(&root, "proc/self/mountinfo", 1 << 20, &buf), 0);
	assert_true(buf.len > 0);
	dbt_root_close(&root);
	dbt_buf_release(&buf);
	assert_int_equal(dbt_root_open(&root, "/no/such"), -ENOENT);
}

/* ---- lock, ctx ---- */

static uint64_t fake_ns;

static uint64_t jumping_clock(void)
{
	return fake_ns += 1000000000;
}

static void one_lock_a_directory(void **state)
{
	struct fixture *f = *state;
	int a = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    b = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	atomic_int cancel = 0;

	assert_int_equal(dbt_lock_dir(&f->ctx, a, 0), 0);
	assert_int_equal(dbt_lock_dir(&f->ctx, b, 0), -EAGAIN);
	f->sys.now_ns = jumping_clock;
	assert_int_equal(dbt_lock_dir(&f->ctx, b, UINT64_C(5000000000)), -EAGAIN);
	assert_true(fake_ns >= UINT64_C(6000000000));
	f->ctx.cancel = &cancel;
	cancel = 2;
	assert_int_equal(dbt_lock_dir(&f->ctx, b, UINT64_C(5000000000)), -ECANCELED);
	cancel = 0;
	dbt_unlock_dir(a);
	assert_int_equal(dbt_lock_dir(&f->ctx, b, 0), 0);
	close(a);
	close(b);
}

/* The lock vanishes with the process that held it. */
static void a_lock_ends_with_its_process(void **state)
{
	struct fixture *f = *state;
	int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int own = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		_exit(dbt_lock_dir(&f->ctx, own, 0) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(dbt_lock_dir(&f->ctx, fd, 0), 0);
	close(fd);
}

static char logged[64];
static enum dbt_log_level logged_level;

static void keep_log(void *data, enum dbt_log_level level, const char *text)
{
	(void)data;
	logged_level = level;
	(void)snprintf(logged, sizeof(logged), "%s", text);
}

static void the_context_logs_and_is_cancelled(void **state)
{
	struct dbt_root root = { .fd = -1 };
	struct dbt_ctx ctx;
	atomic_int cancel = 0;

	(void)state;
	dbt_ctx_init(&ctx, &root);
	assert_ptr_equal(ctx.sys, &dbt_sys_real);
	dbt_ctx_log(&ctx, DBT_LOG_NOTE, "nobody listens");
	assert_false(dbt_ctx_cancelled(&ctx));
	ctx.log = keep_log;
	ctx.cancel = &cancel;
	dbt_ctx_log(&ctx, DBT_LOG_WARNING, "%d of %s", 3, "five");
	assert_string_equal(logged, "3 of five");
	assert_int_equal(logged_level, DBT_LOG_WARNING);
	assert_false(dbt_ctx_cancelled(&ctx));
	cancel = 15;
	assert_true(dbt_ctx_cancelled(&ctx));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(resolve_follows_links_in_the_directory_only),
		TEST(resolve_takes_relative_paths),
		TEST(resolve_says_what_is_wrong),
		TEST(strict_resolve_meets_no_link),
		TEST(a_sibling_shares_the_directory),
		TEST(open_does_not_follow),
		TEST(the_path_of_a_descriptor),
		TEST(identity_tells_what_changed),
		cmocka_unit_test(identity_across_a_reboot),
		TEST(times_beyond_64_bits_end_at_the_limit),
		TEST(reads_and_writes_are_whole),
		TEST(failures_come_through),
		TEST(alignments_without_an_answer_are_a_page),
		TEST(cached_pages_are_counted),
		TEST(a_captured_root_keeps_its_links_inside),
		TEST(a_fifo_in_a_captured_root_does_not_hang),
		cmocka_unit_test(the_live_root_is_known),
		TEST(one_lock_a_directory),
		TEST(a_lock_ends_with_its_process),
		cmocka_unit_test(the_context_logs_and_is_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
