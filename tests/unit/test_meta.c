#include "move/meta.h"
#include "support/loopfs.h"
#include "support/tree.h"
#include "sys/acl.h"
#include "sys/root.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	OWNER = 12001,
	GROUP = 12002,
	OTHER = 12003,
};

static struct dbt_root live;
static struct dbt_ctx ctx;

static int group_setup(void **state)
{
	(void)state;
	assert_int_equal(dbt_root_open(&live, NULL), 0);
	dbt_ctx_init(&ctx, &live);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	dbt_root_close(&live);
	return 0;
}

static void need_root(void)
{
	if (geteuid() != 0) {
		print_message("changing owners needs root\n");
		skip();
	}
}

/* An access list with user:OTHER:r-- and mask r--, as the kernel stores it. */
static size_t acl_bytes(unsigned char out[64], uint16_t named_tag)
{
	const struct {
		uint16_t tag, perm;
		uint32_t id;
	} entries[] = {
		{ DBT_ACL_USER_OBJ, 6, UINT32_MAX },  { named_tag, 4, OTHER },
		{ DBT_ACL_GROUP_OBJ, 4, UINT32_MAX }, { DBT_ACL_MASK, 4, UINT32_MAX },
		{ DBT_ACL_OTHER, 0, UINT32_MAX },
	};
	const uint32_t version = htole32(2);
	size_t len = 4;

	memcpy(out, &version, 4);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		/* a GROUP entry sorts behind GROUP_OBJ */
		size_t at = named_tag == DBT_ACL_GROUP && (i == 1 || i == 2) ? 3 - i : i;
		uint16_t tag = htole16(entries[at].tag), perm = htole16(entries[at].perm);
		uint32_t id = htole32(entries[at].id);

		memcpy(out + len, &tag, 2);
		memcpy(out + len + 2, &perm, 2);
		memcpy(out + len + 4, &id, 4);
		len += 8;
	}
	return len;
}

struct two {
	char *dir_a, *dir_b, *a, *b;
	int fd_a, fd_b;
};

/* a: an original with content; b: an empty file as the copy step makes it. Either parent may be
 * NULL. */
static void two_init(struct two *t, const char *parent_a, const char *parent_b)
{
	t->dir_a = parent_a ? tree_new_in(parent_a) : tree_new();
	t->dir_b = parent_b ? tree_new_in(parent_b) : tree_new();
	t->a = tree_path(t->dir_a, "a.db");
	t->b = tree_path(t->dir_b, "a.part");
	tree_put(t->dir_a, "a.db", "0123456789");
	t->fd_a = open(t->a, O_RDONLY | O_CLOEXEC);
	assert_true(t->fd_a >= 0);
	t->fd_b = open(t->b, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(t->fd_b >= 0);
}

static void two_release(struct two *t)
{
	(void)close(t->fd_a);
	(void)close(t->fd_b);
	tree_remove(t->dir_a);
	tree_remove(t->dir_b);
	free(t->dir_a);
	free(t->dir_b);
	free(t->a);
	free(t->b);
}

static void dress(struct two *t)
{
	const struct timespec times[2] = { { 1000000000, 1 }, { -5, 123456789 } };
	static const unsigned char cap[] = { 1, 0, 0, 2, 0, 4, 0, 0, 0, 0,
		                             0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	unsigned char acl[64];
	size_t len = acl_bytes(acl, DBT_ACL_USER);

	assert_int_equal(fchown(t->fd_a, OWNER, GROUP), 0);
	assert_int_equal(fchmod(t->fd_a, 04640), 0);
	assert_int_equal(fsetxattr(t->fd_a, "user.origin", "https://x", 9, 0), 0);
	assert_int_equal(fsetxattr(t->fd_a, "user.empty", "", 0, 0), 0);
	assert_int_equal(fsetxattr(t->fd_a, "trusted.t", "t", 1, 0), 0);
	assert_int_equal(fsetxattr(t->fd_a, "security.capability", cap, sizeof(cap), 0), 0);
	assert_int_equal(fsetxattr(t->fd_a, DBT_ACL_ACCESS, acl, len, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, t->a, times, 0), 0);
}

static char *text_of(const struct dbt_meta_report *report)
{
	char *text = NULL;

	assert_int_equal(dbt_meta_report_text(report, &text), 0);
	return text;
}

static void assert_report(struct dbt_meta_report *report, const char *text, const char *readability)
{
	char *got = text_of(report);

	assert_string_equal(got, text);
	free(got);
	if (readability) {
		assert_non_null(report->readability);
		assert_string_equal(report->readability, readability);
	} else {
		assert_null(report->readability);
	}
	dbt_meta_report_release(report);
}

static void check_all_carried(const char *parent_a, const char *parent_b)
{
	struct dbt_meta_report report;
	struct dbt_ident src;
	struct stat st;
	struct two t;

	two_init(&t, parent_a, parent_b);
	dress(&t);
	assert_int_equal(dbt_ident_fd(&ctx, t.fd_a, &src), 0);
	assert_int_equal(dbt_meta_apply(&ctx, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "", NULL);
	assert_int_equal(dbt_meta_apply_times(&ctx, &src, t.fd_b, NULL), 0);
	assert_int_equal(dbt_meta_compare(&ctx, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "", NULL);

	assert_int_equal(fstat(t.fd_b, &st), 0);
	assert_int_equal(st.st_uid, OWNER);
	assert_int_equal(st.st_gid, GROUP);
	assert_int_equal(st.st_mode & 07777, 04640);
	assert_int_equal(st.st_mtim.tv_sec, -5);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	assert_int_equal(st.st_atim.tv_sec, 1000000000);
	assert_int_equal(fgetxattr(t.fd_b, "security.capability", NULL, 0), 20);
	assert_int_equal(fgetxattr(t.fd_b, DBT_ACL_ACCESS, NULL, 0), 44);
	two_release(&t);
}

static void everything_is_carried(void **state)
{
	static const char *const kinds[] = { "ext4", "xfs", "btrfs" };
	unsigned tried = 0;

	(void)state;
	need_root();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *why = NULL;
		char *mount = loopfs_mount(kinds[i], &why);

		if (!mount) {
			print_message("%s: %s\n", kinds[i], why);
			continue;
		}
		check_all_carried(NULL, mount);
		check_all_carried(mount, NULL);
		loopfs_umount(mount);
		tried++;
	}
	if (tried == 0)
		skip();
}

/* b gets a list from its directory that the original does not have. */
static void inherited_lists_are_dropped(void **state)
{
	struct dbt_meta_report report;
	unsigned char acl[64];
	size_t len = acl_bytes(acl, DBT_ACL_USER);
	struct stat st;
	struct two t;

	(void)state;
	two_init(&t, NULL, NULL);
	assert_int_equal(setxattr(t.dir_b, DBT_ACL_DEFAULT, acl, len, 0), 0);
	(void)close(t.fd_b);
	assert_int_equal(unlink(t.b), 0);
	t.fd_b = open(t.b, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fgetxattr(t.fd_b, DBT_ACL_ACCESS, NULL, 0) > 0);
	assert_int_equal(fchmod(t.fd_a, 0640), 0);
	assert_int_equal(dbt_meta_apply(&ctx, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "", NULL);
	assert_int_equal(fgetxattr(t.fd_b, DBT_ACL_ACCESS, NULL, 0), -1);
	assert_int_equal(fstat(t.fd_b, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	two_release(&t);
}

static void directories_too(void **state)
{
	struct dbt_meta_report report;
	unsigned char acl[64];
	size_t len = acl_bytes(acl, DBT_ACL_USER);
	struct two t;
	int a, b;

	(void)state;
	two_init(&t, NULL, NULL);
	assert_int_equal(setxattr(t.dir_b, DBT_ACL_DEFAULT, acl, len, 0), 0);
	tree_mkdir(t.dir_a, "sub", 02751);
	tree_mkdir(t.dir_b, "sub", 0700);
	a = openat(AT_FDCWD, t.dir_a, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	b = openat(AT_FDCWD, t.dir_b, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	{
		int sub_a = openat(a, "sub", O_RDONLY | O_CLOEXEC);
		int sub_b = openat(b, "sub", O_RDONLY | O_CLOEXEC);
		struct stat st;

		assert_int_equal(dbt_meta_apply(&ctx, sub_a, sub_b, &report, NULL), 0);
		assert_report(&report, "", NULL);
		assert_int_equal(fstat(sub_b, &st), 0);
		assert_int_equal(st.st_mode & 07777, 02751);
		assert_int_equal(fgetxattr(sub_b, DBT_ACL_DEFAULT, NULL, 0), -1);
		(void)close(sub_a);
		(void)close(sub_b);
	}
	(void)close(a);
	(void)close(b);
	two_release(&t);
}

/* As user OWNER with one group, copying a file of another owner or group. */
static void check_as_user(uid_t file_uid, mode_t mode, gid_t own_gid, const char *text,
                          const char *readability)
{
	struct dbt_meta_report report;
	struct two t;
	int status;
	pid_t pid;

	two_init(&t, NULL, NULL);
	assert_int_equal(fchown(t.fd_a, file_uid, GROUP), 0);
	assert_int_equal(fchmod(t.fd_a, mode), 0);
	assert_int_equal(fchown(t.fd_b, OWNER, OTHER), 0);
	pid = fork();
	if (pid == 0) {
		char *got;

		if (setgroups(0, NULL) < 0 || setgid(own_gid) < 0 || setuid(OWNER) < 0)
			_exit(90);
		if (dbt_meta_apply(&ctx, t.fd_a, t.fd_b, &report, NULL) < 0)
			_exit(91);
		got = text_of(&report);
		if (strcmp(got, text) != 0)
			_exit(92);
		free(got);
		if ((readability == NULL) != (report.readability == NULL))
			_exit(93);
		if (readability && strcmp(report.readability, readability) != 0)
			_exit(94);
		dbt_meta_report_release(&report);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	two_release(&t);
}

static void what_a_user_cannot_keep(void **state)
{
	const char *group = "group (12003 instead of 12002)";
	const char *lost = "its group is 12003 instead of 12002";

	(void)state;
	need_root();
	check_as_user(OWNER, 0640, OTHER, group, lost);
	check_as_user(OWNER, 0604, OTHER, group, lost);
	check_as_user(OWNER, 0644, OTHER, group, NULL);
	check_as_user(OWNER, 0600, OTHER, group, NULL);
	check_as_user(OWNER, 0620, OTHER, group, NULL); /* writing is not reading */
	/* a member of the group keeps at least that */
	check_as_user(OWNER, 0640, GROUP, "", NULL);
	check_as_user(OTHER, 0640, GROUP, "owner (12001 instead of 12003)",
	              "its owner is 12001 instead of 12003");
	check_as_user(OTHER, 0644, GROUP, "owner (12001 instead of 12003)", NULL);
}

static int chown_result;

static int no_chown(int dirfd, const char *name, uid_t uid, gid_t gid, int flags)
{
	(void)dirfd;
	(void)name;
	(void)uid;
	(void)gid;
	(void)flags;
	return chown_result;
}

static void an_owner_that_cannot_be_kept(void **state)
{
	struct dbt_sys sys = dbt_sys_real;
	struct dbt_ctx failing = ctx;
	struct dbt_meta_report report;
	struct dbt_err err;
	struct stat st;
	struct two t;

	(void)state;
	need_root();
	sys.fchownat = no_chown;
	failing.sys = &sys;
	two_init(&t, NULL, NULL);
	assert_int_equal(fchown(t.fd_a, OWNER, 0), 0);
	assert_int_equal(fchmod(t.fd_a, 04755), 0);
	chown_result = -EPERM;
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, NULL), 0);
	/* the right to run as OWNER is not handed to root */
	assert_report(&report, "owner (0 instead of 12001), mode (0755 instead of 4755)", NULL);
	assert_int_equal(fstat(t.fd_b, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(fchmod(t.fd_a, 0600), 0);
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "owner (0 instead of 12001)", "its owner is 0 instead of 12001");
	chown_result = -EIO;
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, &err), -EIO);
	assert_string_equal(err.text, "cannot set the owner of the copy: input/output error");
	two_release(&t);
}

static int xattr_result;

static int no_xattr(int fd, const char *name, const void *value, size_t len, int flags)
{
	(void)fd;
	(void)name;
	(void)value;
	(void)len;
	(void)flags;
	return xattr_result;
}

static void attributes_that_cannot_be_held(void **state)
{
	struct dbt_sys sys = dbt_sys_real;
	struct dbt_ctx failing = ctx;
	struct dbt_meta_report report;
	unsigned char acl[64];
	struct two t;

	(void)state;
	sys.fsetxattr = no_xattr;
	failing.sys = &sys;
	two_init(&t, NULL, NULL);
	assert_int_equal(fchmod(t.fd_a, 0640), 0);
	assert_int_equal(fsetxattr(t.fd_a, "user.x", "1", 1, 0), 0);
	xattr_result = -EOPNOTSUPP;
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "xattr user.x (operation not supported)", NULL);
	xattr_result = -EIO;
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, NULL), -EIO);

	/* an access list decides who may read */
	assert_int_equal(fremovexattr(t.fd_a, "user.x"), 0);
	assert_int_equal(fsetxattr(t.fd_a, DBT_ACL_ACCESS, acl, acl_bytes(acl, DBT_ACL_GROUP), 0),
	                 0);
	xattr_result = -EOPNOTSUPP;
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "xattr system.posix_acl_access (operation not supported)",
	              "its access control list is not the same");
	/* ... but not when everybody may, with it and without */
	acl[4 + 4 * 8 + 2] = 4;
	assert_int_equal(fsetxattr(t.fd_a, DBT_ACL_ACCESS, acl, 44, 0), 0);
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "xattr system.posix_acl_access (operation not supported)", NULL);
	two_release(&t);
}

static void a_lost_label_matters_where_selinux_enforces(void **state)
{
	struct dbt_sys sys = dbt_sys_real;
	struct dbt_ctx failing;
	struct dbt_meta_report report;
	struct dbt_root root;
	struct two t;
	char *captured;

	(void)state;
	need_root();
	captured = tree_new();
	tree_put(captured, "sys/fs/selinux/enforce", "1");
	assert_int_equal(dbt_root_open(&root, captured), 0);
	dbt_ctx_init(&failing, &root);
	sys.fsetxattr = no_xattr;
	failing.sys = &sys;
	xattr_result = -EPERM;
	two_init(&t, NULL, NULL);
	if (fsetxattr(t.fd_a, "security.selinux", "u:r:t:s0", 9, 0) < 0) {
		print_message("security.selinux cannot be set here: errno %d\n", errno);
		skip();
	}
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "xattr security.selinux (operation not permitted)",
	              "its SELinux label is not the same");
	tree_put(captured, "sys/fs/selinux/enforce", "0");
	assert_int_equal(dbt_meta_apply(&failing, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "xattr security.selinux (operation not permitted)", NULL);
	two_release(&t);
	dbt_root_close(&root);
	tree_remove(captured);
	free(captured);
}

static void set_flags(int fd, int flags)
{
	int now = 0;

	assert_int_equal(ioctl(fd, FS_IOC_GETFLAGS, &now), 0);
	now = (now & ~(FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NODUMP_FL | FS_NOCOW_FL)) | flags;
	assert_int_equal(ioctl(fd, FS_IOC_SETFLAGS, &now), 0);
}

static void attributes_of_the_inode_are_told(void **state)
{
	struct dbt_meta_report report;
	const char *why = NULL;
	char *mount;
	struct two t;

	(void)state;
	mount = loopfs_mount("ext4", &why);
	if (!mount) {
		print_message("ext4: %s\n", why);
		skip();
	}
	two_init(&t, mount, mount);
	set_flags(t.fd_a, FS_IMMUTABLE_FL | FS_NODUMP_FL);
	assert_int_equal(fchmod(t.fd_b, 0644), 0);
	assert_int_equal(dbt_meta_apply(&ctx, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_true(report.immutable);
	assert_false(report.append);
	assert_report(&report,
	              "attribute immutable (not carried over), attribute nodump (not carried over)",
	              NULL);
	set_flags(t.fd_a, FS_APPEND_FL);
	assert_int_equal(dbt_meta_compare(&ctx, t.fd_a, t.fd_a, &report, NULL), 0);
	assert_true(report.append);
	assert_false(report.immutable);
	assert_report(&report, "", NULL);
	set_flags(t.fd_a, 0);
	two_release(&t);
	loopfs_umount(mount);

	mount = loopfs_mount("btrfs", &why);
	if (!mount)
		return;
	two_init(&t, mount, NULL);
	(void)close(t.fd_a);
	tree_put(t.dir_a, "empty", ""); /* only an empty file may become nodatacow */
	free(t.a);
	t.a = tree_path(t.dir_a, "empty");
	t.fd_a = open(t.a, O_RDWR | O_CLOEXEC);
	set_flags(t.fd_a, FS_NOCOW_FL);
	assert_int_equal(dbt_meta_apply(&ctx, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "attribute nodatacow (not carried over)", NULL);
	two_release(&t);
	loopfs_umount(mount);
}

static void a_project_is_told(void **state)
{
	struct dbt_meta_report report;
	struct fsxattr fsx = { 0 };
	const char *why = NULL;
	char *mount = loopfs_mount("xfs", &why);
	struct two t;

	(void)state;
	if (!mount) {
		print_message("xfs: %s\n", why);
		skip();
	}
	two_init(&t, mount, NULL);
	assert_int_equal(ioctl(t.fd_a, FS_IOC_FSGETXATTR, &fsx), 0);
	fsx.fsx_projid = 42;
	assert_int_equal(ioctl(t.fd_a, FS_IOC_FSSETXATTR, &fsx), 0);
	assert_int_equal(dbt_meta_apply(&ctx, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "project id (0 instead of 42)", NULL);
	two_release(&t);
	loopfs_umount(mount);
}

static void differences_are_found(void **state)
{
	const struct timespec times[2] = { { 5, 0 }, { 5, 10 } };
	const struct timespec other[2] = { { 9, 0 }, { 5, 13 } };
	struct dbt_meta_report report;
	struct two t;

	(void)state;
	two_init(&t, NULL, NULL);
	assert_int_equal(fchmod(t.fd_a, 0644), 0);
	assert_int_equal(fsetxattr(t.fd_a, "user.x", "1", 1, 0), 0);
	assert_int_equal(fsetxattr(t.fd_b, "user.x", "2", 1, 0), 0);
	assert_int_equal(fsetxattr(t.fd_b, "user.y", "2", 1, 0), 0);
	assert_int_equal(futimens(t.fd_a, times), 0);
	assert_int_equal(futimens(t.fd_b, other), 0);
	assert_int_equal(dbt_meta_compare(&ctx, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report,
	              "mode (0600 instead of 0644), xattr user.x (not the same), xattr user.y (not "
	              "on the original), mtime (3 ns apart)",
	              "its mode is 0600 instead of 0644");
	two_release(&t);
}

static int coarse_utimens(int dirfd, const char *name, const struct timespec *times, int flags)
{
	struct timespec coarse[2] = { times[0], times[1] };

	coarse[1].tv_nsec = 0;
	return dbt_sys_real.utimensat(dirfd, name, coarse, flags);
}

static void coarse_times_are_told(void **state)
{
	struct dbt_sys sys = dbt_sys_real;
	struct dbt_ctx coarse = ctx;
	struct dbt_ident src;
	struct two t;

	(void)state;
	sys.utimensat = coarse_utimens;
	coarse.sys = &sys;
	two_init(&t, NULL, NULL);
	assert_int_equal(dbt_ident_fd(&ctx, t.fd_a, &src), 0);
	src.mtime_ns = 1500000000;
	assert_int_equal(dbt_meta_apply_times(&coarse, &src, t.fd_b, NULL), 1);
	src.mtime_ns = 2000000000;
	assert_int_equal(dbt_meta_apply_times(&coarse, &src, t.fd_b, NULL), 0);
	two_release(&t);
}

static void links_look_like_their_file(void **state)
{
	struct dbt_ident src;
	struct stat st;
	struct two t;
	int dir;

	(void)state;
	two_init(&t, NULL, NULL);
	tree_symlink(t.dir_b, "link", t.a);
	dir = open(t.dir_b, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(dbt_ident_fd(&ctx, t.fd_a, &src), 0);
	src.mtime_ns = 7000000008;
	if (geteuid() == 0) {
		src.uid = OWNER;
		src.gid = GROUP;
	}
	assert_int_equal(dbt_meta_apply_link(&ctx, dir, "link", &src), 0);
	assert_int_equal(fstatat(dir, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(st.st_uid, src.uid);
	assert_int_equal(st.st_gid, src.gid);
	assert_int_equal(st.st_mtim.tv_sec, 7);
	assert_int_equal(st.st_mtim.tv_nsec, 8);
	assert_int_equal(fstat(t.fd_a, &st), 0); /* the file behind is left alone */
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(dbt_meta_apply_link(&ctx, dir, "none", &src), -ENOENT);
	if (geteuid() == 0) {
		int status;
		pid_t pid;

		assert_int_equal(fchown(dir, OTHER, OTHER), 0);
		assert_int_equal(fchownat(dir, "link", OTHER, OTHER, AT_SYMLINK_NOFOLLOW), 0);
		pid = fork();
		if (pid == 0) {
			if (setgroups(0, NULL) < 0 || setgid(OTHER) < 0 || setuid(OTHER) < 0)
				_exit(90);
			_exit(dbt_meta_apply_link(&ctx, dir, "link", &src) == 1 ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	(void)close(dir);
	two_release(&t);
}

static void attributes_tied_to_their_place_stay(void **state)
{
	struct dbt_meta_report report;
	struct two t;

	(void)state;
	need_root();
	two_init(&t, NULL, NULL);
	assert_int_equal(fchmod(t.fd_a, 0600), 0);
	assert_int_equal(fsetxattr(t.fd_a, "trusted.overlay.origin", "1", 1, 0), 0);
	assert_int_equal(dbt_meta_apply(&ctx, t.fd_a, t.fd_b, &report, NULL), 0);
	assert_report(&report, "xattr trusted.overlay.origin (belongs to an overlay)", NULL);
	assert_int_equal(fgetxattr(t.fd_b, "trusted.overlay.origin", NULL, 0), -1);
	two_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_carried),
		cmocka_unit_test(inherited_lists_are_dropped),
		cmocka_unit_test(directories_too),
		cmocka_unit_test(what_a_user_cannot_keep),
		cmocka_unit_test(an_owner_that_cannot_be_kept),
		cmocka_unit_test(attributes_that_cannot_be_held),
		cmocka_unit_test(a_lost_label_matters_where_selinux_enforces),
		cmocka_unit_test(attributes_of_the_inode_are_told),
		cmocka_unit_test(a_project_is_told),
		cmocka_unit_test(differences_are_found),
		cmocka_unit_test(coarse_times_are_told),
		cmocka_unit_test(links_look_like_their_file),
		cmocka_unit_test(attributes_tied_to_their_place_stay),
	};

	return cmocka_run_group_tests_name("meta", tests, group_setup, group_teardown);
}
