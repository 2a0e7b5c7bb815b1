#include "move/unpacker.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { OUT_BYTES = 1 << 20 };

/* Dictionaries beyond this are refused: xz allows 1.5 GiB. */
#define MOST_MEMORY_BYTES (1U << 30)

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_XZ, PACKING_OTHER };

struct dbt_unpacker {
	struct dbt_packed *packed;
	const char *shown;
	enum packing packing;
	unsigned char *out;
	z_stream gzip;
	bool in_member; /* of a gzip file, which may have several */
	lzma_stream xz;
	struct archive *other; /* libarchive's filters around the format "raw" */
	bool input_ended, ended;
	uint64_t zeros;
	struct dbt_err err;
};

static ssize_t cannot_read(struct dbt_unpacker *u, ssize_t code)
{
	return dbt_err_sys(&u->err, (int)code, "cannot read '%s' at byte %" PRIu64, u->shown,
	                   dbt_packed_at(u->packed));
}

static ssize_t damaged(struct dbt_unpacker *u, const char *why)
{
	return dbt_err_set(&u->err, DBT_ERR_VERIFY, -EBADMSG, "'%s' is damaged or cut short: %s",
	                   u->shown, why);
}

/* ---- gzip ---- */

static int gzip_init(struct dbt_unpacker *u)
{
	/* 15: the largest window; 16: gzip's header and trailer are wanted. */
	return inflateInit2(&u->gzip, 15 + 16) == Z_OK ? 0 : -ENOMEM;
}

/* Fills the input where it is empty; *ret_end where there is no more. */
static ssize_t gzip_feed(struct dbt_unpacker *u)
{
	const void *in;
	ssize_t got;

	if (u->gzip.avail_in > 0 || u->input_ended)
		return 0;
	got = dbt_packed_read(u->packed, &in);
	if (got < 0)
		return cannot_read(u, got);
	u->input_ended = got == 0;
	/* zlib does not write to its input; z_const says so only when asked for. */
	u->gzip.next_in = (Bytef *)(uintptr_t)in;
	u->gzip.avail_in = (uInt)got;
	return 0;
}

/* Some writers fill up the last block of a tape with zeros. */
static bool only_zeros_left(struct dbt_unpacker *u)
{
	while (u->gzip.avail_in > 0 && *u->gzip.next_in == 0) {
		u->gzip.next_in++;
		u->gzip.avail_in--;
	}
	return u->gzip.avail_in == 0;
}

static ssize_t gzip_read(struct dbt_unpacker *u)
{
	u->gzip.next_out = u->out;
	u->gzip.avail_out = OUT_BYTES;
	while (u->gzip.avail_out > 0) {
		ssize_t r = gzip_feed(u);
		int z;

		if (r < 0)
			return r;
		if (!u->in_member && only_zeros_left(u)) {
			if (u->input_ended)
				break;
			continue;
		}
		u->in_member = true;
		z = inflate(&u->gzip, Z_NO_FLUSH);
		if (z == Z_STREAM_END) {
			u->in_member = false;
			(void)inflateReset(&u->gzip);
		} else if (z == Z_BUF_ERROR && u->input_ended) {
			return damaged(u, "it ends in the middle");
		} else if (z == Z_MEM_ERROR) {
			return cannot_read(u, -ENOMEM);
		} else if (z != Z_OK && z != Z_BUF_ERROR) {
			return damaged(u, u->gzip.msg ? u->gzip.msg : "no gzip data");
		}
	}
	return OUT_BYTES - (ssize_t)u->gzip.avail_out;
}

/* ---- xz ---- */

static int xz_init(struct dbt_unpacker *u, const struct dbt_unpacker_opts *opts)
{
	const lzma_mt mt = { .flags = LZMA_CONCATENATED,
		             .threads = opts->threads ? opts->threads : 1,
		             .memlimit_threading = opts->memory_bytes ? opts->memory_bytes : 1,
		             .memlimit_stop = MOST_MEMORY_BYTES };

	u->xz = (lzma_stream)LZMA_STREAM_INIT;
	return lzma_stream_decoder_mt(&u->xz, &mt) == LZMA_OK ? 0 : -ENOMEM;
}

static const char *xz_reason(lzma_ret r)
{
	return r == LZMA_BUF_ERROR       ? "it ends in the middle"
	       : r == LZMA_DATA_ERROR    ? "its checksum or its data is wrong"
	       : r == LZMA_FORMAT_ERROR  ? "something else than xz data follows"
	       : r == LZMA_OPTIONS_ERROR ? "it was packed in a way that is not supported"
	                                 : "it cannot be decoded";
}

static ssize_t xz_read(struct dbt_unpacker *u)
{
	u->xz.next_out = u->out;
	u->xz.avail_out = OUT_BYTES;
	while (u->xz.avail_out > 0) {
		lzma_ret r;

		if (u->xz.avail_in == 0 && !u->input_ended) {
			const void *in;
			ssize_t got = dbt_packed_read(u->packed, &in);

			if (got < 0)
				return cannot_read(u, got);
			u->input_ended = got == 0;
			u->xz.next_in = in;
			u->xz.avail_in = (size_t)got;
		}
		r = lzma_code(&u->xz, u->input_ended ? LZMA_FINISH : LZMA_RUN);
		if (r == LZMA_STREAM_END)
			break;
		if (r == LZMA_MEM_ERROR)
			return cannot_read(u, -ENOMEM);
		if (r == LZMA_MEMLIMIT_ERROR)
			return dbt_err_refuse(&u->err,
			                      "'%s' needs more than 1 GiB of memory to unpack",
			                      u->shown);
		if (r != LZMA_OK && (r != LZMA_BUF_ERROR || u->input_ended))
			return damaged(u, xz_reason(r));
	}
	return OUT_BYTES - (ssize_t)u->xz.avail_out;
}

/* ---- the others ---- */

static la_ssize_t other_feed(struct archive *a, void *data, const void **ret)
{
	struct dbt_unpacker *u = data;
	ssize_t got = dbt_packed_read(u->packed, ret);

	if (got >= 0)
		return got;
	(void)cannot_read(u, got);
	archive_set_error(a, -(int)got, "%s", u->err.text);
	return -1;
}

static int other_init(struct dbt_unpacker *u, struct dbt_err *err)
{
	struct archive_entry *entry;

	u->other = archive_read_new();
	if (!u->other)
		return dbt_err_sys(err, -ENOMEM, "cannot read '%s'", u->shown);
	(void)archive_read_support_filter_zstd(u->other);
	(void)archive_read_support_filter_lz4(u->other);
	(void)archive_read_support_filter_bzip2(u->other);
	(void)archive_read_support_format_raw(u->other);
	if (archive_read_open(u->other, u, NULL, other_feed, NULL) == ARCHIVE_OK &&
	    archive_read_next_header(u->other, &entry) == ARCHIVE_OK)
		return 0;
	if (u->err.kind == DBT_ERR_NONE)
		(void)damaged(u, archive_error_string(u->other) ? archive_error_string(u->other)
		                                                : "it cannot be unpacked");
	if (err)
		*err = u->err;
	return u->err.code;
}

static ssize_t other_read(struct dbt_unpacker *u, const void **ret)
{
	la_int64_t off;
	size_t len;
	int r;

	do
		r = archive_read_data_block(u->other, ret, &len, &off);
	while (r == ARCHIVE_OK && len == 0);
	if (r == ARCHIVE_OK)
		return (ssize_t)len;
	if (r == ARCHIVE_EOF)
		return 0;
	if (u->err.kind != DBT_ERR_NONE)
		return u->err.code;
	return damaged(u, archive_error_string(u->other) ? archive_error_string(u->other)
	                                                 : "it cannot be unpacked");
}

/* ---- all ---- */

static enum packing packing_of(struct dbt_packed *packed)
{
	static const struct {
		unsigned char magic[6];
		size_t len;
		enum packing packing;
	} known[] = {
		{ { 0x1f, 0x8b }, 2, PACKING_GZIP },
		{ { 0xfd, '7', 'z', 'X', 'Z', 0 }, 6, PACKING_XZ },
		{ { 0x28, 0xb5, 0x2f, 0xfd }, 4, PACKING_OTHER }, /* zstd */
		{ { 'B', 'Z', 'h' }, 3, PACKING_OTHER },
		{ { 0x04, 0x22, 0x4d, 0x18 }, 4, PACKING_OTHER }, /* lz4 */
	};
	unsigned char head[6] = { 0 };
	ssize_t got = dbt_packed_peek(packed, head, sizeof(head));

	/* A skippable frame of zstd, as pzstd begins with: 0x184D2A50 to 5F. */
	if (got >= 4 && (head[0] & 0xf0) == 0x50 && memcmp(head + 1, "\x2a\x4d\x18", 3) == 0)
		return PACKING_OTHER;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (got >= (ssize_t)known[i].len && memcmp(head, known[i].magic, known[i].len) == 0)
			return known[i].packing;
	return PACKING_NONE;
}

int dbt_unpacker_new(struct dbt_packed *packed, const struct dbt_unpacker_opts *opts,
                     const char *shown, struct dbt_unpacker **ret, struct dbt_err *err)
{
	struct dbt_unpacker *u = calloc(1, sizeof(*u));
	int r = u ? 0 : -ENOMEM;

	if (r == 0) {
		u->packed = packed;
		u->shown = shown;
		u->packing = packing_of(packed);
		if (u->packing == PACKING_GZIP)
			r = gzip_init(u);
		else if (u->packing == PACKING_XZ)
			r = xz_init(u, opts);
		if (r == 0 && (u->packing == PACKING_GZIP || u->packing == PACKING_XZ)) {
			u->out = malloc(OUT_BYTES);
			r = u->out ? 0 : -ENOMEM;
		}
	}
	if (r < 0)
		(void)dbt_err_sys(err, r, "cannot read '%s'", shown);
	else if (u->packing == PACKING_OTHER)
		r = other_init(u, err);
	if (r < 0) {
		dbt_unpacker_free(u);
		return r;
	}
	*ret = u;
	return 0;
}

void dbt_unpacker_free(struct dbt_unpacker *u)
{
	if (!u)
		return;
	if (u->packing == PACKING_GZIP)
		(void)inflateEnd(&u->gzip);
	if (u->packing == PACKING_XZ)
		lzma_end(&u->xz);
	if (u->other)
		(void)archive_read_free(u->other);
	free(u->out);
	free(u);
}

static void count_zeros(struct dbt_unpacker *u, const unsigned char *data, size_t len)
{
	size_t n = 0;

	while (n < len && data[len - n - 1] == 0)
		n++;
	u->zeros = n == len ? u->zeros + n : n;
}

ssize_t dbt_unpacker_read(struct dbt_unpacker *u, const void **ret)
{
	ssize_t got = 0;

	if (u->err.kind != DBT_ERR_NONE)
		return u->err.code;
	if (u->ended)
		return 0;
	switch (u->packing) {
	case PACKING_NONE:
		got = dbt_packed_read(u->packed, ret);
		if (got < 0)
			got = cannot_read(u, got);
		break;
	case PACKING_GZIP:
		got = gzip_read(u);
		break;
	case PACKING_XZ:
		got = xz_read(u);
		break;
	case PACKING_OTHER:
		got = other_read(u, ret);
		break;
	}
	if (got > 0 && u->out)
		*ret = u->out;
	if (got > 0)
		count_zeros(u, *ret, (size_t)got);
	u->ended = got == 0;
	return got;
}

const struct dbt_err *dbt_unpacker_error(const struct dbt_unpacker *u)
{
	return u->err.kind == DBT_ERR_NONE ? NULL : &u->err;
}

uint64_t dbt_unpacker_zeros(const struct dbt_unpacker *u)
{
	return u->zeros;
}
