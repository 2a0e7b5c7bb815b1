#include "flow/select.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "survey/scan.h"
#include "sys/at.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int out_of_memory(struct dbt_err *err)
{
	return dbt_err_sys(err, -ENOMEM, "cannot plan");
}

/* --- making a selection --------------------------------------------------------------------------------- */

static int add_file(struct dbt_selection *s, const char *path, const char *name)
{
	char **paths = reallocarray(s->paths, s->n + 1, sizeof(*paths)), **names;

	if (!paths)
		return -ENOMEM;
	s->paths = paths;
	names = reallocarray(s->names, s->n + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	s->names = names;
	s->paths[s->n] = strdup(path);
	s->names[s->n] = strdup(name);
	if (!s->paths[s->n] || !s->names[s->n]) {
		free(s->paths[s->n]);
		free(s->names[s->n]);
		return -ENOMEM;
	}
	s->n++;
	return 0;
}

void dbt_selection_release(struct dbt_selection *s)
{
	for (size_t i = 0; i < s->n + (s->is_tree && s->n == 1 ? s->n_probes : 0); i++) {
		free(s->paths[i]);
		free(s->names[i]);
	}
	free(s->paths);
	free(s->names);
	free(s->name);
	free(s->path);
	free(s->dir);
	free(s->note);
	*s = (struct dbt_selection){ 0 };
}

static int select_file(const struct dbt_at *at, const char *format, bool uri_target,
                       struct dbt_selection *ret, struct dbt_err *err)
{
	struct dbt_selection s = { .format = format, .uri_target = uri_target };
	size_t dir_len = strlen(at->shown) - strlen(at->name);

	s.name = strdup(at->name);
	s.path = strdup(at->shown);
	s.dir = strndup(at->shown, dir_len > 1 ? dir_len - 1 : 1);
	if (!s.name || !s.path || !s.dir || add_file(&s, at->shown, at->name) < 0) {
		dbt_selection_release(&s);
		return out_of_memory(err);
	}
	*ret = s;
	return 0;
}

/* Which members of a database move: the hot ones, or all; never a link that the database ships. */
static bool moves(const struct dbt_database *db, const struct dbt_member *m, bool all_files)
{
	if (m->link_of_database || m->promoted || m->size_bytes == 0)
		return false;
	return all_files || db->moves == DBT_MOVES_SET || m->hot;
}

static int refuse_database(const struct dbt_database *db, struct dbt_err *err)
{
	if (!db->complete)
		return dbt_err_refuse(
			err, "'%s' is not complete: %s; restore the missing part first", db->path,
			db->incomplete ? db->incomplete : "members are missing");
	if (db->busy_sqlite)
		return dbt_err_refuse(
			err,
			"'%s' has a live -wal or -journal beside a SQLite file: let its "
			"writer end, or run 'sqlite3 FILE \"PRAGMA wal_checkpoint(TRUNCATE)\"'",
			db->path);
	return 0;
}

static int take_note(const struct dbt_database *db, struct dbt_selection *s, struct dbt_err *err)
{
	s->note = db->note ? strdup(db->note) : NULL;
	if (!db->note || s->note)
		return 0;
	dbt_selection_release(s);
	return out_of_memory(err);
}

/* The directory as one name, and its hot files to measure its disk by. */
static int select_tree(const struct dbt_database *db, struct dbt_selection *ret,
                       struct dbt_err *err)
{
	enum { MAX_PROBES = 64 };
	struct dbt_selection s = { .format = db->format,
		                   .uri_target = db->uri_target,
		                   .is_tree = true };
	const char *slash = strrchr(db->dir, '/');
	int r;

	if (!slash || slash[1] == '\0')
		return dbt_err_refuse(err, "'%s' is the root of everything", db->dir);
	s.name = strdup(slash + 1);
	s.path = strdup(db->dir);
	s.dir = strndup(db->dir, slash == db->dir ? 1 : (size_t)(slash - db->dir));
	r = s.name && s.path && s.dir ? add_file(&s, db->dir, slash + 1) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < db->n_members && s.n_probes < MAX_PROBES; i++)
		if (db->members[i].hot && !db->members[i].link_of_database) {
			r = add_file(&s, db->members[i].path, db->members[i].name);
			s.n_probes += r == 0;
		}
	if (r < 0) {
		dbt_selection_release(&s);
		return out_of_memory(err);
	}
	s.n -= s.n_probes;
	r = take_note(db, &s, err);
	if (r == 0)
		*ret = s;
	return r;
}

static int select_database(const struct dbt_database *db, bool all_files, struct dbt_selection *ret,
                           struct dbt_err *err)
{
	struct dbt_selection s = { .format = db->format, .uri_target = db->uri_target };
	int r = refuse_database(db, err);

	if (r < 0)
		return r;
	if (db->moves == DBT_MOVES_DIRECTORY)
		return select_tree(db, ret, err);
	s.name = strdup(db->name);
	s.path = strdup(db->path);
	s.dir = strdup(db->dir);
	r = s.name && s.path && s.dir ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < db->n_members; i++)
		if (moves(db, &db->members[i], all_files))
			r = add_file(&s, db->members[i].path, db->members[i].name);
	if (r < 0) {
		dbt_selection_release(&s);
		return out_of_memory(err);
	}
	if (s.n == 0) {
		dbt_selection_release(&s);
		return dbt_err_refuse(err, "all files of '%s' that would move are promoted already",
		                      db->path);
	}
	s.is_set = db->n_members > 1;
	r = take_note(db, &s, err);
	if (r == 0)
		*ret = s;
	return r;
}

/* --- paths ---------------------------------------------------------------------------------------------- */

static int refuse_link(const struct dbt_at *at, struct dbt_err *err)
{
	dbt_autofree char *real = realpath(at->shown, NULL);

	if (!real)
		return dbt_err_refuse(
			err,
			"'%s' is a link that leads nowhere: nothing to promote; mount or restore "
			"what it leads to",
			at->shown);
	return dbt_err_refuse(
		err, "'%s' is a link already: its file is '%s'; promote that path if it is the one",
		at->shown, real);
}

/* One file of a database, whatever the others lack. */
static int select_member(const struct dbt_at *at, const struct dbt_database *db,
                         struct dbt_selection *ret, struct dbt_err *err)
{
	struct dbt_selection s;
	int r = select_file(at, db->format, db->uri_target, &s, err);

	if (r == 0)
		r = take_note(db, &s, err);
	if (r == 0)
		*ret = s;
	return r;
}

/* The databases that one base name means: of BLAST a nucleotide and a protein one can share it. */
struct bases {
	struct dbt_database items[2];
	size_t n;
};

static void bases_release(struct bases *bases)
{
	for (size_t i = 0; i < bases->n; i++)
		dbt_database_release(&bases->items[i]);
}

static bool has_member(const struct bases *bases, const char *path)
{
	for (size_t i = 0; i < bases->n; i++)
		for (size_t k = 0; k < bases->items[i].n_members; k++)
			if (strcmp(bases->items[i].members[k].path, path) == 0)
				return true;
	return false;
}

/* "/db/nr" is no file, but '/db/nr.pal', '/db/nr.00.pin' or '/db/nr_a3m.ffdata' may say that it is a database. */
static int find_bases(const struct dbt_ctx *ctx, const struct dbt_at *at, struct bases *ret,
                      struct dbt_err *err)
{
	const struct dbt_scan_opts opts = { 0 };
	size_t len = strlen(at->name);
	int copy = fcntl(at->dirfd, F_DUPFD_CLOEXEC, 3);
	dbt_autoclosedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir)
		return 0;
	rewinddir(dir);
	while (ret->n < 2 && (entry = readdir(dir))) {
		struct dbt_database *db = &ret->items[ret->n];
		dbt_autofree char *path = NULL;

		if (strncmp(entry->d_name, at->name, len) != 0 ||
		    (entry->d_name[len] != '.' && entry->d_name[len] != '_'))
			continue;
		if (asprintf(&path, "%s%s", at->shown, entry->d_name + len) < 0) {
			path = NULL;
			return out_of_memory(err);
		}
		if (has_member(ret, path) || dbt_scan_owner(ctx, path, &opts, db, NULL) < 0)
			continue;
		if (strcmp(db->path, at->shown) == 0 && db->n_members > 0)
			ret->n++;
		else
			dbt_database_release(db);
	}
	return 0;
}

/* Does another database go by the same base name? Then a file is the only way to name one of them. */
static int shares_its_name(const struct dbt_ctx *ctx, const struct dbt_database *db, bool *ret,
                           struct dbt_err *err)
{
	struct bases found = { 0 };
	struct dbt_at at;
	int r = dbt_at_resolve(ctx, db->path, &at, err);

	if (r < 0)
		return r;
	r = find_bases(ctx, &at, &found, err);
	*ret = found.n > 1;
	bases_release(&found);
	dbt_at_release(&at);
	return r;
}

/* A set is named by its base name, or by a file where that name is not enough. */
static int select_set_by_file(const struct dbt_ctx *ctx, const struct dbt_at *at,
                              const struct dbt_database *db, bool all_files,
                              struct dbt_selection *ret, struct dbt_err *err)
{
	bool shared = false;
	int r = shares_its_name(ctx, db, &shared, err);

	if (r == 0 && shared)
		return select_database(db, all_files, ret, err);
	return r < 0 ? r
	             : dbt_err_refuse(err,
	                              "'%s' belongs to the %s database '%s', which must move "
	                              "whole: promote '%s'",
	                              at->shown, db->format, db->name, db->path);
}

/* What SQLite and LMDB keep beside a database under its name and more: moved alone, or away from the database, it
 * breaks it (https://www.sqlite.org/tempfiles.html; lockfile in lmdb.h). */
static int refuse_companion(const struct dbt_ctx *ctx, const struct dbt_at *at, struct dbt_err *err)
{
	static const char *const ends[] = { "-wal", "-shm", "-journal", "-lock" };
	size_t len = strlen(at->name);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i]);
		dbt_autofree char *name = NULL;
		struct dbt_ident ident;

		if (len <= end || strcmp(at->name + len - end, ends[i]) != 0)
			continue;
		name = strndup(at->name, len - end);
		if (!name)
			return out_of_memory(err);
		if (dbt_ident_of(ctx, at->dirfd, name, &ident) == 0)
			return dbt_err_refuse(err,
			                      "'%s' belongs to '%s' beside it and stays there: "
			                      "promote that",
			                      at->shown, name);
	}
	return 0;
}

static int select_one_file(const struct dbt_ctx *ctx, const struct dbt_at *at, bool all_files,
                           struct dbt_selection *ret, struct dbt_err *err)
{
	const struct dbt_scan_opts opts = { 0 };
	struct dbt_database db = { 0 };
	int r = dbt_scan_owner(ctx, at->shown, &opts, &db, err);

	if (r == -ENOENT) {
		dbt_err_clear(err);
		r = refuse_companion(ctx, at, err);
		return r < 0 ? r : select_file(at, "file", false, ret, err);
	}
	if (r < 0)
		return r;
	/* The database itself may be called by one of its files: ref.fa, Pfam-A.hmm. */
	if (db.n_members == 1 || strcmp(db.path, at->shown) == 0)
		r = select_database(&db, all_files, ret, err);
	else if (db.moves == DBT_MOVES_FILE)
		r = select_member(at, &db, ret, err);
	else
		r = select_set_by_file(ctx, at, &db, all_files, ret, err);
	dbt_database_release(&db);
	return r;
}

static int several(const char *path, const struct dbt_scan_result *found, struct dbt_err *err)
{
	struct dbt_buf list = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < found->n_databases && i < 10; i++)
		r = dbt_buf_addf(&list, "%s'%s'", i ? ", " : "", found->databases[i].path);
	if (r == 0 && found->n_databases > 10)
		(void)dbt_buf_addf(&list, " and %zu more", found->n_databases - 10);
	r = dbt_err_set(err, DBT_ERR_UNKNOWN, -EINVAL,
	                "'%s' holds %zu databases, name the one that is meant: %s", path,
	                found->n_databases, dbt_buf_str(&list));
	dbt_buf_release(&list);
	return r;
}

static int select_in_directory(const struct dbt_ctx *ctx, const struct dbt_at *at, bool all_files,
                               struct dbt_selection *ret, struct dbt_err *err)
{
	const struct dbt_scan_opts opts = { 0 };
	struct dbt_scan_result found = { 0 };
	const struct dbt_database *whole = NULL;
	int r = dbt_scan(ctx, at->shown, &opts, &found, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < found.n_databases; i++)
		if (strcmp(found.databases[i].path, at->shown) == 0)
			whole = &found.databases[i];
	if (!whole && found.n_databases == 1)
		whole = &found.databases[0];
	if (whole)
		r = select_database(whole, all_files, ret, err);
	else if (found.n_databases == 0)
		r = dbt_err_refuse(
			err, "no database is recognised in the directory '%s': name the files",
			at->shown);
	else
		r = several(at->shown, &found, err);
	dbt_scan_result_release(&found);
	return r;
}

static int select_path(const struct dbt_ctx *ctx, const struct dbt_at *at,
                       const struct dbt_ident *ident, bool all_files, struct dbt_selection *ret,
                       struct dbt_err *err)
{
	if (S_ISLNK(ident->mode))
		return refuse_link(at, err);
	if (S_ISDIR(ident->mode))
		return select_in_directory(ctx, at, all_files, ret, err);
	if (!S_ISREG(ident->mode))
		return dbt_err_refuse(
			err,
			"'%s' is neither a regular file nor a directory: only those can be "
			"promoted",
			at->shown);
	return select_one_file(ctx, at, all_files, ret, err);
}

/* --- base names: what BLAST and HMMER users type -------------------------------------------------------- */

static int select_base_name(const struct dbt_ctx *ctx, const struct dbt_at *at, bool all_files,
                            struct dbt_selection *ret, struct dbt_err *err)
{
	struct bases found = { 0 };
	int r = find_bases(ctx, at, &found, err);

	if (r == 0 && found.n == 0)
		r = -ENOENT;
	else if (r == 0 && found.n > 1)
		r = dbt_err_set(err, DBT_ERR_UNKNOWN, -EINVAL,
		                "'%s' is the name of two databases: name a file of the one that is "
		                "meant, such as '%s' or '%s'",
		                at->shown, found.items[0].members[0].path,
		                found.items[1].members[0].path);
	else if (r == 0)
		r = select_database(&found.items[0], all_files, ret, err);
	bases_release(&found);
	return r;
}

/* --- names from the last scan --------------------------------------------------------------------------- */

static int ambiguous(const char *what, const struct dbt_scan_names *names, struct dbt_err *err)
{
	struct dbt_buf list = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < names->n && i < 10; i++)
		r = dbt_buf_addf(&list, "%s'%s'", i ? ", " : "", names->items[i].path);
	r = dbt_err_set(err, DBT_ERR_UNKNOWN, -EINVAL, "'%s' may mean %s: give the path", what,
	                dbt_buf_str(&list));
	dbt_buf_release(&list);
	return r;
}

static int unknown(struct dbt_ledger *ledger, const char *what, struct dbt_err *err)
{
	struct dbt_scan_names all = { 0 };
	dbt_autofree const char **words = NULL;
	const char *near = NULL;

	if (ledger && dbt_ledger_find_names(ledger, NULL, &all, NULL) == 0)
		words = calloc(all.n ? all.n : 1, sizeof(*words));
	for (size_t i = 0; words && i < all.n; i++)
		words[i] = all.items[i].name;
	if (words)
		near = dbt_nearest(what, words, all.n);
	(void)dbt_err_set(err, DBT_ERR_UNKNOWN, -ENOENT,
	                  "'%s' is neither a path nor a name from the last scan", what);
	if (near)
		(void)dbt_err_add(err, "did you mean '%s'?", near);
	else
		(void)dbt_err_add(err, "'dbtier scan DIR' learns the names below DIR");
	dbt_scan_names_release(&all);
	return -ENOENT;
}

static int select_exact(const struct dbt_ctx *ctx, const char *path, bool all_files,
                        struct dbt_selection *ret, struct dbt_err *err)
{
	struct dbt_ident ident;
	struct dbt_at at;
	int r = dbt_at_resolve(ctx, path, &at, err);

	if (r < 0)
		return r;
	r = dbt_at_ident(ctx, &at, &ident);
	if (r == 0)
		r = select_path(ctx, &at, &ident, all_files, ret, err);
	else if (r == -ENOENT)
		r = select_base_name(ctx, &at, all_files, ret, err);
	else
		r = dbt_err_sys(err, r, "cannot look at '%s'", at.shown);
	dbt_at_release(&at);
	return r;
}

static int select_name(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
                       bool all_files, struct dbt_selection *ret, struct dbt_err *err)
{
	struct dbt_scan_names names = { 0 };
	int r = ledger ? dbt_ledger_find_names(ledger, what, &names, err) : 0;

	if (r < 0)
		return r;
	for (size_t i = 1; r == 0 && i < names.n; i++)
		if (strcmp(names.items[i].path, names.items[0].path) != 0)
			r = ambiguous(what, &names, err);
	if (r == 0 && names.n == 0)
		r = unknown(ledger, what, err);
	if (r == 0 && names.n > 0) {
		r = select_exact(ctx, names.items[0].path, all_files, ret, err);
		if (r == -ENOENT)
			r = dbt_err_set(err, DBT_ERR_UNKNOWN, r,
			                "'%s' was '%s' in the last scan, which is gone: scan again",
			                what, names.items[0].path);
	}
	dbt_scan_names_release(&names);
	return r;
}

int dbt_select(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
               bool all_files, struct dbt_selection *ret, struct dbt_err *err)
{
	int r = select_exact(ctx, what, all_files, ret, err);

	if (r != -ENOENT || strchr(what, '/'))
		return r == -ENOENT ? dbt_err_set(err, DBT_ERR_UNKNOWN, r, "there is no '%s'", what)
		                    : r;
	return select_name(ctx, ledger, what, all_files, ret, err);
}
