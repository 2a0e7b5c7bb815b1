#include "sys/config.h"

#include "base/buf.h"
#include "base/nearest.h"
#include "base/vec.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONF_MAX_BYTES = 1 << 20 };

static const struct key {
	const char *name;
	bool repeats;
} keys[] = {
	[DBT_CONFIG_NONE] = { "", true },
	[DBT_CONFIG_TARGET] = { "target", false },
	[DBT_CONFIG_RESERVE] = { "reserve", false },
	[DBT_CONFIG_LIMIT_RATE] = { "limit-rate", false },
	[DBT_CONFIG_EXCLUDE] = { "exclude", true },
	[DBT_CONFIG_TIER] = { "tier", true },
};

enum { N_KEYS = sizeof(keys) / sizeof(keys[0]) };

const char *dbt_config_key_name(enum dbt_config_key key)
{
	return (unsigned)key < N_KEYS ? keys[key].name : "";
}

void dbt_config_release(struct dbt_config *config)
{
	for (size_t i = 0; i < config->n; i++) {
		free(config->items[i].value);
		free(config->items[i].where);
	}
	free(config->items);
	*config = (struct dbt_config){ 0 };
}

/* Both ends without white space; cut in place. */
static char *trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* One file while it is read; lines of earlier files are config->items[0 .. first). */
struct reader {
	struct dbt_config *config;
	const char *file;
	size_t first;
};

static struct dbt_config_line *push(struct reader *reader, unsigned number)
{
	struct dbt_config_line *line = dbt_vec_push(reader->config);

	if (!line)
		return NULL;
	if ((number > 0 ? asprintf(&line->where, "%s, line %u", reader->file, number)
	                : asprintf(&line->where, "%s", reader->file)) < 0)
		line->where = NULL;
	return line->where ? line : NULL;
}

static int complain(struct dbt_config_line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int complain(struct dbt_config_line *line, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&line->value, fmt, ap);
	va_end(ap);
	line->key = DBT_CONFIG_NONE;
	if (r < 0)
		line->value = NULL;
	return line->value ? 0 : -ENOMEM;
}

static int complain_unknown(struct dbt_config_line *line, const char *word)
{
	const char *words[N_KEYS], *near;

	for (size_t i = 1; i < N_KEYS; i++)
		words[i - 1] = keys[i].name;
	near = dbt_nearest(word, words, N_KEYS - 1);
	return complain(line, "unknown key '%.200s'%s%s%s", word, near ? " (did you mean '" : "",
	                near ? near : "", near ? "'?)" : "");
}

/* The earlier line that says the same, of this file or of the one before. */
static const struct dbt_config_line *said_before(const struct reader *reader,
                                                 enum dbt_config_key key, size_t first, size_t end)
{
	for (size_t i = first; !keys[key].repeats && i < end; i++)
		if (reader->config->items[i].key == key)
			return &reader->config->items[i];
	return NULL;
}

static int add_line(struct reader *reader, char *text, unsigned number)
{
	struct dbt_config_line *line = push(reader, number);
	const size_t at = reader->config->n - 1;
	const struct dbt_config_line *before;
	char *value = text + strcspn(text, " \t");
	size_t key = 1;

	if (!line)
		return -ENOMEM;
	if (*value)
		*value++ = '\0';
	value = trim(value);
	while (key < N_KEYS && strcmp(keys[key].name, text) != 0)
		key++;
	if (key == N_KEYS)
		return complain_unknown(line, text);
	if (*value == '\0')
		return complain(line, "'%s' wants a value", text);
	before = said_before(reader, (enum dbt_config_key)key, reader->first, at);
	if (before)
		return complain(line, "'%s' was set before (%s)", text, before->where);
	line->key = (enum dbt_config_key)key;
	line->overruled = said_before(reader, line->key, 0, reader->first) != NULL;
	line->value = strdup(value);
	return line->value ? 0 : -ENOMEM;
}

/* The first byte that no line of text has; NULL there is none. */
static const char *find_control(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)line[i]) && line[i] != '\t' &&
		    !(line[i] == '\r' && i + 1 == len))
			return line + i;
	return NULL;
}

static int complain_control(struct reader *reader, unsigned number, char byte)
{
	struct dbt_config_line *line = push(reader, number);

	return line ? complain(line, "the control character \\x%02x; lines of text end with \\x0a",
	                       (unsigned char)byte)
	            : -ENOMEM;
}

static int add_text(struct reader *reader, char *text, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf"; /* editors of other systems begin with it */
	char *end = text + len, *next;
	unsigned number = 0;
	int r = 0;

	if (len >= sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0)
		text += sizeof(mark) - 1;
	for (; r == 0 && text < end; text = next + 1) {
		const char *bad;

		next = memchr(text, '\n', (size_t)(end - text));
		if (!next)
			next = end; /* dbt_buf ends with a NUL */
		*next = '\0';
		bad = find_control(text, (size_t)(next - text));
		text = trim(text);
		number++;
		if (bad)
			r = complain_control(reader, number, *bad);
		else if (*text != '\0' && *text != '#')
			r = add_line(reader, text, number);
	}
	return r;
}

/* path: below the root; shown: as people call it. */
static int add_file(const struct dbt_ctx *ctx, struct dbt_config *config, const char *path,
                    const char *shown, bool may_be_foreign)
{
	struct reader reader = { .config = config, .file = shown, .first = config->n };
	struct dbt_buf text = { 0 };
	int r = dbt_root_read(ctx->root, path, CONF_MAX_BYTES, &text);

	if (r == 0 && text.len > 0) {
		r = add_text(&reader, text.data, text.len);
	} else if (r == -ENOENT || r == -ENOTDIR ||
	           (r == -EACCES && may_be_foreign && !dbt_root_exists(ctx->root, path))) {
		r = 0;
	} else if (r < 0) {
		struct dbt_config_line *line = push(&reader, 0);

		if (line)
			line->code = r;
		r = line ? complain(line, "cannot be read: %s", dbt_err_text(r)) : -ENOMEM;
	}
	dbt_buf_release(&text);
	return r;
}

/* As the XDG base directory specification says: a relative value is ignored. */
static int add_user_file(const struct dbt_ctx *ctx, struct dbt_config *config)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int r;

	if (xdg && *xdg == '/')
		r = asprintf(&path, "%s/dbtier/dbtier.conf", xdg);
	else if (home && *home == '/')
		r = asprintf(&path, "%s/.config/dbtier/dbtier.conf", home);
	else
		return 0;
	if (r < 0)
		return -ENOMEM;
	/* A HOME that was left behind by su or setpriv belongs to somebody else. */
	r = add_file(ctx, config, path + 1, path, true);
	free(path);
	return r;
}

int dbt_config_load(const struct dbt_ctx *ctx, struct dbt_config *ret)
{
	struct dbt_config config = { 0 };
	int r = ctx->root->live ? add_user_file(ctx, &config) : 0;

	if (r == 0)
		r = add_file(ctx, &config, "etc/dbtier.conf", "/etc/dbtier.conf", false);
	if (r < 0) {
		dbt_config_release(&config);
		return r;
	}
	*ret = config;
	return 0;
}
