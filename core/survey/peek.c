#include "survey/peek.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

/* Small blocks: between two of them the limits are looked at, and some packers make thousands of bytes of one. */
enum { BLOCK_BYTES = 65536 };

const struct dbt_peek_limits dbt_peek_all = { .packed_bytes = UINT64_MAX, .ns = UINT64_MAX };

struct source {
	const struct dbt_ctx *ctx;
	const struct dbt_candidate *file;
	const struct dbt_peek_limits *limits;
	uint64_t start_ns, off, read_bytes;
	bool stopped; /* by a limit or by request */
	unsigned char block[BLOCK_BYTES];
};

static bool must_stop(struct source *s)
{
	if (dbt_ctx_cancelled(s->ctx) || s->read_bytes >= s->limits->packed_bytes ||
	    s->ctx->sys->now_ns() - s->start_ns >= s->limits->ns)
		s->stopped = true;
	return s->stopped;
}

static la_ssize_t read_block(struct archive *a, void *data, const void **ret_block)
{
	struct source *s = data;
	ssize_t got;

	if (must_stop(s))
		return 0;
	got = dbt_candidate_read(s->file, s->block, sizeof(s->block), s->off);
	if (got < 0) {
		archive_set_error(a, (int)-got, "cannot read");
		return ARCHIVE_FATAL;
	}
	s->off += (uint64_t)got;
	s->read_bytes += (uint64_t)got;
	*ret_block = s->block;
	return got;
}

static la_int64_t skip(struct archive *a, void *data, la_int64_t bytes)
{
	struct source *s = data;
	uint64_t left = s->file->size_bytes > s->off ? s->file->size_bytes - s->off : 0;
	uint64_t step = bytes < 0 ? 0 : (uint64_t)bytes < left ? (uint64_t)bytes : left;

	(void)a;
	s->off += step;
	return (la_int64_t)step;
}

static la_int64_t seek(struct archive *a, void *data, la_int64_t off, int whence)
{
	struct source *s = data;
	const la_int64_t from = whence == SEEK_SET   ? 0
	                        : whence == SEEK_CUR ? (la_int64_t)s->off
	                                             : (la_int64_t)s->file->size_bytes;
	la_int64_t to;

	(void)a;
	if (__builtin_add_overflow(from, off, &to) || to < 0)
		return ARCHIVE_FATAL;
	s->off = (uint64_t)to;
	return to;
}

static struct archive *open_archive(struct source *s)
{
	struct archive *a = archive_read_new();

	if (!a)
		return NULL;
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_bzip2(a);
	(void)archive_read_support_filter_xz(a);
	(void)archive_read_support_filter_zstd(a);
	(void)archive_read_support_filter_lz4(a);
	(void)archive_read_support_format_tar(a);
	(void)archive_read_support_format_zip(a);
	(void)archive_read_support_format_7zip(a);
	(void)archive_read_set_read_callback(a, read_block);
	(void)archive_read_set_skip_callback(a, skip);
	(void)archive_read_set_seek_callback(a, seek);
	(void)archive_read_set_callback_data(a, s);
	return a;
}

/* The member's first bytes, at most len; how many, 0 also where they cannot be had. */
static size_t read_head(struct archive *a, unsigned char *head, size_t len)
{
	size_t n = 0;
	la_ssize_t got;

	while (n < len && (got = archive_read_data(a, head + n, len - n)) > 0)
		n += (size_t)got;
	return n;
}

/* Steps over a member's data block by block, so that the limits hold however much it unpacks to. Without a packer
 * around the archive libarchive jumps over it. */
static int skip_data(struct archive *a, struct source *s)
{
	const void *block;
	la_int64_t off;
	size_t len;
	int r = ARCHIVE_OK;

	if (archive_filter_code(a, 0) == ARCHIVE_FILTER_NONE)
		return ARCHIVE_OK; /* with the next header */
	while (r == ARCHIVE_OK && !must_stop(s))
		r = archive_read_data_block(a, &block, &len, &off);
	return r == ARCHIVE_EOF ? ARCHIVE_OK : r;
}

static int take(struct archive *a, struct archive_entry *entry, struct dbt_peek *peek)
{
	const char *path = archive_entry_pathname(entry);
	const uint64_t size = archive_entry_size_is_set(entry) && archive_entry_size(entry) > 0
	                              ? (uint64_t)archive_entry_size(entry)
	                              : 0;
	unsigned char head[DBT_HEAD_BYTES];
	size_t n = 0;

	peek->n_members++;
	if (!path || archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
		return 0;
	if (dbt_guess_wants_head(path, size))
		n = read_head(a, head, sizeof(head));
	/* Without any byte of it only the name is known: it may be empty, or packed beyond the limits. */
	return size == 0 && n == 0 ? 0
	                           : dbt_guess_add(&peek->guess, path, size, n ? head : NULL, n);
}

int dbt_peek(const struct dbt_ctx *ctx, const struct dbt_candidate *file,
             const struct dbt_peek_limits *limits, struct dbt_peek *ret)
{
	struct source s = {
		.ctx = ctx, .file = file, .limits = limits, .start_ns = ctx->sys->now_ns()
	};
	struct archive *a = open_archive(&s);
	struct archive_entry *entry;
	int r, failed = 0;

	*ret = (struct dbt_peek){ 0 };
	if (!a)
		return -ENOMEM;
	r = archive_read_open1(a);
	while (failed == 0 && r == ARCHIVE_OK) {
		r = archive_read_next_header(a, &entry);
		if (r == ARCHIVE_WARN) /* an attribute or a name in a strange encoding */
			r = ARCHIVE_OK;
		if (r != ARCHIVE_OK)
			break;
		failed = take(a, entry, ret);
		if (failed == 0)
			r = skip_data(a, &s);
		if (must_stop(&s))
			break;
	}
	ret->whole = r == ARCHIVE_EOF && !s.stopped;
	ret->damaged = r < ARCHIVE_WARN && !s.stopped;
	(void)archive_read_free(a);
	if (failed == 0 && dbt_ctx_cancelled(ctx))
		failed = -ECANCELED;
	if (failed < 0)
		dbt_guess_release(&ret->guess);
	return failed;
}

bool dbt_peek_magic(const struct dbt_candidate *file)
{
	static const struct {
		const char *magic;
		size_t len;
	} magics[] = {
		{ "\xfd\x37zXZ\0", 6 },
		{ "7z\xbc\xaf\x27\x1c", 6 },
		{ "\x28\xb5\x2f\xfd", 4 },
		{ "\x04\x22\x4d\x18", 4 },
		{ "PK\3\4", 4 },
		{ "\x1f\x8b\x08", 3 },
		{ "BZh", 3 },
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (dbt_has_magic(file, magics[i].magic, magics[i].len))
			return true;
	return file->head_len >= 262 && memcmp(file->head + 257, "ustar", 5) == 0;
}
