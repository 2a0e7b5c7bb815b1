#include "move/treelist.h"

#include "base/cleanup.h"
#include "move/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path of 200 names of 255 bytes, and the numbers. */
enum { MAX_LINE = 65536 };

static const char head[] = "dbtier tree 1\n";

/* --- writing -------------------------------------------------------------------------------------------- */

static int cannot_write(const struct dbt_tree_writer *w, int code, struct dbt_err *err)
{
	return dbt_err_set(err, DBT_ERR_LEDGER, code, "cannot write the list '%s': %s", w->path,
	                   dbt_err_text(code));
}

static char *draft_name(const char *path)
{
	char *draft;

	return asprintf(&draft, "%s.new", path) < 0 ? NULL : draft;
}

static int put(struct dbt_tree_writer *w, const void *data, size_t len)
{
	dbt_hasher_add(w->hasher, data, len);
	errno = EIO;
	return fwrite(data, 1, len, w->file) == len ? 0 : -errno;
}

static int open_writer(const char *path, bool unnamed, struct dbt_tree_writer *ret,
                       struct dbt_err *err)
{
	dbt_autofree char *draft = draft_name(path);
	struct dbt_tree_writer w = { .path = strdup(path),
		                     .hasher = dbt_hasher_new(),
		                     .draft = unnamed };
	int fd = -1, r = draft && w.path && w.hasher ? 0 : -ENOMEM;

	if (r == 0) {
		/* One of this name can only be of a killed run of this very promotion. */
		fd = open(draft, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		          geteuid() == 0 ? 0644 : 0600);
		r = fd < 0 || (unnamed && unlink(draft) < 0) ? -errno : 0;
	}
	if (r == 0) {
		w.file = fdopen(fd, "w+");
		r = w.file ? 0 : -errno;
	}
	if (r == 0)
		r = put(&w, head, sizeof(head) - 1);
	if (r < 0) {
		(void)dbt_err_set(err, DBT_ERR_LEDGER, r, "cannot write the list '%s': %s", path,
		                  dbt_err_text(r));
		if (fd >= 0 && !w.file)
			(void)close(fd);
		dbt_tree_writer_release(&w);
		return r;
	}
	*ret = w;
	return 0;
}

int dbt_tree_writer_open(const char *path, struct dbt_tree_writer *ret, struct dbt_err *err)
{
	return open_writer(path, false, ret, err);
}

int dbt_tree_draft_open(const char *path, struct dbt_tree_writer *ret, struct dbt_err *err)
{
	return open_writer(path, true, ret, err);
}

int dbt_tree_writer_add(struct dbt_tree_writer *w, const struct dbt_tree_entry *e,
                        struct dbt_err *err)
{
	const struct dbt_ident *s = &e->source, *c = &e->copied;
	char hash[DBT_DIGEST_HEX_BYTES] = "-";
	int r;

	if (e->digest.set)
		(void)dbt_digest_hex(&e->digest, hash);
	dbt_buf_clear(&w->line);
	r = dbt_buf_addf(&w->line,
	                 "%c %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRIo32
	                 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64
	                 " %s %" PRIu64 " %s",
	                 e->kind, s->ino, s->size_bytes, s->mtime_ns, s->ctime_ns, s->btime_ns,
	                 s->mode, s->uid, s->gid, c->ino, c->mtime_ns, c->ctime_ns, c->btime_ns,
	                 hash, e->n_entries, e->path);
	if (r == 0)
		r = dbt_buf_add(&w->line, "\0\n", 2);
	if (r == 0)
		r = put(w, w->line.data, w->line.len);
	if (r < 0)
		return cannot_write(w, r, err);
	w->n++;
	return 0;
}

static int sync_directory_of(const struct dbt_ctx *ctx, const char *path)
{
	struct dbt_at at;
	int r = dbt_at_resolve(ctx, path, &at, NULL);

	if (r < 0)
		return r;
	r = dbt_at_sync_dir(ctx, &at);
	dbt_at_release(&at);
	return r;
}

int dbt_tree_writer_commit(const struct dbt_ctx *ctx, struct dbt_tree_writer *w,
                           struct dbt_err *err)
{
	dbt_autofree char *draft = draft_name(w->path);
	char hash[DBT_DIGEST_HEX_BYTES];
	struct dbt_digest digest = dbt_hasher_digest(w->hasher);
	int r = draft ? 0 : -ENOMEM;

	errno = EIO;
	if (r == 0 &&
	    (fprintf(w->file, "end %" PRIu64 " %s\n", w->n, dbt_digest_hex(&digest, hash)) < 0 ||
	     fflush(w->file) != 0))
		r = -errno;
	if (r == 0)
		r = ctx->sys->fsync(fileno(w->file));
	if (r == 0)
		r = ctx->sys->renameat2(AT_FDCWD, draft, AT_FDCWD, w->path, 0);
	if (r == 0)
		r = sync_directory_of(ctx, w->path);
	if (r < 0)
		return cannot_write(w, r, err);
	(void)fclose(w->file);
	w->file = NULL;
	return 0;
}

void dbt_tree_writer_release(struct dbt_tree_writer *w)
{
	dbt_autofree char *draft = w->file && !w->draft ? draft_name(w->path) : NULL;

	if (w->file)
		(void)fclose(w->file);
	if (draft)
		(void)unlink(draft);
	free(w->path);
	dbt_hasher_free(w->hasher);
	dbt_buf_release(&w->line);
	*w = (struct dbt_tree_writer){ 0 };
}

/* --- reading -------------------------------------------------------------------------------------------- */

static int damaged(const struct dbt_tree_reader *r, struct dbt_err *err)
{
	return dbt_err_set(err, DBT_ERR_LEDGER, -EIO, "the list '%s' is damaged", r->path);
}

static bool take_u64(char **at, int base, uint64_t *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, base);
	if (errno != 0 || *end != ' ')
		return false;
	*at = end + 1;
	return true;
}

static bool take_u32(char **at, int base, uint32_t *ret)
{
	uint64_t value;

	if (!take_u64(at, base, &value) || value > UINT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

static bool take_i64(char **at, int64_t *ret)
{
	char *end, first = **at == '-' ? (*at)[1] : **at;

	if (first < '0' || first > '9')
		return false;
	errno = 0;
	*ret = strtoll(*at, &end, 10);
	if (errno != 0 || *end != ' ')
		return false;
	*at = end + 1;
	return true;
}

static bool take_digest(char **at, struct dbt_digest *ret)
{
	char *end = strchr(*at, ' ');
	bool ok = end != NULL;

	*ret = (struct dbt_digest){ 0 };
	if (!ok)
		return false;
	*end = '\0';
	if (strcmp(*at, "-") != 0)
		ok = dbt_digest_parse(*at, ret) == 0;
	*at = end + 1;
	return ok;
}

/* Below the root, and nowhere else. */
static bool is_inner_path(const char *path)
{
	const char *part = path;

	if (strcmp(path, ".") == 0)
		return true;
	while (part) {
		const char *slash = strchr(part, '/');
		size_t len = slash ? (size_t)(slash - part) : strlen(part);

		if (len == 0 || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part = slash ? slash + 1 : NULL;
	}
	return true;
}

/* line: an entry's without its end, with a NUL behind the path. */
static bool parse(char *line, struct dbt_tree_entry *ret)
{
	struct dbt_tree_entry e = { .kind = line[0] };
	struct dbt_ident *s = &e.source, *c = &e.copied;
	char *at = line + 2;

	if (!e.kind || !strchr("fld", e.kind) || line[1] != ' ')
		return false;
	if (!take_u64(&at, 10, &s->ino) || !take_u64(&at, 10, &s->size_bytes) ||
	    !take_i64(&at, &s->mtime_ns) || !take_i64(&at, &s->ctime_ns) ||
	    !take_i64(&at, &s->btime_ns) || !take_u32(&at, 8, &s->mode) ||
	    !take_u32(&at, 10, &s->uid) || !take_u32(&at, 10, &s->gid) ||
	    !take_u64(&at, 10, &c->ino) || !take_i64(&at, &c->mtime_ns) ||
	    !take_i64(&at, &c->ctime_ns) || !take_i64(&at, &c->btime_ns) ||
	    !take_digest(&at, &e.digest) || !take_u64(&at, 10, &e.n_entries))
		return false;
	if ((e.kind == 'd') != S_ISDIR(s->mode) || (e.kind == 'l') != S_ISLNK(s->mode) ||
	    (e.kind == 'f') != S_ISREG(s->mode) || !is_inner_path(at))
		return false;
	c->mode = s->mode;
	c->size_bytes = s->size_bytes;
	e.path = at;
	*ret = e;
	return true;
}

/* One line of the file: its length with the newline, 0 at the end. Only a NUL before a newline ends an entry: names
 * may hold newlines. */
static ssize_t read_line(struct dbt_tree_reader *r, bool is_entry)
{
	size_t len = 0;
	int c;

	errno = 0;
	while (len < MAX_LINE && (c = getc_unlocked(r->file)) != EOF) {
		if (len + 2 > r->cap) {
			size_t cap = r->cap ? r->cap * 2 : 512;
			char *line = realloc(r->line, cap);

			if (!line)
				return -ENOMEM;
			r->line = line;
			r->cap = cap;
		}
		r->line[len++] = (char)c;
		if (c == '\n' && (!is_entry || (len > 1 && r->line[len - 2] == '\0')))
			break;
	}
	if (ferror(r->file))
		return errno ? -errno : -EIO;
	if (r->line)
		r->line[len] = '\0';
	return (ssize_t)len;
}

/* The line "end N HASH" begins as no entry does. */
static bool at_end_line(struct dbt_tree_reader *r)
{
	int c = getc_unlocked(r->file);

	if (c != EOF)
		(void)ungetc(c, r->file);
	return c == 'e' || c == EOF;
}

static int check_end(struct dbt_tree_reader *r, const struct dbt_hasher *hasher,
                     struct dbt_err *err)
{
	struct dbt_digest digest = dbt_hasher_digest(hasher);
	char hash[DBT_DIGEST_HEX_BYTES], wanted[128];
	ssize_t len = read_line(r, false);

	(void)snprintf(wanted, sizeof(wanted), "end %" PRIu64 " %s\n", r->n,
	               dbt_digest_hex(&digest, hash));
	if (len <= 0 || strcmp(r->line, wanted) != 0 || getc_unlocked(r->file) != EOF)
		return damaged(r, err);
	r->n_all = r->n;
	r->n = 0;
	return fseeko(r->file, (off_t)(sizeof(head) - 1), SEEK_SET) == 0 ? 0 : damaged(r, err);
}

static int check_all(struct dbt_tree_reader *r, struct dbt_err *err)
{
	struct dbt_hasher *hasher = dbt_hasher_new();
	struct dbt_tree_entry e;
	ssize_t len = read_line(r, false);
	int code = hasher ? 0 : dbt_err_sys(err, -ENOMEM, "cannot read the list '%s'", r->path);

	if (code == 0 && (len != (ssize_t)(sizeof(head) - 1) || strcmp(r->line, head) != 0))
		code = damaged(r, err);
	if (code == 0)
		dbt_hasher_add(hasher, r->line, (size_t)len);
	while (code == 0 && !at_end_line(r)) {
		len = read_line(r, true);
		if (len > 0)
			dbt_hasher_add(hasher, r->line, (size_t)len);
		if (len == -ENOMEM)
			code = dbt_err_sys(err, -ENOMEM, "cannot read the list '%s'", r->path);
		else if (len < 2 || r->line[len - 2] != '\0' || !parse(r->line, &e))
			code = damaged(r, err);
		else
			r->n++;
	}
	if (code == 0)
		code = check_end(r, hasher, err);
	dbt_hasher_free(hasher);
	return code;
}

int dbt_tree_reader_open(const char *path, struct dbt_tree_reader *ret, struct dbt_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct dbt_tree_reader r = { .path = strdup(path) };
	struct stat st;
	int code = fd < 0 ? -errno : r.path ? 0 : -ENOMEM;

	if (code == 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		code = -EINVAL;
	if (code == 0) {
		r.file = fdopen(fd, "r");
		code = r.file ? 0 : -errno;
	}
	if (code < 0) {
		if (fd >= 0)
			(void)close(fd);
		free(r.path);
		return dbt_err_set(err, DBT_ERR_LEDGER, code, "cannot read the list '%s': %s", path,
		                   dbt_err_text(code));
	}
	code = check_all(&r, err);
	if (code < 0)
		dbt_tree_reader_release(&r);
	else
		*ret = r;
	return code;
}

int dbt_tree_reader_of_draft(struct dbt_tree_writer *draft, struct dbt_tree_reader *ret,
                             struct dbt_err *err)
{
	struct dbt_tree_reader r = { .path = strdup(draft->path),
		                     .file = draft->file,
		                     .n_all = draft->n };
	int code = r.path ? 0 : -ENOMEM;

	errno = EIO;
	if (code == 0 &&
	    (fflush(r.file) != 0 || fseeko(r.file, (off_t)(sizeof(head) - 1), SEEK_SET) != 0))
		code = -errno;
	if (code < 0) {
		free(r.path);
		return cannot_write(draft, code, err);
	}
	draft->file = NULL;
	dbt_tree_writer_release(draft);
	*ret = r;
	return 0;
}

int dbt_tree_reader_next(struct dbt_tree_reader *r, struct dbt_tree_entry *ret, struct dbt_err *err)
{
	if (r->n == r->n_all)
		return 0;
	if (read_line(r, true) <= 0 || !parse(r->line, ret))
		return damaged(r, err); /* since it was opened */
	r->n++;
	return 1;
}

void dbt_tree_reader_release(struct dbt_tree_reader *r)
{
	if (r->file)
		(void)fclose(r->file);
	free(r->path);
	free(r->line);
	*r = (struct dbt_tree_reader){ 0 };
}

/* --- the hash of a whole -------------------------------------------------------------------------------- */

int dbt_tree_digest_add(struct dbt_digest *sum, const struct dbt_tree_entry *e)
{
	char hash[DBT_DIGEST_HEX_BYTES] = "-";
	struct dbt_hasher *hasher;
	struct dbt_digest one;

	sum->set = true;
	if (dbt_tree_is_volatile(e->path))
		return 0;
	hasher = dbt_hasher_new();
	if (!hasher)
		return -ENOMEM;
	if (e->digest.set)
		(void)dbt_digest_hex(&e->digest, hash);
	dbt_hasher_add(hasher, &e->kind, 1);
	dbt_hasher_add(hasher, e->path, strlen(e->path) + 1);
	dbt_hasher_add(hasher, hash, strlen(hash));
	one = dbt_hasher_digest(hasher);
	dbt_hasher_free(hasher);
	sum->high += one.high;
	sum->low += one.low;
	return 0;
}
