#include "survey/recognise.h"

#include "base/vec.h"
#include "survey/dbkind.h"
#include "survey/remains.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LEADS = 16 };

struct passed_vec {
	struct dbt_passed *items;
	size_t n, cap;
};

struct reader {
	const struct dbt_dir *dir;
	const struct dbt_file *file;
};

static ssize_t read_candidate(const struct dbt_candidate *candidate, void *buf, size_t len,
                              uint64_t off)
{
	const struct reader *reader = candidate->read_data;

	return dbt_dir_read(reader->dir, reader->file, buf, len, off);
}

static int add_passed(struct passed_vec *passed, const struct dbt_dbkind_lead *lead,
                      struct dbt_file *file, enum dbt_match match, struct dbt_buf *why)
{
	struct dbt_passed *p = dbt_vec_push(passed);

	if (!p)
		return -ENOMEM;
	*p = (struct dbt_passed){
		.format = lead->format, .lead = lead->lead, .order = lead->order, .file = file
	};
	file->passed = true;
	if (match == DBT_MATCH_CUT) {
		p->cut = dbt_buf_take(why);
		if (!p->cut)
			return -ENOMEM;
	}
	return 0;
}

static bool is_composite(const struct dbt_dbkind_lead *lead)
{
	return lead->format->shape == DBT_SHAPE_COMPOSITE && !lead->lead->alone;
}

/* A file may lead composites besides the one format that it is of itself. Returns 1 when that one was
 * found, 0 or -ENOMEM. */
static int test_leads(const struct dbt_candidate *candidate, const struct dbt_dbkind_lead *leads,
                      size_t n, struct dbt_file *file, struct passed_vec *passed,
                      struct dbt_buf *why)
{
	bool found = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		enum dbt_match match;

		if ((found && !is_composite(&leads[i])) || !leads[i].format->test)
			continue;
		dbt_buf_clear(why);
		match = leads[i].format->test(candidate, why);
		if (match == DBT_MATCH_NO)
			continue;
		r = add_passed(passed, &leads[i], file, match, why);
		found |= !is_composite(&leads[i]);
	}
	return r < 0 ? r : found;
}

/* The name of a sub-directory is all there is to test. */
static int pass_directory(struct dbt_file *file, struct passed_vec *passed, struct dbt_buf *why)
{
	struct dbt_dbkind_lead leads[MAX_LEADS];
	char slashed[NAME_MAX + 2];
	int r = 0;
	size_t n;

	(void)snprintf(slashed, sizeof(slashed), "%s/", file->name);
	n = dbt_dbkind_leads(slashed, UINT64_MAX, leads, MAX_LEADS);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_passed(passed, &leads[i], file, DBT_MATCH_YES, why);
	return r;
}

/* Reads the head and asks the formats: those that know the name, then those that know any name. */
static int test_file(struct dbt_dir *dir, struct dbt_file *file, bool by_name,
                     struct passed_vec *passed, struct dbt_buf *why)
{
	unsigned char head[DBT_HEAD_BYTES];
	const struct reader reader = { .dir = dir, .file = file };
	struct dbt_candidate candidate = { .name = file->name,
		                           .size_bytes = file->size_bytes,
		                           .head = head,
		                           .read = read_candidate,
		                           .read_data = &reader };
	struct dbt_dbkind_lead leads[MAX_LEADS], any = { 0 };
	size_t n = by_name ? dbt_dbkind_leads(file->name, file->size_bytes, leads, MAX_LEADS) : 0;
	enum dbt_match match = DBT_MATCH_NO;
	ssize_t got;
	int r;

	if (file->directory)
		return pass_directory(file, passed, why);
	got = dbt_dir_read(dir, file, head, sizeof(head), 0);
	file->tested = true;
	if (got < 0) {
		file->unreadable = true;
		if (!file->dangling)
			dbt_walk_trouble(dir->walk, dir->path, file->name, (int)got);
		return 0;
	}
	candidate.head_len = (size_t)got;
	r = test_leads(&candidate, leads, n, file, passed, why);
	if (r != 0)
		return r < 0 ? r : 0;
	any.format = dbt_dbkind_by_content(&candidate, &match, why);
	return any.format ? add_passed(passed, &any, file, match, why) : 0;
}

static int by_inode(const void *a, const void *b)
{
	const struct dbt_file *const *x = a, *const *y = b;

	return ((*x)->ino > (*y)->ino) - ((*x)->ino < (*y)->ino);
}

/* Tests the files that `wanted` picks, in inode order. */
static int test_files(struct dbt_dir *dir, bool by_name, bool (*wanted)(const struct dbt_file *),
                      struct passed_vec *passed)
{
	struct dbt_buf why = { 0 };
	struct dbt_file **order;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < dir->n_files; i++)
		n += wanted(&dir->files[i]) ? 1U : 0U;
	if (n == 0)
		return 0;
	order = calloc(n, sizeof(struct dbt_file *));
	if (!order)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < dir->n_files; i++)
		if (wanted(&dir->files[i]))
			order[n++] = &dir->files[i];
	qsort(order, n, sizeof(struct dbt_file *), by_inode);
	for (size_t i = 0; i < n && r == 0; i++)
		r = dbt_ctx_cancelled(dir->ctx) ? -ECANCELED
		                                : test_file(dir, order[i], by_name, passed, &why);
	free(order);
	dbt_buf_release(&why);
	return r;
}

static bool is_lead(const struct dbt_file *file)
{
	struct dbt_dbkind_lead lead;

	if (!(file->hint & DBT_HINT_LEAD) || file->directory)
		return file->directory;
	return file->size_bytes > 0 && !file->foreign_link &&
	       dbt_dbkind_leads(file->name, file->size_bytes, &lead, 1) > 0;
}

/* A name that leads a format was looked at already, or is too small for what it says it is. */
static bool is_odd(const struct dbt_file *file)
{
	return !file->claimed && !file->tested && !file->foreign_link && !file->directory &&
	       !(file->hint & (DBT_HINT_EVERYDAY | DBT_HINT_LEAD)) &&
	       file->size_bytes >= DBT_ODD_NAME_BYTES;
}

/* A file of an ending that one format calls its own, with nothing in it: a download that did not begin. */
static void tell_empty(struct dbt_dir *dir)
{
	for (size_t i = 0; i < dir->n_files; i++) {
		const struct dbt_file *file = &dir->files[i];
		struct dbt_dbkind_lead lead;

		if (file->size_bytes > 0 || file->foreign_link || file->directory ||
		    file->claimed || !(file->hint & DBT_HINT_LEAD) ||
		    dbt_dbkind_leads(file->name, UINT64_MAX, &lead, 1) == 0)
			continue;
		if (lead.format->shape == DBT_SHAPE_FILE && lead.format->strip &&
		    dbt_pattern_fits(lead.format->strip, NULL, strrchr(file->name, '.')))
			dbt_walk_trouble(dir->walk, dir->path, file->name, -ENODATA);
	}
}

/* The order of groups: directories, sets, files; in a format the preferred lead first. */
static int by_preference(const void *a, const void *b)
{
	const struct dbt_passed *x = a, *y = b;

	if (x->format->shape != y->format->shape)
		return x->format->shape < y->format->shape ? -1 : 1;
	if (x->format->proof != y->format->proof)
		return x->format->proof < y->format->proof ? -1 : 1;
	if (x->format != y->format)
		return strcmp(x->format->id, y->format->id);
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return strcmp(x->file->name, y->file->name);
}

static int form_all(struct dbt_dir *dir, struct passed_vec *passed, struct dbt_found_vec *found)
{
	int r = 0;

	if (passed->n > 1)
		qsort(passed->items, passed->n, sizeof(passed->items[0]), by_preference);
	for (size_t i = 0; i < passed->n; i++) {
		/* A composite's lead is at the same time a part of it. */
		if (r == 0 && (!passed->items[i].file->claimed ||
		               passed->items[i].format->shape == DBT_SHAPE_COMPOSITE))
			r = dbt_group_form(dir, &passed->items[i], found);
		free(passed->items[i].cut);
	}
	passed->n = 0;
	return r;
}

/* What --all lists besides: large files that nothing above wanted. */
static const struct dbt_format unknown_format = {
	.id = "unknown", .name = "unknown", .shape = DBT_SHAPE_FILE, .moves = DBT_MOVES_FILE
};

static int list_unknown(struct dbt_dir *dir, struct dbt_found_vec *found)
{
	const uint64_t min = dir->opts->unknown_bytes;
	int r = 0;

	for (size_t i = 0; r == 0 && min > 0 && i < dir->n_files; i++) {
		struct dbt_file *file = &dir->files[i];
		const struct dbt_passed p = { .format = &unknown_format, .file = file };

		if (!file->claimed && !file->foreign_link && !file->directory &&
		    file->size_bytes >= min)
			r = dbt_group_form(dir, &p, found);
	}
	return r;
}

int dbt_recognise(struct dbt_dir *dir, struct dbt_found_vec *found)
{
	struct passed_vec passed = { 0 };
	int r, r2;

	r = test_files(dir, true, is_lead, &passed);
	r2 = form_all(dir, &passed, found);
	r = r < 0 ? r : r2;
	if (r == 0)
		r = dbt_remains_form(dir, found);
	if (r == 0) {
		r = test_files(dir, false, is_odd, &passed);
		r2 = form_all(dir, &passed, found);
		r = r < 0 ? r : r2;
	}
	free(passed.items);
	if (r == 0)
		tell_empty(dir);
	return r < 0 ? r : list_unknown(dir, found);
}
