/* What a ledger may hold. The first byte chooses: a file of any bytes, or of a real ledger with some of them replaced;
 * or a real ledger whose columns hold other values, of any type. Whatever is loaded from it obeys the rules on which
 * the rest relies: nobody removes a file by a name that dbtier would not have given. */
#include "record/ident_text.h"
#include "record/ledger.h"
#include "record/sql.h"
#include "sys/root.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20 };

static struct dbt_root live;
static struct dbt_ctx ctx;
static char dir[64], path[96], base[MAX_BYTES];
static size_t base_bytes;

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void tidy(void)
{
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/dbtier.db-journal", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/lock", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/dbtier.lock", dir);
	(void)unlink(path);
	(void)rmdir(dir);
}

static void write_file(const char *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	(void)close(fd);
}

/* A ledger with a promotion of two files, names of a scan and a measurement. */
static void make_base(void)
{
	static const char rows[] =
		"INSERT INTO promotion VALUES(1,1,'nr','blast','/s/nr','/f','uuid','/f',5,'/f/nr',"
		"'0123456789abcdef',1,0,0,0,0,'promoted',7,8,'boot',1,2,3,4,NULL,'files');"
		"INSERT INTO member "
		"VALUES(1,0,'/s/nr.psq','.nr.psq.dbtier-original','/f/nr/nr.psq',"
		"'.dbtier-0123456789abcdef-0.part',NULL,'','','','',1,0,0,0,0),"
		"(1,1,'/s/nr.pin','.nr.pin.dbtier-original','/f/nr/nr.pin',"
		"'.dbtier-0123456789abcdef-1.part','.dbtier-0123456789abcdef-1-back.part','','','',"
		"'',"
		"1,0,0,0,0);"
		"INSERT INTO step VALUES(1,1,1,'done');"
		"INSERT INTO scan_name VALUES('/s','nr','/s/nr','/s','nr','blast','hdd',1,0,0);"
		"INSERT INTO measurement VALUES('k','random',1,1,207.0,1,1,1,1);";
	char sql[1024];
	struct dbt_ident ident = { .ino = 9, .mode = S_IFREG | 0644, .nlink = 1 };
	char text[256];
	struct dbt_ledger *ledger;
	struct dbt_err err;
	FILE *f;

	must(dbt_ledger_open(&ctx, dir, DBT_LEDGER_WRITE, &ledger, &err) == 0);
	must(dbt_sql_exec(ledger, rows, &err) == 0);
	dbt_ident_text(&ident, text);
	(void)snprintf(sql, sizeof(sql),
	               "UPDATE member SET source='%s', copied='%s', returned='%s'", text, text,
	               text);
	must(dbt_sql_exec(ledger, sql, &err) == 0);
	dbt_ledger_close(ledger);
	f = fopen(path, "re");
	must(f != NULL);
	base_bytes = fread(base, 1, sizeof(base), f);
	(void)fclose(f);
	must(base_bytes > 0);
}

static void init(void)
{
	if (*dir)
		return;
	(void)snprintf(dir, sizeof(dir), "/dev/shm/fuzz-ledger.XXXXXX");
	must(mkdtemp(dir) != NULL);
	(void)snprintf(path, sizeof(path), "%s/dbtier.db", dir);
	must(dbt_root_open(&live, NULL) == 0);
	dbt_ctx_init(&ctx, &live);
	make_base();
	(void)atexit(tidy);
}

/* --- what is read --------------------------------------------------------------------------------------- */

static void check_member(const struct dbt_promotion *p, const struct dbt_pmember *m)
{
	must(m->path[0] == '/' && m->copy[0] == '/' && m->kept && m->part);
	must(!strchr(m->kept, '/') && !strchr(m->part, '/') && (!m->back || !strchr(m->back, '/')));
	must(*m->part == '\0' || strstr(m->part, p->token));
	must(!m->back || strstr(m->back, p->token));
	must(m->role <= DBT_ROLE_ROOT && strlen(m->xxh128) < sizeof(m->xxh128));
}

static void read_all(struct dbt_ledger *ledger)
{
	struct dbt_promotions list = { 0 };
	struct dbt_scan_names names = { 0 };
	struct dbt_measurements measured = { 0 };
	struct dbt_err err;
	char *steps = NULL;
	int64_t run;

	if (dbt_ledger_load(ledger, &list, &err) == 0) {
		for (size_t i = 0; i < list.n; i++) {
			const struct dbt_promotion *p = &list.items[i];

			must(p->path[0] == '/' && p->target[0] == '/' && p->n_members > 0);
			must(dbt_state_name(p->state) && strlen(p->token) == 16);
			must(p->rollback_mode <= DBT_ROLLBACK_DISCARD_CHANGES);
			for (size_t j = 0; j < p->n_members; j++)
				check_member(p, &p->members[j]);
			(void)dbt_promotion_size(p);
			if (dbt_ledger_steps(ledger, p->id, &steps, &err) == 0)
				free(steps);
		}
		dbt_promotions_release(&list);
	} else {
		must(strlen(err.text) > 10);
	}
	if (dbt_ledger_find_names(ledger, NULL, &names, &err) == 0)
		dbt_scan_names_release(&names);
	if (dbt_ledger_load_measurements(ledger, "k", &measured, &err) == 0)
		dbt_measurements_release(&measured);
	(void)dbt_ledger_next_run(ledger, &run, &err);
	(void)dbt_ledger_has_token(ledger, "0123456789abcdef", &err);
}

static void read_file(void)
{
	struct dbt_ledger *ledger;
	struct dbt_err err;

	if (dbt_ledger_open(&ctx, dir, DBT_LEDGER_READ, &ledger, &err) < 0)
		return;
	read_all(ledger);
	dbt_ledger_close(ledger);
}

/* --- what is written into it ---------------------------------------------------------------------------- */

/* Pieces of 2 bytes of position, 1 of length and that many bytes over the real file. */
static void overwrite(const uint8_t *data, size_t len)
{
	char *file = malloc(base_bytes);

	must(file != NULL);
	memcpy(file, base, base_bytes);
	while (len > 3) {
		size_t at = (size_t)(data[0] << 8 | data[1]) * 4, n = data[2];

		data += 3;
		len -= 3;
		if (n > len)
			n = len;
		if (at + n <= base_bytes)
			memcpy(file + at, data, n);
		data += n;
		len -= n;
	}
	write_file(file, base_bytes);
	free(file);
}

static void set_column(struct dbt_ledger *ledger, const char *table, const char *column, int type,
                       const uint8_t *value, size_t len)
{
	sqlite3_stmt *s;
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "UPDATE OR IGNORE %s SET %s=?", table, column);
	if (sqlite3_prepare_v2(ledger->db, sql, -1, &s, NULL) != SQLITE_OK)
		return;
	switch (type % 4) {
	case 0:
		(void)sqlite3_bind_text(s, 1, (const char *)value, (int)len, SQLITE_TRANSIENT);
		break;
	case 1:
		(void)sqlite3_bind_blob(s, 1, value, (int)len, SQLITE_TRANSIENT);
		break;
	case 2:
		(void)sqlite3_bind_int64(s, 1,
		                         strtoll(len ? "-9223372036854775808" : "1", NULL, 10));
		break;
	default:
		(void)sqlite3_bind_null(s, 1);
		break;
	}
	(void)sqlite3_step(s);
	(void)sqlite3_finalize(s);
}

/* Pieces of 1 byte for the column, 1 for the type, 1 of length and that many bytes of value. */
static void change_columns(struct dbt_ledger *ledger, const uint8_t *data, size_t len)
{
	static const char *const columns[] = {
		"name",         "format",     "path",       "target",    "target_uuid",
		"target_mount", "target_ino", "made_dir",   "token",     "rollback_mode",
		"state",        "owner_pid",  "owner_boot", "error",     "kind",
		"created_ns",   "kept",       "copy",       "part",      "back",
		"source",       "copied",     "returned",   "xxh128",    "role",
		"text",         "database",   "tier",       "size",      "iops",
		"pattern",      "jobs",       "reclaimed",  "promotion", "seq",
		"id",
	};
	static const char *const tables[] = { "promotion", "member", "step", "scan_name",
		                              "measurement" };

	while (len > 3) {
		const char *column = columns[data[0] % (sizeof(columns) / sizeof(columns[0]))];
		size_t n = data[2];
		int type = data[1];

		data += 3;
		len -= 3;
		if (n > len)
			n = len;
		for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
			set_column(ledger, tables[i], column, type, data, n);
		data += n;
		len -= n;
	}
}

static void change_and_read(const uint8_t *data, size_t len)
{
	struct dbt_ledger *ledger;
	struct dbt_err err;

	write_file(base, base_bytes);
	must(dbt_ledger_open(&ctx, dir, DBT_LEDGER_WRITE, &ledger, &err) == 0);
	must(dbt_sql_begin(ledger, &err) == 0);
	change_columns(ledger, data, len);
	read_all(ledger);
	(void)dbt_sql_end(ledger, -1, &err);
	dbt_ledger_close(ledger);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	init();
	if (len == 0)
		return 0;
	switch (data[0] % 4) {
	case 0:
		write_file((const char *)data + 1, len - 1);
		read_file();
		break;
	case 1:
		overwrite(data + 1, len - 1);
		read_file();
		break;
	default:
		change_and_read(data + 1, len - 1);
		break;
	}
	return 0;
}
