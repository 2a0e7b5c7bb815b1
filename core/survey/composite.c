#include "survey/composite.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts of composites ---- */

const char *dbt_path_below(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return path + 1;
	if (strncmp(path, dir, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path[len] == '/' ? path + len + 1 : path + len;
}

static bool is_part(const struct dbt_found *whole, const struct dbt_found *part)
{
	const char *rel = dbt_path_below(whole->db.dir, part->db.path);

	if (!rel || *rel == '\0')
		return false;
	for (const char *const *p = whole->format->parts; p && *p; p++)
		if (fnmatch(*p, rel, 0) == 0)
			return true;
	return false;
}

static struct dbt_member *member_named(struct dbt_database *db, const char *name)
{
	for (size_t i = 0; i < db->n_members; i++)
		if (strcmp(db->members[i].name, name) == 0)
			return &db->members[i];
	return NULL;
}

/* Adds what is wrong with a part to what is wrong with the whole. */
static int join_incomplete(struct dbt_database *whole, const struct dbt_database *part)
{
	char *text;

	if (part->complete ||
	    (whole->incomplete && part->incomplete && strstr(whole->incomplete, part->incomplete)))
		return 0;
	if (asprintf(&text, "%s%s%s", whole->incomplete ? whole->incomplete : "",
	             whole->incomplete ? "; " : "", part->incomplete ? part->incomplete : "") < 0)
		return -ENOMEM;
	free(whole->incomplete);
	whole->incomplete = text;
	whole->complete = false;
	return 0;
}

/* Moves a part's members into the whole and empties the part. What the rules of the composite say
 * about a file outranks what the part's own format says. */
static int absorb(struct dbt_found *whole, struct dbt_found *part)
{
	struct dbt_database *db = &whole->db;
	const char *rel = dbt_path_below(db->dir, part->db.dir);
	struct dbt_member *members =
		realloc(db->members, (db->n_members + part->db.n_members) * sizeof(*members));

	if (!members)
		return -ENOMEM;
	db->members = members;
	for (size_t i = 0; i < part->db.n_members; i++) {
		struct dbt_member *from = &part->db.members[i], *known;
		char *name;

		if (asprintf(&name, "%s%s%s", rel, *rel ? "/" : "", from->name) < 0)
			return -ENOMEM;
		known = *rel == '\0' || whole->format->subtree ? member_named(db, name) : NULL;
		if (known) {
			/* Taken in as one file among others: the part knows better. */
			if (known->class == DBT_CLASS_COLD)
				known->class = from->class;
			free(name);
			continue;
		}
		free(from->name);
		from->name = name;
		from->hot = false;
		db->members[db->n_members++] = *from;
		*from = (struct dbt_member){ 0 };
	}
	db->busy_sqlite |= part->db.busy_sqlite;
	if (join_incomplete(db, &part->db) < 0)
		return -ENOMEM;
	dbt_database_release(&part->db);
	return 0;
}

static int by_depth(const void *a, const void *b)
{
	size_t x = strlen((*(struct dbt_found *const *)a)->db.dir),
	       y = strlen((*(struct dbt_found *const *)b)->db.dir);

	return (x < y) - (x > y);
}

/* The deepest first, so that one may be part of another. */
int dbt_composites_join(struct dbt_found_vec *found)
{
	struct dbt_found **wholes;
	size_t n = 0;
	int r = 0;

	if (found->n == 0)
		return 0;
	wholes = calloc(found->n, sizeof(struct dbt_found *));
	if (!wholes)
		return -ENOMEM;
	for (size_t i = 0; i < found->n; i++)
		if (found->items[i].format->shape == DBT_SHAPE_COMPOSITE)
			wholes[n++] = &found->items[i];
	qsort(wholes, n, sizeof(struct dbt_found *), by_depth);
	for (size_t w = 0; w < n && r == 0; w++) {
		for (size_t i = 0; i < found->n && r == 0; i++) {
			struct dbt_found *part = &found->items[i];

			if (part != wholes[w] && part->db.path && wholes[w]->db.path &&
			    is_part(wholes[w], part))
				r = absorb(wholes[w], part);
		}
		if (r == 0 && wholes[w]->db.path)
			dbt_database_settle(&wholes[w]->db, wholes[w]->format->class);
	}
	free(wholes);
	return r;
}

/* ---- everything below a composite ---- */

/* Smaller files are summed up. */
static const uint64_t LISTED_BYTES = 1 << 20;

struct subtree {
	struct dbt_found *found;
	struct dbt_dir *dir; /* the one being visited */
	size_t cap;
};

static const struct dbt_rule *rule_for(const struct dbt_format *format, const char *rel)
{
	for (const struct dbt_rule *rule = format->rules; rule && rule->pattern; rule++)
		if (fnmatch(rule->pattern, rel, FNM_PATHNAME) == 0)
			return rule;
	return NULL;
}

static int add_file_below(void *data, struct dbt_file *file)
{
	struct subtree *tree = data;
	struct dbt_database *db = &tree->found->db;
	const char *rel_dir = dbt_path_below(db->dir, tree->dir->path);
	dbt_autofree char *rel = NULL, *path = NULL;
	const struct dbt_rule *rule;
	struct dbt_member *members;

	if (!rel_dir)
		return 0;
	if (asprintf(&rel, "%s%s%s", rel_dir, *rel_dir ? "/" : "", file->name) < 0) {
		rel = NULL;
		return -ENOMEM;
	}
	rule = rule_for(tree->found->format, rel);
	if (*rel_dir == '\0' && member_named(db, file->name))
		return 0;
	if (!rule && file->size_bytes < LISTED_BYTES) {
		db->more_bytes += file->size_bytes;
		db->more_files++;
		return 0;
	}
	if (asprintf(&path, "%s/%s", tree->dir->path, file->name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (db->n_members >= tree->cap) {
		tree->cap = db->n_members * 2 + 16;
		members = realloc(db->members, tree->cap * sizeof(*members));
		if (!members)
			return -ENOMEM;
		db->members = members;
	}
	db->members[db->n_members++] = (struct dbt_member){
		.path = path,
		.name = rel,
		.size_bytes = file->size_bytes,
		.class = rule ? rule->class : DBT_CLASS_COLD,
		.hot = rule && (rule->flags & DBT_RULE_HOT) && !file->foreign_link,
		.link_of_database = file->foreign_link,
		.promoted = file->promoted || tree->dir->promoted,
		.dev = file->dev,
		.ino = file->ino,
		.nlink = file->nlink,
	};
	rel = path = NULL;
	return 0;
}

static int visit_below(void *data, struct dbt_dir *dir)
{
	struct subtree *tree = data;

	tree->dir = dir;
	return dbt_dir_each(dir, true, add_file_below, tree);
}

static int add_subtree(const struct dbt_ctx *ctx, const struct dbt_scan_opts *opts,
                       struct dbt_found *found, struct dbt_scan_result *result)
{
	struct dbt_scan_result ignored = { 0 };
	struct subtree tree = { .found = found, .cap = found->db.n_members };
	struct dbt_scan_opts own = *opts;
	struct dbt_walk walk = {
		.ctx = ctx, .opts = &own, .result = &ignored, .visit = visit_below, .data = &tree
	};
	dbt_autoclose int fd = ctx->sys->openat(AT_FDCWD, found->db.dir,
	                                        O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
	int r;

	own.follow = false; /* its links are its own */
	r = fd < 0 ? 0 : dbt_walk_tree(&walk, fd, found->db.dir);
	result->partial |= ignored.partial;
	dbt_scan_result_release(&ignored);
	return r;
}

int dbt_composites_fill(const struct dbt_ctx *ctx, const struct dbt_scan_opts *opts,
                        struct dbt_found_vec *found, struct dbt_scan_result *result)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < found->n; i++)
		if (found->items[i].format->subtree)
			r = add_subtree(ctx, opts, &found->items[i], result);
	return r;
}
