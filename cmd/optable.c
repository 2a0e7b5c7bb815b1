/* The walk over a command line. Long and short options, "--name=VALUE", "-xVALUE", clusters of
 * letters, operands between options, "--" before operands that begin with a dash. */
#include "cmd/optable.h"

#include "base/nearest.h"
#include "base/units.h"
#include "base/vec.h"
#include "cmd/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An option of one of the tables: where its value goes. */
struct found {
	struct opt_use *use;
	size_t index;
};

static bool takes_value(const struct opt_spec *opt)
{
	return opt->kind != OPT_FLAG && opt->kind != OPT_COUNT;
}

static int usage(const struct opt_parser *p, struct dbt_err *err)
{
	if (p->command)
		(void)dbt_err_add(err, "see 'dbtier %s --help'", p->command);
	else
		(void)dbt_err_add(err, "see 'dbtier --help'");
	return -EINVAL;
}

static bool find_long(struct opt_parser *p, const char *name, size_t len, struct found *ret)
{
	for (size_t u = 0; u < OPT_USES; u++)
		for (size_t i = 0; p->uses[u].opts && p->uses[u].opts[i].name; i++)
			if (strlen(p->uses[u].opts[i].name) == len &&
			    strncmp(p->uses[u].opts[i].name, name, len) == 0) {
				*ret = (struct found){ .use = &p->uses[u], .index = i };
				return true;
			}
	return false;
}

static bool find_letter(struct opt_parser *p, char letter, struct found *ret)
{
	for (size_t u = 0; u < OPT_USES; u++)
		for (size_t i = 0; p->uses[u].opts && p->uses[u].opts[i].name; i++)
			if (p->uses[u].opts[i].letter == letter) {
				*ret = (struct found){ .use = &p->uses[u], .index = i };
				return true;
			}
	return false;
}

static int unknown_long(struct opt_parser *p, const char *name, size_t len, struct dbt_err *err)
{
	const char *words[128], *near;
	size_t n = 0;
	char text[64];

	for (size_t u = 0; u < OPT_USES; u++)
		for (size_t i = 0; p->uses[u].opts && p->uses[u].opts[i].name; i++)
			if (!p->uses[u].opts[i].hidden && n < sizeof(words) / sizeof(words[0]))
				words[n++] = p->uses[u].opts[i].name;
	(void)snprintf(text, sizeof(text), "%.*s", (int)(len < sizeof(text) ? len : 0), name);
	near = dbt_nearest(text, words, n);
	(void)dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "unknown option '--%.*s'%s%s%s",
	                  (int)(len < 200 ? len : 200), name, near ? " (did you mean '--" : "",
	                  near ? near : "", near ? "'?)" : "");
	return usage(p, err);
}

static int bad_value(const struct opt_spec *opt, const char *value, const char *wanted,
                     struct dbt_err *err)
{
	return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "'--%s' wants %s, not '%s'", opt->name,
	                   wanted, value);
}

static int store_number(const struct opt_spec *opt, const char *value, uint64_t *at,
                        struct dbt_err *err)
{
	char *end = NULL;
	uint64_t n;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end != '\0' || errno != 0)
		return bad_value(opt, value, "a number", err);
	*at = n;
	return 0;
}

/* "'--max' takes 32K to 4G, not '1K'" */
static int check_bounds(const struct opt_spec *opt, const char *value, uint64_t given,
                        struct dbt_err *err)
{
	char least[DBT_UNITS_TEXT_BYTES], most[DBT_UNITS_TEXT_BYTES];

	if (given >= opt->least && (opt->most == 0 || given <= opt->most))
		return 0;
	if (opt->kind == OPT_BYTES) {
		(void)dbt_units_size(opt->least, least);
		(void)dbt_units_size(opt->most, most);
	} else {
		(void)snprintf(least, sizeof(least), "%" PRIu64, opt->least);
		(void)snprintf(most, sizeof(most), "%" PRIu64, opt->most);
	}
	return dbt_err_set(err, DBT_ERR_USAGE, -ERANGE, "'--%s' takes %s%s%s, not '%s'", opt->name,
	                   least, opt->most > 0 ? " to " : " or more", opt->most > 0 ? most : "",
	                   value);
}

static int store_reserve(const struct opt_spec *opt, const char *value, struct opt_reserve *at,
                         struct dbt_err *err)
{
	struct opt_reserve reserve = { .set = true };

	if (dbt_units_parse_amount(value, &reserve.amount) < 0)
		return bad_value(opt, value, "a size (10G) or a share (5%)", err);
	*at = reserve;
	return 0;
}

static int store_choice(const struct opt_spec *opt, const char *value, const char **at,
                        struct dbt_err *err)
{
	size_t n = 0;

	for (; opt->choices[n]; n++)
		if (strcmp(value, opt->choices[n]) == 0) {
			*at = opt->choices[n];
			return 0;
		}
	(void)dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "'--%s' cannot be '%s'; it is one of",
	                  opt->name, value);
	for (size_t i = 0; err && i < n; i++) {
		size_t used = strlen(err->text);

		(void)snprintf(err->text + used, sizeof(err->text) - used, "%s %s", i ? "," : "",
		               opt->choices[i]);
	}
	return -EINVAL;
}

static int store_strings(const char *value, struct opt_strings *at, struct dbt_err *err)
{
	const char **slot = dbt_vec_push(at);

	if (!slot)
		return dbt_err_sys(err, -ENOMEM, "cannot keep '%s'", value);
	*slot = value;
	return 0;
}

static int store(const struct opt_spec *opt, const char *value, void *args, struct dbt_err *err)
{
	void *at = (char *)args + opt->at;
	int r;

	switch (opt->kind) {
	case OPT_FLAG:
		*(bool *)at = true;
		return 0;
	case OPT_COUNT:
		++*(unsigned *)at;
		return 0;
	case OPT_STRING:
		*(const char **)at = value;
		return 0;
	case OPT_STRINGS:
		return store_strings(value, at, err);
	case OPT_BYTES:
		if (dbt_units_parse_size(value, at) < 0)
			return bad_value(opt, value, "a size such as 512K or 10G", err);
		return check_bounds(opt, value, *(uint64_t *)at, err);
	case OPT_NUMBER:
		r = store_number(opt, value, at, err);
		return r < 0 ? r : check_bounds(opt, value, *(uint64_t *)at, err);
	case OPT_RESERVE:
		return store_reserve(opt, value, at, err);
	case OPT_CHOICE:
		return store_choice(opt, value ? value : opt->choices[0], at, err);
	}
	return 0;
}

/* Another option of the same table that cannot stand beside opts[index]. */
static const struct opt_spec *conflict(const struct opt_use *use, size_t index)
{
	for (size_t i = 0; use->opts[i].name; i++)
		if (i != index && (use->given >> i & 1U) &&
		    (use->opts[i].conflicts & use->opts[index].conflicts))
			return &use->opts[i];
	return NULL;
}

static int take(struct opt_parser *p, const struct found *found, const char *value,
                struct dbt_err *err)
{
	const struct opt_spec *opt = &found->use->opts[found->index], *other;
	int r;

	other = conflict(found->use, found->index);
	if (other) {
		(void)dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                  "'--%s' and '--%s' exclude each other", other->name, opt->name);
		return usage(p, err);
	}
	r = store(opt, value, found->use->args, err);
	if (r < 0)
		return r;
	found->use->given |= UINT64_C(1) << found->index;
	return 0;
}

/* The next word as the value of an option that was given without one. */
static int next_value(struct opt_parser *p, const struct opt_spec *opt, const char **ret,
                      struct dbt_err *err)
{
	if (!*p->words) {
		(void)dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "'--%s' wants a value (%s)",
		                  opt->name, opt->metavar);
		return usage(p, err);
	}
	*ret = *p->words++;
	return 0;
}

static int long_option(struct opt_parser *p, const char *word, struct dbt_err *err)
{
	size_t len = strcspn(word, "=");
	const char *value = word[len] == '=' ? word + len + 1 : NULL;
	const struct opt_spec *opt;
	struct found found;
	int r;

	if (!find_long(p, word, len, &found))
		return unknown_long(p, word, len, err);
	opt = &found.use->opts[found.index];
	if (value && !takes_value(opt)) {
		(void)dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "'--%s' takes no value", opt->name);
		return usage(p, err);
	}
	if (!value && takes_value(opt) && !opt->optional_value) {
		r = next_value(p, opt, &value, err);
		if (r < 0)
			return r;
	}
	return take(p, &found, value, err);
}

/* One letter of a cluster; a value is the rest of the word or the next one. */
static int short_option(struct opt_parser *p, struct dbt_err *err)
{
	const struct opt_spec *opt;
	const char *value = NULL;
	struct found found;
	char letter = *p->cluster++;
	int r;

	if (!find_letter(p, letter, &found)) {
		(void)dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "unknown option '-%c'", letter);
		return usage(p, err);
	}
	opt = &found.use->opts[found.index];
	if (takes_value(opt) && *p->cluster) {
		value = p->cluster;
		p->cluster = NULL;
	} else if (takes_value(opt) && !opt->optional_value) {
		r = next_value(p, opt, &value, err);
		if (r < 0)
			return r;
	}
	if (p->cluster && !*p->cluster)
		p->cluster = NULL;
	return take(p, &found, value, err);
}

int opt_next(struct opt_parser *p, char **ret_operand, struct dbt_err *err)
{
	while (p->cluster || *p->words) {
		char *word;
		int r;

		if (p->cluster) {
			r = short_option(p, err);
			if (r < 0)
				return r;
			continue;
		}
		word = *p->words++;
		if (p->only_operands || word[0] != '-' || word[1] == '\0') {
			*ret_operand = word;
			return 1;
		}
		if (strcmp(word, "--") == 0) {
			p->only_operands = true;
			continue;
		}
		if (word[1] != '-') {
			p->cluster = word + 1;
			continue;
		}
		r = long_option(p, word + 2, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int opt_check_required(const struct opt_parser *p, struct dbt_err *err)
{
	char text[OPT_USAGE_BYTES];

	for (size_t u = 0; u < OPT_USES; u++)
		for (size_t i = 0; p->uses[u].opts && p->uses[u].opts[i].name; i++)
			if (p->uses[u].opts[i].required && !(p->uses[u].given >> i & 1U)) {
				(void)dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "'%s' is missing",
				                  opt_usage(&p->uses[u].opts[i], text));
				return usage(p, err);
			}
	return 0;
}

const char *opt_usage(const struct opt_spec *opt, char buf[OPT_USAGE_BYTES])
{
	const char *before = "", *metavar = "", *after = "";

	if (takes_value(opt)) {
		before = opt->optional_value ? "[=" : " ";
		metavar = opt->metavar;
		after = opt->optional_value ? "]" : "";
	}
	(void)snprintf(buf, OPT_USAGE_BYTES, "--%s%s%s%s", opt->name, before, metavar, after);
	return buf;
}

static bool is_listed(const struct opt_spec *opt)
{
	return !opt->hidden && !opt->in_usage;
}

void opt_print_help(const struct opt_spec *opts, FILE *out)
{
	char text[OPT_USAGE_BYTES];
	size_t width = 0;

	for (size_t i = 0; opts && opts[i].name; i++)
		if (is_listed(&opts[i]) && strlen(opt_usage(&opts[i], text)) > width)
			width = strlen(text);
	for (size_t i = 0; opts && opts[i].name; i++) {
		if (!is_listed(&opts[i]))
			continue;
		if (opts[i].letter)
			(void)fprintf(out, "  -%c, ", opts[i].letter);
		else
			(void)fputs("      ", out);
		(void)fprintf(out, "%-*s  %s\n", (int)width, opt_usage(&opts[i], text),
		              opts[i].help);
	}
}

void opt_release(const struct opt_spec *opts, void *args)
{
	for (size_t i = 0; opts && args && opts[i].name; i++)
		if (opts[i].kind == OPT_STRINGS) {
			struct opt_strings *strings = (void *)((char *)args + opts[i].at);

			free(strings->items);
			*strings = (struct opt_strings){ 0 };
		}
}
