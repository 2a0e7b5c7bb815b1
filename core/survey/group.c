#include "survey/group.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/dbkind.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LEADS = 16, MAX_REASONS = 4 };

/* A file that passed a format's test. */
struct passed {
	const struct dbt_format *format;
	const struct dbt_lead *lead; /* NULL: found by content under any name */
	unsigned order;
	struct dbt_file *file;
	char *cut; /* why it is not complete; NULL */
};

struct passed_vec {
	struct passed *items;
	size_t n, cap;
};

/* ---- reading ---- */

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

ssize_t dbt_group_read(const struct dbt_group *group, const struct dbt_file *file, void *buf,
                       size_t len, uint64_t off)
{
	return dbt_dir_read(group->dir, file, buf, len, off);
}

/* ---- members ---- */

struct dbt_file *dbt_group_find(struct dbt_group *group, const char *name)
{
	return dbt_dir_find(group->dir, name);
}

struct dbt_file *dbt_group_findf(struct dbt_group *group, const char *fmt, ...)
{
	dbt_autofree char *name = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&name, fmt, ap);
	va_end(ap);
	if (len < 0) {
		name = NULL;
		return NULL;
	}
	return dbt_dir_find(group->dir, name);
}

struct dbt_file *dbt_group_part(struct dbt_group *group, const char *pattern)
{
	const bool starred = pattern[0] == '*' && group->base;

	return dbt_group_findf(group, "%s%s", starred ? group->base : "",
	                       starred ? pattern + 1 : pattern);
}

bool dbt_group_has_directory(const struct dbt_group *group, const char *name)
{
	return dbt_dir_has_directory(group->dir, name);
}

int dbt_group_expect(struct dbt_group *group, const struct dbt_file *file, uint64_t bytes)
{
	if (!file || file->foreign_link || file->size_bytes >= bytes)
		return 0;
	return dbt_group_incomplete(group, "'%s' is cut short: %llu of %llu bytes", file->name,
	                            (unsigned long long)file->size_bytes,
	                            (unsigned long long)bytes);
}

int dbt_group_add(struct dbt_group *group, struct dbt_file *file, enum dbt_class class, bool hot)
{
	struct dbt_group_member *m;

	for (size_t i = 0; i < group->members.n; i++)
		if (group->members.items[i].file == file)
			return 0;
	m = dbt_vec_push(&group->members);
	if (!m)
		return -ENOMEM;
	*m = (struct dbt_group_member){ .file = file, .class = class, .hot = hot };
	return 0;
}

int dbt_group_incomplete(struct dbt_group *group, const char *fmt, ...)
{
	dbt_autofree char *text = NULL;
	va_list ap;
	int r;

	if (group->n_reasons++ >= MAX_REASONS)
		return 0;
	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL;
		return -ENOMEM;
	}
	if (group->incomplete.len > 0)
		(void)dbt_buf_adds(&group->incomplete, "; ");
	return dbt_buf_adds(&group->incomplete, text);
}

static bool rule_applies(const struct dbt_group *group, const struct dbt_rule *rule)
{
	return rule->kind == 0 || rule->kind == group->kind;
}

/* The one name a pattern stands for; NULL in *ret where it can fit several. */
static int literal_name(const char *pattern, const char *base, char **ret)
{
	const char *rest = base && pattern[0] == '*' ? pattern + 1 : pattern;

	*ret = NULL;
	if (strpbrk(rest, "*#"))
		return 0;
	return asprintf(ret, "%s%s", rest == pattern ? "" : base, rest) < 0 ? -ENOMEM : 0;
}

struct fit {
	struct dbt_group *group;
	const struct dbt_rule *rule;
	const char *base;
	int n;
};

static int add_fitting(void *data, struct dbt_file *file)
{
	struct fit *fit = data;

	if (!dbt_pattern_fits(fit->rule->pattern, fit->base, file->name))
		return 0;
	fit->n++;
	return dbt_group_add(fit->group, file, fit->rule->class,
	                     (fit->rule->flags & DBT_RULE_HOT) != 0);
}

/* Adds what one rule finds; returns how many or -errno. */
static int apply_rule(struct dbt_group *group, const struct dbt_rule *rule, const char *base)
{
	const bool hot = (rule->flags & DBT_RULE_HOT) != 0;
	dbt_autofree char *name = NULL;
	struct dbt_file *file;
	struct fit fit = { 0 };
	int r = literal_name(rule->pattern, base, &name);

	if (r < 0) {
		name = NULL;
		return r;
	}
	if (name) {
		file = dbt_dir_find(group->dir, name);
		if (!file)
			return 0;
		r = dbt_group_add(group, file, rule->class, hot);
		return r < 0 ? r : 1;
	}
	fit.rule = rule;
	fit.base = base;
	fit.group = group;
	r = dbt_dir_each(group->dir, group->format->whole_directory, add_fitting, &fit);
	return r < 0 ? r : fit.n;
}

static int add_cold(void *data, struct dbt_file *file)
{
	return dbt_group_add(data, file, DBT_CLASS_COLD, false);
}

int dbt_group_apply(struct dbt_group *group, const char *base)
{
	for (const struct dbt_rule *rule = group->format->rules; rule && rule->pattern; rule++) {
		const char *tail =
			base && rule->pattern[0] == '*' ? rule->pattern + 1 : rule->pattern;
		int n;

		if (!rule_applies(group, rule))
			continue;
		n = apply_rule(group, rule, base);
		if (n < 0)
			return n;
		if (n > 0)
			continue;
		if (rule->flags & DBT_RULE_CORE)
			return -ENOENT;
		if (rule->flags & DBT_RULE_REQUIRED)
			n = dbt_group_incomplete(group, "'%s%s' is missing",
			                         tail == rule->pattern ? "" : base, tail);
		if (n < 0)
			return n;
	}
	return 0;
}

/* ---- a group becomes a database ---- */

static int member_order(const void *a, const void *b)
{
	return strcmp(((const struct dbt_member *)a)->name, ((const struct dbt_member *)b)->name);
}

/* Without a hot member: as its largest one is read that is read at all. */
static enum dbt_class coolest_use(const struct dbt_database *db)
{
	enum dbt_class class = DBT_CLASS_UNKNOWN;
	uint64_t largest = 0;

	for (size_t i = 0; i < db->n_members; i++) {
		const struct dbt_member *m = &db->members[i];

		if (class == DBT_CLASS_UNKNOWN)
			class = m->class;
		if (m->class == DBT_CLASS_COLD || m->class == DBT_CLASS_UNKNOWN ||
		    m->size_bytes < largest)
			continue;
		class = m->class;
		largest = m->size_bytes;
	}
	return class;
}

void dbt_database_settle(struct dbt_database *db, enum dbt_class format_class)
{
	bool any_hot = false;

	if (db->n_members > 1)
		qsort(db->members, db->n_members, sizeof(db->members[0]), member_order);
	db->size_bytes = db->more_bytes;
	db->class = DBT_CLASS_UNKNOWN;
	db->mixed = false;
	db->promoted = false;
	for (size_t i = 0; i < db->n_members; i++) {
		const struct dbt_member *m = &db->members[i];

		db->size_bytes += m->size_bytes;
		if (!m->hot)
			continue;
		db->promoted |= m->promoted;
		if (!any_hot)
			db->class = m->class;
		else if (db->class != m->class)
			db->mixed = true;
		any_hot = true;
	}
	if (!any_hot)
		db->class = coolest_use(db);
	if (format_class != DBT_CLASS_UNKNOWN) {
		db->class = format_class;
		db->mixed = false;
	} else if (db->mixed) {
		db->class = DBT_CLASS_UNKNOWN;
	}
}

static int join(const char *dir, const char *name, char **ret)
{
	if (asprintf(ret, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int fill_member(const struct dbt_dir *dir, const struct dbt_group_member *from,
                       struct dbt_member *to)
{
	const struct dbt_file *file = from->file;

	*to = (struct dbt_member){
		.size_bytes = file->size_bytes,
		.class = from->class,
		.hot = from->hot && !file->foreign_link,
		.link_of_database = file->foreign_link,
		.promoted = file->promoted,
		.dev = file->dev,
		.ino = file->ino,
		.nlink = file->nlink,
	};
	to->name = strdup(file->name);
	if (!to->name)
		return -ENOMEM;
	return join(dir->path, file->name, &to->path);
}

/* The names people use: of the directory, the base, or the file without its usual ending. */
static int name_database(const struct dbt_group *group, struct dbt_database *db)
{
	const char *whole, *strip = group->format->strip;
	size_t len, strip_len = strip ? strlen(strip) : 0;
	const bool by_directory = !group->alone && (group->format->shape == DBT_SHAPE_DIRECTORY ||
	                                            group->format->shape == DBT_SHAPE_COMPOSITE);
	int r;

	db->dir = strdup(group->dir->path);
	if (!db->dir)
		return -ENOMEM;
	if (by_directory) {
		whole = strrchr(db->dir, '/');
		whole = whole && whole[1] ? whole + 1 : db->dir;
		db->path = strdup(db->dir);
		r = db->path ? 0 : -ENOMEM;
		strip_len = 0;
	} else {
		whole = group->base;
		r = join(db->dir, whole, &db->path);
	}
	if (r < 0)
		return r;
	if (group->name.len > 0) {
		whole = dbt_buf_str(&group->name);
		strip_len = 0;
	}
	len = strlen(whole);
	if (strip_len > 0 && len > strip_len && strcmp(whole + len - strip_len, strip) == 0)
		len -= strip_len;
	db->name = strndup(whole, len);
	return db->name ? 0 : -ENOMEM;
}

static int describe_links(struct dbt_group *group)
{
	for (size_t i = 0; i < group->members.n; i++) {
		const struct dbt_file *file = group->members.items[i].file;
		int r = 0;

		if (file->dangling)
			r = dbt_group_incomplete(group,
			                         "'%s' is a link of dbtier to a copy that is "
			                         "not there",
			                         file->name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int finish_texts(struct dbt_group *group, struct dbt_database *db)
{
	db->complete = group->n_reasons == 0;
	if (!db->complete) {
		if (group->n_reasons > MAX_REASONS)
			(void)dbt_buf_addf(&group->incomplete, "; and %u more",
			                   group->n_reasons - MAX_REASONS);
		db->incomplete = dbt_buf_take(&group->incomplete);
		if (!db->incomplete)
			return -ENOMEM;
	}
	if (group->format->note && group->note.len > 0)
		(void)dbt_buf_adds(&group->note, "; ");
	if (group->format->note && dbt_buf_adds(&group->note, group->format->note) < 0)
		return -ENOMEM;
	if (group->note.len > 0) {
		db->note = dbt_buf_take(&group->note);
		if (!db->note)
			return -ENOMEM;
	}
	return 0;
}

static int to_database(struct dbt_group *group, struct dbt_database *db)
{
	int r = describe_links(group);

	db->format = group->format->id;
	db->moves = group->format->moves == DBT_MOVES_DIRECTORY && group->alone
	                    ? DBT_MOVES_FILE
	                    : group->format->moves;
	db->uri_target = group->format->uri_target;
	db->busy_sqlite = group->busy_sqlite;
	if (r == 0)
		r = name_database(group, db);
	if (r == 0)
		r = finish_texts(group, db);
	if (r < 0)
		return r;
	db->members = calloc(group->members.n ? group->members.n : 1, sizeof(*db->members));
	if (!db->members)
		return -ENOMEM;
	for (; db->n_members < group->members.n; db->n_members++) {
		r = fill_member(group->dir, &group->members.items[db->n_members],
		                &db->members[db->n_members]);
		if (r < 0) {
			db->n_members++; /* half filled; released with the others */
			return r;
		}
	}
	dbt_database_settle(db, group->format->class);
	return 0;
}

static int collect(struct dbt_group *group)
{
	bool use_rules = true;
	int r = 0;

	if (group->format->collect)
		r = group->format->collect(group, &use_rules);
	if (r == 0 && use_rules)
		r = dbt_group_apply(group, group->base);
	if (r == 0 && group->format->whole_directory && !group->alone)
		r = dbt_dir_each(group->dir, true, add_cold, group);
	if (r == 0 && group->members.n == 0 && !group->lead->directory)
		r = dbt_group_add(group, group->lead, group->format->class, true);
	if (r == 0 && group->format->check)
		r = group->format->check(group);
	return r;
}

static void claim(struct dbt_group *group)
{
	/* The parts of a composite are databases too; scan.c joins them with it. */
	if (group->format->shape == DBT_SHAPE_COMPOSITE && !group->alone)
		return;
	for (size_t i = 0; i < group->members.n; i++)
		group->members.items[i].file->claimed = true;
}

static bool is_alone(const struct passed *p)
{
	return p->format->shape == DBT_SHAPE_FILE || !p->lead || p->lead->alone;
}

/* Forms the group around a lead. Returns 0 (also when it came to nothing) or -ENOMEM. */
static int form(struct dbt_dir *dir, const struct passed *p, const char *base,
                struct dbt_found_vec *found)
{
	struct dbt_group group = { .format = p->format,
		                   .dir = dir,
		                   .base = base,
		                   .kind = p->lead ? p->lead->kind : (char)0,
		                   .alone = is_alone(p),
		                   .lead = p->file };
	struct dbt_found *f;
	int r = collect(&group);

	if (r == 0 && p->cut)
		r = dbt_group_incomplete(&group, "'%s' is %s", p->file->name, p->cut);
	if (r == 0) {
		f = dbt_vec_push(found);
		r = f ? to_database(&group, &f->db) : -ENOMEM;
		if (f)
			f->format = p->format;
	}
	if (r == 0)
		claim(&group);
	free(group.members.items);
	dbt_buf_release(&group.incomplete);
	dbt_buf_release(&group.note);
	dbt_buf_release(&group.name);
	return r == -ENOENT ? 0 : r;
}

static int form_passed(struct dbt_dir *dir, const struct passed *p, struct dbt_found_vec *found)
{
	dbt_autofree char *base = strdup(p->file->name);
	const char *tail;

	if (!base)
		return -ENOMEM;
	if (!is_alone(p) && p->format->shape == DBT_SHAPE_SET && p->lead->pattern[0] == '*') {
		tail = p->lead->pattern + 1;
		base[strlen(base) - strlen(tail)] = '\0';
	}
	if (!is_alone(p) && p->format->shape != DBT_SHAPE_SET)
		return form(dir, p, NULL, found);
	return form(dir, p, base, found);
}

/* ---- testing ---- */

static int add_passed(struct passed_vec *passed, const struct dbt_dbkind_lead *lead,
                      struct dbt_file *file, enum dbt_match match, struct dbt_buf *why)
{
	struct passed *p = dbt_vec_push(passed);

	if (!p)
		return -ENOMEM;
	*p = (struct passed){
		.format = lead->format, .lead = lead->lead, .order = lead->order, .file = file
	};
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

		if (found && !is_composite(&leads[i]))
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

/* The order of groups: directories, sets, files; in a format the preferred lead first. */
static int by_preference(const void *a, const void *b)
{
	const struct passed *x = a, *y = b;

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
			r = form_passed(dir, &passed->items[i], found);
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
		const struct passed p = { .format = &unknown_format, .file = file };

		if (!file->claimed && !file->foreign_link && !file->directory &&
		    file->size_bytes >= min)
			r = form_passed(dir, &p, found);
	}
	return r;
}

int dbt_group_directory(struct dbt_dir *dir, struct dbt_found_vec *found)
{
	struct passed_vec passed = { 0 };
	int r, r2;

	r = test_files(dir, true, is_lead, &passed);
	r2 = form_all(dir, &passed, found);
	r = r < 0 ? r : r2;
	if (r == 0) {
		r = test_files(dir, false, is_odd, &passed);
		r2 = form_all(dir, &passed, found);
		r = r < 0 ? r : r2;
	}
	free(passed.items);
	return r < 0 ? r : list_unknown(dir, found);
}

void dbt_found_release(struct dbt_found_vec *found)
{
	for (size_t i = 0; i < found->n; i++)
		dbt_database_release(&found->items[i].db);
	free(found->items);
	*found = (struct dbt_found_vec){ 0 };
}
