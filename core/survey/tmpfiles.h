/* Will systemd-tmpfiles delete a file? Reads the same configuration as it does (tmpfiles.d(5)) and
 * follows the same rules: what happens at boot (`--create --remove --boot`) and what the daily
 * cleaning does to files that nobody has touched for long (`--clean`).
 *
 * Not looked at: directories of a line's path that are links, mount points below a cleaned
 * directory (which are spared), and per-user configuration. */
#ifndef DBT_SURVEY_TMPFILES_H
#define DBT_SURVEY_TMPFILES_H

#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>

enum dbt_tmpfiles_when {
	DBT_TMPFILES_NEVER = 0,
	DBT_TMPFILES_AT_BOOT,
	DBT_TMPFILES_BY_AGE, /* once it is older than the line's age */
};

struct dbt_tmpfiles_hit {
	enum dbt_tmpfiles_when when;
	char *file;    /* "/usr/lib/tmpfiles.d/tmp.conf" */
	unsigned line; /* from 1 */
	char *text;    /* the line, without white space at its ends */
	char *age;     /* "10d", with BY_AGE only, else NULL */
};

/* The first thing that would happen to a file at this absolute path (canonical; nothing needs to be
 * there yet): at boot before by age. Returns 1 with *ret set (release it), 0 when it is safe from
 * systemd-tmpfiles, or -errno. */
int dbt_tmpfiles_find(const struct dbt_ctx *ctx, const char *path, struct dbt_tmpfiles_hit *ret);

void dbt_tmpfiles_hit_release(struct dbt_tmpfiles_hit *hit);

/* The same in steps, to ask about many paths or to parse a text that is not installed. */
struct dbt_tmpfiles_rule;

struct dbt_tmpfiles_rules { /* zero-initialised is empty and valid */
	struct dbt_tmpfiles_rule *items;
	size_t n, cap;
};

/* All configuration files below ctx->root, in the order in which they count. */
int dbt_tmpfiles_load(const struct dbt_ctx *ctx, struct dbt_tmpfiles_rules *rules);

/* Adds the lines of one file behind those that are there; lines that make no sense are left out, as
 * systemd-tmpfiles does. 0 or -ENOMEM. */
int dbt_tmpfiles_parse(const struct dbt_ctx *ctx, const char *file, const char *text, size_t len,
                       struct dbt_tmpfiles_rules *rules);

int dbt_tmpfiles_match(const struct dbt_tmpfiles_rules *rules, const char *path,
                       struct dbt_tmpfiles_hit *ret);

void dbt_tmpfiles_rules_release(struct dbt_tmpfiles_rules *rules);

#endif
