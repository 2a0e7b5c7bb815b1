#include "support/samples.h"
#include "support/tree.h"
#include "survey/scan.h"
#include "sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct dbt_root live;
static struct dbt_ctx ctx;
static char *root; /* a fresh tree for each test, canonical */

static int setup(void **state)
{
	char *made = tree_new();

	(void)state;
	root = realpath(made, NULL);
	free(made);
	if (dbt_root_open(&live, NULL) < 0)
		return -1;
	dbt_ctx_init(&ctx, &live);
	return root ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	tree_remove(root);
	free(root);
	dbt_root_close(&live);
	return 0;
}

static struct dbt_scan_result scan_with(const char *path, const struct dbt_scan_opts *opts)
{
	struct dbt_scan_result result;
	struct dbt_err err = { 0 };
	char *full = tree_path(root, path);
	int r = dbt_scan(&ctx, full, opts, &result, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	free(full);
	return result;
}

static struct dbt_scan_result scan(const char *path)
{
	return scan_with(path, NULL);
}

static const struct dbt_database *only(const struct dbt_scan_result *result)
{
	assert_int_equal(result->n_databases, 1);
	return &result->databases[0];
}

static const struct dbt_member *member(const struct dbt_database *db, const char *name)
{
	for (size_t i = 0; i < db->n_members; i++)
		if (strcmp(db->members[i].name, name) == 0)
			return &db->members[i];
	fail_msg("no member '%s'", name);
	return NULL;
}

static bool has_member(const struct dbt_database *db, const char *name)
{
	for (size_t i = 0; i < db->n_members; i++)
		if (strcmp(db->members[i].name, name) == 0)
			return true;
	return false;
}

static void assert_path(const char *actual, const char *relative)
{
	char *expected = tree_path(root, relative);

	assert_string_equal(actual, expected);
	free(expected);
}

static void move(const char *from, const char *to)
{
	char *a = tree_path(root, from), *b = tree_path(root, to);

	assert_int_equal(rename(a, b), 0);
	free(a);
	free(b);
}

static void cut(const char *path, off_t by)
{
	char *full = tree_path(root, path);
	struct stat st;

	assert_int_equal(stat(full, &st), 0);
	assert_int_equal(truncate(full, st.st_size - by), 0);
	free(full);
}

/* What promote leaves: a link to the copy, the original beside it. */
static void promote(const char *path, const char *copy)
{
	char kept[512], *target = tree_path(root, copy);
	const char *slash = strrchr(path, '/');

	(void)snprintf(kept, sizeof(kept), "%.*s.%s.dbtier-original",
	               slash ? (int)(slash - path + 1) : 0, path, slash ? slash + 1 : path);
	move(path, kept);
	tree_symlink(root, path, target);
	free(target);
}

/* ---- names, sizes, grouping ---- */

static void a_file_is_found_by_content(void **state)
{
	struct dbt_scan_result r;
	const struct dbt_database *db;

	(void)state;
	sample_write(root, "a/psc.dmnd", sample_diamond(100));
	tree_put(root, "a/fake.dmnd", "not a diamond file, whatever its name says\n");
	tree_put(root, "a/empty.dmnd", "");
	tree_put(root, "a/note.db", "SQLite format 3 is mentioned in this text file\n");
	r = scan("");
	db = only(&r);
	assert_string_equal(db->name, "psc");
	assert_string_equal(db->format, "diamond");
	assert_path(db->path, "a/psc.dmnd");
	assert_path(db->dir, "a");
	assert_int_equal(db->n_members, 1);
	assert_string_equal(db->members[0].name, "psc.dmnd");
	assert_true(db->members[0].hot);
	assert_int_equal(db->size_bytes, 96 + 100 * 16 + 101 * 16);
	assert_true(db->complete);
	assert_string_equal(dbt_database_access(db), "stream");
	assert_int_equal(r.files_seen, 4);
	assert_string_equal(r.root, root);
	dbt_scan_result_release(&r);
}

/* Under any name, if it is large enough to matter. */
static void a_large_file_needs_no_name(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "renamed.bin", sample_diamond(4000));
	sample_write(root, "small.bin", sample_diamond(10));
	sample_write(root, "reads.fastq", sample_diamond(4000));
	r = scan("");
	assert_path(only(&r)->path, "renamed.bin");
	assert_string_equal(only(&r)->name, "renamed.bin");
	dbt_scan_result_release(&r);
}

static void a_cut_file_is_incomplete(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "cut.dmnd", sample_diamond(100));
	cut("cut.dmnd", 1);
	r = scan("");
	assert_false(only(&r)->complete);
	assert_string_equal(only(&r)->incomplete, "'cut.dmnd' is cut short: 3311 of 3312 bytes");
	dbt_scan_result_release(&r);
}

static void sqlite_takes_its_siblings(void **state)
{
	struct dbt_scan_result r;
	const struct dbt_database *db;

	(void)state;
	sample_write(root, "x.db", sample_sqlite(4096, 2));
	r = scan("");
	assert_false(only(&r)->busy_sqlite);
	dbt_scan_result_release(&r);
	tree_put(root, "x.db-wal", "");
	tree_put(root, "x.db-shm", "shared");
	r = scan("");
	db = only(&r);
	assert_int_equal(db->n_members, 3);
	assert_false(db->busy_sqlite);
	dbt_scan_result_release(&r);
	tree_put(root, "x.db-wal", "rows");
	r = scan("");
	assert_true(only(&r)->busy_sqlite);
	assert_int_equal(only(&r)->moves, DBT_MOVES_FILE);
	assert_false(member(only(&r), "x.db-wal")->hot);
	dbt_scan_result_release(&r);
	tree_put(root, "x.db-wal", "");
	tree_put(root, "x.db-journal", "hot");
	r = scan("");
	assert_true(only(&r)->busy_sqlite);
	dbt_scan_result_release(&r);
}

static void blast_volumes_are_one(void **state)
{
	struct dbt_scan_result r;
	const struct dbt_database *db;

	(void)state;
	sample_blast_volume(root, "nr.00", true);
	sample_blast_volume(root, "nr.01", true);
	tree_put(root, "nr.pal", "#\nTITLE nr\nDBLIST nr.00 \"nr.01\"\nNSEQ 40\n");
	tree_put(root, "nr.pdb", "lmdb");
	r = scan("");
	db = only(&r);
	assert_string_equal(db->name, "nr");
	assert_path(db->path, "nr");
	assert_int_equal(db->n_members, 8);
	assert_int_equal(db->moves, DBT_MOVES_SET);
	assert_true(db->complete);
	assert_true(member(db, "nr.01.psq")->hot);
	assert_false(member(db, "nr.01.phr")->hot);
	dbt_scan_result_release(&r);

	cut("nr.01.psq", 1);
	r = scan("");
	assert_string_equal(only(&r)->incomplete, "'nr.01.psq' is cut short: 2000 of 2001 bytes");
	dbt_scan_result_release(&r);

	move("nr.01.psq", "elsewhere");
	r = scan("");
	assert_false(only(&r)->complete);
	assert_non_null(strstr(only(&r)->incomplete, "nr.01"));
	dbt_scan_result_release(&r);
}

static void blast_molecules_do_not_mix(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_blast_volume(root, "both", true);
	sample_blast_volume(root, "both", false);
	r = scan("");
	assert_int_equal(r.n_databases, 2);
	assert_int_equal(r.databases[0].n_members, 3);
	assert_int_equal(r.databases[1].n_members, 3);
	dbt_scan_result_release(&r);
}

static void an_alias_over_others_refers_to_them(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_blast_volume(root, "a", true);
	sample_blast_volume(root, "b", true);
	tree_put(root, "all.pal", "TITLE all\nDBLIST a b\n");
	r = scan("");
	assert_int_equal(r.n_databases, 3);
	assert_string_equal(r.databases[1].name, "all");
	assert_int_equal(r.databases[1].n_members, 1);
	assert_int_equal(strncmp(r.databases[1].note, "an alias over 'a', 'b'; ", 24), 0);
	dbt_scan_result_release(&r);
}

static void an_index_without_its_sequences_is_incomplete(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_blast_volume(root, "x", true);
	move("x.psq", "gone");
	r = scan("");
	assert_int_equal(r.n_databases, 1);
	assert_false(r.databases[0].complete);
	assert_string_equal(r.databases[0].incomplete, "'x.psq' is missing");
	dbt_scan_result_release(&r);
}

static void kraken2_is_its_directory(void **state)
{
	struct dbt_scan_result r;
	const struct dbt_database *db;

	(void)state;
	sample_kraken2_dir(root, "standard");
	tree_put(root, "standard/database100mers.kmer_distrib", "x");
	tree_put(root, "standard/library/added/x.fna", ">x\nACGT\n");
	r = scan("");
	db = only(&r);
	assert_string_equal(db->name, "standard");
	assert_path(db->path, "standard");
	assert_int_equal(db->n_members, 4);
	assert_int_equal(db->moves, DBT_MOVES_FILE);
	assert_string_equal(dbt_database_access(db), "loaded");
	dbt_scan_result_release(&r);
	move("standard/opts.k2d", "opts");
	r = scan("");
	assert_string_equal(only(&r)->incomplete, "'opts.k2d' is missing");
	dbt_scan_result_release(&r);
}

static void hmmer_is_complete_or_says_why(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_hmmer_set(root, "Pfam-A.hmm");
	tree_put(root, "Pfam-A.hmm", "HMMER3/f\n");
	r = scan("");
	assert_string_equal(only(&r)->name, "Pfam-A");
	assert_path(only(&r)->path, "Pfam-A.hmm");
	assert_int_equal(only(&r)->n_members, 5);
	assert_true(only(&r)->complete);
	dbt_scan_result_release(&r);
	cut("Pfam-A.hmm.h3p", 1);
	r = scan("");
	assert_non_null(strstr(only(&r)->incomplete, "'Pfam-A.hmm.h3p' is cut short"));
	dbt_scan_result_release(&r);
	cut("Pfam-A.hmm.h3i", 1);
	r = scan("");
	assert_non_null(strstr(only(&r)->incomplete, "'Pfam-A.hmm.h3i' is cut short"));
	dbt_scan_result_release(&r);
}

/* ---- composites ---- */

static void bakta_is_one_with_its_parts(void **state)
{
	static const char *const hot[2][2] = { { "bakta.db", "psc.dmnd" },
		                               { "bakta.db", "pscc.dmnd" } };
	struct dbt_scan_result r;

	(void)state;
	for (int light = 0; light < 2; light++) {
		const char *dir = light ? "db-light" : "db";
		const struct dbt_database *db;
		size_t n_hot = 0;

		sample_bakta_dir(root, dir, light);
		r = scan(dir);
		db = only(&r);
		assert_string_equal(db->format, "bakta");
		assert_string_equal(db->name, dir);
		assert_path(db->path, dir);
		assert_true(db->complete);
		assert_true(db->uri_target);
		assert_string_equal(dbt_database_access(db), "mixed");
		assert_int_equal(db->moves, DBT_MOVES_FILE);
		for (size_t i = 0; i < db->n_members; i++)
			n_hot += db->members[i].hot;
		assert_int_equal(n_hot, 2);
		assert_true(member(db, hot[light][0])->hot);
		assert_true(member(db, hot[light][1])->hot);
		assert_int_equal(member(db, "bakta.db")->class, DBT_CLASS_RANDOM_PREAD);
		assert_int_equal(member(db, hot[light][1])->class, DBT_CLASS_STREAM);
		assert_true(has_member(db, "amrfinderplus-db/2024-12-18.1/AMR.LIB.h3f"));
		assert_true(has_member(db, "amrfinderplus-db/2024-12-18.1/AMRProt.psq"));
		dbt_scan_result_release(&r);
	}
	r = scan("");
	assert_int_equal(r.n_databases, 2);
	dbt_scan_result_release(&r);
}

static void bakta_tells_what_is_wrong_with_a_part(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_bakta_dir(root, "db", false);
	cut("db/psc.dmnd", 1);
	r = scan("");
	assert_non_null(strstr(only(&r)->incomplete, "'psc.dmnd' is cut short"));
	dbt_scan_result_release(&r);
	move("db/psc.dmnd", "psc");
	move("db/rRNA.i1f", "rrna");
	r = scan("db");
	assert_string_equal(only(&r)->incomplete, "'psc.dmnd' is missing; 'rRNA.i1f' is missing");
	dbt_scan_result_release(&r);
	tree_put(root, "db/bakta.db-wal", "rows");
	r = scan("db");
	assert_true(only(&r)->busy_sqlite);
	dbt_scan_result_release(&r);
}

/* Before the light type there was none to tell: what stands there tells. */
static void bakta_without_a_type_is_what_it_holds(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_bakta_dir(root, "db", true);
	tree_put(root, "db/version.json", "{\"date\": \"2022-01-01\", \"major\": 4, \"minor\": 0}");
	r = scan("db");
	assert_true(only(&r)->complete);
	assert_true(member(only(&r), "pscc.dmnd")->hot);
	dbt_scan_result_release(&r);
}

static void a_version_alone_is_nothing(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	tree_put(root, "web/version.json",
	         "{\"date\": \"2025\", \"major\": 1, \"minor\": 2, \"type\": \"full\"}");
	sample_write(root, "web/other.dmnd", sample_diamond(5));
	r = scan("");
	assert_string_equal(only(&r)->format, "diamond");
	dbt_scan_result_release(&r);
}

/* ---- links ---- */

static void a_promoted_file_is_shown_once(void **state)
{
	struct dbt_scan_result r;
	const struct dbt_database *db;

	(void)state;
	sample_write(root, "store/psc.dmnd", sample_diamond(200));
	sample_write(root, "fast/psc.dmnd", sample_diamond(200));
	promote("store/psc.dmnd", "fast/psc.dmnd");
	r = scan("store");
	db = only(&r);
	assert_path(db->path, "store/psc.dmnd");
	assert_true(db->promoted);
	assert_true(db->members[0].promoted);
	assert_false(db->members[0].link_of_database);
	assert_true(db->complete);
	assert_int_equal(db->size_bytes, 96 + 200 * 16 + 201 * 16);
	dbt_scan_result_release(&r);
}

static void a_promoted_member_counts_in_its_set(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_bakta_dir(root, "store/db", false);
	sample_write(root, "fast/psc.dmnd", sample_diamond(50));
	promote("store/db/psc.dmnd", "fast/psc.dmnd");
	r = scan("store");
	assert_true(only(&r)->complete);
	assert_true(only(&r)->promoted);
	assert_true(member(only(&r), "psc.dmnd")->promoted);
	assert_false(member(only(&r), "bakta.db")->promoted);
	assert_true(member(only(&r), "psc.dmnd")->size_bytes > 0);
	dbt_scan_result_release(&r);
}

static void a_dangling_promotion_is_incomplete(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "psc.dmnd", sample_diamond(200));
	promote("psc.dmnd", "gone/psc.dmnd");
	r = scan("");
	assert_false(only(&r)->complete);
	assert_true(only(&r)->promoted);
	assert_string_equal(only(&r)->incomplete,
	                    "'psc.dmnd' is a link of dbtier to a copy that is not there");
	assert_int_equal(only(&r)->size_bytes, 96 + 200 * 16 + 201 * 16);
	dbt_scan_result_release(&r);
}

static bool says_ours(void *data, const char *path)
{
	return strcmp(path, data) == 0;
}

/* After reclaim nothing stands beside the link: the ledger knows it. */
static void the_ledger_knows_links(void **state)
{
	char *path = tree_path(root, "store/psc.dmnd"), *copy = tree_path(root, "fast/psc.dmnd");
	const struct dbt_scan_opts opts = { .is_ours = says_ours, .is_ours_data = path };
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "fast/psc.dmnd", sample_diamond(200));
	tree_symlink(root, "store/psc.dmnd", copy);
	r = scan_with("store", &opts);
	assert_true(only(&r)->promoted);
	dbt_scan_result_release(&r);
	r = scan("store"); /* nobody knows it: a stranger's link, not followed */
	assert_int_equal(r.n_databases, 0);
	dbt_scan_result_release(&r);
	free(path);
	free(copy);
}

/* A link that somebody else made is a member of its set, but its bytes count where they lie. */
static void foreign_links_are_members_without_bytes(void **state)
{
	char *target = tree_path(root, "elsewhere/taxo.k2d");
	struct dbt_scan_result r;

	(void)state;
	sample_kraken2_dir(root, "db");
	tree_mkdir(root, "elsewhere", 0755);
	move("db/taxo.k2d", "elsewhere/taxo.k2d");
	tree_symlink(root, "db/taxo.k2d", target);
	r = scan("db");
	assert_true(only(&r)->complete);
	assert_true(member(only(&r), "taxo.k2d")->link_of_database);
	assert_int_equal(member(only(&r), "taxo.k2d")->size_bytes, 0);
	assert_false(member(only(&r), "taxo.k2d")->hot);
	dbt_scan_result_release(&r);
	free(target);
}

static void links_do_not_lead_out_or_around(void **state)
{
	char *outside = tree_path(root, "outside");
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "outside/x.dmnd", sample_diamond(10));
	tree_symlink(root, "in/dir", outside);
	tree_symlink(root, "in/loop", ".");
	tree_symlink(root, "in/loop.db", "loop.db");
	tree_symlink(root, "in/dangling.dmnd", "nowhere.dmnd");
	r = scan("in");
	assert_int_equal(r.n_databases, 0);
	assert_int_equal(r.troubles_total, 0);
	dbt_scan_result_release(&r);
	free(outside);
}

static void leavings_are_ignored(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, ".psc.dmnd.dbtier-original", sample_diamond(5000));
	sample_write(root, ".psc.dmnd.dbtier-a1b2c3.part", sample_diamond(5000));
	r = scan("");
	assert_int_equal(r.n_databases, 0);
	dbt_scan_result_release(&r);
}

static void hard_links_are_one(void **state)
{
	char *a, *b, expected[600];
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "a/x.dmnd", sample_diamond(10));
	tree_mkdir(root, "b", 0755);
	a = tree_path(root, "a/x.dmnd");
	b = tree_path(root, "b/y.dmnd");
	assert_int_equal(link(a, b), 0);
	r = scan("");
	assert_path(only(&r)->path, "a/x.dmnd");
	(void)snprintf(expected, sizeof(expected), "hard-linked also as '%s'", b);
	assert_string_equal(only(&r)->note, expected);
	dbt_scan_result_release(&r);
	free(a);
	free(b);
}

/* ---- walking ---- */

static void names_are_bytes(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "a\nb/\xff\xfe.dmnd", sample_diamond(10));
	r = scan("");
	assert_path(only(&r)->path, "a\nb/\xff\xfe.dmnd");
	assert_string_equal(only(&r)->name, "\xff\xfe");
	dbt_scan_result_release(&r);
}

/* Deeper than there are descriptors for, and than a path may be long. */
static void depth_is_no_limit(void **state)
{
	enum { DEPTH = 1500 };
	struct dbt_scan_result r;
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dbt_buf sample = sample_diamond(10);
	struct rlimit before, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int i = 0; i < DEPTH; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "deep", 0755), 0);
		next = openat(fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		if (i == DEPTH / 2)
			assert_int_equal(mkdirat(fd, "also", 0755), 0);
		(void)close(fd);
		fd = next;
	}
	{
		int out = openat(fd, "x.dmnd", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		assert_int_equal(write(out, sample.data, sample.len), (ssize_t)sample.len);
		(void)close(out);
	}
	(void)close(fd);
	dbt_buf_release(&sample);
	r = scan("");
	assert_int_equal(r.n_databases, 1);
	assert_int_equal(r.troubles_total, 0);
	dbt_scan_result_release(&r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	/* tree_remove goes by path; this is too deep for it. */
	fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < DEPTH; i++) {
		char name[32];
		int next;

		(void)snprintf(name, sizeof(name), "../up%d", i);
		if (i > 0)
			assert_int_equal(renameat(fd, "deep", fd, name), 0);
		next = openat(fd, i > 0 ? name : "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(fd);
		fd = next;
	}
	(void)close(fd);
}

/* Permissions do not stop root, so the call is made to fail. */
static int locked_openat(int dirfd, const char *name, int flags, mode_t mode)
{
	return strcmp(name, "locked") == 0 ? -EACCES
	                                   : dbt_sys_real.openat(dirfd, name, flags, mode);
}

static void what_cannot_be_read_is_told(void **state)
{
	struct dbt_sys sys = dbt_sys_real;
	struct dbt_scan_result r;

	(void)state;
	sys.openat = locked_openat;
	ctx.sys = &sys;
	sample_write(root, "x.dmnd", sample_diamond(10));
	sample_write(root, "locked/y.dmnd", sample_diamond(10));
	r = scan("");
	assert_path(only(&r)->path, "x.dmnd");
	assert_int_equal(r.troubles_total, 1);
	assert_int_equal(r.n_troubles, 1);
	assert_path(r.troubles[0].path, "locked");
	assert_int_equal(r.troubles[0].code, -EACCES);
	dbt_scan_result_release(&r);
}

static int never_openat(int dirfd, const char *name, int flags, mode_t mode)
{
	if (strncmp(name, "plain", 5) == 0)
		fail_msg("'%s' was opened", name);
	return dbt_sys_real.openat(dirfd, name, flags, mode);
}

/* What is there in thousands is not opened: everyday names, and FASTA too small to be searched whole. */
static void plain_files_are_not_opened(void **state)
{
	struct dbt_sys sys = dbt_sys_real;
	struct dbt_scan_result r;

	(void)state;
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = { "plain.fasta", "plain.fastq.gz", "plain.log",
			                             "plain" };
		struct dbt_buf b = { 0 };

		put_fill(&b, '>', i < 3 ? 100000 : 1000);
		sample_write(root, names[i], b);
	}
	sys.openat = never_openat;
	ctx.sys = &sys;
	r = scan("");
	assert_int_equal(r.n_databases, 0);
	assert_int_equal(r.files_seen, 4);
	dbt_scan_result_release(&r);
}

/* Calls that fail stand for files that vanish while the walk is on them. */
static int failing_openat(int dirfd, const char *name, int flags, mode_t mode)
{
	return strcmp(name, "x.dmnd") == 0 ? -ENOENT
	                                   : dbt_sys_real.openat(dirfd, name, flags, mode);
}

static void what_vanishes_is_told(void **state)
{
	struct dbt_sys sys = dbt_sys_real;
	struct dbt_scan_result r;

	(void)state;
	sys.openat = failing_openat;
	ctx.sys = &sys;
	sample_write(root, "x.dmnd", sample_diamond(10));
	sample_write(root, "y.dmnd", sample_diamond(10));
	r = scan("");
	assert_path(only(&r)->path, "y.dmnd");
	assert_int_equal(r.troubles_total, 1);
	assert_path(r.troubles[0].path, "x.dmnd");
	dbt_scan_result_release(&r);
}

static void a_missing_start_is_an_error(void **state)
{
	struct dbt_scan_result r;
	struct dbt_err err = { 0 };
	char *path = tree_path(root, "missing");

	(void)state;
	assert_int_equal(dbt_scan(&ctx, path, NULL, &r, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot open"));
	free(path);
}

static void options_narrow_the_answer(void **state)
{
	static const char *const formats[] = { "sqlite" }, *const excludes[] = { "skip*" };
	struct dbt_scan_opts opts = { .min_size_bytes = 4096 };
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "small.dmnd", sample_diamond(10));
	sample_write(root, "large.dmnd", sample_diamond(1000));
	sample_write(root, "skipped/x.db", sample_sqlite(4096, 2));
	r = scan_with("", &opts);
	assert_int_equal(r.n_databases, 2);
	dbt_scan_result_release(&r);
	opts = (struct dbt_scan_opts){ .formats = formats, .n_formats = 1 };
	r = scan_with("", &opts);
	assert_path(only(&r)->path, "skipped/x.db");
	dbt_scan_result_release(&r);
	opts = (struct dbt_scan_opts){ .exclude = excludes, .n_exclude = 1 };
	r = scan_with("", &opts);
	assert_int_equal(r.n_databases, 2);
	dbt_scan_result_release(&r);
}

static void unknown_files_on_request(void **state)
{
	struct dbt_scan_opts opts = { .unknown_bytes = 1000 };
	struct dbt_buf junk = { 0 };
	struct dbt_scan_result r;

	(void)state;
	put_fill(&junk, 'x', 2000);
	sample_write(root, "reads.fastq.gz", junk);
	sample_write(root, "x.dmnd", sample_diamond(100));
	tree_put(root, "tiny", "x");
	r = scan_with("", &opts);
	assert_int_equal(r.n_databases, 2);
	assert_string_equal(r.databases[0].format, "unknown");
	assert_path(r.databases[0].path, "reads.fastq.gz");
	assert_string_equal(r.databases[1].format, "diamond");
	dbt_scan_result_release(&r);
}

static void cancelled_is_partial(void **state)
{
	atomic_int cancel = 1;
	struct dbt_scan_result r;

	(void)state;
	sample_write(root, "x.dmnd", sample_diamond(10));
	ctx.cancel = &cancel;
	r = scan("");
	assert_true(r.partial);
	dbt_scan_result_release(&r);
}

static void many_names_in_one_directory(void **state)
{
	enum { N = 20000 };
	struct dbt_scan_result r;
	char name[64];

	(void)state;
	for (int i = 0; i < N; i++) {
		(void)snprintf(name, sizeof(name), "f%05d.odd", i);
		tree_put(root, name, "");
	}
	sample_write(root, "x.dmnd", sample_diamond(10));
	r = scan("");
	assert_int_equal(r.n_databases, 1);
	assert_int_equal(r.files_seen, N + 1);
	dbt_scan_result_release(&r);
}

/* ---- whose file is it ---- */

static void assert_owner(const char *path, const char *owner)
{
	struct dbt_database db = { 0 };
	struct dbt_err err = { 0 };
	char *full = tree_path(root, path);
	int r = dbt_scan_owner(&ctx, full, NULL, &db, &err);

	if (!owner) {
		assert_int_equal(r, -ENOENT);
		assert_int_equal(err.kind, DBT_ERR_UNKNOWN);
	} else {
		if (r < 0)
			fail_msg("%s", err.text);
		assert_path(db.path, owner);
		dbt_database_release(&db);
	}
	free(full);
}

static void owners_are_found(void **state)
{
	(void)state;
	sample_write(root, "x.dmnd", sample_diamond(10));
	tree_put(root, "plain.txt", "x");
	sample_blast_volume(root, "nr.00", true);
	tree_put(root, "nr.pal", "TITLE nr\nDBLIST nr.00\n");
	sample_kraken2_dir(root, "k2");
	sample_bakta_dir(root, "store/db", false);
	assert_owner("x.dmnd", "x.dmnd");
	assert_owner("plain.txt", NULL);
	assert_owner("missing", NULL);
	assert_owner("nr.00.psq", "nr");
	assert_owner("nr", "nr"); /* what a user gives blastp: no file has this name */
	assert_owner("k2/taxo.k2d", "k2");
	assert_owner("k2", "k2");
	assert_owner("store/db", "store/db");
	assert_owner("store/db/psc.dmnd", "store/db");
	assert_owner("store/db/amrfinderplus-db/2024-12-18.1/AMR.LIB.h3f", "store/db");
	assert_owner("store", NULL);
}

static void one_file_is_scanned_with_its_set(void **state)
{
	struct dbt_scan_result r;

	(void)state;
	sample_bakta_dir(root, "db", true);
	tree_put(root, "plain.txt", "x");
	r = scan("db/bakta.db");
	assert_path(only(&r)->path, "db");
	assert_null(r.root);
	dbt_scan_result_release(&r);
	r = scan("plain.txt");
	assert_int_equal(r.n_databases, 0);
	dbt_scan_result_release(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_found_by_content),
		TEST(a_large_file_needs_no_name),
		TEST(a_cut_file_is_incomplete),
		TEST(sqlite_takes_its_siblings),
		TEST(blast_volumes_are_one),
		TEST(blast_molecules_do_not_mix),
		TEST(an_alias_over_others_refers_to_them),
		TEST(an_index_without_its_sequences_is_incomplete),
		TEST(kraken2_is_its_directory),
		TEST(hmmer_is_complete_or_says_why),
		TEST(bakta_is_one_with_its_parts),
		TEST(bakta_tells_what_is_wrong_with_a_part),
		TEST(bakta_without_a_type_is_what_it_holds),
		TEST(a_version_alone_is_nothing),
		TEST(a_promoted_file_is_shown_once),
		TEST(a_promoted_member_counts_in_its_set),
		TEST(a_dangling_promotion_is_incomplete),
		TEST(the_ledger_knows_links),
		TEST(foreign_links_are_members_without_bytes),
		TEST(links_do_not_lead_out_or_around),
		TEST(leavings_are_ignored),
		TEST(hard_links_are_one),
		TEST(names_are_bytes),
		TEST(depth_is_no_limit),
		TEST(what_cannot_be_read_is_told),
		TEST(plain_files_are_not_opened),
		TEST(what_vanishes_is_told),
		TEST(a_missing_start_is_an_error),
		TEST(options_narrow_the_answer),
		TEST(unknown_files_on_request),
		TEST(cancelled_is_partial),
		TEST(many_names_in_one_directory),
		TEST(owners_are_found),
		TEST(one_file_is_scanned_with_its_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
