#include "survey/guess.h"

#include "survey/dbkind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEADS = 16 };

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* An archive in an archive tells nothing. */
static bool is_packed(const struct dbt_format *format)
{
	return strcmp(format->id, "archive") == 0;
}

/* The catalogue asks for more of a FASTA that lies about by itself than of one that somebody packed. */
static uint64_t size_to_ask(uint64_t size_bytes)
{
	enum { WORTH_PACKING = 16384 };

	return size_bytes >= WORTH_PACKING ? UINT64_MAX : size_bytes;
}

bool dbt_guess_wants_head(const char *path, uint64_t size_bytes)
{
	struct dbt_dbkind_lead lead;

	return dbt_dbkind_leads(base_name(path), size_to_ask(size_bytes), &lead, 1) > 0 &&
	       lead.format->test && !is_packed(lead.format);
}

static int add(struct dbt_guess *guess, const struct dbt_format *format, const char *path,
               bool by_content)
{
	struct dbt_guess_item *item;

	for (size_t i = 0; i < guess->n; i++) {
		if (guess->items[i].format != format)
			continue;
		if (!by_content || guess->items[i].by_content)
			return 0;
		/* The better reason replaces the first one. */
		free(guess->items[i].member);
		guess->items[i].member = strdup(path);
		guess->items[i].by_content = true;
		return guess->items[i].member ? 0 : -ENOMEM;
	}
	if (guess->n == DBT_GUESS_MOST)
		return 0;
	item = &guess->items[guess->n];
	*item = (struct dbt_guess_item){ .format = format,
		                         .member = strdup(path),
		                         .by_content = by_content };
	if (!item->member)
		return -ENOMEM;
	guess->n++;
	return 0;
}

/* Only the head is at hand: asking for more is noted, and fails. */
static ssize_t read_elsewhere(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off)
{
	bool *asked = (bool *)(uintptr_t)file->read_data;

	(void)buf;
	(void)len;
	(void)off;
	*asked = true;
	return -ENODATA;
}

enum verdict { VERDICT_NO, VERDICT_NAME, VERDICT_CONTENT };

static enum verdict judge(const struct dbt_format *format, const char *name, uint64_t size_bytes,
                          const unsigned char *head, size_t head_len)
{
	bool asked = false;
	const struct dbt_candidate file = { .name = name,
		                            .size_bytes = size_bytes,
		                            .head = head,
		                            .head_len = head_len,
		                            .read = read_elsewhere,
		                            .read_data = &asked };
	struct dbt_buf why = { 0 };
	enum dbt_match match;

	if (!head || !format->test)
		return VERDICT_NAME;
	match = format->test(&file, &why);
	dbt_buf_release(&why);
	if (match != DBT_MATCH_NO)
		return VERDICT_CONTENT;
	return asked ? VERDICT_NAME : VERDICT_NO;
}

/* The format of which a file of this name is a member that must be there. */
static const struct dbt_format *format_of_member(const char *name)
{
	for (const struct dbt_format *const *f = dbt_formats; *f; f++) {
		if ((*f)->shape != DBT_SHAPE_SET && (*f)->shape != DBT_SHAPE_DIRECTORY)
			continue;
		for (const struct dbt_rule *rule = (*f)->rules; rule && rule->pattern; rule++)
			if ((rule->flags & (DBT_RULE_CORE | DBT_RULE_REQUIRED)) &&
			    strcmp(rule->pattern, "*") != 0 &&
			    dbt_pattern_fits(rule->pattern, NULL, name))
				return *f;
	}
	return NULL;
}

int dbt_guess_add(struct dbt_guess *guess, const char *path, uint64_t size_bytes,
                  const unsigned char *head, size_t head_len)
{
	const char *name = base_name(path);
	struct dbt_dbkind_lead leads[MOST_LEADS];
	size_t n = dbt_dbkind_leads(name, head ? size_to_ask(size_bytes) : size_bytes, leads,
	                            MOST_LEADS);
	const struct dbt_format *member;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		enum verdict verdict =
			is_packed(leads[i].format)
				? VERDICT_NO
				: judge(leads[i].format, name, size_bytes, head, head_len);

		if (verdict == VERDICT_NO)
			continue;
		r = add(guess, leads[i].format, path, verdict == VERDICT_CONTENT);
		if (verdict == VERDICT_CONTENT && leads[i].format->shape != DBT_SHAPE_COMPOSITE)
			break; /* it is that, and no other format's */
	}
	if (r < 0 || n > 0)
		return r;
	member = format_of_member(name);
	return member ? add(guess, member, path, false) : 0;
}

bool dbt_guess_any(const struct dbt_guess *guess)
{
	return guess->n > 0;
}

int dbt_guess_say(const struct dbt_guess *guess, struct dbt_buf *text)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < guess->n; i++)
		r = dbt_buf_addf(text, "%s%s ('%s', by its %s)", i > 0 ? ", " : "",
		                 guess->items[i].format->id, guess->items[i].member,
		                 guess->items[i].by_content ? "first bytes" : "name");
	return r;
}

void dbt_guess_release(struct dbt_guess *guess)
{
	for (size_t i = 0; i < guess->n; i++)
		free(guess->items[i].member);
	*guess = (struct dbt_guess){ 0 };
}
