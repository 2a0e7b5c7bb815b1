#include "flow/unpack_sums.h"

#include "base/cleanup.h"
#include "sys/io.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20, MD5_DIGITS = 32, SHA256_DIGITS = 64 };

/* The name in a line of md5sum's: "HASH  name", "HASH *name". A path before it does not count. */
static const char *name_of(char *rest)
{
	size_t len;

	while (*rest == ' ' || *rest == '\t' || *rest == '*')
		rest++;
	len = strlen(rest);
	while (len > 0 && isspace((unsigned char)rest[len - 1]))
		rest[--len] = '\0';
	return strrchr(rest, '/') ? strrchr(rest, '/') + 1 : rest;
}

/* One line: 1 when it holds the sum for this name, or a sum without a name. */
static bool take_line(char *line, const char *name, size_t digits, char out[DBT_SUM_HEX_BYTES])
{
	size_t len = strspn(line, "0123456789abcdefABCDEF");
	const char *named;

	if (len != digits || (line[len] && !isspace((unsigned char)line[len])))
		return false;
	named = name_of(line + len);
	if (*named && strcmp(named, name) != 0)
		return false;
	for (size_t i = 0; i < digits; i++)
		out[i] = (char)tolower((unsigned char)line[i]);
	out[digits] = '\0';
	return true;
}

static int read_file(const struct dbt_ctx *ctx, const struct dbt_at *archive, const char *name,
                     size_t digits, char out[DBT_SUM_HEX_BYTES], struct dbt_err *err)
{
	dbt_autoclose int fd = ctx->sys->openat(archive->dirfd, name,
	                                        O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	dbt_autofree char *text = NULL;
	char *save = NULL;
	ssize_t got;

	if (fd == -ENOENT)
		return 0;
	text = malloc(MOST_BYTES + 1);
	got = fd < 0 ? fd : text ? dbt_io_pread(ctx, fd, text, MOST_BYTES, 0) : -ENOMEM;
	if (got < 0)
		return dbt_err_sys(err, (int)got, "cannot read the checksum '%s' of '%s'", name,
		                   archive->shown);
	text[got] = '\0';
	for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
		if (take_line(line, archive->name, digits, out))
			return 0;
	return dbt_err_refuse(
		err, "'%s' beside '%s' holds no checksum of it: move it away if it is none", name,
		archive->shown);
}

int dbt_unpack_sums_find(const struct dbt_ctx *ctx, const struct dbt_at *archive,
                         struct dbt_unpack_sums *ret, struct dbt_err *err)
{
	static const struct {
		const char *ending;
		size_t digits;
	} kinds[] = { { "md5", MD5_DIGITS },
		      { "md5sum", MD5_DIGITS },
		      { "sha256", SHA256_DIGITS },
		      { "sha256sum", SHA256_DIGITS } };
	struct dbt_unpack_sums sums = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char *out = kinds[i].digits == MD5_DIGITS ? sums.md5 : sums.sha256;
		dbt_autofree char *name = NULL;

		if (asprintf(&name, "%s.%s", archive->name, kinds[i].ending) < 0) {
			name = NULL;
			return dbt_err_sys(err, -ENOMEM, "cannot plan");
		}
		if (*out == '\0')
			r = read_file(ctx, archive, name, kinds[i].digits, out, err);
	}
	if (r == 0)
		*ret = sums;
	return r;
}

unsigned dbt_unpack_sums_wanted(const struct dbt_unpack_sums *sums)
{
	return (sums->md5[0] ? DBT_SUM_MD5 : 0U) | (sums->sha256[0] ? DBT_SUM_SHA256 : 0U);
}

static int differs(const char *kind, const char *wanted, const char *found, const char *archive,
                   struct dbt_err *err)
{
	return dbt_err_set(
		err, DBT_ERR_REFUSED, -EBADMSG,
		"'%s' is not what was published: its %s is %s, the file beside it says %s; fetch "
		"it again",
		archive, kind, found, wanted);
}

int dbt_unpack_sums_check(const struct dbt_unpack_sums *wanted, const struct dbt_packed_sums *found,
                          const char *archive, struct dbt_err *err)
{
	if (wanted->md5[0] && strcmp(wanted->md5, found->md5) != 0)
		return differs("MD5", wanted->md5, found->md5, archive, err);
	if (wanted->sha256[0] && strcmp(wanted->sha256, found->sha256) != 0)
		return differs("SHA-256", wanted->sha256, found->sha256, archive, err);
	return 0;
}
