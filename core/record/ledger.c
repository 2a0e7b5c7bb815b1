#include "record/ledger.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "record/ident_text.h"
#include "record/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* One byte of the lock file stands for one promotion. The lock is the kernel's: it ends with the process, and it is
 * seen from every container that shares the state directory. 1 taken (or had before), 0 another run has it, -errno
 * where the filesystem has no such locks. */
static int lock_promotion(struct dbt_ledger *ledger, int64_t id, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = id, .l_len = 1 };

	if (fcntl(ledger->lock_fd, F_OFD_SETLK, &lock) == 0)
		return 1;
	return errno == EAGAIN || errno == EACCES ? 0 : -errno;
}

static int save_member(struct dbt_ledger *ledger, int64_t id, size_t seq,
                       const struct dbt_pmember *m, struct dbt_err *err)
{
	char source[DBT_IDENT_TEXT_BYTES], copied[DBT_IDENT_TEXT_BYTES],
		returned[DBT_IDENT_TEXT_BYTES];
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger, "INSERT OR REPLACE INTO member VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
		err);

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
	(void)sqlite3_bind_int(s, 16, (int)m->role);
	return dbt_sql_finish(ledger, s, err);
}

static int save_row(struct dbt_ledger *ledger, const struct dbt_promotion *p, struct dbt_err *err)
{
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger,
		"INSERT INTO promotion VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
		" ON CONFLICT(id) DO UPDATE SET run=excluded.run, made_dir=excluded.made_dir, "
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
	dbt_sql_bind_text(s, 26, dbt_kind_name(p->kind));
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
	r = dbt_sql_end(ledger, r, err);
	if (r == 0 && p->owner.pid == 0)
		(void)lock_promotion(ledger, p->id, F_UNLCK);
	return r;
}

/* The lists of a directory lie beside the ledger, under its token. */
static int name_lists(const struct dbt_ledger *ledger, struct dbt_promotion *p)
{
	const char *slash = strrchr(ledger->path, '/');

	free(p->lists);
	if (asprintf(&p->lists, "%.*s/%s", (int)(slash - ledger->path), ledger->path, p->token) < 0)
		p->lists = NULL;
	return p->lists ? 0 : -ENOMEM;
}

/* Is the path of one of p's members, or its copy, in the hands of another promotion? */
static int find_conflict(struct dbt_ledger *ledger, const struct dbt_pmember *m,
                         struct dbt_err *err)
{
	sqlite3_stmt *s =
		dbt_sql_prepare(ledger,
	                        "SELECT p.id, p.state, p.owner_pid, m.path=?1 FROM member m JOIN "
	                        "promotion p ON p.id=m.promotion"
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
		r = dbt_err_set(
			err, sqlite3_column_int64(s, 2) ? DBT_ERR_BUSY : DBT_ERR_REFUSED, -EBUSY,
			sqlite3_column_int(s, 3)
				? "'%s' belongs to promotion %lld (%s) already"
				: "'%s' is taken by promotion %lld (%s): choose another directory",
			sqlite3_column_int(s, 3) ? m->path : m->copy,
			(long long)sqlite3_column_int64(s, 0),
			(const char *)sqlite3_column_text(s, 1));
	(void)sqlite3_finalize(s);
	return r;
}

/* The first promotion that has left this copy for a later removal: 1, 0 or a negative code. */
static int find_waiting(struct dbt_ledger *ledger, const char *copy, int64_t *ret,
                        struct dbt_err *err)
{
	sqlite3_stmt *s = dbt_sql_prepare(
		ledger, "SELECT promotion FROM member WHERE copy=? AND copy_left LIMIT 1", err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_bytes(s, 1, copy);
	r = dbt_sql_step(ledger, s, err);
	if (r == 1)
		*ret = sqlite3_column_int64(s, 0);
	(void)sqlite3_finalize(s);
	return r;
}

/* A copy of ours that waits for its removal is used again: nobody may remove it any more, and nobody may be about
 * to. What seemed to be somebody else's file when this promotion was planned, and waits for its removal now, was then
 * the copy of a promotion that has been rolled back since. */
static int take_waiting(struct dbt_ledger *ledger, const struct dbt_pmember *m, struct dbt_err *err)
{
	sqlite3_stmt *s;
	int64_t id = 0;
	int r;

	if (m->copied.ino == 0)
		return 0;
	while ((r = find_waiting(ledger, m->copy, &id, err)) == 1) {
		if (m->taken_over || lock_promotion(ledger, id, F_WRLCK) == 0)
			return dbt_err_set(err, DBT_ERR_BUSY, -EBUSY,
			                   "'%s' is just being removed by another run: wait for it "
			                   "to end",
			                   m->copy);
		s = dbt_sql_prepare(
			ledger, "UPDATE member SET copy_left=0 WHERE promotion=? AND copy=?", err);
		if (!s)
			return err ? err->code : -EIO;
		(void)sqlite3_bind_int64(s, 1, id);
		dbt_sql_bind_bytes(s, 2, m->copy);
		r = dbt_sql_finish(ledger, s, err);
		(void)lock_promotion(ledger, id, F_UNLCK);
		if (r < 0)
			return r;
	}
	return r;
}

int dbt_ledger_add(struct dbt_ledger *ledger, struct dbt_promotion *p, struct dbt_err *err)
{
	int r = name_lists(ledger, p);

	if (r < 0)
		return dbt_err_sys(err, r, "cannot record '%s'", p->path);
	r = dbt_sql_begin(ledger, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		r = find_conflict(ledger, &p->members[i], err);
	for (size_t i = 0; r == 0 && i < p->n_members; i++)
		r = take_waiting(ledger, &p->members[i], err);
	if (r == 0)
		r = save_row(ledger, p, err);
	if (r == 0) {
		p->id = sqlite3_last_insert_rowid(ledger->db);
		/* Before others can see it. */
		(void)lock_promotion(ledger, p->id, F_WRLCK);
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

/* What may be unlinked or renamed beside a path: only what dbtier itself would have named so. */
static bool is_temporary(const char *s, const char *token)
{
	return s && strncmp(s, ".dbtier-", 8) == 0 && strncmp(s + 8, token, 16) == 0 &&
	       s[24] == '-' && !strchr(s, '/');
}

static bool is_kept_name(const char *s, const char *path)
{
	const char *base = strrchr(path, '/') + 1;
	size_t len = strlen(base);

	return s && *base != '\0' && s[0] == '.' && strncmp(s + 1, base, len) == 0 &&
	       strcmp(s + 1 + len, ".dbtier-original") == 0;
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

/* Of what was unpacked only the roots have a second name, the one they are filled under. */
static bool has_names(const struct dbt_promotion *p, const struct dbt_pmember *m)
{
	if (p->kind == DBT_KIND_FILES)
		return is_kept_name(m->kept, m->path) && is_temporary(m->part, p->token);
	return m->kept && m->kept[0] == '\0' && m->part &&
	       (m->role == DBT_ROLE_ROOT ? is_temporary(m->part, p->token) : m->part[0] == '\0');
}

static int load_member(struct dbt_ledger *ledger, sqlite3_stmt *s, const struct dbt_promotion *p,
                       struct dbt_pmember *m, struct dbt_err *err)
{
	const unsigned char *hex = sqlite3_column_text(s, 8);
	int role = sqlite3_column_int(s, 13);
	bool ok = true;

	m->path = dbt_sql_copy(s, 0, &ok);
	m->kept = dbt_sql_copy(s, 1, &ok);
	m->copy = dbt_sql_copy(s, 2, &ok);
	m->part = dbt_sql_copy(s, 3, &ok);
	m->back = dbt_sql_copy(s, 4, &ok);
	if (!ok)
		return dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
	if (role < DBT_ROLE_FILE || role > DBT_ROLE_ROOT)
		return damaged(ledger, p->id, "the role of a file is unknown", err);
	m->role = (enum dbt_role)role;
	if (!is_absolute(m->path) || !is_absolute(m->copy) || !has_names(p, m) ||
	    (m->back && !is_temporary(m->back, p->token)))
		return damaged(ledger, p->id, "a file name is not one", err);
	if (parse_ident(sqlite3_column_text(s, 5), &m->source) < 0 ||
	    parse_ident(sqlite3_column_text(s, 6), &m->copied) < 0 ||
	    parse_ident(sqlite3_column_text(s, 7), &m->returned) < 0)
		return damaged(ledger, p->id, "an identity cannot be read", err);
	if (!hex || strlen((const char *)hex) >= sizeof(m->xxh128))
		return damaged(ledger, p->id, "a hash cannot be read", err);
	(void)snprintf(m->xxh128, sizeof(m->xxh128), "%s", (const char *)hex);
	m->from_device = sqlite3_column_int(s, 9) != 0;
	m->taken_over = sqlite3_column_int(s, 10) != 0;
	m->reclaimed = sqlite3_column_int(s, 11) != 0;
	m->copy_left = sqlite3_column_int(s, 12) != 0;
	return 0;
}

#define MEMBER_COLUMNS                                                                             \
	"path, kept, copy, part, back, source, copied, returned, xxh128, from_device,"             \
	" taken_over, reclaimed, copy_left"
#define FROM_MEMBER " FROM member WHERE promotion=? ORDER BY seq"

static int load_members(struct dbt_ledger *ledger, struct dbt_promotion *p, struct dbt_err *err)
{
	struct {
		struct dbt_pmember *items;
		size_t n, cap;
	} list = { 0 };
	sqlite3_stmt *s =
		dbt_sql_prepare(ledger,
	                        ledger->version > 1 ? "SELECT " MEMBER_COLUMNS ", role" FROM_MEMBER
	                                            : "SELECT " MEMBER_COLUMNS ", 0" FROM_MEMBER,
	                        err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	(void)sqlite3_bind_int64(s, 1, p->id);
	while ((r = dbt_sql_step(ledger, s, err)) == 1) {
		struct dbt_pmember *m = dbt_vec_push(&list);

		r = m ? load_member(ledger, s, p, m, err)
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
	const char *kind = sqlite3_column_count(s) > 25 ? (const char *)sqlite3_column_text(s, 25)
	                                                : dbt_kind_name(DBT_KIND_FILES);
	const unsigned char *token = sqlite3_column_text(s, 10),
			    *state = sqlite3_column_text(s, 16), *boot = sqlite3_column_text(s, 19);
	int mode = sqlite3_column_int(s, 15);
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
	if (mode < DBT_ROLLBACK_PLAIN || mode > DBT_ROLLBACK_DISCARD_CHANGES)
		return damaged(ledger, p->id, "the way of its rollback is unknown", err);
	p->rollback_mode = (enum dbt_rollback_mode)mode;
	if (!kind || dbt_kind_parse(kind, &p->kind) < 0)
		return damaged(ledger, p->id, "its kind is unknown", err);
	if (!token || !is_token((const char *)token))
		return damaged(ledger, p->id, "its token is not one", err);
	(void)snprintf(p->token, sizeof(p->token), "%s", (const char *)token);
	if (name_lists(ledger, p) < 0)
		return dbt_err_sys(err, -ENOMEM, "cannot read the ledger");
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
	struct dbt_promotion *p = NULL;
	int r = dbt_sql_begin(ledger, err), locked;

	if (r < 0)
		return r;
	r = load_where(ledger, id, &found, err);
	if (r == 0 && found.n == 1)
		p = found.items;
	if (r == 0 && !p)
		r = dbt_err_set(err, DBT_ERR_UNKNOWN, -ENOENT, "there is no promotion %lld",
		                (long long)id);
	if (p) {
		locked = lock_promotion(ledger, id, F_WRLCK);
		if (locked == 0 || (locked < 0 && p->owner.pid != 0 && is_alive(data, &p->owner)))
			r = dbt_err_set(err, DBT_ERR_BUSY, -EBUSY,
			                "'%s' is being worked on by process %d: wait for it to end",
			                p->path, p->owner.pid);
	}
	if (p && r == 0) {
		p->owner = *owner;
		r = save_row(ledger, p, err);
	}
	r = dbt_sql_end(ledger, r, err);
	if (p && r == 0) {
		*ret = *p;
		found.n = 0;
	}
	dbt_promotions_release(&found);
	return r;
}

int dbt_ledger_has_token(struct dbt_ledger *ledger, const char *token, struct dbt_err *err)
{
	sqlite3_stmt *s =
		dbt_sql_prepare(ledger, "SELECT 1 FROM promotion WHERE token=? LIMIT 1", err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	dbt_sql_bind_text(s, 1, token);
	r = dbt_sql_step(ledger, s, err);
	(void)sqlite3_finalize(s);
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
