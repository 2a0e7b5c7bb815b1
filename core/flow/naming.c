#include "flow/naming.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "record/ledger.h"
#include "survey/dbkind.h"
#include "sys/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {
	MAX_LEADS = 16,
	MAX_CACHE_FILES =
		32, /* asked what the page cache holds of them: large ones take milliseconds */
};

/* --- without touching the disk --- */

/* Bytes that are in memory already; others are not fetched. */
static ssize_t read_cached(int fd, void *buf, size_t len, uint64_t off)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	ssize_t got = preadv2(fd, &iov, 1, (off_t)off, RWF_NOWAIT);

	return got < 0 ? -errno : got;
}

static ssize_t candidate_read(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off)
{
	return read_cached(*(const int *)file->read_data, buf, len, off);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file as its reader has it: under the same path, or seen from a container under that process's root. A path that
 * leads to another inode is another file. */
static int open_observed(const struct dbt_ctx *ctx, const struct dbt_observation *obs, size_t index)
{
	const struct dbt_obs_file *f = &obs->files.items[index];
	const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct stat st;
	int fd = ctx->sys->openat(AT_FDCWD, f->path, flags, 0);

	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_ino != f->ino || !S_ISREG(st.st_mode))) {
		(void)ctx->sys->close(fd);
		fd = -ENOENT;
	}
	for (size_t i = 0; fd < 0 && i < obs->uses.n; i++) {
		const struct dbt_obs_process *p = &obs->processes.items[obs->uses.items[i].process];
		dbt_autofree char *path = NULL;

		if (obs->uses.items[i].file != index || !p->other_mounts)
			continue;
		if (asprintf(&path, "/proc/%d/root%s", p->pid, f->path) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		fd = ctx->sys->openat(AT_FDCWD, path, flags, 0);
		if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_ino != f->ino)) {
			(void)ctx->sys->close(fd);
			fd = -ENOENT;
		}
	}
	return fd;
}

/* --- the format --- */

/* A pattern says something only with a literal part of its own. */
static bool is_telling(const char *pattern)
{
	return strlen(pattern) - strcspn(pattern, ".") >= 3 || strpbrk(pattern, "*#") == NULL;
}

static enum dbt_class class_in(const struct dbt_format *format, const char *name)
{
	enum dbt_class fallback = format->class;

	for (const struct dbt_rule *r = format->rules; r && r->pattern; r++) {
		if (!dbt_pattern_fits(r->pattern, NULL, name))
			continue;
		if (is_telling(r->pattern))
			return r->class;
		if (fallback == DBT_CLASS_UNKNOWN)
			fallback = r->class;
	}
	return fallback;
}

/* By first bytes that are in memory. NULL: none fits; *ret_tested: they were there to be
 * asked. */
static const struct dbt_format *format_by_head(int fd, const char *name, uint64_t size_bytes,
                                               bool *ret_tested)
{
	struct dbt_dbkind_lead leads[MAX_LEADS];
	unsigned char head[DBT_HEAD_BYTES];
	struct dbt_candidate file = { .name = name,
		                      .size_bytes = size_bytes,
		                      .head = head,
		                      .read = candidate_read,
		                      .read_data = &fd };
	const struct dbt_format *found = NULL;
	struct dbt_buf why = { 0 };
	enum dbt_match match;
	ssize_t got = read_cached(fd, head, sizeof(head), 0);
	size_t n;

	*ret_tested = got > 0;
	if (got <= 0)
		return NULL;
	file.head_len = (size_t)got;
	n = dbt_dbkind_leads(name, size_bytes, leads, MAX_LEADS);
	for (size_t i = 0; !found && i < n; i++)
		if (leads[i].format->shape != DBT_SHAPE_COMPOSITE && leads[i].format->test &&
		    leads[i].format->test(&file, &why) != DBT_MATCH_NO)
			found = leads[i].format;
	if (!found)
		found = dbt_dbkind_by_content(&file, &match, &why);
	dbt_buf_release(&why);
	return found;
}

static bool fits(const char *pattern, const char *name)
{
	return is_telling(pattern) && dbt_pattern_fits(pattern, NULL, name);
}

/* tested: its first bytes were no lead's. */
static bool has_name(const struct dbt_format *format, const char *name, bool tested)
{
	for (const struct dbt_lead *l = format->leads; !tested && l && l->pattern; l++)
		if (fits(l->pattern, name))
			return true;
	for (const struct dbt_rule *r = format->rules; r && r->pattern; r++)
		if (fits(r->pattern, name))
			return true;
	return false;
}

/* By a name that only one format of the catalogue has. */
static const struct dbt_format *format_by_name(const char *name, bool tested)
{
	const struct dbt_format *found = NULL;

	for (const struct dbt_format *const *f = dbt_formats; *f; f++) {
		if ((*f)->shape == DBT_SHAPE_COMPOSITE || !has_name(*f, name, tested))
			continue;
		if (found)
			return NULL;
		found = *f;
	}
	return found;
}

static int set(char **ret, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

static int name_it(struct dbt_obs_file *f, const char *database, const struct dbt_format *format)
{
	f->declared = class_in(format, base_name(f->path));
	return set(&f->database, database) < 0 || set(&f->format, format->id) < 0 ? -ENOMEM : 0;
}

static bool is_of(const struct dbt_scan_name *n, const char *path)
{
	size_t len = strlen(n->path);

	/* A member, a database of one file, or a base name such as BLAST's. */
	return strcmp(n->path, path) == 0 ||
	       (!n->is_member && strncmp(n->path, path, len) == 0 && path[len] == '.');
}

static int name_by_scan(const struct dbt_scan_names *names, struct dbt_obs_file *f)
{
	for (size_t i = 0; i < names->n; i++) {
		const struct dbt_format *format;

		if (!is_of(&names->items[i], f->path))
			continue;
		format = dbt_format_by_id(names->items[i].format);
		if (format && format->shape == DBT_SHAPE_COMPOSITE)
			continue; /* the part's own format says how it is read */
		if (format)
			return name_it(f, names->items[i].database, format);
	}
	return 0;
}

static int load_names(const struct dbt_ctx *ctx, const char *state_dir, struct dbt_scan_names *ret)
{
	struct dbt_ledger *ledger = NULL;
	struct dbt_err err = { 0 };
	int r = dbt_ledger_open(ctx, state_dir, DBT_LEDGER_READ, &ledger, &err);

	if (r == 0)
		r = dbt_ledger_find_names(ledger, NULL, ret, &err);
	dbt_ledger_close(ledger);
	if (r < 0 && r != -ENOENT)
		dbt_ctx_log(ctx, DBT_LOG_WARNING, "%s", err.text);
	return r == -ENOMEM ? r : 0;
}

static int name_file(const struct dbt_ctx *ctx, struct dbt_observation *obs, size_t i,
                     const struct dbt_scan_names *names, size_t n_names, unsigned *asked)
{
	struct dbt_obs_file *f = &obs->files.items[i];
	const struct dbt_obs_place *place =
		f->place == DBT_OBS_NONE ? NULL : &obs->places.items[f->place];
	const struct dbt_format *format = NULL;
	dbt_autoclose int fd = -1;
	bool tested = false;
	uint64_t cached;
	int r = 0;

	if (!f->path || f->size_bytes == 0)
		return 0;
	for (size_t k = 0; r == 0 && !f->format && k < n_names; k++)
		r = name_by_scan(&names[k], f);
	/* A server that does not answer is not asked; what is only written is nobody's database. */
	if (r < 0 || (place && (place->network || place->ram)) || *asked >= MAX_CACHE_FILES ||
	    (f->reads.bytes == 0 && f->size_bytes < 1 << 20))
		return r;
	fd = open_observed(ctx, obs, i);
	if (fd < 0)
		return 0;
	if (!f->format)
		format = format_by_head(fd, base_name(f->path), f->size_bytes, &tested);
	if (!f->format && !format)
		format = format_by_name(base_name(f->path), tested);
	if (format)
		r = name_it(f, base_name(f->path), format);
	if (r == 0 && (f->format || f->reads.bytes > 1 << 20)) {
		++*asked;
		if (dbt_io_cached(ctx, fd, 0, f->size_bytes, &cached) == 0)
			f->cached_after = cached >= f->size_bytes
			                          ? 1
			                          : (double)cached / (double)f->size_bytes;
	}
	return r;
}

int dbt_name_files(const struct dbt_ctx *ctx, const char *state_dir, const char *system_state_dir,
                   struct dbt_observation *obs)
{
	struct dbt_scan_names names[2] = { { 0 }, { 0 } };
	unsigned asked = 0;
	int r = load_names(ctx, state_dir, &names[0]);

	if (r == 0 && system_state_dir)
		r = load_names(ctx, system_state_dir, &names[1]);
	for (size_t i = 0; r == 0 && i < obs->files.n; i++)
		r = name_file(ctx, obs, i, names, 2, &asked);
	dbt_scan_names_release(&names[0]);
	dbt_scan_names_release(&names[1]);
	return r;
}
