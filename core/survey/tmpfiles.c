/* The rules below are those of tmpfiles.d(5), and where the page is silent of src/tmpfiles/
 * tmpfiles.c in systemd 252:
 * - Lines with "!" exist at boot only, also for what they exempt.
 * - Of several lines that own the same path the first counts, files taken in the order of their
 *   names.
 * - At boot: D empties its directory, R removes what its glob matches with all below, r what it
 *   matches exactly. Exemptions (x, X) do not count. The service leaves /dev alone.
 * - Cleaning starts from each line with an age and goes down, but not into anything that has a line
 *   of its own. So the nearest directory with a line decides, and x is simply such a line. X keeps
 *   the directory itself; what lies in it is cleaned by the age of another line. */
#include "survey/tmpfiles.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "sys/root.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILE_MAX_BYTES = 1 << 20,
	MAX_BRACE_TRIES = 256, /* {a,b}{c,d}...: more alternatives than this are not tried */
};

struct dbt_tmpfiles_rule {
	char type;
	bool boot_only;        /* "!" */
	bool glob;             /* the path is a pattern */
	bool owns;             /* two of these on one path exclude each other */
	char *path;            /* unescaped, specifiers resolved, without a trailing slash */
	char *age;             /* NULL: none */
	bool keep_first_level; /* "~": what stands directly in the directory is kept */
	char *file, *text;
	unsigned line;
};

static void rule_release(struct dbt_tmpfiles_rule *rule)
{
	free(rule->path);
	free(rule->age);
	free(rule->file);
	free(rule->text);
}

void dbt_tmpfiles_rules_release(struct dbt_tmpfiles_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		rule_release(&rules->items[i]);
	free(rules->items);
	*rules = (struct dbt_tmpfiles_rules){ 0 };
}

void dbt_tmpfiles_hit_release(struct dbt_tmpfiles_hit *hit)
{
	free(hit->file);
	free(hit->text);
	free(hit->age);
	*hit = (struct dbt_tmpfiles_hit){ 0 };
}

/* --- one line into fields --- */

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The escape behind a backslash at *at: \n, \s (blank), \x41, \101. *at moves to its last byte.
 * Returns the byte, or -1 when it is none. */
static int unescape(const char **at)
{
	static const char letters[] = "abfnrtvs\\\"'", bytes[] = "\a\b\f\n\r\t\v \\\"'";
	const char *p = *at, *known = *p ? strchr(letters, *p) : NULL;
	int value = 0;

	if (known)
		return (unsigned char)bytes[known - letters];
	if (*p == 'x' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0) {
		*at = p + 2;
		return hex_digit(p[1]) * 16 + hex_digit(p[2]);
	}
	for (int i = 0; i < 3; i++) {
		if (p[i] < '0' || p[i] > '7')
			return -1;
		value = value * 8 + (p[i] - '0');
	}
	*at = p + 2;
	return value <= 255 ? value : -1;
}

/* The next field: quoted or not, escapes resolved. Returns 1, 0 at the end of the line, -EINVAL for
 * a broken one, -ENOMEM. */
static int next_field(const char **line, struct dbt_buf *out)
{
	const char *p = *line + strspn(*line, " \t\r");
	char quote = '\0';
	int r = 0;

	dbt_buf_clear(out);
	if (*p == '\0')
		return 0;
	for (; r == 0 && *p && (quote || !strchr(" \t\r", *p)); p++) {
		if (quote ? *p == quote : *p == '"' || *p == '\'') {
			quote = (char)(quote ? 0 : *p);
		} else if (*p == '\\') {
			int c;

			p++;
			c = unescape(&p);
			if (c <= 0)
				return -EINVAL;
			r = dbt_buf_addc(out, (char)c);
		} else {
			r = dbt_buf_addc(out, *p);
		}
	}
	*line = p;
	if (r < 0)
		return r;
	return quote ? -EINVAL : 1;
}

/* --- specifiers --- */

/* KEY=value or KEY="value" of etc/os-release. */
static int add_os_release(const struct dbt_ctx *ctx, const char *key, struct dbt_buf *out)
{
	struct dbt_buf text = { 0 };
	size_t key_len = strlen(key);
	const char *line;
	int r = dbt_root_read(ctx->root, "etc/os-release", FILE_MAX_BYTES, &text);

	if (r == 0)
		r = -ENOENT;
	for (line = r == -ENOENT && text.len > 0 ? text.data : NULL; line;
	     line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, key_len) == 0 && line[key_len] == '=') {
			const char *value = line + key_len + 1;

			value += *value == '"';
			r = dbt_buf_add(out, value, strcspn(value, "\"\n"));
			break;
		}
	}
	dbt_buf_release(&text);
	return r;
}

/* The first line of a file; until: only the part before this byte; without: this byte left out. */
static int add_file(const struct dbt_ctx *ctx, const char *path, char until, char without,
                    struct dbt_buf *out)
{
	struct dbt_buf text = { 0 };
	int r = dbt_root_read_line(ctx->root, path, &text);

	for (size_t i = 0; r == 0 && i < text.len && text.data[i] != until; i++)
		if (text.data[i] != without)
			r = dbt_buf_addc(out, text.data[i]);
	dbt_buf_release(&text);
	return r;
}

/* What %c means for the system's own instance. -ENOENT: not known here. */
static int add_specifier(const struct dbt_ctx *ctx, char c, struct dbt_buf *out)
{
	static const struct {
		char c;
		const char *text;
	} fixed[] = {
		{ '%', "%" },    { 'C', "/var/cache" }, { 'L', "/var/log" }, { 'S', "/var/lib" },
		{ 't', "/run" }, { 'T', "/tmp" },       { 'V', "/var/tmp" }, { 'h', "/root" },
		{ 'u', "root" }, { 'U', "0" },          { 'g', "root" },     { 'G', "0" },
	};
	static const struct {
		char c;
		const char *key;
	} os[] = {
		{ 'o', "ID" },       { 'w', "VERSION_ID" },    { 'W', "VARIANT_ID" },
		{ 'B', "BUILD_ID" }, { 'A', "IMAGE_VERSION" }, { 'M', "IMAGE_ID" },
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].c == c)
			return dbt_buf_adds(out, fixed[i].text);
	for (size_t i = 0; i < sizeof(os) / sizeof(os[0]); i++)
		if (os[i].c == c)
			return add_os_release(ctx, os[i].key, out);
	switch (c) {
	case 'b':
		return add_file(ctx, "proc/sys/kernel/random/boot_id", '\0', '-', out);
	case 'm':
		return add_file(ctx, "etc/machine-id", '\0', '\0', out);
	case 'H':
		return add_file(ctx, "proc/sys/kernel/hostname", '\0', '\0', out);
	case 'l':
		return add_file(ctx, "proc/sys/kernel/hostname", '.', '\0', out);
	case 'v':
		return add_file(ctx, "proc/sys/kernel/osrelease", '\0', '\0', out);
	default:
		return -ENOENT;
	}
}

/* Specifiers resolved, doubled slashes and the one at the end gone, /var/run said as /run. */
static int make_path(const struct dbt_ctx *ctx, const char *text, char **ret)
{
	static const char legacy[] = "/var/run/";
	struct dbt_buf full = { 0 }, path = { 0 };
	const char *p;
	int r = 0;

	for (p = text; r == 0 && *p; p++)
		if (*p == '%')
			r = *++p ? add_specifier(ctx, *p, &full) : -EINVAL;
		else
			r = dbt_buf_addc(&full, *p);
	p = dbt_buf_str(&full);
	if (r == 0 && *p != '/')
		r = -EINVAL;
	if (r == 0 && strncmp(p, legacy, strlen(legacy)) == 0)
		p += strlen("/var");
	for (; r == 0 && *p; p++)
		if (*p != '/' || (p[1] != '/' && p[1] != '\0'))
			r = dbt_buf_addc(&path, *p);
	dbt_buf_release(&full);
	if (r == 0) {
		*ret = dbt_buf_take(&path); /* "" is the root */
		r = *ret ? 0 : -ENOMEM;
	}
	dbt_buf_release(&path);
	return r;
}

/* --- one line into a rule --- */

/* AGE is [~][LETTERS:]TIME; what TIME is does not matter as long as there is one. */
static int make_age(const char *text, struct dbt_tmpfiles_rule *rule)
{
	size_t letters;

	if (*text == '\0' || strcmp(text, "-") == 0)
		return 0;
	rule->keep_first_level = *text == '~';
	text += *text == '~';
	letters = strspn(text, "abcmABCM");
	if (letters > 0 && text[letters] == ':')
		text += letters + 1;
	if (strcmp(text, "infinity") == 0)
		return 0; /* a line like any other, but nothing ever gets that old */
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	rule->age = strdup(text);
	return rule->age ? 0 : -ENOMEM;
}

static int make_type(const char *text, struct dbt_tmpfiles_rule *rule)
{
	if (*text == '\0' || !isalpha((unsigned char)*text) ||
	    text[1 + strspn(text + 1, "+!-=~^$?")] != '\0')
		return -EINVAL;
	rule->type = *text;
	rule->boot_only = strchr(text, '!') != NULL;
	rule->glob = strchr("wexXrRzZtThHaA", *text) != NULL;
	rule->owns = strchr("fFwdDevqQpLcbCxXrR", *text) != NULL;
	return 0;
}

/* Fields: type path mode user group age argument. 0 also for a line that has no path. */
static int parse_line(const struct dbt_ctx *ctx, const char *line, struct dbt_tmpfiles_rule *rule)
{
	struct dbt_buf field = { 0 };
	int r = 1;

	for (int n = 0; n < 6 && r == 1; n++) {
		r = next_field(&line, &field);
		if (r != 1)
			break;
		if (n == 0)
			r = make_type(field.data ? field.data : "", rule);
		else if (n == 1)
			r = make_path(ctx, dbt_buf_str(&field), &rule->path);
		else if (n == 5 && strchr("dDevqQCxX", rule->type))
			r = make_age(dbt_buf_str(&field), rule);
		r = r == 0 ? 1 : r;
	}
	dbt_buf_release(&field);
	return r < 0 ? r : 0;
}

static int add_line(const struct dbt_ctx *ctx, const char *file, unsigned number, const char *line,
                    struct dbt_tmpfiles_rules *rules)
{
	struct dbt_tmpfiles_rule rule = { .line = number }, *place;
	int r = parse_line(ctx, line, &rule);

	if (r == 0 && rule.path) {
		rule.file = strdup(file);
		rule.text = strdup(line);
		place = rule.file && rule.text ? dbt_vec_push(rules) : NULL;
		if (place) {
			*place = rule;
			return 0;
		}
		r = -ENOMEM;
	}
	rule_release(&rule);
	return r == -ENOMEM ? r : 0;
}

int dbt_tmpfiles_parse(const struct dbt_ctx *ctx, const char *file, const char *text, size_t len,
                       struct dbt_tmpfiles_rules *rules)
{
	const char *end = text + len;
	struct dbt_buf line = { 0 };
	int r = 0;

	for (unsigned number = 1; r == 0 && text < end; number++) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		const char *next = eol ? eol + 1 : end;
		const char *stop = eol ? eol : end;

		while (text < stop && isspace((unsigned char)*text))
			text++;
		while (stop > text && isspace((unsigned char)stop[-1]))
			stop--;
		dbt_buf_clear(&line);
		r = dbt_buf_add(&line, text, (size_t)(stop - text));
		if (r == 0 && line.len > 0 && line.data[0] != '#' &&
		    strlen(line.data) == line.len) /* no NUL inside */
			r = add_line(ctx, file, number, line.data, rules);
		text = next;
	}
	dbt_buf_release(&line);
	return r;
}

/* --- the configuration files --- */

struct conf {
	char *name; /* "tmp.conf" */
	const char *dir;
};

struct confs {
	struct conf *items;
	size_t n, cap;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct conf *)a)->name, ((const struct conf *)b)->name);
}

static bool confs_have(const struct confs *confs, const char *name)
{
	for (size_t i = 0; i < confs->n; i++)
		if (strcmp(confs->items[i].name, name) == 0)
			return true;
	return false;
}

/* A link to /dev/null switches a file off; one that leads nowhere counts as not there. */
static bool is_masked(const struct dbt_root *root, const char *path)
{
	struct dbt_buf text = { 0 };
	bool masked = dbt_root_readlink(root, path, &text) == 0 &&
	              strcmp(dbt_buf_str(&text), "/dev/null") == 0;

	dbt_buf_release(&text);
	return masked;
}

static int list_dir(const struct dbt_ctx *ctx, const char *dir, struct confs *confs)
{
	dbt_autoclosedir DIR *handle = NULL;
	struct dirent *de;
	int r = dbt_root_opendir(ctx->root, dir, &handle);

	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	while ((de = readdir(handle))) {
		size_t len = strlen(de->d_name);
		char path[320];
		struct conf *place;

		if (len <= 5 || strcmp(de->d_name + len - 5, ".conf") != 0 ||
		    confs_have(confs, de->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
		if (!dbt_root_exists(ctx->root, path) && !is_masked(ctx->root, path))
			continue;
		place = dbt_vec_push(confs);
		if (!place)
			return -ENOMEM;
		place->dir = dir;
		place->name = strdup(de->d_name);
		if (!place->name)
			return -ENOMEM;
	}
	return 0;
}

static int load_conf(const struct dbt_ctx *ctx, const struct conf *conf,
                     struct dbt_tmpfiles_rules *rules)
{
	struct dbt_buf text = { 0 };
	char path[320];
	int r;

	(void)snprintf(path, sizeof(path), "/%s/%s", conf->dir, conf->name);
	if (is_masked(ctx->root, path + 1))
		return 0;
	r = dbt_root_read(ctx->root, path + 1, FILE_MAX_BYTES, &text);
	if (r == 0)
		r = dbt_tmpfiles_parse(ctx, path, dbt_buf_str(&text), text.len, rules);
	dbt_buf_release(&text);
	return r;
}

int dbt_tmpfiles_load(const struct dbt_ctx *ctx, struct dbt_tmpfiles_rules *rules)
{
	static const char *const dirs[] = { "etc/tmpfiles.d", "run/tmpfiles.d",
		                            "usr/local/lib/tmpfiles.d", "usr/lib/tmpfiles.d" };
	struct confs confs = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(dirs) / sizeof(dirs[0]); i++)
		r = list_dir(ctx, dirs[i], &confs);
	if (r == 0 && confs.n > 0)
		qsort(confs.items, confs.n, sizeof(*confs.items), by_name);
	for (size_t i = 0; r == 0 && i < confs.n; i++)
		r = load_conf(ctx, &confs.items[i], rules);
	for (size_t i = 0; i < confs.n; i++)
		free(confs.items[i].name);
	free(confs.items);
	return r;
}

/* --- matching --- */

/* The brace that closes the one at open; NULL: none. */
static const char *closing_brace(const char *open)
{
	int depth = 0;

	for (const char *p = open; *p; p++) {
		depth += *p == '{';
		depth -= *p == '}';
		if (depth == 0)
			return p;
	}
	return NULL;
}

/* As glob(3) with GLOB_BRACE expands it. tries counts down. */
static bool glob_matches(const char *pattern, const char *path, unsigned *tries)
{
	const char *open = strchr(pattern, '{'), *close = open ? closing_brace(open) : NULL;
	const char *start, *p;
	int depth = 0;

	if (*tries == 0)
		return false;
	--*tries;
	if (!close)
		return fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0;
	start = open + 1;
	for (p = start; p <= close; p++) {
		dbt_autofree char *one = NULL;

		if (p < close && (*p != ',' || depth > 0)) {
			depth += *p == '{';
			depth -= *p == '}';
			continue;
		}
		if (asprintf(&one, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)(p - start),
		             start, close + 1) < 0) {
			one = NULL;
			return false;
		}
		if (glob_matches(one, path, tries))
			return true;
		start = p + 1;
	}
	return false;
}

static bool rule_matches(const struct dbt_tmpfiles_rule *rule, const char *path)
{
	unsigned tries = MAX_BRACE_TRIES;

	return rule->glob ? glob_matches(rule->path, path, &tries) : strcmp(rule->path, path) == 0;
}

/* An earlier line owns the same path, so this one is ignored. */
static bool is_duplicate(const struct dbt_tmpfiles_rules *rules, size_t n, bool boot)
{
	const struct dbt_tmpfiles_rule *rule = &rules->items[n];

	for (size_t i = 0; i < n && rule->owns; i++) {
		const struct dbt_tmpfiles_rule *other = &rules->items[i];

		if (other->owns && other->glob == rule->glob && (boot || !other->boot_only) &&
		    strcmp(other->path, rule->path) == 0)
			return true;
	}
	return false;
}

static bool lies_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* Cuts the last component off; false when nothing is left. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || path[0] == '\0')
		return false;
	*slash = '\0';
	return true;
}

static bool removed_at_boot(const struct dbt_tmpfiles_rule *rule, const char *path)
{
	dbt_autofree char *up = NULL;

	if (lies_below(rule->path, "/dev"))
		return false;
	switch (rule->type) {
	case 'D':
		return lies_below(path, rule->path);
	case 'r':
		return rule_matches(rule, path);
	case 'R':
		up = strdup(path);
		while (up && *up) {
			if (rule_matches(rule, up))
				return true;
			(void)go_up(up);
		}
		return false;
	default:
		return false;
	}
}

static const struct dbt_tmpfiles_rule *find_boot(const struct dbt_tmpfiles_rules *rules,
                                                 const char *path)
{
	for (size_t i = 0; i < rules->n; i++)
		if (removed_at_boot(&rules->items[i], path) && !is_duplicate(rules, i, true))
			return &rules->items[i];
	return NULL;
}

/* X without an age of its own takes the one of a directory line: that of its very path, else of the
 * first line for a directory above, or of a later one below that which X matches. */
static const struct dbt_tmpfiles_rule *age_for_x(const struct dbt_tmpfiles_rules *rules,
                                                 const struct dbt_tmpfiles_rule *x)
{
	const struct dbt_tmpfiles_rule *from = NULL;

	for (size_t i = 0; i < rules->n; i++) {
		const struct dbt_tmpfiles_rule *rule = &rules->items[i];

		if (rule->boot_only || !strchr("dDvqQ", rule->type) ||
		    is_duplicate(rules, i, false))
			continue;
		if (strcmp(rule->path, x->path) == 0) {
			from = rule;
			break;
		}
		if (from ? lies_below(rule->path, from->path) && rule_matches(x, rule->path)
		         : lies_below(x->path, rule->path))
			from = rule;
	}
	return from && from->age ? from : NULL;
}

/* The line with an age that cleans what lies below dir. *ret_stop: dir has a line, so that what is
 * further up has no say. */
static const struct dbt_tmpfiles_rule *cleaner_at(const struct dbt_tmpfiles_rules *rules,
                                                  const char *dir, bool direct, bool *ret_stop)
{
	const struct dbt_tmpfiles_rule *found = NULL;

	for (size_t i = 0; i < rules->n && !found; i++) {
		const struct dbt_tmpfiles_rule *rule = &rules->items[i];

		if (rule->boot_only || !rule_matches(rule, dir) || is_duplicate(rules, i, false))
			continue;
		*ret_stop = true;
		if (rule->type == 'X' && !rule->age)
			found = age_for_x(rules, rule);
		else if (rule->age && !(rule->keep_first_level && direct))
			found = rule;
	}
	return found;
}

static int find_age(const struct dbt_tmpfiles_rules *rules, const char *path,
                    const struct dbt_tmpfiles_rule **ret)
{
	dbt_autofree char *up = strdup(path);
	const struct dbt_tmpfiles_rule *found = NULL;
	bool direct = true, stop = false;

	if (!up)
		return -ENOMEM;
	/* a line for the path itself keeps the cleaning of the directory away from it */
	for (size_t i = 0; i < rules->n; i++)
		if (!rules->items[i].boot_only && rule_matches(&rules->items[i], path))
			stop = true;
	while (!found && !stop && go_up(up)) {
		found = cleaner_at(rules, up, direct, &stop);
		direct = false;
	}
	*ret = found;
	return 0;
}

static int make_hit(const struct dbt_tmpfiles_rule *rule, enum dbt_tmpfiles_when when,
                    struct dbt_tmpfiles_hit *ret)
{
	struct dbt_tmpfiles_hit hit = { .when = when, .line = rule->line };

	hit.file = strdup(rule->file);
	hit.text = strdup(rule->text);
	if (when == DBT_TMPFILES_BY_AGE)
		hit.age = strdup(rule->age);
	if (!hit.file || !hit.text || (when == DBT_TMPFILES_BY_AGE && !hit.age)) {
		dbt_tmpfiles_hit_release(&hit);
		return -ENOMEM;
	}
	*ret = hit;
	return 1;
}

int dbt_tmpfiles_match(const struct dbt_tmpfiles_rules *rules, const char *path,
                       struct dbt_tmpfiles_hit *ret)
{
	const struct dbt_tmpfiles_rule *rule = find_boot(rules, path);
	int r;

	if (rule)
		return make_hit(rule, DBT_TMPFILES_AT_BOOT, ret);
	r = find_age(rules, path, &rule);
	if (r < 0 || !rule)
		return r;
	return make_hit(rule, DBT_TMPFILES_BY_AGE, ret);
}

int dbt_tmpfiles_find(const struct dbt_ctx *ctx, const char *path, struct dbt_tmpfiles_hit *ret)
{
	struct dbt_tmpfiles_rules rules = { 0 };
	int r = dbt_tmpfiles_load(ctx, &rules);

	if (r == 0)
		r = dbt_tmpfiles_match(&rules, path, ret);
	dbt_tmpfiles_rules_release(&rules);
	return r;
}
