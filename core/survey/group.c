#include "survey/group.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/dbkind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REASONS = 4 };

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

/* By its rule the file has something in it; noted after the member was added. */
static void mark_needed(struct dbt_group *group, const struct dbt_file *file,
                        const struct dbt_rule *rule)
{
	for (size_t i = 0; i < group->members.n; i++)
		if (group->members.items[i].file == file)
			group->members.items[i].needed |=
				(rule->flags &
			         (DBT_RULE_CORE | DBT_RULE_REQUIRED | DBT_RULE_HOT)) != 0;
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
	int r;

	if (!dbt_pattern_fits(fit->rule->pattern, fit->base, file->name))
		return 0;
	fit->n++;
	r = dbt_group_add(fit->group, file, fit->rule->class,
	                  (fit->rule->flags & DBT_RULE_HOT) != 0);
	mark_needed(fit->group, file, fit->rule);
	return r;
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
		mark_needed(group, file, rule);
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
	bool core_missing = false;

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
		core_missing |= (rule->flags & DBT_RULE_CORE) != 0;
		if (rule->flags & (DBT_RULE_CORE | DBT_RULE_REQUIRED))
			n = dbt_group_incomplete(group, "'%s%s' is missing",
			                         tail == rule->pattern ? "" : base, tail);
		if (n < 0)
			return n;
	}
	return core_missing && !group->remains ? -ENOENT : 0;
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
	db->followed = false;
	for (size_t i = 0; i < db->n_members; i++) {
		const struct dbt_member *m = &db->members[i];

		db->size_bytes += m->size_bytes;
		if (!m->hot)
			continue;
		db->promoted |= m->promoted;
		db->followed |= m->followed;
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
		.promoted = file->promoted || dir->promoted,
		.followed = file->followed,
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
		whole = group->base ? group->base : group->lead->name;
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
	if (group->holds.len > 0) {
		db->holds = dbt_buf_take(&group->holds);
		if (!db->holds)
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

/* Whatever the format: a member that is read must have bytes, and they must be readable. What check said of a file is
 * not said again. */
static int check_bytes(struct dbt_group *group)
{
	for (size_t i = 0; i < group->members.n; i++) {
		const struct dbt_group_member *m = &group->members.items[i];
		const struct dbt_file *file = m->file;
		dbt_autofree char *quoted = NULL;
		int r = 0;

		if ((m->class == DBT_CLASS_COLD && !m->needed) || file->foreign_link ||
		    file->dangling)
			continue;
		if (asprintf(&quoted, "'%s'", file->name) < 0) {
			quoted = NULL;
			return -ENOMEM;
		}
		if (group->incomplete.len > 0 && strstr(dbt_buf_str(&group->incomplete), quoted))
			continue;
		if (file->size_bytes == 0 && m->needed)
			r = dbt_group_incomplete(group, "%s is empty", quoted);
		else if (file->size_bytes > 0 &&
		         faccessat(group->dir->fd, file->name, R_OK, AT_EACCESS) < 0 &&
		         errno == EACCES)
			r = dbt_group_incomplete(group, "%s cannot be read: no permission", quoted);
		if (r < 0)
			return r;
	}
	return 0;
}

static int collect(struct dbt_group *group)
{
	bool use_rules = true;
	int r = 0;

	if (group->format->collect && !group->remains)
		r = group->format->collect(group, &use_rules);
	if (r == 0 && use_rules)
		r = dbt_group_apply(group, group->base);
	if (r == 0 && group->format->whole_directory && !group->alone)
		r = dbt_dir_each(group->dir, true, add_cold, group);
	if (r == 0 && group->members.n == 0 && !group->lead->directory)
		r = dbt_group_add(group, group->lead, group->format->class, true);
	if (r == 0 && group->format->check && !group->remains)
		r = group->format->check(group);
	return r == 0 ? check_bytes(group) : r;
}

/* Where no rule asks for the lead: that it is not there, or empty, is why the group is only remains. */
static int check_lead(struct dbt_group *group, const struct dbt_lead *lead)
{
	const struct dbt_file *file = dbt_group_part(group, lead->pattern);
	const char *state = !file ? "missing" : file->size_bytes == 0 ? "empty" : "not readable";

	if (group->n_reasons > 0)
		return 0;
	return dbt_group_incomplete(group, "'%s%s' is %s", group->base ? group->base : "",
	                            lead->pattern + (lead->pattern[0] == '*'), state);
}

static void claim(struct dbt_group *group)
{
	/* The parts of a composite are databases too; scan.c joins them with it. */
	if (group->format->shape == DBT_SHAPE_COMPOSITE && !group->alone)
		return;
	for (size_t i = 0; i < group->members.n; i++)
		group->members.items[i].file->claimed = true;
}

static bool is_alone(const struct dbt_passed *p)
{
	return p->format->shape == DBT_SHAPE_FILE || !p->lead || p->lead->alone;
}

static int form(struct dbt_dir *dir, const struct dbt_passed *p, const char *base, bool remains,
                struct dbt_found_vec *found)
{
	struct dbt_group group = { .format = p->format,
		                   .dir = dir,
		                   .base = base,
		                   .kind = p->lead ? p->lead->kind : (char)0,
		                   .alone = is_alone(p),
		                   .remains = remains,
		                   .lead = p->file };
	struct dbt_found *f;
	int r = collect(&group);

	if (r == 0 && remains)
		r = check_lead(&group, p->lead);
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
	dbt_buf_release(&group.holds);
	dbt_buf_release(&group.name);
	return r == -ENOENT ? 0 : r;
}

int dbt_group_form(struct dbt_dir *dir, const struct dbt_passed *p, struct dbt_found_vec *found)
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
		return form(dir, p, NULL, false, found);
	return form(dir, p, base, false, found);
}

int dbt_group_form_remains(struct dbt_dir *dir, const struct dbt_format *format,
                           const struct dbt_lead *lead, struct dbt_file *file, const char *base,
                           struct dbt_found_vec *found)
{
	const struct dbt_passed p = { .format = format, .lead = lead, .file = file };

	const size_t before = found->n;
	int r = form(dir, &p, base, true, found);

	/* The text that was pressed is no database of its own beside what is left of the pressed ones. */
	for (size_t i = 0; r == 0 && found->n > before && i < before; i++)
		if (found->items[i].db.path && found->items[i].format == format &&
		    strcmp(found->items[i].db.path, found->items[before].db.path) == 0)
			dbt_database_release(&found->items[i].db);
	return r;
}

void dbt_found_release(struct dbt_found_vec *found)
{
	for (size_t i = 0; i < found->n; i++)
		dbt_database_release(&found->items[i].db);
	free(found->items);
	*found = (struct dbt_found_vec){ 0 };
}
