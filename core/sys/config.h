/* The configuration: the user's file, then the system's. A line reads "KEY VALUE"; the value goes to the end of
 * the line and may hold blanks. Empty lines and lines beginning with # are left out.
 *
 *	target /nvme/db            what --to means without a directory
 *	reserve 50G                space to leave free on a target
 *	limit-rate 200M            bytes a second to copy at most
 *	exclude GLOB               what scan passes over; may be repeated
 *	tier WHAT TIER             what a device is (survey/override.h); may be repeated
 *
 * This is no ini file: values are file names and patterns, which may hold the characters that ini readers take for
 * comments and separators, and two of the five keys may be repeated. */
#ifndef DBT_SYS_CONFIG_H
#define DBT_SYS_CONFIG_H

#include "base/err.h"
#include "sys/ctx.h"

#include <stdbool.h>
#include <stddef.h>

enum dbt_config_key {
	DBT_CONFIG_NONE = 0, /* the line is not understood: value says why */
	DBT_CONFIG_TARGET,
	DBT_CONFIG_RESERVE,
	DBT_CONFIG_LIMIT_RATE,
	DBT_CONFIG_EXCLUDE,
	DBT_CONFIG_TIER,
};

struct dbt_config_line {
	enum dbt_config_key key;
	bool overruled; /* the user's file has said it already */
	char *value;
	char *where; /* "/etc/dbtier.conf, line 3" */
	int code;    /* -errno of a file that could not be read; else 0 */
};

struct dbt_config {
	struct dbt_config_line *items; /* in the order in which they are asked: the user's first */
	size_t n, cap;
};

/* A missing file is no error. Of a captured machine only its own etc/dbtier.conf counts. Lines that are not
 * understood are kept as such, and so is a file that cannot be read: the caller decides. Returns 0 or -ENOMEM. */
int dbt_config_load(const struct dbt_ctx *ctx, struct dbt_config *ret);
void dbt_config_release(struct dbt_config *config);

const char *dbt_config_key_name(enum dbt_config_key key); /* "limit-rate"; static */

#endif
