/* Opening the ledger: its place, its schema, its locks. */
#include "base/cleanup.h"
#include "record/ledger.h"
#include "record/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "dbti": marks the file as ours, so that another program's database is never taken for a ledger. */
enum { APPLICATION_ID = 0x64627469, SCHEMA_VERSION = 2 };

static const char schema[] =
	"CREATE TABLE promotion("
	" id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL, name BLOB NOT NULL,"
	" format TEXT NOT NULL, path BLOB NOT NULL, target BLOB NOT NULL, target_uuid TEXT,"
	" target_mount BLOB, target_ino INTEGER NOT NULL, made_dir BLOB, token TEXT NOT NULL,"
	" is_set INTEGER NOT NULL, reclaim INTEGER NOT NULL, keep_copy INTEGER NOT NULL,"
	" by_link INTEGER NOT NULL, rollback_mode INTEGER NOT NULL, state TEXT NOT NULL,"
	" owner_pid INTEGER NOT NULL, owner_start INTEGER NOT NULL, owner_boot TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL, promoted_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL,"
	" elapsed_ns INTEGER NOT NULL, error TEXT, kind TEXT NOT NULL DEFAULT 'files');"
	"CREATE TABLE member("
	" promotion INTEGER NOT NULL REFERENCES promotion(id), seq INTEGER NOT NULL,"
	" path BLOB NOT NULL, kept BLOB NOT NULL, copy BLOB NOT NULL, part BLOB NOT NULL, back "
	"BLOB,"
	" source TEXT NOT NULL, copied TEXT NOT NULL, returned TEXT NOT NULL, xxh128 TEXT NOT NULL,"
	" from_device INTEGER NOT NULL, taken_over INTEGER NOT NULL, reclaimed INTEGER NOT NULL,"
	" copy_left INTEGER NOT NULL, role INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(promotion, "
	"seq));"
	"CREATE INDEX member_path ON member(path);"
	"CREATE INDEX member_copy ON member(copy);"
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

/* What version 2 has more than version 1. New columns come last, with the value that older rows mean. */
static const char upgrade[] = "ALTER TABLE promotion ADD COLUMN kind TEXT NOT NULL DEFAULT 'files';"
			      "ALTER TABLE member ADD COLUMN role INTEGER NOT NULL DEFAULT 0;"
			      "CREATE INDEX IF NOT EXISTS member_copy ON member(copy);"
			      "PRAGMA user_version=2";

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
		return err && err->kind == DBT_ERR_LEDGER
		               ? dbt_err_add(err, "move it aside to start a new one: 'dbtier "
		                                  "rollback PATH' still "
		                                  "works from what stands beside a link")
		               : r;
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

/* Makes what is missing of it: all, or what is newer than the file. */
static int make_schema(struct dbt_ledger *ledger, struct dbt_err *err)
{
	char sql[128];
	int version = 0, r = dbt_sql_begin(ledger, err);

	if (r < 0)
		return r;
	r = check_ours(ledger, &version, err); /* another run may have been first */
	if (r == 0 && version == 1)
		r = dbt_sql_exec(ledger, upgrade, err);
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
	ledger->version = version;
	if (r == 0 && version < SCHEMA_VERSION && how == DBT_LEDGER_WRITE) {
		r = make_schema(ledger, err);
		ledger->version = SCHEMA_VERSION; /* so it is, where that went well */
	} else if (r == 0 && version == 0) {
		r = -ENOENT; /* a reader */
	}
	return r;
}

/* SQLite would wait for ever on a FIFO. Returns -ENOENT for a reader when there is no ledger. */
/* -ENOENT: there is none yet. */
static int check_file(const char *path, struct dbt_err *err)
{
	struct stat st;
	bool is_link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);

	if (stat(path, &st) == 0)
		return S_ISREG(st.st_mode)
		               ? 0
		               : dbt_err_set(err, DBT_ERR_LEDGER, -EINVAL,
		                             "the ledger '%s' is %s, not a file: nothing was "
		                             "changed; name the right directory with --state-dir",
		                             path, S_ISDIR(st.st_mode) ? "a directory" : "special");
	if (errno == ENOENT && is_link)
		return dbt_err_set(err, DBT_ERR_LEDGER, -ENOTDIR,
		                   "the ledger '%s' is a symbolic link that leads nowhere: nothing "
		                   "was changed; mount the filesystem that it leads to",
		                   path);
	return dbt_err_set(err, DBT_ERR_LEDGER, -errno, "cannot use the ledger '%s': %s", path,
	                   dbt_err_text(-errno));
}

/* The file whose bytes are locked, one a promotion; see dbt_ledger_claim. */
static int open_locks(struct dbt_ledger *ledger, const char *state_dir, struct dbt_err *err)
{
	dbt_autofree char *path = NULL;

	if (asprintf(&path, "%s/dbtier.lock", state_dir) < 0) {
		path = NULL;
		return dbt_err_sys(err, -ENOMEM, "cannot open the ledger");
	}
	ledger->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (ledger->lock_fd < 0)
		return dbt_err_set(err, DBT_ERR_LEDGER, -errno, "cannot open '%s': %s", path,
		                   dbt_err_text(errno));
	return 0;
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
	ledger->lock_fd = -1;
	if (asprintf(&ledger->path, "%s/dbtier.db", state_dir) < 0) {
		free(ledger);
		return dbt_err_sys(err, -ENOMEM, "cannot open the ledger");
	}
	if (how == DBT_LEDGER_WRITE)
		r = make_dirs(ctx, state_dir);
	if (r < 0)
		r = dbt_err_set(err, DBT_ERR_LEDGER, r, "cannot use the state directory '%s': %s",
		                state_dir, dbt_err_text(r));
	else
		r = check_file(ledger->path, err);
	if (r == -ENOENT && how == DBT_LEDGER_WRITE) {
		dbt_err_clear(err);
		r = 0;
	}
	if (r < 0) {
		; /* told already */
	} else if (sqlite3_open_v2(ledger->path, &ledger->db, flags, NULL) != SQLITE_OK) {
		r = dbt_sql_error(ledger, "open", err);
	} else {
		if (how == DBT_LEDGER_WRITE && geteuid() == 0)
			(void)chmod(ledger->path,
			            0644); /* so that users can see root's promotions */
		r = prepare_db(ledger, how, err);
		if (r == 0 && how == DBT_LEDGER_WRITE)
			r = open_locks(ledger, state_dir, err);
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
	if (ledger->lock_fd >= 0)
		(void)close(ledger->lock_fd);
	free(ledger->path);
	free(ledger);
}
