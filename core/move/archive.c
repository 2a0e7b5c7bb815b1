#include "move/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A tar archive ends with two blocks of zeros; one of them is enough for what reads it. */
enum { TAR_BLOCK_BYTES = 512, HEAD_BYTES = 512 };

struct dbt_archive {
	const char *shown;
	struct dbt_packed *packed;
	struct dbt_unpacker
		*unpacker; /* of tar; NULL where libarchive jumps about in the file itself */
	struct archive *reader;
	int read_error; /* of the file, -errno */
};

static int failed(struct dbt_archive *a, struct dbt_err *err)
{
	const char *why = archive_error_string(a->reader);
	const struct dbt_err *inner = a->unpacker ? dbt_unpacker_error(a->unpacker) : NULL;

	if (inner) {
		if (err)
			*err = *inner;
		return inner->code;
	}
	if (a->read_error)
		return dbt_err_sys(err, a->read_error, "cannot read '%s'", a->shown);
	return dbt_err_set(err, DBT_ERR_VERIFY, -EBADMSG, "'%s' is damaged or cut short: %s",
	                   a->shown, why ? why : "it cannot be read");
}

/* ---- where the bytes come from ---- */

static la_ssize_t feed_unpacked(struct archive *reader, void *data, const void **ret)
{
	struct dbt_archive *a = data;
	ssize_t got = dbt_unpacker_read(a->unpacker, ret);

	if (got < 0)
		archive_set_error(reader, -(int)got, "cannot read on");
	return got < 0 ? -1 : got;
}

static la_ssize_t feed_file(struct archive *reader, void *data, const void **ret)
{
	struct dbt_archive *a = data;
	ssize_t got = dbt_packed_read(a->packed, ret);

	if (got < 0) {
		a->read_error = (int)got;
		archive_set_error(reader, -(int)got, "cannot read on");
	}
	return got < 0 ? -1 : got;
}

static la_int64_t seek_file(struct archive *reader, void *data, la_int64_t off, int whence)
{
	struct dbt_archive *a = data;
	la_int64_t size = (la_int64_t)dbt_packed_size(a->packed), to = off;

	(void)reader;
	if (whence == SEEK_CUR)
		to += (la_int64_t)dbt_packed_at(a->packed);
	else if (whence == SEEK_END)
		to += size;
	if (to < 0 || to > size)
		return ARCHIVE_FATAL;
	dbt_packed_seek(a->packed, (uint64_t)to);
	return to;
}

static la_int64_t skip_file(struct archive *reader, void *data, la_int64_t bytes)
{
	struct dbt_archive *a = data;

	(void)reader;
	dbt_packed_seek(a->packed, dbt_packed_at(a->packed) + (uint64_t)bytes);
	return bytes;
}

/* ---- opening ---- */

static bool has_directory(const unsigned char *head, size_t len)
{
	return (len >= 4 && memcmp(head, "PK\3\4", 4) == 0) ||
	       (len >= 6 && memcmp(head, "7z\xbc\xaf\x27\x1c", 6) == 0);
}

bool dbt_archive_magic(const unsigned char *head, size_t len)
{
	static const struct {
		const char *magic;
		size_t len;
	} packed[] = {
		{ "\x1f\x8b", 2 }, { "\xfd\x37zXZ\0", 6 },    { "\x28\xb5\x2f\xfd", 4 },
		{ "BZh", 3 },      { "\x04\x22\x4d\x18", 4 },
	};

	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
		if (len >= packed[i].len && memcmp(head, packed[i].magic, packed[i].len) == 0)
			return true;
	return has_directory(head, len) || (len >= 262 && memcmp(head + 257, "ustar", 5) == 0) ||
	       (len >= 4 && (head[0] & 0xf0) == 0x50 && memcmp(head + 1, "\x2a\x4d\x18", 3) == 0);
}

static int open_reader(struct dbt_archive *a)
{
	(void)archive_read_set_callback_data(a->reader, a);
	if (a->unpacker) {
		(void)archive_read_support_format_tar(a->reader);
		(void)archive_read_set_read_callback(a->reader, feed_unpacked);
	} else {
		(void)archive_read_support_format_zip_seekable(a->reader);
		(void)archive_read_support_format_7zip(a->reader);
		(void)archive_read_set_read_callback(a->reader, feed_file);
		(void)archive_read_set_seek_callback(a->reader, seek_file);
		(void)archive_read_set_skip_callback(a->reader, skip_file);
	}
	return archive_read_open1(a->reader);
}

int dbt_archive_new(const struct dbt_ctx *ctx, int fd, const struct dbt_ident *ident,
                    const struct dbt_archive_opts *opts, struct dbt_archive **ret,
                    struct dbt_err *err)
{
	struct dbt_archive *a = calloc(1, sizeof(*a));
	unsigned char head[HEAD_BYTES];
	ssize_t got;
	int r;

	if (!a)
		return dbt_err_sys(err, -ENOMEM, "cannot read '%s'", opts->packed.shown);
	a->shown = opts->packed.shown;
	r = dbt_packed_new(ctx, fd, ident, &opts->packed, &a->packed, err);
	if (r == 0) {
		got = dbt_packed_peek(a->packed, head, sizeof(head));
		if (got < 0)
			r = dbt_err_sys(err, (int)got, "cannot read '%s'", a->shown);
		else if (!has_directory(head, (size_t)got))
			r = dbt_unpacker_new(a->packed, &opts->unpacker, a->shown, &a->unpacker,
			                     err);
	}
	if (r == 0) {
		a->reader = archive_read_new();
		if (!a->reader)
			r = dbt_err_sys(err, -ENOMEM, "cannot read '%s'", a->shown);
		else if (open_reader(a) != ARCHIVE_OK)
			r = failed(a, err);
	}
	if (r < 0) {
		dbt_archive_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

void dbt_archive_free(struct dbt_archive *a)
{
	if (!a)
		return;
	if (a->reader)
		(void)archive_read_free(a->reader);
	dbt_unpacker_free(a->unpacker);
	dbt_packed_free(a->packed);
	free(a);
}

bool dbt_archive_has_directory(const struct dbt_archive *a)
{
	return a->unpacker == NULL;
}

/* ---- entries ---- */

static enum dbt_entry_type type_of(struct archive_entry *e)
{
	if (archive_entry_hardlink(e) || archive_entry_hardlink_utf8(e))
		return DBT_ENTRY_HARD_LINK;
	switch (archive_entry_filetype(e)) {
	case AE_IFREG:
		return DBT_ENTRY_FILE;
	case AE_IFDIR:
		return DBT_ENTRY_DIRECTORY;
	case AE_IFLNK:
		return DBT_ENTRY_LINK;
	default:
		return DBT_ENTRY_OTHER;
	}
}

/* The bytes as they are in the archive; where libarchive could not turn those of another character set into this
 * locale's, in UTF-8. */
static const char *first_of(const char *raw, const char *utf8)
{
	return raw ? raw : utf8;
}

static const char *link_of(struct archive_entry *e, enum dbt_entry_type type)
{
	if (type == DBT_ENTRY_HARD_LINK)
		return first_of(archive_entry_hardlink(e), archive_entry_hardlink_utf8(e));
	if (type == DBT_ENTRY_LINK)
		return first_of(archive_entry_symlink(e), archive_entry_symlink_utf8(e));
	return NULL;
}

static int64_t mtime_of(struct archive_entry *e)
{
	int64_t ns;

	if (!archive_entry_mtime_is_set(e) ||
	    __builtin_mul_overflow((int64_t)archive_entry_mtime(e), INT64_C(1000000000), &ns))
		return 0;
	return ns + archive_entry_mtime_nsec(e);
}

int dbt_archive_next(struct dbt_archive *a, struct dbt_entry *ret, struct dbt_err *err)
{
	struct archive_entry *e;
	int r;

	do
		r = archive_read_next_header(a->reader, &e);
	while (r == ARCHIVE_RETRY);
	if (r == ARCHIVE_EOF)
		return 0;
	/* A warning is about a name that this locale has no characters for. */
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return failed(a, err);
	*ret = (struct dbt_entry){
		.name = first_of(archive_entry_pathname(e), archive_entry_pathname_utf8(e)),
		.type = type_of(e),
		.sized = archive_entry_size_is_set(e),
		.sparse = archive_entry_sparse_count(e) > 0,
		.mode = (uint32_t)archive_entry_perm(e),
		.mtime_ns = mtime_of(e),
	};
	ret->link = link_of(e, ret->type);
	if (!ret->name ||
	    ((ret->type == DBT_ENTRY_LINK || ret->type == DBT_ENTRY_HARD_LINK) && !ret->link))
		return dbt_err_set(err, DBT_ERR_VERIFY, -EBADMSG, "an entry of '%s' has no name",
		                   a->shown);
	if (ret->sized && archive_entry_size(e) < 0)
		return dbt_err_set(err, DBT_ERR_VERIFY, -EBADMSG, "'%s' in '%s' has no size",
		                   ret->name, a->shown);
	ret->size_bytes = ret->sized ? (uint64_t)archive_entry_size(e) : 0;
	return 1;
}

int dbt_archive_data(struct dbt_archive *a, const void **ret_data, size_t *ret_len,
                     uint64_t *ret_off, struct dbt_err *err)
{
	la_int64_t off = 0;
	int r;

	do
		r = archive_read_data_block(a->reader, ret_data, ret_len, &off);
	while (r == ARCHIVE_RETRY);
	if (r == ARCHIVE_EOF)
		return 0;
	/* For zip a warning is a wrong CRC or size. */
	if (r != ARCHIVE_OK || off < 0)
		return failed(a, err);
	*ret_off = (uint64_t)off;
	return 1;
}

int dbt_archive_finish(struct dbt_archive *a, struct dbt_packed_sums *ret, struct dbt_err *err)
{
	const void *block;
	ssize_t got = 1;

	/* The end mark is where libarchive stops: what follows is padding, and the checksum of what was packed. */
	while (a->unpacker && got > 0)
		got = dbt_unpacker_read(a->unpacker, &block);
	if (got < 0)
		return failed(a, err);
	if (a->unpacker && dbt_unpacker_zeros(a->unpacker) < TAR_BLOCK_BYTES)
		return dbt_err_set(err, DBT_ERR_VERIFY, -EBADMSG,
		                   "'%s' is cut short, or something follows it: it does not end "
		                   "as a tar archive does",
		                   a->shown);
	return dbt_packed_finish(a->packed, ret, err);
}
