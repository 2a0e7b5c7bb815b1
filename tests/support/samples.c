#include "support/samples.h"

#include "support/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void put_le(struct dbt_buf *buf, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		assert_int_equal(dbt_buf_addc(buf, (char)(value >> (8 * i) & 0xff)), 0);
}

void put_be(struct dbt_buf *buf, uint64_t value, unsigned bytes)
{
	for (unsigned i = bytes; i > 0; i--)
		assert_int_equal(dbt_buf_addc(buf, (char)(value >> (8 * (i - 1)) & 0xff)), 0);
}

void put_text(struct dbt_buf *buf, const char *text)
{
	assert_int_equal(dbt_buf_adds(buf, text), 0);
}

void put_fill(struct dbt_buf *buf, unsigned char byte, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(dbt_buf_addc(buf, (char)byte), 0);
}

/* ---- files ---- */

struct dbt_buf sample_diamond(uint64_t sequences)
{
	enum { HEADERS = 96, RESIDUES = 10, TITLE = 4, ENTRY = RESIDUES + 2 + TITLE };
	struct dbt_buf b = { 0 };

	put_le(&b, 0x024af8a415ee186dULL, 8);
	put_le(&b, 157, 4);
	put_le(&b, 3, 4);
	put_le(&b, sequences, 8);
	put_le(&b, sequences * RESIDUES, 8);
	put_le(&b, HEADERS + sequences * ENTRY, 8);
	put_le(&b, HEADERS - 48, 8);
	put_fill(&b, 0, HEADERS - 48);
	for (uint64_t i = 0; i < sequences; i++) {
		put_fill(&b, 0xff, 1);
		put_fill(&b, (unsigned char)(i % 20), RESIDUES);
		put_fill(&b, 0xff, 1);
		put_text(&b, "seq");
		put_fill(&b, 0, 1);
	}
	for (uint64_t i = 0; i <= sequences; i++) {
		put_le(&b, HEADERS + i * ENTRY, 8);
		put_le(&b, i < sequences ? RESIDUES : 0, 4);
		put_le(&b, 0, 4);
	}
	return b;
}

struct dbt_buf sample_sqlite(uint32_t page_size, uint32_t pages)
{
	struct dbt_buf b = { 0 };

	put_text(&b, "SQLite format 3");
	put_fill(&b, 0, 1);
	put_be(&b, page_size == 65536 ? 1 : page_size, 2);
	put_fill(&b, 1, 2);
	put_be(&b, 0x00402020, 4);
	put_be(&b, 7, 4); /* change counter */
	put_be(&b, pages, 4);
	put_fill(&b, 0, 92 - 32);
	put_be(&b, 7, 4); /* the counter that the page count is valid for */
	put_be(&b, 3040001, 4);
	put_fill(&b, 0, (size_t)page_size * pages - b.len);
	return b;
}

struct dbt_buf sample_kraken2_hash(uint64_t capacity, unsigned cell_bits)
{
	struct dbt_buf b = { 0 };

	put_le(&b, capacity, 8);
	put_le(&b, capacity / 2, 8);
	put_le(&b, cell_bits - 3, 8);
	put_le(&b, 3, 8);
	put_fill(&b, 0x5a, capacity * cell_bits / 8);
	return b;
}

struct dbt_buf sample_kraken2_taxo(void)
{
	struct dbt_buf b = { 0 };

	put_text(&b, "K2TAXDAT");
	put_fill(&b, 0, 100);
	return b;
}

struct dbt_buf sample_kraken2_opts(void)
{
	struct dbt_buf b = { 0 };

	put_le(&b, 35, 8);
	put_le(&b, 31, 8);
	put_fill(&b, 0, 48);
	return b;
}

struct dbt_buf sample_blast_index(unsigned version, bool protein, const char *lmdb,
                                  uint32_t sequences, uint32_t header_bytes, uint32_t seq_bytes)
{
	static const char date[24] = "Jan 01, 2020  12:00 AM";
	struct dbt_buf b = { 0 };

	put_be(&b, version, 4);
	put_be(&b, protein ? 1 : 0, 4);
	if (version == 5)
		put_be(&b, 0, 4);
	put_be(&b, 5, 4);
	put_text(&b, "title");
	if (version == 5) {
		put_be(&b, strlen(lmdb), 4);
		put_text(&b, lmdb);
	}
	put_be(&b, sizeof(date), 4);
	assert_int_equal(dbt_buf_add(&b, date, sizeof(date)), 0);
	put_be(&b, sequences, 4);
	put_le(&b, (uint64_t)sequences * seq_bytes, 8);
	put_be(&b, seq_bytes, 4);
	for (uint64_t i = 0; i <= sequences; i++)
		put_be(&b, i * header_bytes, 4);
	for (uint64_t i = 0; i <= sequences; i++)
		put_be(&b, 1 + i * seq_bytes, 4);
	for (uint64_t i = 0; !protein && i <= sequences; i++)
		put_be(&b, 1 + i * seq_bytes, 4);
	return b;
}

struct dbt_buf sample_hmmer_part(const char *magic)
{
	struct dbt_buf b = { 0 };

	put_text(&b, magic);
	put_fill(&b, 0x11, 500);
	put_text(&b, magic);
	return b;
}

struct dbt_buf sample_ssi(uint64_t keys)
{
	enum { HEADER = 78, FILE_RECORD = 25, KEY_RECORD = 31, ALIAS_RECORD = 15 };
	struct dbt_buf b = { 0 };

	put_be(&b, 0xd3d3c9b3, 4);
	put_be(&b, 0, 4);
	put_be(&b, 8, 4);
	put_be(&b, 1, 2);
	put_be(&b, keys, 8);
	put_be(&b, keys, 8);
	put_be(&b, FILE_RECORD - 16, 4);
	put_be(&b, KEY_RECORD - 26, 4);
	put_be(&b, ALIAS_RECORD - 5, 4);
	put_be(&b, FILE_RECORD, 4);
	put_be(&b, KEY_RECORD, 4);
	put_be(&b, ALIAS_RECORD, 4);
	put_be(&b, HEADER, 8);
	put_be(&b, HEADER + FILE_RECORD, 8);
	put_be(&b, HEADER + FILE_RECORD + keys * KEY_RECORD, 8);
	put_fill(&b, 0, FILE_RECORD + keys * (KEY_RECORD + ALIAS_RECORD));
	return b;
}

/* ---- sets ---- */

void sample_write(const char *root, const char *path, struct dbt_buf buf)
{
	tree_put_bytes(root, path, buf.data ? buf.data : "", buf.len);
	dbt_buf_release(&buf);
}

static void write_as(const char *root, struct dbt_buf buf, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void write_as(const char *root, struct dbt_buf buf, const char *fmt, ...)
{
	char path[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	sample_write(root, path, buf);
}

static struct dbt_buf text_buf(const char *text)
{
	struct dbt_buf b = { 0 };

	put_text(&b, text);
	return b;
}

void sample_hmmer_set(const char *root, const char *base)
{
	write_as(root, sample_hmmer_part("\xf3\xe6\xe6\xb3"), "%s.h3f", base);
	write_as(root, sample_hmmer_part("\xf3\xf0\xe6\xb3"), "%s.h3p", base);
	write_as(root, sample_hmmer_part("\xba\xed\xed\xe8"), "%s.h3m", base);
	write_as(root, sample_ssi(3), "%s.h3i", base);
}

static void infernal_set(const char *root, const char *dir, const char *name)
{
	write_as(root, sample_hmmer_part("\xf3\xe6\xe1\xb1"), "%s/%s.i1f", dir, name);
	write_as(root, sample_hmmer_part("\xf3\xf0\xe6\xb3"), "%s/%s.i1p", dir, name);
	write_as(root, sample_hmmer_part("\xb2\xb0\xed\xe3"), "%s/%s.i1m", dir, name);
	write_as(root, sample_ssi(3), "%s/%s.i1i", dir, name);
}

void sample_kraken2_dir(const char *root, const char *dir)
{
	write_as(root, sample_kraken2_hash(1000, 32), "%s/hash.k2d", dir);
	write_as(root, sample_kraken2_taxo(), "%s/taxo.k2d", dir);
	write_as(root, sample_kraken2_opts(), "%s/opts.k2d", dir);
}

void sample_blast_volume(const char *root, const char *base, bool protein)
{
	enum { N = 20, HEADER = 30, SEQ = 100 };
	struct dbt_buf phr = { 0 }, psq = { 0 };
	const char k = protein ? 'p' : 'n';

	put_fill(&phr, 0x30, (size_t)N * HEADER);
	put_fill(&psq, 1, 1 + (size_t)N * SEQ);
	write_as(root, sample_blast_index(4, protein, "", N, HEADER, SEQ), "%s.%cin", base, k);
	write_as(root, phr, "%s.%chr", base, k);
	write_as(root, psq, "%s.%csq", base, k);
}

/* The list of files is Bakta's own, db.py of version 1.11. */
void sample_bakta_dir(const char *root, const char *dir, bool light)
{
	char base[512];

	write_as(root, sample_sqlite(4096, 3), "%s/bakta.db", dir);
	write_as(root, sample_diamond(50), "%s/%s", dir, light ? "pscc.dmnd" : "psc.dmnd");
	write_as(root, sample_diamond(5), "%s/sorf.dmnd", dir);
	write_as(root, sample_diamond(5), "%s/expert-protein-sequences.dmnd", dir);
	(void)snprintf(base, sizeof(base), "%s/antifam", dir);
	sample_hmmer_set(root, base);
	(void)snprintf(base, sizeof(base), "%s/pfam", dir);
	sample_hmmer_set(root, base);
	infernal_set(root, dir, "ncRNA-genes");
	infernal_set(root, dir, "ncRNA-regions");
	infernal_set(root, dir, "rRNA");
	write_as(root, text_buf(">oriC\nACGT\n"), "%s/oric.fna", dir);
	write_as(root, text_buf(">oriT\nACGT\n"), "%s/orit.fna", dir);
	write_as(root, text_buf("Rfam:RF00001\tGO:0003735\n"), "%s/rfam-go.tsv", dir);
	write_as(root,
	         text_buf(light ? "{\n    \"date\": \"2025-02-24\",\n    \"major\": 6,\n"
	                          "    \"minor\": 0,\n    \"type\": \"light\"\n}\n"
	                        : "{\n    \"date\": \"2025-02-24\",\n    \"major\": 6,\n"
	                          "    \"minor\": 0,\n    \"type\": \"full\"\n}\n"),
	         "%s/version.json", dir);
	(void)snprintf(base, sizeof(base), "%s/amrfinderplus-db/2024-12-18.1/AMR.LIB", dir);
	sample_hmmer_set(root, base);
	(void)snprintf(base, sizeof(base), "%s/amrfinderplus-db/2024-12-18.1/AMRProt", dir);
	sample_blast_volume(root, base, true);
	(void)snprintf(base, sizeof(base), "%s/amrfinderplus-db/latest", dir);
	tree_symlink(root, base, "2024-12-18.1");
}
