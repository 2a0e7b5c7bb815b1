#include "sys/reach.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "sys/acl.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One inode on a way, from / downwards. */
struct step {
	char *path;
	struct dbt_ident id;
	struct dbt_acl acl;
};

struct way {
	struct step *items;
	size_t n, cap;
};

struct subjects {
	struct dbt_acl_subject *items;
	size_t n, cap;
};

static void way_release(struct way *way)
{
	for (size_t i = 0; i < way->n; i++) {
		free(way->items[i].path);
		dbt_acl_release(&way->items[i].acl);
	}
	free(way->items);
	*way = (struct way){ 0 };
}

/* Adds path itself. -ENOENT: it is not there. */
static int way_add(const struct dbt_ctx *ctx, struct way *way, const char *path)
{
	struct step step = { 0 }, *place;
	int r = dbt_ident_of(ctx, AT_FDCWD, path, &step.id);

	if (r == 0)
		r = dbt_acl_of_path(path, &step.acl);
	if (r < 0)
		return r;
	step.path = strdup(path);
	place = step.path ? dbt_vec_push(way) : NULL;
	if (!place) {
		free(step.path);
		dbt_acl_release(&step.acl);
		return -ENOMEM;
	}
	*place = step;
	return 0;
}

/* Every directory from / to path, and path itself. path is canonical: no links but perhaps the
 * last. */
static int way_to(const struct dbt_ctx *ctx, const char *path, struct way *way)
{
	dbt_autofree char *part = strdup(path);
	int r;

	if (!part)
		return -ENOMEM;
	r = way_add(ctx, way, "/");
	for (char *slash = strchr(part + 1, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = way_add(ctx, way, part);
		*slash = '/';
	}
	return r == 0 && strcmp(path, "/") != 0 ? way_add(ctx, way, path) : r;
}

/* The nearest directory that exists, without links in its path. */
static int canonical_target(const struct dbt_ctx *ctx, const char *target_dir, char **ret)
{
	dbt_autofree char *part = strdup(target_dir);
	char *slash;
	int fd, r;

	if (!part)
		return -ENOMEM;
	for (;;) {
		fd = ctx->sys->openat(AT_FDCWD, *part ? part : "/",
		                      O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (fd != -ENOENT)
			break;
		slash = strrchr(part, '/');
		if (slash)
			*slash = '\0';
		else if (strcmp(part, ".") != 0)
			(void)snprintf(part, strlen(part) + 1, ".");
		else
			return -ENOENT;
	}
	if (fd < 0)
		return fd;
	r = dbt_fd_path(fd, ret);
	(void)ctx->sys->close(fd);
	return r;
}

/* --- who --- */

static bool same_subject(const struct dbt_acl_subject *a, const struct dbt_acl_subject *b)
{
	return a->has_uid == b->has_uid && a->has_gid == b->has_gid &&
	       (!a->has_uid || a->uid == b->uid) && (!a->has_gid || a->gid == b->gid);
}

/* Root needs no permission, and its group has rarely another member. */
static int subjects_add(struct subjects *list, struct dbt_acl_subject s)
{
	struct dbt_acl_subject *place;

	if ((s.has_uid && s.uid == 0) || (!s.has_uid && s.has_gid && s.gid == 0))
		return 0;
	for (size_t i = 0; i < list->n; i++)
		if (same_subject(&list->items[i], &s))
			return 0;
	place = dbt_vec_push(list);
	if (!place)
		return -ENOMEM;
	*place = s;
	return 0;
}

static int subjects_of_step(struct subjects *list, const struct step *step)
{
	int r = subjects_add(list,
	                     (struct dbt_acl_subject){ .has_gid = true, .gid = step->id.gid });

	for (size_t i = 0; r == 0 && i < step->acl.n; i++) {
		const struct dbt_acl_entry *e = &step->acl.items[i];

		if (e->tag == DBT_ACL_USER)
			r = subjects_add(list,
			                 (struct dbt_acl_subject){ .has_uid = true, .uid = e->id });
		else if (e->tag == DBT_ACL_GROUP)
			r = subjects_add(list,
			                 (struct dbt_acl_subject){ .has_gid = true, .gid = e->id });
	}
	return r;
}

/* The file's owner is taken to be in the file's group; owners of directories are users of their
 * own. */
static int subjects_of(const struct way *way, struct subjects *list)
{
	const struct step *file = &way->items[way->n - 1];
	int r = subjects_add(list, (struct dbt_acl_subject){ .has_uid = true,
	                                                     .uid = file->id.uid,
	                                                     .has_gid = true,
	                                                     .gid = file->id.gid });

	for (size_t i = way->n; r == 0 && i > 0; i--)
		r = subjects_of_step(list, &way->items[i - 1]);
	for (size_t i = 0; r == 0 && i + 1 < way->n; i++)
		if (way->items[i].id.uid != file->id.uid)
			r = subjects_add(list,
			                 (struct dbt_acl_subject){ .has_uid = true,
			                                           .uid = way->items[i].id.uid });
	return r == 0 ? subjects_add(list, (struct dbt_acl_subject){ 0 }) : r;
}

/* --- may they --- */

/* The first of the first n steps that the subject may not pass; NULL: none. */
static const struct step *first_barrier(const struct way *way, size_t n,
                                        const struct dbt_acl_subject *s)
{
	for (size_t i = 0; i < n; i++)
		if (!dbt_acl_allows(&way->items[i].id, &way->items[i].acl, s, DBT_ACL_EXEC))
			return &way->items[i];
	return NULL;
}

static bool reads_today(const struct way *way, const struct dbt_acl_subject *s)
{
	const struct step *file = &way->items[way->n - 1];
	unsigned want = S_ISDIR(file->id.mode) ? DBT_ACL_READ | DBT_ACL_EXEC : DBT_ACL_READ;

	return !first_barrier(way, way->n - 1, s) && dbt_acl_allows(&file->id, &file->acl, s, want);
}

/* fs.protected_symlinks (Documentation/admin-guide/sysctl/fs.rst): in a sticky directory that all
 * may write to, a link is followed only by its owner, or by all when it belongs to the directory's
 * owner. Root is no exception. */
static bool follows_link(const struct dbt_ctx *ctx, const struct way *way,
                         const struct dbt_acl_subject *s)
{
	const struct step *file = &way->items[way->n - 1], *dir = &way->items[way->n - 2];
	uint64_t on = 0;

	if ((dir->id.mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
	    dir->id.uid == file->id.uid || (s->has_uid && s->uid == file->id.uid))
		return true;
	return dbt_root_read_u64(ctx->root, "proc/sys/fs/protected_symlinks", &on) < 0 || on == 0;
}

/* --- the sentence --- */

/* The name of an id from etc/passwd or etc/group ("NAME:x:ID:..."); ids of other services stay
 * numbers. */
static int add_name(const struct dbt_ctx *ctx, const char *file, uint32_t id, struct dbt_buf *out)
{
	struct dbt_buf text = { 0 };
	char *line, *save = NULL;
	int r = 0;

	if (dbt_root_read(ctx->root, file, 1 << 20, &text) < 0)
		dbt_buf_clear(&text);
	for (line = text.len > 0 ? strtok_r(text.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *name_end = strchr(line, ':'), *number, *end;

		number = name_end ? strchr(name_end + 1, ':') : NULL;
		if (!number || strtoul(number + 1, &end, 10) != id || *end != ':')
			continue;
		r = dbt_buf_addf(out, " '%.*s'", (int)(name_end - line), line);
		dbt_buf_release(&text);
		return r;
	}
	dbt_buf_release(&text);
	return dbt_buf_addf(out, " %u", id);
}

static int add_subject(const struct dbt_ctx *ctx, const struct way *way,
                       const struct dbt_acl_subject *s, struct dbt_buf *out)
{
	const struct step *file = &way->items[way->n - 1];
	int r;

	if (s->has_uid) {
		r = dbt_buf_adds(out, s->uid == file->id.uid ? "its owner" : "user");
		return r < 0 ? r : add_name(ctx, "etc/passwd", s->uid, out);
	}
	if (!s->has_gid)
		return dbt_buf_adds(out, "others");
	r = dbt_buf_adds(out, "group");
	return r < 0 ? r : add_name(ctx, "etc/group", s->gid, out);
}

static int add_reads(const struct dbt_ctx *ctx, const struct way *way,
                     const struct dbt_acl_subject *s, struct dbt_buf *out)
{
	int r = add_subject(ctx, way, s, out);

	return r < 0 ? r
	             : dbt_buf_addf(out, " can read '%s' but not ", way->items[way->n - 1].path);
}

static int judge(const struct dbt_ctx *ctx, const struct way *source, const struct way *target,
                 const struct subjects *list, struct dbt_buf *out)
{
	int r = 0;

	for (size_t i = list->n; i > 0 && out->len == 0 && r == 0; i--) {
		const struct dbt_acl_subject *s = &list->items[i - 1]; /* others first */
		const struct step *barrier = first_barrier(target, target->n, s);
		const struct step *dir = &source->items[source->n - 2];

		if (!reads_today(source, s))
			continue;
		if (barrier) {
			r = add_reads(ctx, source, s, out);
			if (r == 0)
				r = dbt_buf_addf(out, "enter '%s' (mode %04o%s)", barrier->path,
				                 barrier->id.mode & 07777,
				                 barrier->acl.n > 0 ? " with an access control list"
				                                    : "");
		} else if (!follows_link(ctx, source, s)) {
			r = add_reads(ctx, source, s, out);
			if (r == 0)
				r = dbt_buf_addf(out,
				                 "follow a link there: '%s' is sticky and writable "
				                 "for all (fs.protected_symlinks)",
				                 dir->path);
		}
	}
	return r;
}

int dbt_reach_compare(const struct dbt_ctx *ctx, const struct dbt_at *source,
                      const char *target_dir, char **ret_problem, struct dbt_err *err)
{
	dbt_autofree char *target = NULL;
	struct way from = { 0 }, to = { 0 };
	struct subjects list = { 0 };
	struct dbt_buf problem = { 0 };
	int r = way_to(ctx, source->shown, &from);

	if (r < 0)
		r = dbt_err_sys(err, r, "cannot look at the permissions on the way to '%s'",
		                source->shown);
	if (r == 0) {
		r = canonical_target(ctx, target_dir, &target);
		if (r == 0)
			r = way_to(ctx, target, &to);
		if (r < 0)
			r = dbt_err_sys(err, r, "cannot look at the permissions on the way to '%s'",
			                target_dir);
	}
	if (r == 0) {
		r = from.n < 2 || to.n < 1 ? -EINVAL : subjects_of(&from, &list);
		if (r == 0)
			r = judge(ctx, &from, &to, &list, &problem);
		if (r == 0 && problem.len > 0) {
			*ret_problem = dbt_buf_take(&problem);
			r = *ret_problem ? 0 : -ENOMEM;
		} else if (r == 0) {
			*ret_problem = NULL;
		}
		if (r < 0)
			r = dbt_err_sys(err, r, "cannot compare permissions");
	}
	dbt_buf_release(&problem);
	free(list.items);
	way_release(&from);
	way_release(&to);
	return r;
}
