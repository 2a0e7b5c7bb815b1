/* Formats whose tools exist but are seldom installed where the tests run: the smallest files after the layout
 * that the tools were seen to write. tests/cli/scan_tools.sh does the same with the tools themselves. */
#include "support/samples.h"
#include "support/tree.h"
#include "survey/scan.h"
#include "sys/root.h"

#include <archive.h>
#include <archive_entry.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct dbt_root live;
static struct dbt_ctx ctx;
static char *root;
static struct dbt_scan_result result;

static int setup(void **state)
{
	(void)state;
	root = tree_new();
	if (dbt_root_open(&live, NULL) < 0)
		return -1;
	dbt_ctx_init(&ctx, &live);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dbt_scan_result_release(&result);
	tree_remove(root);
	free(root);
	dbt_root_close(&live);
	return 0;
}

static void scan(void)
{
	struct dbt_err err = { 0 };

	dbt_scan_result_release(&result);
	assert_int_equal(dbt_scan(&ctx, root, NULL, &result, &err), 0);
}

/* One complete database of this format, name and number of files. */
static void assert_found(const char *format, const char *name, size_t files)
{
	scan();
	for (size_t i = 0; result.n_databases > 1 && i < result.n_databases; i++)
		print_message("%s %s\n", result.databases[i].format, result.databases[i].path);
	assert_int_equal(result.n_databases, 1);
	assert_string_equal(result.databases[0].format, format);
	assert_string_equal(result.databases[0].name, name);
	if (!result.databases[0].complete)
		fail_msg("incomplete: %s", result.databases[0].incomplete);
	assert_int_equal(result.databases[0].n_members, files);
}

static void assert_incomplete(const char *because)
{
	scan();
	assert_int_equal(result.n_databases, 1);
	assert_false(result.databases[0].complete);
	if (!strstr(result.databases[0].incomplete, because))
		fail_msg("'%s' lacks '%s'", result.databases[0].incomplete, because);
}

static void assert_nothing(void)
{
	scan();
	assert_int_equal(result.n_databases, 0);
}

static void drop(const char *path)
{
	char *full = tree_path(root, path);

	assert_int_equal(unlink(full), 0);
	free(full);
}

static void cut(const char *path)
{
	char *full = tree_path(root, path);
	FILE *file = fopen(full, "rbe");

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	assert_int_equal(truncate(full, ftell(file) - 1), 0);
	(void)fclose(file);
	free(full);
}

static void put(const char *path, const char *head, size_t head_len, size_t total)
{
	struct dbt_buf b = { 0 };

	assert_int_equal(dbt_buf_add(&b, head, head_len), 0);
	put_fill(&b, 7, total > head_len ? total - head_len : 0);
	sample_write(root, path, b);
}

/* ---- key-value and containers ---- */

static struct dbt_buf lmdb(uint64_t first_last, uint64_t first_txn, uint64_t second_last,
                           uint64_t second_txn, size_t pages)
{
	struct dbt_buf b = { 0 };

	for (int meta = 0; meta < 2; meta++) {
		put_fill(&b, 0, 16);
		put_le(&b, 0xbeefc0de, 4);
		put_le(&b, 1, 4);
		put_fill(&b, 0, 8);
		put_le(&b, 1 << 20, 8);
		put_le(&b, 4096, 4);
		put_fill(&b, 0, 136 - 44);
		put_le(&b, meta ? second_last : first_last, 8);
		put_le(&b, meta ? second_txn : first_txn, 8);
		put_fill(&b, 0, 4096 - 152);
	}
	put_fill(&b, 3, (pages - 2) * 4096);
	return b;
}

static void lmdb_environment_and_file(void **state)
{
	(void)state;
	sample_write(root, "env/data.mdb", lmdb(1, 1, 2, 2, 3));
	put("env/lock.mdb", "\xde\xc0\xef\xbe", 4, 8192);
	assert_found("lmdb", "env", 2);
	assert_int_equal(result.databases[0].moves, DBT_MOVES_DIRECTORY);
	cut("env/data.mdb"); /* the newer of the two counts is in the second page */
	assert_incomplete("'data.mdb' is cut short: 12287 of 12288 bytes");
	drop("env/data.mdb");
	drop("env/lock.mdb");
	sample_write(root, "single.mdb", lmdb(2, 5, 1, 4, 3));
	put("single.mdb-lock", "\xde\xc0\xef\xbe", 4, 8192);
	assert_found("lmdb", "single.mdb", 2);
	assert_int_equal(result.databases[0].moves, DBT_MOVES_FILE);
}

static void rocksdb(void **state)
{
	(void)state;
	tree_put(root, "rdb/CURRENT", "MANIFEST-000032\n");
	tree_put(root, "rdb/MANIFEST-000032", "x");
	tree_put(root, "rdb/000035.sst", "x");
	assert_nothing(); /* LevelDB has no OPTIONS */
	tree_put(root, "rdb/OPTIONS-000034", "x");
	tree_put(root, "rdb/LOCK", "");
	assert_found("rocksdb", "rdb", 5);
	assert_int_equal(result.databases[0].moves, DBT_MOVES_DIRECTORY);
	drop("rdb/MANIFEST-000032");
	assert_incomplete("'MANIFEST-000032' is missing");
}

static void hdf5(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_fill(&b, 'u', 512);
	put_text(&b, "\x89HDF\r\n\x1a\n");
	put_fill(&b, 0, 5);
	put_fill(&b, 8, 2);
	put_fill(&b, 0, 40 - 15);
	put_le(&b, 1024, 8);
	put_fill(&b, 0, 1024 - b.len);
	sample_write(root, "userblock.h5", b);
	assert_found("hdf5", "userblock.h5", 1);
	cut("userblock.h5");
	assert_incomplete("cut short");
}

static void faiss(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_text(&b, "IxF2");
	put_le(&b, 16, 4);
	put_le(&b, 10, 8);
	put_le(&b, 1 << 20, 8);
	put_le(&b, 1 << 20, 8);
	put_fill(&b, 1, 13 + 10 * 16 * 4);
	sample_write(root, "flat.faiss", b);
	assert_found("faiss", "flat", 1);
	cut("flat.faiss");
	assert_incomplete("cut short: 684 of 685 bytes");
}

/* ---- aligners ---- */

static struct dbt_buf ebwt(bool wide)
{
	struct dbt_buf b = { 0 };

	put_le(&b, 1, 4);
	put_le(&b, 170000, wide ? 8 : 4);
	put_le(&b, 6, 4);
	put_le(&b, 2, 4);
	put_le(&b, 4, 4);
	put_le(&b, 2, 4);
	put_le(&b, 0xffffffff, 4);
	put_fill(&b, 1, 43000); /* at two bits a base, and the table */
	return b;
}

static void bowtie2_small_and_large(void **state)
{
	static const char *const ends[] = { "2", "3", "4", "rev.2" };
	static const size_t sizes[] = { 42508, 12, 42500, 42508 };
	char name[64];

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		const char *end = wide ? "bt2l" : "bt2", *one[] = { "1", "rev.1" };

		for (size_t i = 0; i < 2; i++) {
			(void)snprintf(name, sizeof(name), "x.%s.%s", one[i], end);
			sample_write(root, name, ebwt(wide));
		}
		for (size_t i = 0; i < 4; i++) {
			(void)snprintf(name, sizeof(name), "x.%s.%s", ends[i], end);
			put(name, "\1\0\0\0\0\0\0\0\0\0\0", 12, sizes[i] * (wide ? 2 : 1));
		}
		assert_found("bowtie2", "x", 6);
		for (size_t i = 0; i < 4; i++) {
			char because[128];

			(void)snprintf(name, sizeof(name), "x.%s.%s", ends[i], end);
			put(name, "\1", 1, 3);
			(void)snprintf(because, sizeof(because), "'%s' is cut short: 3 of ", name);
			assert_incomplete(because);
			put(name, "\1\0\0\0\0\0\0\0\0\0\0", 12, sizes[i] * (wide ? 2 : 1));
		}
		(void)snprintf(name, sizeof(name), "x.rev.2.%s", end);
		drop(name);
		assert_incomplete("is missing");
		(void)snprintf(name, sizeof(name), "x.1.%s", end);
		drop(name);
		(void)snprintf(name, sizeof(name), "'x.1.%s' is missing", end);
		assert_incomplete(name); /* the reverse half is none of its own */
		for (size_t i = 0; i < 4; i++) {
			(void)snprintf(name, sizeof(name), "x.%s.%s", ends[i], end);
			if (strcmp(ends[i], "rev.2") != 0)
				drop(name);
		}
		assert_nothing(); /* one name is no database */
		(void)snprintf(name, sizeof(name), "x.rev.1.%s", end);
		drop(name);
	}
}

static void bwa(void **state)
{
	enum { N = 2000 };
	struct dbt_buf b = { 0 }, sa = { 0 };

	(void)state;
	put_le(&b, 17, 8);
	for (uint64_t i = 1; i <= 4; i++)
		put_le(&b, i * N / 4, 8);
	put_le(&sa, 17, 8);
	for (uint64_t i = 1; i <= 4; i++)
		put_le(&sa, i * N / 4, 8);
	put_fill(&b, 1, 4 * ((N + 15) / 16) + 32 * ((N + 127) / 128 + 1));
	put_le(&sa, 32, 8);
	put_le(&sa, N, 8);
	put_fill(&sa, 1, 8 * (N / 32));
	sample_write(root, "ref.fa.bwt", b);
	assert_nothing(); /* numbers alone prove little */
	sample_write(root, "ref.fa.sa", sa);
	put("ref.fa.pac", "", 0, N / 2 / 4 + 2);
	tree_put(root, "ref.fa.ann", "1000 1 11\n");
	tree_put(root, "ref.fa.amb", "1000 1 0\n");
	assert_found("bwa", "ref.fa", 5);
	cut("ref.fa.pac");
	assert_incomplete("'ref.fa.pac' is cut short");
}

static void star(void **state)
{
	static const char *const small[] = { "SAindex", "chrName.txt", "chrStart.txt",
		                             "chrLength.txt" };
	char name[64];

	(void)state;
	tree_put(root, "g/genomeParameters.txt",
	         "### STAR --runMode genomeGenerate\nversionGenome\t2.7.4a\n"
	         "genomeFileSizes\t300 500\n");
	put("g/Genome", "", 0, 300);
	put("g/SA", "", 0, 500);
	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(name, sizeof(name), "g/%s", small[i]);
		tree_put(root, name, "x");
	}
	assert_found("star", "g", 7);
	cut("g/SA");
	assert_incomplete("'SA' is cut short: 499 of 500 bytes");
}

static void salmon(void **state)
{
	static const char *const files[] = { "info.json", "pos.bin", "mphf.bin", "seq.bin",
		                             "ctable.bin" };
	char name[64];

	(void)state;
	tree_put(root, "idx/versionInfo.json",
	         "{\"indexVersion\": 5, \"salmonVersion\": \"1.10.1\"}");
	assert_nothing();
	for (size_t i = 0; i < 5; i++) {
		(void)snprintf(name, sizeof(name), "idx/%s", files[i]);
		tree_put(root, name, "x");
	}
	assert_found("salmon", "idx", 6);
	drop("idx/pos.bin");
	assert_incomplete("'pos.bin' is missing");
	tree_put(root, "idx/sample_pos.bin", "x"); /* built with --sparse */
	assert_found("salmon", "idx", 6);
}

static void minimap2_and_udb(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put("g.mmi", "MMI\2\12\0\0\0\17\0\0\0", 12, 300);
	assert_found("minimap2", "g", 1);
	drop("g.mmi");
	put_text(&b, "FBDU");
	put_fill(&b, 0, 4);
	put_le(&b, 32, 4);
	put_fill(&b, 0, 184);
	put_text(&b, "fBDU");
	put_fill(&b, 0, 100);
	sample_write(root, "tx.udb", b);
	assert_found("usearch-udb", "tx", 1);
}

static void hisat2(void **state)
{
	struct dbt_buf b = { 0 };
	char name[64];

	(void)state;
	put_le(&b, 1, 4);
	put_le(&b, 0x02020100, 4);
	put_le(&b, 1000, 4);
	put_le(&b, 1001, 4);
	put_le(&b, 1001, 4);
	put_le(&b, 6, 4);
	put_le(&b, 2, 4);
	put_le(&b, 4, 4);
	put_le(&b, 2, 4);
	put_fill(&b, 1, 200);
	sample_write(root, "x.1.ht2", b);
	for (int i = 2; i <= 8; i++) {
		(void)snprintf(name, sizeof(name), "x.%d.ht2", i);
		tree_put(root, name, "x");
	}
	assert_found("hisat2", "x", 8);
}

/* ---- k-mers, sketches ---- */

static void kmc(void **state)
{
	(void)state;
	tree_put(root, "c.kmc_pre", "KMCP 12345678 KMCP");
	tree_put(root, "c.kmc_suf", "KMCS 12345678 KMCS");
	assert_found("kmc", "c", 2);
	cut("c.kmc_suf");
	assert_incomplete("'c.kmc_suf' is cut short");
}

static void mash_jellyfish_meryl(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_le(&b, 0, 4);
	put_le(&b, 10, 4);
	put_fill(&b, 1, 80);
	sample_write(root, "g.msh", b);
	assert_found("mash", "g", 1);
	cut("g.msh");
	assert_incomplete("cut short: 87 of 88 bytes");
	drop("g.msh");
	tree_put(root, "m.jf", "000000127{\"alignment\":8}");
	assert_found("jellyfish", "m", 1);
	drop("m.jf");
	put("mer.mcidx", "bitPackedFile\0", 14, 100);
	assert_nothing();
	put("mer.mcdat", "bitPackedFile\0", 14, 100);
	assert_found("meryl1", "mer", 2);
}

static void kma(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put("k.comp.b", "\2\0\0\0\20\0\0\0", 8, 100);
	assert_nothing();
	put_le(&b, 2, 4);
	put_fill(&b, 1, 8);
	sample_write(root, "k.length.b", b);
	tree_put(root, "k.seq.b", "x");
	tree_put(root, "k.name", "a\nb\n");
	assert_found("kma", "k", 4);
}

/* ---- MMseqs2, HH-suite, LAST ---- */

static void mmseqs_set(const char *stem, const char *data)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s.index", stem);
	tree_put(root, name, "0\t0\t5\n1\t5\t5\n");
	(void)snprintf(name, sizeof(name), "%s.dbtype", stem);
	tree_put_bytes(root, name, "\0\0\0\0", 4);
	if (data)
		tree_put(root, stem, data);
}

static void mmseqs(void **state)
{
	(void)state;
	mmseqs_set("nr", "0123456789");
	mmseqs_set("nr_h", "0123456789");
	tree_put(root, "nr.lookup", "0\ta\t0\n");
	tree_put(root, "nr_taxonomy", "x");
	assert_found("mmseqs", "nr", 8);
	assert_int_equal(result.databases[0].moves, DBT_MOVES_SET);
	assert_int_equal(result.databases[0].class, DBT_CLASS_SCAN_MMAP);
	mmseqs_set("nr.idx", "0123456789"); /* then it is all that a search opens */
	assert_found("mmseqs", "nr", 11);
	assert_int_equal(result.databases[0].class, DBT_CLASS_RANDOM_MMAP);
	tree_put(root, "nr", "012345678");
	assert_incomplete("'nr' is cut short: 9 of 10 bytes");
	drop("nr");
	tree_put(root, "nr.0", "01234"); /* offsets run on across the parts */
	tree_put(root, "nr.1", "56789");
	assert_found("mmseqs", "nr", 12);
}

/* Of a compressed one the index tells the lengths before compression: each entry tells its own. */
static void mmseqs_compressed(void **state)
{
	(void)state;
	tree_put_bytes(root, "nr.dbtype", "\0\0\0\x80", 4);
	tree_put(root, "nr.index", "0\t0\t90\n1\t8\t70\n");
	tree_put_bytes(root, "nr", "\3\0\0\0abc\0\2\0\0\0de\0", 15);
	assert_found("mmseqs", "nr", 3);
	cut("nr");
	assert_incomplete("'nr' is cut short: 14 of 15 bytes");
}

static void hhsuite(void **state)
{
	(void)state;
	tree_put(root, "bfd_cs219.ffdata", "0123456789");
	tree_put(root, "bfd_cs219.ffindex", "a\t0\t4\nb\t4\t6\n");
	tree_put(root, "bfd_a3m.ffdata", "0123456789");
	tree_put(root, "bfd_a3m.ffindex", "a\t6\t4\nb\t0\t6\n");
	assert_found("hhsuite", "bfd", 4);
	assert_true(result.databases[0].mixed);
	cut("bfd_a3m.ffdata");
	assert_incomplete("'bfd_a3m.ffdata' is cut short: 9 of 10 bytes");
	drop("bfd_a3m.ffdata");
	assert_incomplete("'bfd_a3m.ffdata' is missing");
}

static void last_volumes(void **state)
{
	static const char *const ends[] = { "suf", "bck", "tis", "des", "ssp", "sds" };
	char name[64];

	(void)state;
	tree_put(root, "nt.prj", "version=1447\nalphabet=ACGT\nvolumes=2\n");
	for (int v = 0; v < 2; v++) {
		(void)snprintf(name, sizeof(name), "nt%d.prj", v);
		tree_put(root, name, "version=1447\nalphabet=ACGT\n");
		for (size_t i = 0; i < 6; i++) {
			(void)snprintf(name, sizeof(name), "nt%d.%s", v, ends[i]);
			tree_put(root, name, "x");
		}
	}
	assert_found("last", "nt", 15);
	drop("nt1.suf");
	assert_incomplete("'nt1.suf' is missing");
}

/* ---- indexed text and archives ---- */

static const char bgzf_end[28] = "\x1f\x8b\x08\x04\0\0\0\0\0\xff\6\0BC\2\0\x1b\0\3\0\0\0\0\0\0\0\0";

static void put_bgzf(const char *path)
{
	struct dbt_buf b = { 0 };

	assert_int_equal(dbt_buf_add(&b, bgzf_end, 18), 0);
	put_fill(&b, 9, 100);
	assert_int_equal(dbt_buf_add(&b, bgzf_end, sizeof(bgzf_end)), 0);
	sample_write(root, path, b);
}

static void fasta_and_bgzf(void **state)
{
	struct dbt_buf large = { 0 };
	char *path;

	(void)state;
	tree_put(root, "hg38.fa", ">chr1\nACGT\n");
	assert_nothing();
	tree_put(root, "hg38.fa.fai", "chr1\t4\t6\t4\t5\n");
	assert_found("fasta", "hg38.fa", 2);
	tree_put(root, "hg38.dict", "@HD\n"); /* named without the ending */
	assert_found("fasta", "hg38.fa", 3);
	drop("hg38.dict");
	drop("hg38.fa");
	drop("hg38.fa.fai");
	put_text(&large, ">UniRef90_A\n");
	put_fill(&large, 'M', 5000);
	sample_write(root, "uniref90.fasta", large);
	assert_nothing();
	path = tree_path(root, "uniref90.fasta");
	assert_int_equal(truncate(path, 2LL << 30), 0); /* a hole: only the head is looked at */
	free(path);
	assert_found("fasta", "uniref90.fasta", 1);
	assert_int_equal(result.databases[0].class, DBT_CLASS_STREAM);
	drop("uniref90.fasta");
	put_bgzf("dbsnp.vcf.gz");
	assert_nothing();
	put_bgzf("dbsnp.vcf.gz.tbi");
	assert_found("bgzf", "dbsnp.vcf.gz", 2);
	cut("dbsnp.vcf.gz");
	assert_incomplete("its last block is missing");
}

static void alignments_only_with_an_index(void **state)
{
	(void)state;
	put_bgzf("a.bam");
	assert_nothing();
	tree_put(root, "a.bam.bai", "BAI\1xxxxx");
	assert_found("bam", "a.bam", 2);
	drop("a.bam.bai");
	tree_put(root, "a.bai", "BAI\1xxxxx");
	assert_found("bam", "a.bam", 2);
	drop("a.bai");
	put_bgzf("a.bam.csi");
	assert_found("bam", "a.bam", 2);
	drop("a.bam");
	drop("a.bam.csi");
	tree_put(root, "b.cram", "CRAM\3\0xxxx");
	assert_nothing();
	tree_put(root, "b.cram.crai", "\x1f\x8bxxxx");
	assert_found("cram", "b.cram", 2);
}

/* An archive with one member of 100,000 bytes that do not pack well. */
static void pack(const char *path, const char *member, bool xz, bool zip)
{
	char *full = tree_path(root, path);
	struct archive *a = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	unsigned char bytes[1000];
	uint32_t x = 1;

	assert_int_equal(zip ? archive_write_set_format_zip(a) : archive_write_set_format_ustar(a),
	                 ARCHIVE_OK);
	if (xz)
		assert_int_equal(archive_write_add_filter_xz(a), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(a, full), ARCHIVE_OK);
	archive_entry_set_pathname(entry, member);
	archive_entry_set_size(entry, 100 * sizeof(bytes));
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
	for (int i = 0; i < 100; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++) {
			x = x * 1664525 + 1013904223;
			bytes[k] = (unsigned char)(x >> 24);
		}
		assert_int_equal(archive_write_data(a, bytes, sizeof(bytes)),
		                 (la_ssize_t)sizeof(bytes));
	}
	archive_entry_free(entry);
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
	free(full);
}

/* By what is in them, not by being archives. */
static void archives(void **state)
{
	(void)state;
	pack("db.tar", "db/nt.00.nsq", false, false);
	assert_found("archive", "db.tar", 1);
	assert_int_equal(result.databases[0].class, DBT_CLASS_COLD);
	assert_string_equal(result.databases[0].holds, "blast ('db/nt.00.nsq', by its name)");
	/* The first bytes of these are at hand, and say that the names do not hold. */
	pack("db.tar", "db/bakta.db", false, false);
	assert_nothing();
	pack("db.tar", "db/hash.k2d", false, false);
	assert_nothing();
	pack("db.tar", "photos/holiday.jpeg", false, false);
	assert_nothing();
	drop("db.tar");
	pack("nr.tar.xz", "nr.phr", true, false);
	assert_found("archive", "nr.tar.xz", 1);
	drop("nr.tar.xz");
	pack("nt.zip", "nt.00.nsq", false, true);
	assert_found("archive", "nt.zip", 1);
	drop("nt.zip");
	put("broken.tar.gz", "\x1f\x8b\x08\0", 4, 100000);
	assert_nothing();
	put("reads.fastq.gz", "\x1f\x8b\x08\0", 4, 100000); /* reads are no database */
	assert_nothing();
}

/* ---- texts known together ---- */

static void subread_rsem_gmap(void **state)
{
	(void)state;
	put("sr.00.b.tab", "2subindx", 8, 100);
	tree_put(root, "sr.00.b.array", "x");
	tree_put(root, "sr.files", "x");
	tree_put(root, "sr.reads", "x");
	assert_found("subread", "sr", 4);
	drop("sr.00.b.tab");
	drop("sr.files");
	drop("sr.reads");
	assert_nothing();
	tree_put(root, "rs.grp", "1\n2\n");
	assert_nothing();
	tree_put(root, "rs.ti", "x");
	tree_put(root, "rs.seq", "x");
	tree_put(root, "rs.transcripts.fa", ">x\nA\n");
	assert_found("rsem", "rs", 4);
	drop("rs.grp");
	drop("rs.ti");
	drop("rs.seq");
	tree_put(root, "syn/syn.version", "syn\n2021-12-17\n");
	assert_nothing();
	tree_put(root, "syn/syn.chromosome", "c\n");
	tree_put(root, "syn/syn.genomecomp", "x");
	tree_put(root, "syn/syn.ref153positions", "x");
	assert_found("gmap", "syn", 4);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lmdb_environment_and_file),
		TEST(rocksdb),
		TEST(hdf5),
		TEST(faiss),
		TEST(bowtie2_small_and_large),
		TEST(bwa),
		TEST(star),
		TEST(salmon),
		TEST(minimap2_and_udb),
		TEST(hisat2),
		TEST(kmc),
		TEST(mash_jellyfish_meryl),
		TEST(kma),
		TEST(mmseqs),
		TEST(mmseqs_compressed),
		TEST(hhsuite),
		TEST(last_volumes),
		TEST(fasta_and_bgzf),
		TEST(alignments_only_with_an_index),
		TEST(archives),
		TEST(subread_rsem_gmap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
