#include "move/meta.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "move/mark.h"
#include "sys/acl.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* A file (a) and its copy (b), both open. */
struct pair {
	const struct dbt_ctx *ctx;
	int fd_a, fd_b;
	struct dbt_ident a, b;
	struct dbt_meta_report *report;
};

struct bytes {
	char *data; /* owned */
	size_t len;
};

/* --- the report --- */

static bool report_has(const struct dbt_meta_report *report, const char *what)
{
	for (size_t i = 0; i < report->n; i++)
		if (strcmp(report->items[i].what, what) == 0)
			return true;
	return false;
}

/* The first reason given for a thing stays. */
static int report_add(struct dbt_meta_report *report, const char *what, const char *why)
{
	struct dbt_meta_item item, *place;

	if (report_has(report, what))
		return 0;
	item.what = strdup(what);
	item.why = strdup(why);
	place = item.what && item.why ? dbt_vec_push(report) : NULL;
	if (!place) {
		free(item.what);
		free(item.why);
		return -ENOMEM;
	}
	*place = item;
	return 0;
}

static int report_number(struct dbt_meta_report *report, const char *what, unsigned have,
                         unsigned wanted)
{
	char why[64];

	(void)snprintf(why, sizeof(why), "%u instead of %u", have, wanted);
	return report_add(report, what, why);
}

static int report_mode(struct dbt_meta_report *report, uint32_t have, uint32_t wanted)
{
	char why[64];

	(void)snprintf(why, sizeof(why), "%04o instead of %04o", have & 07777, wanted & 07777);
	return report_add(report, "mode", why);
}

void dbt_meta_report_release(struct dbt_meta_report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		free(report->items[i].what);
		free(report->items[i].why);
	}
	free(report->items);
	free(report->readability);
	*report = (struct dbt_meta_report){ 0 };
}

int dbt_meta_report_text(const struct dbt_meta_report *report, char **ret)
{
	struct dbt_buf buf = { 0 };
	char *text;
	int r = 0;

	for (size_t i = 0; i < report->n && r == 0; i++)
		r = dbt_buf_addf(&buf, "%s%s (%s)", i > 0 ? ", " : "", report->items[i].what,
		                 report->items[i].why);
	text = r == 0 ? dbt_buf_take(&buf) : NULL;
	dbt_buf_release(&buf);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}

/* --- extended attributes --- */

static bool begins(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Why an attribute is not for another filesystem; NULL when it is to be carried over. */
static const char *tied_to_its_place(const char *name)
{
	if (begins(name, "trusted.overlay.") || begins(name, "user.overlay."))
		return "belongs to an overlay";
	if (strcmp(name, "security.evm") == 0)
		return "sealed to its inode";
	if (begins(name, "user.") || begins(name, "security.") || begins(name, "trusted.") ||
	    strcmp(name, DBT_ACL_ACCESS) == 0 || strcmp(name, DBT_ACL_DEFAULT) == 0)
		return NULL;
	return "known to its filesystem only";
}

/* Not the file's own: xfs shows root its access lists a second time, as it stores them (they are carried over under
 * their common name), and the mark of a copy belongs to the copy. */
static bool is_foreign(const char *name)
{
	return begins(name, "trusted.SGI_ACL_") || strcmp(name, DBT_MARK_NAME) == 0;
}

/* What a target may answer when it cannot hold something, or this user may not set it. ENOSPC and
 * its like: attributes have little room of their own on ext4, a full disk is noticed elsewhere. */
static bool cannot_hold(int code)
{
	switch (-code) {
	case EPERM:
	case EACCES:
	case EOPNOTSUPP:
	case ENOTTY:
	case EINVAL:
	case ENOSPC:
	case EDQUOT:
	case E2BIG:
	case ERANGE:
	case ENAMETOOLONG:
		return true;
	default:
		return false;
	}
}

/* The names, each with its NUL; none where the filesystem has no attributes. */
static int xattr_names(int fd, struct bytes *ret)
{
	ssize_t len;
	char *data;

	for (;;) {
		len = flistxattr(fd, NULL, 0);
		if (len < 0 && errno == EOPNOTSUPP)
			len = 0;
		if (len < 0)
			return -errno;
		data = malloc((size_t)len + 1);
		if (!data)
			return -ENOMEM;
		if (len > 0)
			len = flistxattr(fd, data, (size_t)len);
		if (len >= 0)
			break;
		free(data);
		if (errno != ERANGE) /* it grew in between */
			return -errno;
	}
	*ret = (struct bytes){ .data = data, .len = (size_t)len };
	return 0;
}

static int xattr_get(int fd, const char *name, struct bytes *ret)
{
	ssize_t len;
	char *data;

	for (;;) {
		len = fgetxattr(fd, name, NULL, 0);
		if (len < 0)
			return -errno;
		data = malloc((size_t)len + 1);
		if (!data)
			return -ENOMEM;
		len = fgetxattr(fd, name, data, (size_t)len + 1);
		if (len >= 0)
			break;
		free(data);
		if (errno != ERANGE)
			return -errno;
	}
	*ret = (struct bytes){ .data = data, .len = (size_t)len };
	return 0;
}

/* 1 both have it alike, 0 not, -errno. */
static int xattr_same(const struct pair *p, const char *name)
{
	struct bytes a = { 0 }, b = { 0 };
	int r = xattr_get(p->fd_a, name, &a);

	if (r == 0) {
		r = xattr_get(p->fd_b, name, &b);
		if (r == -ENODATA || r == -EOPNOTSUPP)
			r = 0;
		else if (r == 0)
			r = a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
	}
	free(a.data);
	free(b.data);
	return r;
}

static int report_xattr(struct dbt_meta_report *report, const char *name, const char *why)
{
	char what[XATTR_NAME_MAX + 16];

	(void)snprintf(what, sizeof(what), "xattr %s", name);
	return report_add(report, what, why);
}

static int xattr_carry(const struct pair *p, const char *name)
{
	const char *tied = tied_to_its_place(name);
	struct bytes value = { 0 };
	int r;

	if (is_foreign(name))
		return 0;
	if (tied)
		return report_xattr(p->report, name, tied);
	r = xattr_same(p, name);
	if (r != 0) /* there already (a label given at creation), or an error */
		return r > 0 || r == -ENODATA ? 0 : r;
	r = xattr_get(p->fd_a, name, &value);
	if (r == 0)
		r = p->ctx->sys->fsetxattr(p->fd_b, name, value.data, value.len, 0);
	free(value.data);
	return r < 0 && cannot_hold(r) ? report_xattr(p->report, name, dbt_err_text(r)) : r;
}

static int xattrs_carry(const struct pair *p)
{
	struct bytes names = { 0 };
	int r = xattr_names(p->fd_a, &names);

	for (size_t at = 0; r == 0 && at < names.len; at += strlen(names.data + at) + 1)
		r = xattr_carry(p, names.data + at);
	free(names.data);
	return r;
}

static int xattrs_compare(const struct pair *p)
{
	struct bytes names = { 0 }, unused = { 0 };
	int r = xattr_names(p->fd_a, &names);

	for (size_t at = 0; r >= 0 && at < names.len; at += strlen(names.data + at) + 1) {
		const char *name = names.data + at, *tied = tied_to_its_place(name);

		if (is_foreign(name))
			continue;
		r = tied ? 0 : xattr_same(p, name);
		if (r == 0)
			r = report_xattr(p->report, name, tied ? tied : "not the same");
	}
	free(names.data);
	names = (struct bytes){ 0 };
	if (r >= 0)
		r = xattr_names(p->fd_b, &names);
	for (size_t at = 0; r >= 0 && at < names.len; at += strlen(names.data + at) + 1) {
		const char *name = names.data + at;

		/* labels (SELinux, IMA) come by themselves */
		if (tied_to_its_place(name) || is_foreign(name) || begins(name, "security."))
			continue;
		r = xattr_get(p->fd_a, name, &unused);
		free(unused.data);
		unused = (struct bytes){ 0 };
		if (r == -ENODATA || r == -EOPNOTSUPP)
			r = report_xattr(p->report, name, "not on the original");
	}
	free(names.data);
	return r < 0 ? r : 0;
}

/* --- chattr attributes and project: never set, only told --- */

static int flags_compare(const struct pair *p)
{
	static const struct {
		int flag;
		const char *what;
	} known[] = {
		{ FS_IMMUTABLE_FL, "attribute immutable" },
		{ FS_APPEND_FL, "attribute append" },
		{ FS_NOCOW_FL, "attribute nodatacow" },
		{ FS_COMPR_FL, "attribute compressed" },
		{ FS_NOCOMP_FL, "attribute nocompress" },
		{ FS_SYNC_FL, "attribute sync" },
		{ FS_DIRSYNC_FL, "attribute dirsync" },
		{ FS_NODUMP_FL, "attribute nodump" },
		{ FS_NOATIME_FL, "attribute noatime" },
		{ FS_JOURNAL_DATA_FL, "attribute journalled" },
		{ FS_DAX_FL, "attribute dax" },
		{ FS_ENCRYPT_FL, "attribute encrypted" },
		{ FS_VERITY_FL, "attribute verity" },
		{ FS_CASEFOLD_FL, "attribute casefold" },
	};
	int a = 0, b = 0, r = 0;

	if (ioctl(p->fd_a, FS_IOC_GETFLAGS, &a) < 0)
		a = 0; /* a filesystem without */
	if (ioctl(p->fd_b, FS_IOC_GETFLAGS, &b) < 0)
		b = 0;
	p->report->immutable = (a & FS_IMMUTABLE_FL) != 0;
	p->report->append = (a & FS_APPEND_FL) != 0;
	for (size_t i = 0; r == 0 && i < sizeof(known) / sizeof(known[0]); i++)
		if ((a & known[i].flag) && !(b & known[i].flag))
			r = report_add(p->report, known[i].what, "not carried over");
	return r;
}

static int project_compare(const struct pair *p)
{
	struct fsxattr a = { 0 }, b = { 0 };

	if (ioctl(p->fd_a, FS_IOC_FSGETXATTR, &a) < 0 || a.fsx_projid == 0)
		return 0;
	if (ioctl(p->fd_b, FS_IOC_FSGETXATTR, &b) == 0 && a.fsx_projid == b.fsx_projid)
		return 0;
	return report_number(p->report, "project id", b.fsx_projid, a.fsx_projid);
}

/* --- who may read --- */

static bool same_acl(const struct dbt_acl *a, const struct dbt_acl *b)
{
	for (size_t i = 0; i < a->n && a->n == b->n; i++)
		if (a->items[i].tag != b->items[i].tag || a->items[i].perm != b->items[i].perm ||
		    a->items[i].id != b->items[i].id)
			return false;
	return a->n == b->n;
}

/* The bits that let an inode be used, of each class: what differs in them can lock somebody out, or
 * let somebody in. */
static unsigned use_bits(const struct dbt_ident *id)
{
	return id->mode & (S_ISDIR(id->mode) ? 0555U : 0444U);
}

static int readability_lost(const struct pair *p, const struct dbt_acl *acl_a,
                            const struct dbt_acl *acl_b, char **ret)
{
	unsigned want = S_ISDIR(p->a.mode) ? DBT_ACL_READ | DBT_ACL_EXEC : DBT_ACL_READ;
	unsigned bits = use_bits(&p->a), owner = bits >> 6, group = bits >> 3 & 7, other = bits & 7;
	bool plain = acl_a->n == 0 && acl_b->n == 0;
	int len = 0;

	if (dbt_acl_allows_all(&p->a, acl_a, want) && dbt_acl_allows_all(&p->b, acl_b, want))
		return 0;
	if (bits != use_bits(&p->b))
		len = asprintf(ret, "its mode is %04o instead of %04o", p->b.mode & 07777,
		               p->a.mode & 07777);
	else if (!same_acl(acl_a, acl_b))
		len = asprintf(ret, "its access control list is not the same");
	else if (p->a.uid != p->b.uid && !(plain && owner == group && group == other))
		len = asprintf(ret, "its owner is %u instead of %u", p->b.uid, p->a.uid);
	else if (p->a.gid != p->b.gid && !(plain && group == other))
		len = asprintf(ret, "its group is %u instead of %u", p->b.gid, p->a.gid);
	return len < 0 ? -ENOMEM : 0;
}

static int label_lost(const struct pair *p, char **ret)
{
	uint64_t enforce = 0;

	if (*ret || !report_has(p->report, "xattr security.selinux"))
		return 0;
	if (dbt_root_read_u64(p->ctx->root, "sys/fs/selinux/enforce", &enforce) < 0 || enforce == 0)
		return 0;
	*ret = strdup("its SELinux label is not the same");
	return *ret ? 0 : -ENOMEM;
}

static int readability_compare(const struct pair *p)
{
	struct dbt_acl a = { 0 }, b = { 0 };
	char *why = NULL;
	int r = dbt_acl_of_fd(p->fd_a, &a);

	if (r == 0)
		r = dbt_acl_of_fd(p->fd_b, &b);
	if (r == 0)
		r = readability_lost(p, &a, &b, &why);
	if (r == 0)
		r = label_lost(p, &why);
	if (r == 0)
		p->report->readability = why;
	else
		free(why);
	dbt_acl_release(&a);
	dbt_acl_release(&b);
	return r;
}

/* --- all of it --- */

static int pair_look(struct pair *p)
{
	int r = dbt_ident_fd(p->ctx, p->fd_a, &p->a);

	return r < 0 ? r : dbt_ident_fd(p->ctx, p->fd_b, &p->b);
}

/* All but the times. */
static int pair_compare(struct pair *p)
{
	int r = pair_look(p);

	if (r == 0 && p->a.uid != p->b.uid)
		r = report_number(p->report, "owner", p->b.uid, p->a.uid);
	if (r == 0 && p->a.gid != p->b.gid)
		r = report_number(p->report, "group", p->b.gid, p->a.gid);
	if (r == 0 && p->a.mode != p->b.mode)
		r = report_mode(p->report, p->b.mode, p->a.mode);
	if (r == 0)
		r = xattrs_compare(p);
	if (r == 0)
		r = flags_compare(p);
	if (r == 0)
		r = project_compare(p);
	return r == 0 ? readability_compare(p) : r;
}

/* Both at once, else the one that may be set: what is missing shows in the comparison. */
static int own(const struct pair *p)
{
	const uid_t keep_uid = (uid_t)-1;
	const gid_t keep_gid = (gid_t)-1;
	int r = 0;

	if (p->a.uid == p->b.uid && p->a.gid == p->b.gid)
		return 0;
	r = p->ctx->sys->fchownat(p->fd_b, "", p->a.uid, p->a.gid, AT_EMPTY_PATH);
	if (r == 0 || !cannot_hold(r))
		return r;
	r = p->ctx->sys->fchownat(p->fd_b, "", keep_uid, p->a.gid, AT_EMPTY_PATH);
	if (r < 0 && !cannot_hold(r))
		return r;
	r = p->ctx->sys->fchownat(p->fd_b, "", p->a.uid, keep_gid, AT_EMPTY_PATH);
	return r < 0 && !cannot_hold(r) ? r : 0;
}

/* A directory with a default list gives one to every file made in it. It goes first: while it is
 * there, the group bits of the mode are its mask. */
static int drop_inherited(const struct pair *p, const char *name)
{
	struct bytes value = { 0 };
	int r = xattr_get(p->fd_a, name, &value);

	free(value.data);
	if (r != -ENODATA && r != -EOPNOTSUPP)
		return r;
	if (fremovexattr(p->fd_b, name) < 0 && errno != ENODATA && !cannot_hold(-errno))
		return -errno;
	return 0;
}

/* setuid and setgid only for the owner and group that they were given by. */
static int permit(struct pair *p)
{
	mode_t mode = p->a.mode & 07777;
	int r = dbt_ident_fd(p->ctx, p->fd_b, &p->b);

	if (r < 0)
		return r;
	if (p->a.uid != p->b.uid || p->a.gid != p->b.gid)
		mode &= ~(mode_t)(S_ISUID | S_ISGID);
	if ((p->b.mode & 07777) == mode)
		return 0;
	r = p->ctx->sys->fchmod(p->fd_b, mode);
	return r < 0 && !cannot_hold(r) ? r : 0;
}

int dbt_meta_apply(const struct dbt_ctx *ctx, int src_fd, int dst_fd, struct dbt_meta_report *ret,
                   struct dbt_err *err)
{
	struct dbt_meta_report report = { 0 };
	struct pair p = { .ctx = ctx, .fd_a = src_fd, .fd_b = dst_fd, .report = &report };
	const char *step = "read the attributes of the original";
	int r = pair_look(&p);

	if (r == 0) {
		step = "set the owner of the copy";
		r = own(&p);
	}
	if (r == 0) {
		step = "set the mode of the copy";
		r = drop_inherited(&p, DBT_ACL_ACCESS);
		if (r == 0 && S_ISDIR(p.a.mode))
			r = drop_inherited(&p, DBT_ACL_DEFAULT);
		if (r == 0)
			r = permit(&p);
	}
	if (r == 0) {
		step = "set the extended attributes of the copy";
		r = xattrs_carry(&p);
	}
	if (r == 0) {
		step = "compare the attributes of original and copy";
		r = pair_compare(&p);
	}
	if (r < 0) {
		dbt_meta_report_release(&report);
		return dbt_err_sys(err, r, "cannot %s", step);
	}
	*ret = report;
	return 0;
}

int dbt_meta_compare(const struct dbt_ctx *ctx, int fd_a, int fd_b, struct dbt_meta_report *ret,
                     struct dbt_err *err)
{
	struct dbt_meta_report report = { 0 };
	struct pair p = { .ctx = ctx, .fd_a = fd_a, .fd_b = fd_b, .report = &report };
	char why[96];
	int r = pair_compare(&p);

	if (r == 0 && p.a.mtime_ns != p.b.mtime_ns) {
		(void)snprintf(why, sizeof(why), "%lld ns apart",
		               (long long)(p.b.mtime_ns - p.a.mtime_ns));
		r = report_add(&report, "mtime", why);
	}
	if (r < 0) {
		dbt_meta_report_release(&report);
		return dbt_err_sys(err, r, "cannot compare attributes");
	}
	*ret = report;
	return 0;
}

static struct timespec timespec_of(int64_t ns)
{
	const int64_t second = 1000000000;
	struct timespec ts = { .tv_sec = ns / second, .tv_nsec = ns % second };

	if (ts.tv_nsec < 0) { /* before the epoch */
		ts.tv_sec--;
		ts.tv_nsec += second;
	}
	return ts;
}

int dbt_meta_apply_times(const struct dbt_ctx *ctx, const struct dbt_ident *src, int dst_fd,
                         struct dbt_err *err)
{
	const struct timespec times[2] = { timespec_of(src->atime_ns), timespec_of(src->mtime_ns) };
	struct dbt_ident now = { 0 };
	int r = ctx->sys->utimensat(dst_fd, "", times, AT_EMPTY_PATH);

	if (r == 0)
		r = dbt_ident_fd(ctx, dst_fd, &now);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot set the times of the copy");
	return now.mtime_ns == src->mtime_ns ? 0 : 1;
}

int dbt_meta_apply_link(const struct dbt_ctx *ctx, int dirfd, const char *name,
                        const struct dbt_ident *src)
{
	const struct timespec times[2] = { timespec_of(src->atime_ns), timespec_of(src->mtime_ns) };
	const uid_t keep_uid = (uid_t)-1;
	struct dbt_ident now;
	int r = dbt_ident_of(ctx, dirfd, name, &now), partly = 0;

	if (r < 0)
		return r;
	if (now.uid != src->uid || now.gid != src->gid) {
		r = ctx->sys->fchownat(dirfd, name, src->uid, src->gid, AT_SYMLINK_NOFOLLOW);
		partly |= r < 0;
		if (r < 0 && cannot_hold(r))
			r = ctx->sys->fchownat(dirfd, name, keep_uid, src->gid,
			                       AT_SYMLINK_NOFOLLOW);
		if (r < 0 && !cannot_hold(r))
			return r;
	}
	r = ctx->sys->utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW);
	partly |= r < 0;
	return r < 0 && !cannot_hold(r) ? r : partly;
}
