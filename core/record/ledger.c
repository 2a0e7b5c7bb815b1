#include "record/ledger.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "record/ident_text.h"
#include "record/sql.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* "dbti": marks the file as ours, so that another program's database is never taken for a ledger. */
enum { APPLICATION_ID = 0x64627469, SCHEMA_VERSION = 1 };

static const char schema[] =
	"CREATE TABLE promotion("
	" id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL, name BLOB NOT NULL,"
	" format TEXT NOT NULL, path BLOB NOT NULL, target BLOB NOT NULL, target_uuid TEXT,"
	" target_mount BLOB, target_ino INTEGER NOT NULL, made_dir BLOB, token TEXT NOT NULL,"
	" is_set INTEGER NOT NULL, reclaim INTEGER NOT NULL, keep_copy INTEGER NOT NULL,"
	" by_link INTEGER NOT NULL, rollback_mode INTEGER NOT NULL, state TEXT NOT NULL,"
	" owner_pid INTEGER NOT NULL, owner_start INTEGER NOT NULL, owner_boot TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL, promoted_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL,"
	" elapsed_ns INTEGER NOT NULL, error TEXT);"
	"CREATE TABLE member("
	" promotion INTEGER NOT NULL REFERENCES promotion(id), seq INTEGER NOT NULL,"
	" path BLOB NOT NULL, kept BLOB NOT NULL, copy BLOB NOT NULL, part BLOB NOT NULL, back "
	"BLOB,"
	" source TEXT NOT NULL, copied TEXT NOT NULL, returned TEXT NOT NULL, xxh128 TEXT NOT NULL,"
	" from_device INTEGER NOT NULL, taken_over INTEGER NOT NULL, reclaimed INTEGER NOT NULL,"
	" copy_left INTEGER NOT NULL, PRIMARY KEY(promotion, seq));"
	"CREATE INDEX member_path ON member(path);"
	"CREATE TABLE step("
	" id INTEGER PRIMARY KEY, promotion INTEGER NOT NULL, wall_ns INTEGER NOT NULL, text TEXT "
	"NOT NULL);"
	"CREATE INDEX step_promotion ON step(promotion);"
	"CREATE TABLE scan_name("
	" root BLOB NOT NULL, name BLOB NOT NULL, path BLOB NOT NULL, dir BLOB NOT NULL,"
	" database BLOB NOT NULL, format TEXT NOT NULL, tier TEXT NOT NULL, size INTEGER NOT NULL,"
	" is_member INTEGER NOT NULL, promoted INTEGER NOT NULL);"
	"CREATE INDEX scan_name_name ON scan_name(name);"
	"CREATE TABLE measurement("
	" key TEXT NOT NULL, pattern TEXT NOT NULL, jobs INTEGER NOT NULL, wall_ns INTEGER NOT "
	"NULL,"
	" iops REAL NOT NULL, rate INTEGER NOT NULL, lat_p50_ns INTEGER NOT NULL,"
	" span INTEGER NOT NULL, proved INTEGER NOT NULL, PRIMARY KEY(key, pattern, jobs));";

/* --- opening -------------------------------------------------------------------------------------------- */

/* Makes the directory and those above it, each synced into its parent. */
static int make_dirs(const struct dbt_ctx *ctx, const char *path)
{
	dbt_autofree char *copy = strdup(path);
	mode_t mode = geteuid() == 0 ? 0755 : 0700;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	for (char *p = copy + 1; r == 0; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(copy, mode) == 0) {
			struct dbt_at at;

			r = dbt_at_resolve(ctx, copy, &at, NULL);
			if (r == 0) {
				r = dbt_at_sync_dir(ctx, &at);
				dbt_at_release(&at);
			}
		} else if (errno != EEXIST) {
			r = -errno;
		}
		*p = c;
		if (c == '\0')
			break;
	}
	return r;
}

static int pragma_int(struct dbt_ledger *ledger, const char *sql, int *ret, struct dbt_err *err)
{
	sqlite3_stmt *stmt = dbt_sql_prepare(ledger, sql, err);
	int r;

	if (!stmt)
		return -EIO;
	r = dbt_sql_step(ledger, stmt, err);
	if (r == 1)
		*ret = sqlite3_column_int(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return r < 0 ? r : 0;
}

static int check_ours(struct dbt_ledger *ledger, int *ret_version, struct dbt_err *err)
{
	int app = 0, version = 0, tables = 0;
	int r = pragma_int(ledger, "PRAGMA application_id", &app, err);

	if (r == 0)
		r = pragma_int(ledger, "PRAGMA user_version", &version, err);
	if (r == 0)
		r = pragma_int(ledger, "SELECT count(*) FROM sqlite_master", &tables, err);
	if (r < 0)
		return dbt_err_add(
			err, "move it aside to start a new one: 'dbtier rollback PATH' still works "
			     "from what stands beside a link");
	if (tables > 0 && app != APPLICATION_ID)
		return dbt_err_set(err, DBT_ERR_LEDGER, -EINVAL,
		                   "'%s' is a database of another program, not a ledger",
		                   ledger->path);
	if (version > SCHEMA_VERSION)
		return dbt_err_set(
			err, DBT_ERR_LEDGER, -EINVAL,
			"the ledger '%s' was written by a newer dbtier (version %d): use that one",
			ledger->path, version);
	*ret_version = tables > 0 ? version : 0;
	return 0;
}

static int make_schema(struct dbt_ledger *ledger, struct dbt_err *err)
{
	char sql[128];
	int version = 0, r = dbt_sql_begin(ledger, err);

	if (r < 0)
		return r;
	r = check_ours(ledger, &version, err); /* another run may have been first */
	if (r == 0 && version == 0) {
		(void)snprintf(sql, sizeof(sql), "PRAGMA application_id=%d; PRAGMA user_version=%d",
		               APPLICATION_ID, SCHEMA_VERSION);
		r = dbt_sql_exec(ledger, schema, err);
		if (r == 0)
			r = dbt_sql_exec(ledger, sql, err);
	}
	return dbt_sql_end(ledger, r, err);
}

static int prepare_db(struct dbt_ledger *ledger, enum dbt_ledger_open how, struct dbt_err *err)
{
	int version = 0, r;

	(void)sqlite3_extended_result_codes(ledger->db, 1);
	(void)sqlite3_busy_timeout(ledger->db, 20000);
	(void)sqlite3_db_config(ledger->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(ledger->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (how == DBT_LEDGER_WRITE) {
		r = dbt_sql_exec(ledger,
		                 "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA;"
		                 " PRAGMA foreign_keys=ON",
		                 err);
		if (r < 0)
			return r;
	}
	r = check_ours(ledger, &version, err);
	if (r == 0 && version == 0 && how == DBT_LEDGER_WRITE)
		r = make_schema(ledger, err);
	else if (r == 0 && version == 0)
		r = -ENOENT;
	return r;
}

int dbt_ledger_open(const struct dbt_ctx *ctx, const char *state_dir, enum dbt_ledger_open how,
                    struct dbt_ledger **ret, struct dbt_err *err)
{
	struct dbt_ledger *ledger = calloc(1, sizeof(*ledger));
	int flags = how == DBT_LEDGER_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
	                                    : SQLITE_OPEN_READONLY;
	int r = 0;

	if (!ledger)
		return dbt_err_sys(err, -ENOMEM, "cannot open the ledger");
	ledger->ctx = ctx;
	if (asprintf(&ledger->path, "%s/dbtier.db", state_dir) < 0) {
		free(ledger);
		return dbt_err_sys(err, -ENOMEM, "cannot open the ledger");
	}
	if (how == DBT_LEDGER_WRITE)
		r = make_dirs(ctx, state_dir);
	else if (access(ledger->path, F_OK) < 0)
		r = -errno;
	if (r < 0) {
		r = dbt_err_set(err, DBT_ERR_LEDGER, r, "cannot use the state directory '%s': %s",
		                state_dir, dbt_err_text(r));
	} else if (sqlite3_open_v2(ledger->path, &ledger->db, flags, NULL) != SQLITE_OK) {
		r = dbt_sql_error(ledger, "open", err);
	} else {
		if (how == DBT_LEDGER_WRITE && geteuid() == 0)
			(void)chmod(ledger->path,
			            0644); /* so that users can see root's promotions */
		r = prepare_db(ledger, how, err);
	}
	if (r < 0) {
		dbt_ledger_close(ledger);
		return r;
	}
	*ret = ledger;
	return 0;
}

void dbt_ledger_close(struct dbt_ledger *ledger)
{
	if (!ledger)
		return;
	(void)sqlite3_close(ledger->db);
	free(ledger->path);
	free(ledger);
}

/* --- writing -------------------------------------------------------------------------------------------- */

int dbt_ledger_next_run(struct dbt_ledger *ledger, int64_t *ret, struct dbt_err *err)
{
	sqlite3_stmt *stmt =
		dbt_sql_prepare(ledger, "SELECT coalesce(max(run),0)+1 FROM promotion", err);
	int r;

	if (!stmt)
		return -EIO;
	r = dbt_sql_step(ledger, stmt, err);
	if (r == 1)
		*ret = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return r < 0 ? r : 0;
}

static int save_member(struct dbt_ledger *ledger, int64_t id, size_t seq,
                       const struct dbt_pmember *m, struct dbt_err *err)
{
	char source[DBT_IDENT_TEXT_BYTES], copied[DBT_IDENT_TEXT_BYTES],
		returned[DBT_IDENT_TEXT_BYTES];
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger, "INSERT OR REPLACE INTO member VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", err);

	if (!s)
		return err ? err->code : -EIO;
	dbt_ident_text(&m->source, source);
	dbt_ident_text(&m->copied, copied);
	dbt_ident_text(&m->returned, returned);
	(void)sqlite3_bind_int64(s, 1, id);
	dbt_sql_bind_u64(s, 2, seq);
	dbt_sql_bind_bytes(s, 3, m->path);
	dbt_sql_bind_bytes(s, 4, m->kept);
	dbt_sql_bind_bytes(s, 5, m->copy);
	dbt_sql_bind_bytes(s, 6, m->part);
	dbt_sql_bind_bytes(s, 7, m->back);
	dbt_sql_bind_text(s, 8, source);
	dbt_sql_bind_text(s, 9, copied);
	dbt_sql_bind_text(s, 10, returned);
	dbt_sql_bind_text(s, 11, m->xxh128);
	(void)sqlite3_bind_int(s, 12, m->from_device);
	(void)sqlite3_bind_int(s, 13, m->taken_over);
	(void)sqlite3_bind_int(s, 14, m->reclaimed);
	(void)sqlite3_bind_int(s, 15, m->copy_left);
	return dbt_sql_finish(ledger, s, err);
}

static int save_row(struct dbt_ledger *ledger, const struct dbt_promotion *p, struct dbt_err *err)
{
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger,
		"INSERT INTO promotion VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
		" ON CONFLICT(id) DO UPDATE SET made_dir=excluded.made_dir, "
		"reclaim=excluded.reclaim,"
		" keep_copy=excluded.keep_copy, by_link=excluded.by_link,"
		" rollback_mode=excluded.rollback_mode, state=excluded.state,"
		" owner_pid=excluded.owner_pid, owner_start=excluded.owner_start,"
		" owner_boot=excluded.owner_boot, promoted_ns=excluded.promoted_ns,"
		" ended_ns=excluded.ended_ns, elapsed_ns=excluded.elapsed_ns, error=excluded.error",
		err);

	if (!s)
		return err ? err->code : -EIO;
	if (p->id)
		(void)sqlite3_bind_int64(s, 1, p->id);
	(void)sqlite3_bind_int64(s, 2, p->run);
	dbt_sql_bind_bytes(s, 3, p->name);
	dbt_sql_bind_text(s, 4, p->format);
	dbt_sql_bind_bytes(s, 5, p->path);
	dbt_sql_bind_bytes(s, 6, p->target);
	dbt_sql_bind_text(s, 7, p->target_uuid);
	dbt_sql_bind_bytes(s, 8, p->target_mount);
	dbt_sql_bind_u64(s, 9, p->target_ino);
	dbt_sql_bind_bytes(s, 10, p->made_dir);
	dbt_sql_bind_text(s, 11, p->token);
	(void)sqlite3_bind_int(s, 12, p->is_set);
	(void)sqlite3_bind_int(s, 13, p->reclaim);
	(void)sqlite3_bind_int(s, 14, p->keep_copy);
	(void)sqlite3_bind_int(s, 15, p->by_link);
	(void)sqlite3_bind_int(s, 16, (int)p->rollback_mode);
	dbt_sql_bind_text(s, 17, dbt_state_name(p->state));
	(void)sqlite3_bind_int64(s, 18, p->owner.pid);
	dbt_sql_bind_u64(s, 19, p->owner.start_ticks);
	dbt_sql_bind_text(s, 20, p->owner.boot_id);
	dbt_sql_bind_u64(s, 21, p->created_ns);
	dbt_sql_bind_u64(s, 22, p->promoted_ns);
	dbt_sql_bind_u64(s, 23, p->ended_ns);
	dbt_sql_bind_u64(s, 24, p->elapsed_ns);
	dbt_sql_bind_text(s, 25, p->error);
	return dbt_sql_finish(ledger, s, err);
}

static int save_step(struct dbt_ledger *ledger, int64_t id, const char *step, struct dbt_err *err)
{
	sqlite3_stmt *s = dbt_sql_prepare(ledger, "INSERT INTO step VALUES(NULL,?,?,?)", err);

	if (!s)
		return err ? err->code : -EIO;
	(void)sqlite3_bind_int64(s, 1, id);
	dbt_sql_bind_u64(s, 2, ledger->ctx->sys->wall_ns());
	dbt_sql_bind_text(s, 3, step);
	return dbt_sql_finish(ledger, s, err);
}

static int save_all(struct dbt_ledger *ledger, const struct dbt_promotion *p, const char *step,
                    struct dbt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		r = save_member(ledger, p->id, i, &p->members[i], err);
	return r == 0 ? save_step(ledger, p->id, step, err) : r;
}

int dbt_ledger_save(struct dbt_ledger *ledger, const struct dbt_promotion *p, const char *step,
                    struct dbt_err *err)
{
	int r = dbt_sql_begin(ledger, err);

	if (r < 0)
		return r;
	r = save_row(ledger, p, err);
	if (r == 0)
		r = save_all(ledger, p, step, err);
	return dbt_sql_end(ledger, r, err);
}

/* Is the path of one of p's members, or its copy, in the hands of another promotion? */
static int find_conflict(struct dbt_ledger *ledger, const struct dbt_pmember *m,
                         struct dbt_err *err)
{
	sqlite3_stmt *s =
		dbt_sql_prepare(ledger,
	                        "SELECT p.id, p.state, p.owner_pid FROM member m JOIN promotion p "
	                        "ON p.id=m.promotion"
	                        " WHERE (m.path=?1 OR m.copy=?2 OR m.copy=?1 OR m.path=?2)"
	                        " AND p.state NOT IN('rolled-back','failed') LIMIT 1",
	                        err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_bytes(s, 1, m->path);
	dbt_sql_bind_bytes(s, 2, m->copy);
	r = dbt_sql_step(ledger, s, err);
	if (r == 1)
		r = dbt_err_set(err, sqlite3_column_int64(s, 2) ? DBT_ERR_BUSY : DBT_ERR_REFUSED,
		                -EBUSY, "'%s' belongs to promotion %lld (%s) already", m->path,
		                (long long)sqlite3_column_int64(s, 0),
		                (const char *)sqlite3_column_text(s, 1));
	(void)sqlite3_finalize(s);
	return r;
}

int dbt_ledger_add(struct dbt_ledger *ledger, struct dbt_promotion *p, struct dbt_err *err)
{
	int r = dbt_sql_begin(ledger, err);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		r = find_conflict(ledger, &p->members[i], err);
	if (r == 0)
		r = save_row(ledger, p, err);
	if (r == 0) {
		p->id = sqlite3_last_insert_rowid(ledger->db);
		r = save_all(ledger, p, dbt_state_name(p->state), err);
	}
	r = dbt_sql_end(ledger, r, err);
	if (r < 0)
		p->id = 0;
	return r;
}

/* --- reading -------------------------------------------------------------------------------------------- */

static int damaged(const struct dbt_ledger *ledger, int64_t id, const char *what,
                   struct dbt_err *err)
{
	return dbt_err_set(err, DBT_ERR_LEDGER, -EIO,
	                   "promotion %lld in the ledger '%s' is damaged: %s", (long long)id,
	                   ledger->path, what);
}

/* A name that is to be used beside another must be one component. */
static bool is_component(const char *s)
{
	return s && *s != '\0' && strcmp(s, ".") != 0 && strcmp(s, "..") != 0 && !strchr(s, '/');
}

static bool is_absolute(const char *s)
{
	return s && *s == '/';
}

static bool is_token(const char *s)
{
	return strlen(s) == 16 && strspn(s, "0123456789abcdef") == 16;
}

static int parse_ident(const unsigned char *text, struct dbt_ident *ret)
{
	return text ? dbt_ident_parse((const char *)text, ret) : -EINVAL;
}

static int load_member(struct dbt_ledger *ledger, sqlite3_stmt *s, int64_t id,
                       struct dbt_pmember *m, struct dbt_err *err)
{
	const unsigned char *hex = sqlite3_column_text(s, 8);
	bool ok = true;

	m->path = dbt_sql_copy(s, 0, &ok);
	m->kept = dbt_sql_copy(s, 1, &ok);
	m->copy = dbt_sql_copy(s, 2, &ok);
	m->part = dbt_sql_copy(s, 3, &ok);
	m->back = dbt_sql_copy(s, 4, &ok);
	if (!ok)
		return dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	if (!is_absolute(m->path) || !is_absolute(m->copy) || !is_component(m->kept) ||
	    !is_component(m->part) || (m->back && !is_component(m->back)))
		return damaged(ledger, id, "a file name is not one", err);
	if (parse_ident(sqlite3_column_text(s, 5), &m->source) < 0 ||
	    parse_ident(sqlite3_column_text(s, 6), &m->copied) < 0 ||
	    parse_ident(sqlite3_column_text(s, 7), &m->returned) < 0)
		return damaged(ledger, id, "an identity cannot be read", err);
	if (!hex || strlen((const char *)hex) >= sizeof(m->xxh128))
		return damaged(ledger, id, "a hash cannot be read", err);
	(void)snprintf(m->xxh128, sizeof(m->xxh128), "%s", (const char *)hex);
	m->from_device = sqlite3_column_int(s, 9) != 0;
	m->taken_over = sqlite3_column_int(s, 10) != 0;
	m->reclaimed = sqlite3_column_int(s, 11) != 0;
	m->copy_left = sqlite3_column_int(s, 12) != 0;
	return 0;
}

static int load_members(struct dbt_ledger *ledger, struct dbt_promotion *p, struct dbt_err *err)
{
	struct {
		struct dbt_pmember *items;
		size_t n, cap;
	} list = { 0 };
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger,
		"SELECT path, kept, copy, part, back, source, copied, returned, xxh128, "
		"from_device,"
		" taken_over, reclaimed, copy_left FROM member WHERE promotion=? ORDER BY seq",
		err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	(void)sqlite3_bind_int64(s, 1, p->id);
	while ((r = dbt_sql_step(ledger, s, err)) == 1) {
		struct dbt_pmember *m = dbt_vec_push(&list);

		r = m ? load_member(ledger, s, p->id, m, err)
		      : dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
		if (r < 0)
			break;
	}
	(void)sqlite3_finalize(s);
	p->members = list.items;
	p->n_members = list.n;
	if (r == 0 && list.n == 0)
		r = damaged(ledger, p->id, "it has no files", err);
	return r;
}

static int load_row(struct dbt_ledger *ledger, sqlite3_stmt *s, struct dbt_promotion *p,
                    struct dbt_err *err)
{
	const unsigned char *token = sqlite3_column_text(s, 10),
			    *state = sqlite3_column_text(s, 16), *boot = sqlite3_column_text(s, 19);
	bool ok = true;

	p->id = sqlite3_column_int64(s, 0);
	p->run = sqlite3_column_int64(s, 1);
	p->name = dbt_sql_copy(s, 2, &ok);
	p->format = dbt_sql_copy(s, 3, &ok);
	p->path = dbt_sql_copy(s, 4, &ok);
	p->target = dbt_sql_copy(s, 5, &ok);
	p->target_uuid = dbt_sql_copy(s, 6, &ok);
	p->target_mount = dbt_sql_copy(s, 7, &ok);
	p->target_ino = dbt_sql_u64(s, 8);
	p->made_dir = dbt_sql_copy(s, 9, &ok);
	p->is_set = sqlite3_column_int(s, 11) != 0;
	p->reclaim = sqlite3_column_int(s, 12) != 0;
	p->keep_copy = sqlite3_column_int(s, 13) != 0;
	p->by_link = sqlite3_column_int(s, 14) != 0;
	p->rollback_mode = (enum dbt_rollback_mode)sqlite3_column_int(s, 15);
	p->owner.pid = sqlite3_column_int(s, 17);
	p->owner.start_ticks = dbt_sql_u64(s, 18);
	p->created_ns = dbt_sql_u64(s, 20);
	p->promoted_ns = dbt_sql_u64(s, 21);
	p->ended_ns = dbt_sql_u64(s, 22);
	p->elapsed_ns = dbt_sql_u64(s, 23);
	p->error = dbt_sql_copy(s, 24, &ok);
	if (!ok)
		return dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	if (!p->name || !p->format || !is_absolute(p->path) || !is_absolute(p->target) ||
	    (p->made_dir && !is_absolute(p->made_dir)))
		return damaged(ledger, p->id, "a name is missing", err);
	if (!state || dbt_state_parse((const char *)state, &p->state) < 0)
		return damaged(ledger, p->id, "its state is unknown", err);
	if (!token || !is_token((const char *)token))
		return damaged(ledger, p->id, "its token is not one", err);
	(void)snprintf(p->token, sizeof(p->token), "%s", (const char *)token);
	(void)snprintf(p->owner.boot_id, sizeof(p->owner.boot_id), "%s",
	               boot ? (const char *)boot : "");
	return load_members(ledger, p, err);
}

static int load_where(struct dbt_ledger *ledger, int64_t id, struct dbt_promotions *ret,
                      struct dbt_err *err)
{
	struct dbt_promotions list = { 0 };
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger, "SELECT * FROM promotion WHERE ?1=0 OR id=?1 ORDER BY id", err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	(void)sqlite3_bind_int64(s, 1, id);
	while ((r = dbt_sql_step(ledger, s, err)) == 1) {
		struct dbt_promotion *p = dbt_vec_push(&list);

		r = p ? load_row(ledger, s, p, err)
		      : dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
		if (r < 0)
			break;
	}
	(void)sqlite3_finalize(s);
	if (r < 0)
		dbt_promotions_release(&list);
	else
		*ret = list;
	return r;
}

int dbt_ledger_load(struct dbt_ledger *ledger, struct dbt_promotions *ret, struct dbt_err *err)
{
	return load_where(ledger, 0, ret, err);
}

int dbt_ledger_claim(struct dbt_ledger *ledger, int64_t id, const struct dbt_run *owner,
                     bool (*is_alive)(void *data, const struct dbt_run *owner), void *data,
                     struct dbt_promotion *ret, struct dbt_err *err)
{
	struct dbt_promotions found = { 0 };
	int r = dbt_sql_begin(ledger, err);

	if (r < 0)
		return r;
	r = load_where(ledger, id, &found, err);
	if (r == 0 && found.n != 1)
		r = dbt_err_set(err, DBT_ERR_UNKNOWN, -ENOENT, "there is no promotion %lld",
		                (long long)id);
	if (r == 0 && found.items[0].owner.pid != 0 && is_alive(data, &found.items[0].owner))
		r = dbt_err_set(err, DBT_ERR_BUSY, -EBUSY,
		                "'%s' is being worked on by process %d: wait for it to end",
		                found.items[0].path, found.items[0].owner.pid);
	if (r == 0) {
		found.items[0].owner = *owner;
		r = save_row(ledger, &found.items[0], err);
	}
	r = dbt_sql_end(ledger, r, err);
	if (r == 0) {
		*ret = found.items[0];
		found.n = 0;
	}
	dbt_promotions_release(&found);
	return r;
}

int dbt_ledger_steps(struct dbt_ledger *ledger, int64_t id, char **ret, struct dbt_err *err)
{
	struct dbt_buf out = { 0 };
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger, "SELECT wall_ns, text FROM step WHERE promotion=? ORDER BY id", err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	(void)sqlite3_bind_int64(s, 1, id);
	while ((r = dbt_sql_step(ledger, s, err)) == 1) {
		time_t t = (time_t)(dbt_sql_u64(s, 0) / 1000000000U);
		char when[32] = "";
		struct tm tm;

		if (localtime_r(&t, &tm))
			(void)strftime(when, sizeof(when), "%F %T", &tm);
		if (dbt_buf_addf(&out, "%s %s\n", when, (const char *)sqlite3_column_text(s, 1)) <
		    0) {
			r = dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
			break;
		}
	}
	(void)sqlite3_finalize(s);
	if (r == 0) {
		*ret = dbt_buf_take(&out);
		return *ret ? 0 : dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	}
	dbt_buf_release(&out);
	return r;
}
