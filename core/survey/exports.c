#include "survey/exports.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FILE_MAX_BYTES = 4 << 20 };

/* A text taken line by line. A line that ends in a backslash goes on in the next one. */
struct lines {
	const char *at, *end;
	unsigned next;       /* number of the line at `at` */
	struct dbt_buf line; /* the joined line, trimmed */
	unsigned number;     /* of its first part */
};

static void trim(struct dbt_buf *buf)
{
	size_t lead = 0;

	while (buf->len > 0 && isspace((unsigned char)buf->data[buf->len - 1]))
		buf->data[--buf->len] = '\0';
	while (lead < buf->len && isspace((unsigned char)buf->data[lead]))
		lead++;
	if (lead > 0) {
		memmove(buf->data, buf->data + lead, buf->len - lead + 1);
		buf->len -= lead;
	}
}

/* 1 a line, 0 the end, -ENOMEM. A line with a NUL inside ends there. */
static int lines_next(struct lines *lines)
{
	bool more = true;

	dbt_buf_clear(&lines->line);
	if (lines->at >= lines->end)
		return 0;
	lines->number = lines->next;
	while (more && lines->at < lines->end) {
		const char *eol = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
		const char *stop = eol ? eol : lines->end;
		size_t len = strnlen(lines->at, (size_t)(stop - lines->at));
		int r;

		more = len > 0 && lines->at[len - 1] == '\\';
		r = dbt_buf_add(&lines->line, lines->at, more ? len - 1 : len);
		if (r < 0)
			return r;
		lines->at = eol ? eol + 1 : lines->end;
		lines->next++;
	}
	trim(&lines->line);
	return 1;
}

/* What is exported at `exported` concerns path: it is the same, or one lies below the other. */
static bool concerns(const char *exported, const char *path)
{
	size_t a = strlen(exported), b = strlen(path);

	while (a > 0 && exported[a - 1] == '/')
		a--;
	while (b > 0 && path[b - 1] == '/')
		b--;
	if (exported[0] != '/')
		return false;
	if (strncmp(exported, path, a < b ? a : b) != 0)
		return false;
	return a == b || (a < b ? path[a] : exported[b]) == '/';
}

static int answer(char **ret_line, const char *file, unsigned number, const char *text)
{
	return asprintf(ret_line, "%s:%u: %s", file, number, text) < 0 ? -ENOMEM : 1;
}

/* --- NFS --- */

static bool is_octal(const char *p)
{
	return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' &&
	       p[2] <= '7';
}

/* The first word of a line: in double quotes or not, \040 for a byte. */
static int first_word(const char *line, struct dbt_buf *out)
{
	bool quoted = *line == '"';
	int r = 0;

	dbt_buf_clear(out);
	for (line += quoted; r == 0 && *line; line++) {
		if (quoted ? *line == '"' : isspace((unsigned char)*line) != 0)
			break;
		if (*line == '\\' && is_octal(line + 1)) {
			int byte = (line[1] - '0') * 64 + (line[2] - '0') * 8 + (line[3] - '0');

			r = dbt_buf_addc(out, (char)byte);
			line += 3;
		} else {
			r = dbt_buf_addc(out, *line);
		}
	}
	return r;
}

int dbt_exports_match_nfs(const char *file, const char *text, size_t len, const char *path,
                          char **ret_line)
{
	struct lines lines = { .at = text, .end = text + len, .next = 1 };
	struct dbt_buf word = { 0 };
	int r;

	while ((r = lines_next(&lines)) == 1) {
		if (lines.line.len == 0 || lines.line.data[0] == '#')
			continue;
		r = first_word(lines.line.data, &word);
		if (r < 0)
			break;
		if (concerns(dbt_buf_str(&word), path)) {
			r = answer(ret_line, file, lines.number, lines.line.data);
			break;
		}
	}
	dbt_buf_release(&word);
	dbt_buf_release(&lines.line);
	return r;
}

/* --- Samba --- */

struct share {
	struct dbt_buf name, path;
	unsigned number; /* line of the path */
	bool printable, off;
};

static void share_release(struct share *share)
{
	dbt_buf_release(&share->name);
	dbt_buf_release(&share->path);
}

static int share_begin(struct share *share, const char *name, size_t len, unsigned number)
{
	dbt_buf_clear(&share->name);
	dbt_buf_clear(&share->path);
	share->printable = false;
	share->off = false;
	share->number = number;
	return dbt_buf_add(&share->name, name, len);
}

/* Parameter names are compared without case and blanks. */
static bool is_key(const char *key, size_t len, const char *name)
{
	for (size_t i = 0; i < len; i++) {
		if (isspace((unsigned char)key[i]))
			continue;
		if (tolower((unsigned char)key[i]) != *name)
			return false;
		name++;
	}
	return *name == '\0';
}

static bool is_true(const char *value)
{
	return strcasecmp(value, "yes") == 0 || strcasecmp(value, "true") == 0 ||
	       strcmp(value, "1") == 0 || strcasecmp(value, "on") == 0;
}

static int share_set(struct share *share, const char *line, unsigned number)
{
	const char *equals = strchr(line, '='), *value;
	size_t key_len, len;

	if (!equals)
		return 0;
	key_len = (size_t)(equals - line);
	value = equals + 1 + strspn(equals + 1, " \t");
	if (is_key(line, key_len, "printable") || is_key(line, key_len, "printok"))
		share->printable = is_true(value);
	else if (is_key(line, key_len, "available"))
		share->off = !is_true(value);
	else if (is_key(line, key_len, "path") || is_key(line, key_len, "directory")) {
		len = strlen(value);
		if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
			value++;
			len -= 2;
		}
		dbt_buf_clear(&share->path);
		share->number = number;
		return dbt_buf_add(&share->path, value, len);
	}
	return 0;
}

/* Home directories need no path. A variable (%U) stands for anything: what is above it counts. */
static int share_end(struct share *share, const char *file, const char *path, char **ret_line)
{
	dbt_autofree char *text = NULL;
	char *variable;
	int r;

	if (share->name.len == 0 || share->printable || share->off)
		return 0;
	if (share->path.len == 0 && strcasecmp(share->name.data, "homes") != 0)
		return 0;
	if (share->path.len == 0) {
		r = dbt_buf_adds(&share->path, "/home");
		if (r < 0)
			return r;
		if (asprintf(&text, "[%s]", share->name.data) < 0)
			text = NULL;
	} else if (asprintf(&text, "[%s] path = %s", share->name.data, share->path.data) < 0) {
		text = NULL;
	}
	if (!text)
		return -ENOMEM;
	variable = strchr(share->path.data, '%');
	if (variable) {
		while (variable > share->path.data && *variable != '/')
			variable--;
		*variable = '\0';
	}
	/* "/%U" leaves nothing: any directory of the root may be it */
	if (!concerns(variable == share->path.data ? "/" : share->path.data, path))
		return 0;
	return answer(ret_line, file, share->number, text);
}

int dbt_exports_match_samba(const char *file, const char *share_name, const char *text, size_t len,
                            const char *path, char **ret_line)
{
	struct lines lines = { .at = text, .end = text + len, .next = 1 };
	struct share share = { 0 };
	int r = share_name ? share_begin(&share, share_name, strlen(share_name), 1) : 0;

	while (r == 0 && (r = lines_next(&lines)) == 1) {
		const char *line = dbt_buf_str(&lines.line), *close;

		r = 0;
		if (*line == '#' || *line == ';')
			continue;
		close = *line == '[' ? strchr(line, ']') : NULL;
		if (!close) {
			r = share_set(&share, line, lines.number);
			continue;
		}
		r = share_end(&share, file, path, ret_line);
		if (r == 0)
			r = share_begin(&share, line + 1, (size_t)(close - line - 1), lines.number);
	}
	if (r == 0)
		r = share_end(&share, file, path, ret_line);
	share_release(&share);
	dbt_buf_release(&lines.line);
	return r;
}

/* --- the files --- */

/* share: NULL for NFS files, "" for smb.conf, a name for a usershare. */
static int match_file(const struct dbt_ctx *ctx, const char *file, const char *share,
                      const char *path, char **ret_line)
{
	struct dbt_buf text = { 0 };
	int r = dbt_root_read(ctx->root, file + 1, FILE_MAX_BYTES, &text);

	if (r == -ENOENT || r == -ENOTDIR)
		r = 0;
	else if (r == 0 && !share)
		r = dbt_exports_match_nfs(file, dbt_buf_str(&text), text.len, path, ret_line);
	else if (r == 0)
		r = dbt_exports_match_samba(file, *share ? share : NULL, dbt_buf_str(&text),
		                            text.len, path, ret_line);
	dbt_buf_release(&text);
	return r;
}

static bool ends_with(const char *name, const char *end)
{
	size_t a = strlen(name), b = strlen(end);

	return a > b && strcmp(name + a - b, end) == 0;
}

/* Every file of a directory: usershares, or NFS files that end in .exports. A directory that may
 * not be listed (usershares are for their group) tells nothing. */
static int match_dir(const struct dbt_ctx *ctx, const char *dir, bool samba, const char *path,
                     char **ret_line)
{
	dbt_autoclosedir DIR *handle = NULL;
	struct dirent *de;
	int r = dbt_root_opendir(ctx->root, dir + 1, &handle);

	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR || r == -EACCES ? 0 : r;
	while (r == 0 && (de = readdir(handle))) {
		char file[512];

		if (de->d_name[0] == '.' || (!samba && !ends_with(de->d_name, ".exports")))
			continue;
		(void)snprintf(file, sizeof(file), "%s/%s", dir, de->d_name);
		r = match_file(ctx, file, samba ? de->d_name : NULL, path, ret_line);
		if (samba && r == -EISDIR)
			r = 0;
	}
	return r;
}

int dbt_exports_find(const struct dbt_ctx *ctx, const char *path, char **ret_line)
{
	int r = match_file(ctx, "/etc/exports", NULL, path, ret_line);

	if (r == 0)
		r = match_dir(ctx, "/etc/exports.d", false, path, ret_line);
	if (r == 0)
		r = match_file(ctx, "/var/lib/nfs/etab", NULL, path, ret_line);
	if (r == 0)
		r = match_file(ctx, "/etc/samba/smb.conf", "", path, ret_line);
	if (r == 0)
		r = match_dir(ctx, "/var/lib/samba/usershares", true, path, ret_line);
	return r;
}
