/* Writes databases that the real tools accept, of any size, from nothing but this program: for the
 * demonstration and for tests where the tools are not installed. The contents are the same on every
 * run.
 *
 *	mkdb sqlite  FILE [SIZE]          SQLite with the tables of Bakta; ups is keyed by 16 bytes
 *	mkdb diamond FILE [SIZE]          DIAMOND database, version 3
 *	mkdb query   FILE                 FASTA: the first proteins of that DIAMOND database
 *	mkdb bakta   DIR  [SIZE]          all files of a full Bakta database
 *	mkdb bakta-light DIR [SIZE]       of a light one
 *	mkdb blast   BASE [SIZE] [N]      BLAST v4 protein database, in N volumes where N > 1
 *	mkdb kraken2 DIR  [SIZE]          hash.k2d, opts.k2d, taxo.k2d
 *	mkdb hmmer   BASE [SIZE]          the four files of hmmpress, for recognisers only
 *	mkdb infernal BASE [SIZE]         the four files of cmpress, for recognisers only
 *
 * SIZE is about what the files take together, as 64M or 2G; 1M without. */
#include "base/units.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fputs("mkdb: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

/* ---- output ---- */

static FILE *create(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static FILE *create(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	(void)vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	f = fopen(path, "wb");
	if (!f)
		die("cannot create '%s': %s", path, strerror(errno));
	return f;
}

static void finish(FILE *f)
{
	bool bad = ferror(f) != 0;

	if (fclose(f) != 0 || bad)
		die("cannot write: %s", strerror(errno));
}

static void put(FILE *f, const void *data, size_t len)
{
	(void)fwrite(data, 1, len, f); /* errors show in finish */
}

static void put_le(FILE *f, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		(void)fputc(i < sizeof(v) ? (int)(v >> (8 * i) & 0xff) : 0, f);
}

static void put_be(FILE *f, uint64_t v, unsigned bytes)
{
	for (unsigned i = bytes; i > 0; i--)
		(void)fputc((int)(v >> (8 * (i - 1)) & 0xff), f);
}

/* A generator of its own, so that the files are the same everywhere. */
static uint64_t state = 1;

static uint32_t next_random(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(state >> 33);
}

static void put_random(FILE *f, uint64_t len)
{
	unsigned char block[4096];

	while (len > 0) {
		size_t n = len < sizeof(block) ? (size_t)len : sizeof(block);

		for (size_t i = 0; i < n; i += 4) {
			uint32_t v = next_random();

			memcpy(block + i, &v, sizeof(v));
		}
		put(f, block, n);
		len -= n;
	}
}

/* ---- proteins ---- */

enum { MIN_LEN = 150, LEN_RANGE = 300, MEAN_ENTRY = MIN_LEN + LEN_RANGE / 2 + 40 };

/* Protein i as residue codes 0 to 19; each by its own seed, so that any one can be had alone. */
static uint32_t protein(uint64_t i, unsigned char codes[MIN_LEN + LEN_RANGE])
{
	uint32_t len;

	state = i * 0x9e3779b97f4a7c15ULL + 12345;
	(void)next_random();
	len = MIN_LEN + next_random() % LEN_RANGE;
	codes[0] = 12; /* M */
	for (uint32_t k = 1; k < len; k++)
		codes[k] = (unsigned char)(next_random() % 20);
	return len;
}

static int protein_title(uint64_t i, char title[64])
{
	return snprintf(title, 64, "SYN%08llu synthetic protein", (unsigned long long)i);
}

static void make_query(const char *path)
{
	static const char letters[] = "ARNDCQEGHILKMFPSTWYV";
	unsigned char codes[MIN_LEN + LEN_RANGE];
	char title[64];
	FILE *f = create("%s", path);

	for (uint64_t i = 0; i < 5; i++) {
		uint32_t len = protein(i, codes);

		(void)protein_title(i, title);
		(void)fprintf(f, ">query_%s\n", title);
		for (uint32_t k = 0; k < len; k++)
			(void)fputc(letters[codes[k]], f);
		(void)fputc('\n', f);
	}
	finish(f);
}

/* Layout: DIAMOND src/legacy/dmnd/dmnd.h. Two headers, the sequences (ff, residues, ff, title, 00),
 * and 16 bytes a sequence with its offset and length. */
static void make_diamond(const char *path, uint64_t size)
{
	enum { HEADERS = 96, BUILD = 157, DB_VERSION = 3 };
	uint64_t n = size / (MEAN_ENTRY + 2 + 16), letters = 0, off = HEADERS;
	unsigned char codes[MIN_LEN + LEN_RANGE];
	char title[64];
	FILE *f = create("%s", path);

	if (n == 0)
		n = 1;
	for (unsigned i = 0; i < HEADERS; i++)
		(void)fputc(0, f);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t len = protein(i, codes);

		(void)protein_title(i, title);
		(void)fputc(0xff, f);
		put(f, codes, len);
		(void)fputc(0xff, f);
		put(f, title, strlen(title) + 1);
		letters += len;
	}
	for (uint64_t i = 0; i <= n; i++) {
		uint32_t len = i < n ? protein(i, codes) : 0;

		put_le(f, off, 8);
		put_le(f, len, 4);
		put_le(f, 0, 4);
		off += len + 2 + (i < n ? (uint64_t)protein_title(i, title) + 1 : 0);
	}
	off -= 2; /* of the entry that ends the array */
	rewind(f);
	put_le(f, 0x024af8a415ee186dULL, 8);
	put_le(f, BUILD, 4);
	put_le(f, DB_VERSION, 4);
	put_le(f, n, 8);
	put_le(f, letters, 8);
	put_le(f, off, 8);
	put_le(f, HEADERS - 48, 8);
	put_random(f, 16); /* a hash of the contents, which no reader recomputes */
	finish(f);
}

/* ---- SQLite ---- */

static void run(sqlite3 *db, const char *sql)
{
	char *text = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
		die("sqlite: %s", text ? text : "out of memory");
}

/* The keys rise evenly over the whole range, as sorted digests do. */
static void fill_ups(sqlite3 *db, uint64_t rows)
{
	sqlite3_stmt *insert = NULL;
	uint64_t step = UINT64_MAX / rows;
	unsigned char key[16];
	char id[32];

	if (sqlite3_prepare_v2(db, "INSERT INTO ups VALUES (?, ?, ?, ?, ?)", -1, &insert, NULL) !=
	    SQLITE_OK)
		die("sqlite: %s", sqlite3_errmsg(db));
	for (uint64_t i = 0; i < rows; i++) {
		for (unsigned k = 0; k < 8; k++)
			key[k] = (unsigned char)((i * step) >> (56 - 8 * k) & 0xff);
		for (unsigned k = 8; k < 16; k++)
			key[k] = (unsigned char)(next_random() & 0xff);
		(void)snprintf(id, sizeof(id), "UPI%010llX", (unsigned long long)i);
		(void)sqlite3_bind_blob(insert, 1, key, sizeof(key), SQLITE_STATIC);
		(void)sqlite3_bind_int(insert, 2, (int)(100 + i % 400));
		(void)sqlite3_bind_text(insert, 3, id + 3, -1, SQLITE_STATIC);
		(void)sqlite3_bind_text(insert, 4, id, -1, SQLITE_STATIC);
		(void)sqlite3_bind_text(insert, 5, id + 2, -1, SQLITE_STATIC);
		if (sqlite3_step(insert) != SQLITE_DONE)
			die("sqlite: %s", sqlite3_errmsg(db));
		(void)sqlite3_reset(insert);
	}
	(void)sqlite3_finalize(insert);
}

static void make_sqlite(const char *path, uint64_t size)
{
	enum { BYTES_A_ROW = 67 };
	uint64_t rows = size / BYTES_A_ROW;
	sqlite3 *db = NULL;

	(void)unlink(path);
	state = 7;
	if (sqlite3_open(path, &db) != SQLITE_OK)
		die("cannot create '%s': %s", path, sqlite3_errmsg(db));
	/* The tables of Bakta. The page size counts only before the first table. */
	run(db, "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
	        "BEGIN;"
	        "CREATE TABLE ups (hash BLOB PRIMARY KEY, length INTEGER NOT NULL, uniparc_id TEXT,"
	        " ncbi_nrp_id TEXT, uniref100_id TEXT) WITHOUT ROWID;"
	        "CREATE TABLE ips (uniref100_id TEXT PRIMARY KEY, uniref90_id TEXT, gene TEXT,"
	        " product TEXT, ec_ids TEXT, go_ids TEXT) WITHOUT ROWID;"
	        "CREATE TABLE psc (uniref90_id TEXT PRIMARY KEY, uniref50_id TEXT, gene TEXT,"
	        " product TEXT, ec_ids TEXT, cog_id TEXT, cog_category TEXT,"
	        " kegg_orthology_id TEXT, go_ids TEXT) WITHOUT ROWID;"
	        "CREATE TABLE pscc (uniref50_id TEXT PRIMARY KEY, product TEXT) WITHOUT ROWID;");
	fill_ups(db, rows ? rows : 1);
	run(db, "COMMIT; PRAGMA journal_mode=DELETE;");
	if (sqlite3_close(db) != SQLITE_OK)
		die("cannot close '%s'", path);
}

/* ---- sets ---- */

/* SSI of Easel 3.0 (esl_ssi.c) with no keys of either kind; offsets then are the end of the header.
 */
static void put_ssi(FILE *f, uint64_t models)
{
	enum { HEADER = 78, FILE_RECORD = 25, KEY_RECORD = 31 };

	put_be(f, 0xd3d3c9b3, 4);
	put_be(f, 0, 4);
	put_be(f, 8, 4);
	put_be(f, 1, 2);
	put_be(f, models, 8);
	put_be(f, 0, 8);
	put_be(f, FILE_RECORD - 16, 4);
	put_be(f, KEY_RECORD - 26, 4);
	put_be(f, 0, 4);
	put_be(f, FILE_RECORD, 4);
	put_be(f, KEY_RECORD, 4);
	put_be(f, 0, 4);
	put_be(f, HEADER, 8);
	put_be(f, HEADER + FILE_RECORD, 8);
	put_be(f, HEADER + FILE_RECORD + models * KEY_RECORD, 8);
	put_random(f, FILE_RECORD + models * KEY_RECORD);
}

struct part {
	const char *suffix, *magic, *end; /* end: the last four bytes */
	unsigned percent;
};

static void make_pressed(const char *base, uint64_t size, const struct part parts[3],
                         const char *index)
{
	FILE *f;

	for (unsigned i = 0; i < 3; i++) {
		f = create("%s%s", base, parts[i].suffix);
		put(f, parts[i].magic, 4);
		put_random(f, size / 100 * parts[i].percent);
		put(f, parts[i].end, 4);
		finish(f);
	}
	f = create("%s%s", base, index);
	put_ssi(f, 20);
	finish(f);
}

static void make_hmmer(const char *base, uint64_t size)
{
	static const struct part parts[3] = {
		{ ".h3f", "\xf3\xe6\xe6\xb3", "\xf3\xe6\xe6\xb3", 25 },
		{ ".h3p", "\xf3\xf0\xe6\xb3", "\xf3\xf0\xe6\xb3", 40 },
		{ ".h3m", "\xba\xed\xed\xe8", "\0\0\0\0", 35 },
	};

	make_pressed(base, size, parts, ".h3i");
}

static void make_infernal(const char *base, uint64_t size)
{
	static const struct part parts[3] = {
		{ ".i1f", "\xf3\xe6\xe1\xb1", "\xf3\xe6\xe6\xb3", 25 },
		{ ".i1p", "\xf3\xf0\xe6\xb3", "\xf3\xf0\xe6\xb3", 40 },
		{ ".i1m", "\xb2\xb0\xed\xe3", "\0\0\0\0", 35 },
	};

	make_pressed(base, size, parts, ".i1i");
}

static void make_kraken2(const char *dir, uint64_t size)
{
	uint64_t cells = size / 4 + 1;
	FILE *f = create("%s/hash.k2d", dir);

	put_le(f, cells, 8);
	put_le(f, cells / 2, 8);
	put_le(f, 29, 8);
	put_le(f, 3, 8);
	put_random(f, cells * 4);
	finish(f);
	f = create("%s/taxo.k2d", dir);
	put(f, "K2TAXDAT", 8);
	put_le(f, 1, 8);  /* nodes */
	put_le(f, 1, 8);  /* bytes of names */
	put_le(f, 1, 8);  /* bytes of ranks */
	put_le(f, 0, 56); /* the root */
	put_le(f, 0, 2);
	finish(f);
	f = create("%s/opts.k2d", dir);
	put_le(f, 35, 8);
	put_le(f, 31, 8);
	put_le(f, 0, 48);
	finish(f);
}

/* One volume: index of version 4, sequences, headers (of which nothing but the length is right). */
static void make_volume(const char *base, uint64_t first, uint64_t n)
{
	enum { HEADER_BYTES = 40 };
	unsigned char codes[MIN_LEN + LEN_RANGE];
	uint64_t letters = 0, off = 1, longest = 0;
	FILE *pin = create("%s.pin", base), *psq = create("%s.psq", base),
	     *phr = create("%s.phr", base);

	(void)fputc(0, psq);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t len = protein(first + i, codes);

		for (uint32_t k = 0; k < len; k++)
			codes[k] = (unsigned char)(codes[k] + 1);
		put(psq, codes, len);
		(void)fputc(0, psq);
		letters += len;
		longest = len > longest ? len : longest;
	}
	put_random(phr, n * HEADER_BYTES);
	put_be(pin, 4, 4);
	put_be(pin, 1, 4);
	put_be(pin, 9, 4);
	put(pin, "synthetic", 9);
	put_be(pin, 24, 4);
	put(pin, "Jan 01, 2020  12:00 AM\0\0", 24);
	put_be(pin, n, 4);
	put_le(pin, letters, 8);
	put_be(pin, longest, 4);
	for (uint64_t i = 0; i <= n; i++)
		put_be(pin, i * HEADER_BYTES, 4);
	for (uint64_t i = 0; i <= n; i++) {
		put_be(pin, off, 4);
		off += i < n ? protein(first + i, codes) + 1 : 0;
	}
	finish(pin);
	finish(psq);
	finish(phr);
}

static void make_blast(const char *base, uint64_t size, unsigned volumes)
{
	const char *name = strrchr(base, '/') ? strrchr(base, '/') + 1 : base;
	uint64_t n = size / (volumes ? volumes : 1) / (MEAN_ENTRY + 8) + 1;
	char volume[PATH_MAX];
	FILE *alias;

	if (volumes < 2) {
		make_volume(base, 0, n);
		return;
	}
	alias = create("%s.pal", base);
	(void)fprintf(alias, "#\n# Alias file\n#\nTITLE synthetic\nDBLIST");
	for (unsigned v = 0; v < volumes; v++) {
		(void)snprintf(volume, sizeof(volume), "%s.%02u", base, v);
		make_volume(volume, v * n, n);
		(void)fprintf(alias, " %s.%02u", name, v);
	}
	(void)fputc('\n', alias);
	finish(alias);
}

static void make_dir(const char *path)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		die("cannot create '%s': %s", path, strerror(errno));
}

static void make_text(const char *dir, const char *name, const char *text)
{
	FILE *f = create("%s/%s", dir, name);

	(void)fputs(text, f);
	finish(f);
}

/* The files that Bakta insists on (bakta/db.py), in the proportions of a real database: half bakta.db,
 * half the DIAMOND database of protein clusters, everything else small. */
static void make_bakta(const char *dir, uint64_t size, bool light)
{
	static const char *const hmms[] = { "antifam", "pfam" };
	static const char *const cms[] = { "ncRNA-genes", "ncRNA-regions", "rRNA" };
	uint64_t small = size / 100 < 1 << 20 ? size / 100 + 4096 : 1 << 20;
	char path[PATH_MAX];

	make_dir(dir);
	(void)snprintf(path, sizeof(path), "%s/bakta.db", dir);
	make_sqlite(path, size / 100 * 47);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, light ? "pscc.dmnd" : "psc.dmnd");
	make_diamond(path, size / 100 * 51);
	(void)snprintf(path, sizeof(path), "%s/sorf.dmnd", dir);
	make_diamond(path, small);
	(void)snprintf(path, sizeof(path), "%s/expert-protein-sequences.dmnd", dir);
	make_diamond(path, small);
	for (size_t i = 0; i < sizeof(hmms) / sizeof(hmms[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, hmms[i]);
		make_hmmer(path, small);
	}
	for (size_t i = 0; i < sizeof(cms) / sizeof(cms[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, cms[i]);
		make_infernal(path, small);
	}
	make_text(dir, "oric.fna", ">oriC\nGATCTATTTATTTAGAGATCTGTTCTATTGTGATCTCTTATTAGGATCG\n");
	make_text(dir, "orit.fna", ">oriT\nGGGTTTTTTCGTGTTTTTCCGCATCCTGGCATACTCAGGCGACGATATG\n");
	make_text(dir, "rfam-go.tsv", "Rfam:RF00001\tGO:0003735\n");
	make_text(dir, "version.json",
	          light ? "{\n    \"date\": \"2025-02-24\",\n    \"major\": 6,\n    \"minor\": 0,\n"
	                  "    \"type\": \"light\"\n}\n"
	                : "{\n    \"date\": \"2025-02-24\",\n    \"major\": 6,\n    \"minor\": 0,\n"
	                  "    \"type\": \"full\"\n}\n");
	(void)snprintf(path, sizeof(path), "%s/amrfinderplus-db", dir);
	make_dir(path);
	(void)snprintf(path, sizeof(path), "%s/amrfinderplus-db/2024-12-18.1", dir);
	make_dir(path);
	make_text(path, "version.txt", "2024-12-18.1\n");
	(void)snprintf(path, sizeof(path), "%s/amrfinderplus-db/2024-12-18.1/AMR.LIB", dir);
	make_hmmer(path, small);
	(void)snprintf(path, sizeof(path), "%s/amrfinderplus-db/2024-12-18.1/AMRProt", dir);
	make_blast(path, small, 1);
	(void)snprintf(path, sizeof(path), "%s/amrfinderplus-db/latest", dir);
	if (symlink("2024-12-18.1", path) < 0 && errno != EEXIST)
		die("cannot link '%s': %s", path, strerror(errno));
}

int main(int argc, char **argv)
{
	uint64_t size = 1 << 20;
	const char *kind = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : NULL;

	if (!path)
		die("usage: mkdb KIND PATH [SIZE] [N]");
	if (argc > 3 && dbt_units_parse_size(argv[3], &size) < 0)
		die("'%s' is no size", argv[3]);
	if (strcmp(kind, "sqlite") == 0)
		make_sqlite(path, size);
	else if (strcmp(kind, "diamond") == 0)
		make_diamond(path, size);
	else if (strcmp(kind, "query") == 0)
		make_query(path);
	else if (strcmp(kind, "bakta") == 0 || strcmp(kind, "bakta-light") == 0)
		make_bakta(path, size, strcmp(kind, "bakta-light") == 0);
	else if (strcmp(kind, "blast") == 0)
		make_blast(path, size, argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 1);
	else if (strcmp(kind, "hmmer") == 0)
		make_hmmer(path, size);
	else if (strcmp(kind, "infernal") == 0)
		make_infernal(path, size);
	else if (strcmp(kind, "kraken2") == 0) {
		make_dir(path);
		make_kraken2(path, size);
	} else
		die("'%s' is nothing to make", kind);
	return 0;
}
