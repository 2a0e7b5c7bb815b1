#include "survey/remains.h"

#include "base/cleanup.h"
#include "survey/dbkind.h"
#include "survey/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Fewer names than these prove nothing. */
enum { MIN_FITTING = 2 };

static const unsigned NEEDED = DBT_RULE_REQUIRED | DBT_RULE_CORE;

/* A database that may have been here. */
struct remains {
	const struct dbt_format *format;
	const struct dbt_lead *lead;
	const char *base; /* "" in a directory */
	size_t base_len;
	struct dbt_file *first; /* of its members that are there */
	struct dbt_file
		*denied; /* a lead that was read and is something else: then names prove nothing */
	unsigned fitting, needed;
};

static bool is_literal(const char *pattern)
{
	return !strpbrk(pattern[0] == '*' ? pattern + 1 : pattern, "*#");
}

static bool is_needed(const struct dbt_rule *rule, char kind)
{
	return (rule->flags & NEEDED) && (rule->kind == 0 || rule->kind == kind) &&
	       is_literal(rule->pattern);
}

/* How long the base is where the name fits the pattern; -1 where it does not. */
static ssize_t base_length(const char *pattern, const char *name)
{
	const char *tail = pattern[0] == '*' ? pattern + 1 : pattern;
	const size_t len = strlen(name), tail_len = strlen(tail);

	if (tail == pattern)
		return strcmp(pattern, name) == 0 ? 0 : -1;
	if (tail_len == 0 || len <= tail_len || strcmp(name + len - tail_len, tail) != 0)
		return -1;
	return (ssize_t)(len - tail_len);
}

static int compare_base(const struct remains *remains, const char *tail, const char *name)
{
	int cmp = strncmp(remains->base, name, remains->base_len);

	return cmp != 0 ? cmp : strcmp(tail, name + remains->base_len);
}

/* The file the walk kept for this pattern; the directory is not asked. */
static struct dbt_file *kept(const struct dbt_dir *dir, const struct remains *remains,
                             const char *pattern)
{
	const char *tail = pattern[0] == '*' ? pattern + 1 : pattern;
	size_t lo = 0, hi = dir->n_files;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int cmp = compare_base(remains, tail, dir->files[mid].name);

		if (cmp == 0)
			return dir->files[mid].directory ? NULL : &dir->files[mid];
		if (cmp < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

/* Looks at the leads that are there. False: one is a link of someone, who knows where the database is. */
static bool ask_leads(const struct dbt_dir *dir, struct remains *remains)
{
	for (const struct dbt_lead *lead = remains->format->leads; lead->pattern; lead++) {
		struct dbt_file *file;

		if (lead->alone || lead->kind != remains->lead->kind || !is_literal(lead->pattern))
			continue;
		file = kept(dir, remains, lead->pattern);
		if (!file)
			continue;
		if (file->foreign_link)
			return false;
		if (file->tested && !file->passed && !file->unreadable)
			remains->denied = file;
	}
	return true;
}

static bool weigh(const struct dbt_dir *dir, struct remains *remains)
{
	for (const struct dbt_rule *rule = remains->format->rules; rule->pattern; rule++) {
		struct dbt_file *file;

		if (!is_needed(rule, remains->lead->kind))
			continue;
		remains->needed++;
		file = kept(dir, remains, rule->pattern);
		if (!file)
			continue;
		if (file->foreign_link)
			return false;
		if (file->size_bytes == 0 || file->claimed)
			continue;
		if (remains->fitting++ == 0)
			remains->first = file;
	}
	return remains->fitting >= MIN_FITTING && 2 * remains->fitting >= remains->needed &&
	       ask_leads(dir, remains);
}

/* Keeps the candidate of which more is there. */
static void prefer(const struct remains *candidate, struct remains *best)
{
	if (!best->format ||
	    candidate->fitting * best->needed > best->fitting * candidate->needed ||
	    (candidate->fitting * best->needed == best->fitting * candidate->needed &&
	     candidate->fitting > best->fitting))
		*best = *candidate;
}

static void try_kind(const struct dbt_dir *dir, const struct dbt_file *file,
                     const struct dbt_format *format, const struct dbt_lead *lead,
                     struct remains *best)
{
	for (const struct dbt_rule *rule = format->rules; rule->pattern; rule++) {
		struct remains candidate = { .format = format, .lead = lead, .base = file->name };
		ssize_t len;

		if (!is_needed(rule, lead->kind))
			continue;
		len = base_length(rule->pattern, file->name);
		if (len < 0 || (len > 0) != (format->shape == DBT_SHAPE_SET))
			continue;
		candidate.base_len = (size_t)len;
		if (weigh(dir, &candidate))
			prefer(&candidate, best);
	}
}

static void try_format(const struct dbt_dir *dir, const struct dbt_file *file,
                       const struct dbt_format *format, struct remains *best)
{
	if ((format->shape != DBT_SHAPE_SET && format->shape != DBT_SHAPE_DIRECTORY) ||
	    !format->rules)
		return;
	for (const struct dbt_lead *lead = format->leads; lead && lead->pattern; lead++) {
		const struct dbt_lead *earlier = format->leads;

		while (earlier != lead && (earlier->alone || earlier->kind != lead->kind))
			earlier++;
		if (!lead->alone && earlier == lead)
			try_kind(dir, file, format, lead, best);
	}
}

static bool may_be_left(const struct dbt_file *file)
{
	return !file->claimed && !file->directory && !file->foreign_link && file->size_bytes > 0 &&
	       (file->hint & (DBT_HINT_LEAD | DBT_HINT_MEMBER));
}

int dbt_remains_form(struct dbt_dir *dir, struct dbt_found_vec *found)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < dir->n_files; i++) {
		struct remains best = { 0 };
		dbt_autofree char *base = NULL;

		if (!may_be_left(&dir->files[i]))
			continue;
		for (const struct dbt_format *const *f = dbt_formats; *f; f++)
			try_format(dir, &dir->files[i], *f, &best);
		if (!best.format)
			continue;
		if (best.denied) {
			if (!best.denied->told && !best.denied->claimed)
				dbt_walk_trouble(dir->walk, dir->path, best.denied->name, -EBADMSG);
			best.denied->told = true;
			continue;
		}
		base = best.base_len > 0 ? strndup(best.base, best.base_len) : NULL;
		if (best.base_len > 0 && !base)
			return -ENOMEM;
		r = dbt_group_form_remains(dir, best.format, best.lead, best.first, base, found);
	}
	return r;
}
