/* Formats that no tool at hand can make: files after the documented layout, the source with each. */
#include "support/samples.h"
#include "support/tree.h"
#include "survey/scan.h"
#include "sys/root.h"

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

static const struct dbt_database *scan_one(const char *format, const char *name)
{
	struct dbt_err err = { 0 };

	dbt_scan_result_release(&result);
	assert_int_equal(dbt_scan(&ctx, root, NULL, &result, &err), 0);
	for (size_t i = 0; i < result.n_databases; i++)
		if (result.n_databases > 1)
			print_message("%s %s\n", result.databases[i].format,
			              result.databases[i].path);
	assert_int_equal(result.n_databases, 1);
	assert_string_equal(result.databases[0].format, format);
	assert_string_equal(result.databases[0].name, name);
	return &result.databases[0];
}

static void assert_complete(const char *format, const char *name)
{
	const struct dbt_database *db = scan_one(format, name);

	if (!db->complete)
		fail_msg("incomplete: %s", db->incomplete);
}

static void assert_nothing(void)
{
	struct dbt_err err = { 0 };

	dbt_scan_result_release(&result);
	assert_int_equal(dbt_scan(&ctx, root, NULL, &result, &err), 0);
	assert_int_equal(result.n_databases, 0);
}

static const struct dbt_member *member(const char *name)
{
	const struct dbt_database *db = &result.databases[0];

	for (size_t i = 0; i < db->n_members; i++)
		if (strcmp(db->members[i].name, name) == 0)
			return &db->members[i];
	fail_msg("no member '%s'", name);
	return NULL;
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

static void put_bytes(const char *path, const char *head, size_t head_len, size_t total)
{
	struct dbt_buf b = { 0 };

	assert_int_equal(dbt_buf_add(&b, head, head_len), 0);
	put_fill(&b, 7, total > head_len ? total - head_len : 0);
	sample_write(root, path, b);
}

/* ---- single files ---- */

/* UCSC, genome FAQ "2bit": signature 0x1A412743, version, count. */
static void twobit(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_le(&b, 0x1a412743, 4);
	put_le(&b, 0, 4);
	put_le(&b, 3, 4);
	put_fill(&b, 0, 100);
	sample_write(root, "hg38.2bit", b);
	assert_complete("2bit", "hg38");
}

/* UCSC bbiFile.h: magics 0x888FFC26 and 0x8789F2EB. */
static void bigwig_and_bigbed(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_le(&b, 0x888ffc26, 4);
	put_le(&b, 4, 2);
	put_fill(&b, 0, 100);
	sample_write(root, "phylop.bw", b);
	assert_complete("bigwig", "phylop.bw");
	b = (struct dbt_buf){ 0 };
	put_le(&b, 0x8789f2eb, 4);
	put_le(&b, 4, 2);
	put_fill(&b, 0, 100);
	sample_write(root, "phylop.bw", b); /* the content decides, not the name */
	assert_complete("bigbed", "phylop.bw");
}

/* apache/parquet-format, README: PAR1, data, footer, its length, PAR1. */
static void parquet(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_text(&b, "PAR1");
	put_fill(&b, 1, 100);
	put_le(&b, 50, 4);
	put_text(&b, "PAR1");
	sample_write(root, "variants.parquet", b);
	assert_complete("parquet", "variants");
	cut("variants.parquet");
	assert_false(scan_one("parquet", "variants")->complete);
}

/* Kaiju, bwt.c: length, sequences, alphabet. */
static void kaiju(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_le(&b, 100000, 8);
	put_le(&b, 20, 4);
	put_le(&b, 21, 4);
	put_text(&b, "*ACDEFGHIKLMNPQRSTVWY");
	put_fill(&b, 1, 2000);
	sample_write(root, "kaiju_db_nr.fmi", b);
	assert_complete("kaiju", "kaiju_db_nr");
}

/* bwa-mem2, FMI_search.cpp: build_fm_index. */
static void bwa_mem2(void **state)
{
	enum { BASES = 1000, LENGTH = BASES + 1 };
	struct dbt_buf b = { 0 };

	(void)state;
	put_le(&b, LENGTH, 8);
	for (unsigned i = 0; i < 5; i++)
		put_le(&b, i * BASES / 4, 8);
	put_fill(&b, 1, (LENGTH / 64 + 1) * 64);
	put_fill(&b, 2, (LENGTH / 8 + 1) * 5);
	put_le(&b, 17, 8);
	sample_write(root, "ref.fa.bwt.2bit.64", b);
	put_bytes("ref.fa.0123", "\0", 1, BASES);
	put_bytes("ref.fa.pac", "\0", 1, BASES / 2 / 4 + 2);
	tree_put(root, "ref.fa.ann", "500 1 11\n");
	tree_put(root, "ref.fa.amb", "500 1 0\n");
	assert_complete("bwa-mem2", "ref.fa");
	cut("ref.fa.0123");
	assert_false(scan_one("bwa-mem2", "ref.fa")->complete);
	cut("ref.fa.bwt.2bit.64");
	assert_non_null(strstr(scan_one("bwa-mem2", "ref.fa")->incomplete, "bwt.2bit.64"));
}

/* kallisto 0.50, KmerIndex.cpp: version 13, size of the graph, the graph. */
static void kallisto_13(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_le(&b, 13, 8);
	put_le(&b, 500, 8);
	put_fill(&b, 1, 600);
	sample_write(root, "human.idx", b);
	assert_complete("kallisto", "human");
}

/* Kraken 1, krakendb.cpp: JFLISTDN; index KRAKIX2. */
static void kraken1(void **state)
{
	(void)state;
	put_bytes("mini/database.kdb", "JFLISTDN", 8, 5000);
	put_bytes("mini/database.idx", "KRAKIX2", 7, 1000);
	assert_complete("kraken1", "mini");
	put_bytes("mini/database.idx", "something", 9, 1000);
	assert_false(scan_one("kraken1", "mini")->complete);
}

/* Easel, esl_dsqdata.c: magic and a tag that the three binary files share. */
static void dsqdata(void **state)
{
	(void)state;
	tree_put(root, "nr", "Easel dsqdata v1 x0000000042\n");
	put_bytes("nr.dsqi", "\xb1\xd1\xd3\xc4\x2a\0\0\0", 8, 200);
	put_bytes("nr.dsqm", "\xb1\xd1\xd3\xc4\x2a\0\0\0", 8, 200);
	put_bytes("nr.dsqs", "\xb1\xd1\xd3\xc4\x2a\0\0\0", 8, 900);
	assert_complete("dsqdata", "nr");
	put_bytes("nr.dsqs", "\xb1\xd1\xd3\xc4\x2b\0\0\0", 8, 900);
	assert_false(scan_one("dsqdata", "nr")->complete);
}

/* sourmash, src/sourmash/manifest.py: the zip has a member SOURMASH-MANIFEST.csv. */
static void sourmash(void **state)
{
	struct dbt_buf b = { 0 };

	(void)state;
	put_text(&b, "PK\3\4");
	put_fill(&b, 1, 500);
	put_text(&b, "PK\1\2SOURMASH-MANIFEST.csv");
	put_fill(&b, 0, 22);
	sample_write(root, "gtdb.k31.zip", b);
	assert_complete("sourmash", "gtdb.k31.zip");
}

/* ---- sets ---- */

/* Foldseek: an MMseqs2 database with _ss and _ca (foldseek, structcreatedb). */
static void foldseek(void **state)
{
	static const char *const stems[] = { "pdb", "pdb_h", "pdb_ss", "pdb_ca" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		char name[64];

		tree_put(root, stems[i], "0123456789");
		(void)snprintf(name, sizeof(name), "%s.index", stems[i]);
		tree_put(root, name, "0\t0\t5\n1\t5\t5\n");
		(void)snprintf(name, sizeof(name), "%s.dbtype", stems[i]);
		tree_put_bytes(root, name, "\0\0\0\0", 4);
	}
	assert_complete("foldseek", "pdb");
	assert_int_equal(result.databases[0].n_members, 12);
	assert_true(member("pdb_ss")->hot);
	tree_put(root, "pdb_ss", "012345678");
	assert_non_null(strstr(scan_one("foldseek", "pdb")->incomplete, "'pdb_ss' is cut short"));
}

/* skani, docs: sketch writes markers.bin and a .sketch a genome. */
static void skani(void **state)
{
	(void)state;
	put_bytes("gtdb_skani/markers.bin", "x", 1, 100);
	assert_nothing();
	put_bytes("gtdb_skani/GCF_1.fna.sketch", "x", 1, 100);
	put_bytes("gtdb_skani/GCF_2.fna.sketch", "x", 1, 100);
	assert_complete("skani", "gtdb_skani");
	assert_int_equal(result.databases[0].n_members, 3);
}

/* MetaPhlAn 4: mpa_v*.pkl (bzip2) and a large Bowtie 2 index. */
static void metaphlan(void **state)
{
	static const char *const ends[] = { "1", "2", "3", "4", "rev.1", "rev.2" };
	char name[64];

	(void)state;
	put_bytes("mpa_vJan21.pkl", "BZh91AY&SY", 10, 200);
	assert_nothing();
	for (size_t i = 0; i < 6; i++) {
		(void)snprintf(name, sizeof(name), "mpa_vJan21.%s.bt2l", ends[i]);
		put_bytes(name, "\1\0\0\0", 4, 100);
	}
	assert_complete("metaphlan", "mpa_vJan21");
	assert_int_equal(result.databases[0].n_members, 7);
}

/* ---- composites ---- */

/* eggnog-mapper 2.1, eggnogmapper/common.py. */
static void eggnog(void **state)
{
	(void)state;
	sample_write(root, "data/eggnog.db", sample_sqlite(4096, 3));
	sample_write(root, "data/eggnog_proteins.dmnd", sample_diamond(20));
	sample_write(root, "data/eggnog.taxa.db", sample_sqlite(4096, 2));
	tree_put(root, "data/eggnog.taxa.db.traverse.pkl", "pickle");
	assert_complete("eggnog", "data");
	assert_true(result.databases[0].mixed);
	assert_true(member("eggnog.db")->hot);
	assert_int_equal(member("eggnog.db")->class, DBT_CLASS_RANDOM_PREAD);
	assert_int_equal(member("eggnog_proteins.dmnd")->class, DBT_CLASS_STREAM);
	cut("data/eggnog_proteins.dmnd");
	assert_false(scan_one("eggnog", "data")->complete);
}

/* CheckM2, fileManager.py. */
static void checkm2(void **state)
{
	(void)state;
	sample_write(root, "CheckM2_database/uniref100.KO.1.dmnd", sample_diamond(20));
	assert_complete("checkm2", "CheckM2_database");
	assert_true(member("uniref100.KO.1.dmnd")->hot);
}

/* GTDB-Tk, gtdbtk/config/common.py. */
static void gtdbtk(void **state)
{
	static const char *const dirs[] = { "markers",  "msa",     "masks", "metadata",
		                            "mrca_red", "pplacer", "radii", "taxonomy" };
	char name[128];

	(void)state;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		(void)snprintf(name, sizeof(name), "release226/%s/x.tsv", dirs[i]);
		tree_put(root, name, "0123456789");
	}
	put_bytes("release226/pplacer/bac120.refpkg/tree.bin", "x", 1, 2 << 20);
	assert_complete("gtdbtk", "release226");
	assert_int_equal(result.databases[0].moves, DBT_MOVES_DIRECTORY);
	assert_int_equal(result.databases[0].more_files, 8);
	assert_int_equal(result.databases[0].size_bytes, (2 << 20) + 80);
	assert_true(member("pplacer/bac120.refpkg/tree.bin")->hot);
}

/* AlphaFold 2, README "Genetic databases". */
static void alphafold(void **state)
{
	(void)state;
	tree_put(root, "af/params/params_model_1.npz", "x");
	tree_put(root, "af/pdb_mmcif/mmcif_files/1abc.cif", "data_1ABC\n");
	tree_put(root, "af/uniref90/uniref90.fasta", ">a\nMKV\n");
	tree_put(root, "af/mgnify/mgy_clusters.fa", ">a\nMKV\n");
	tree_put(root, "af/bfd/bfd_cs219.ffdata", "0123456789");
	tree_put(root, "af/bfd/bfd_cs219.ffindex", "a\t0\t10\n");
	assert_complete("alphafold", "af");
	assert_true(member("bfd/bfd_cs219.ffdata")->hot);
	assert_int_equal(member("uniref90/uniref90.fasta")->class, DBT_CLASS_STREAM);
}

/* antiSMASH, download_databases.py. */
static void antismash(void **state)
{
	(void)state;
	sample_write(root, "databases/clusterblast/proteins.dmnd", sample_diamond(20));
	tree_put(root, "databases/clusterblast/proteins.fasta", ">a\nMKV\n");
	tree_put(root, "databases/knownclusterblast/3.1/proteins.fasta", ">a\nMKV\n");
	sample_hmmer_set(root, "databases/pfam/35.0/Pfam-A.hmm");
	assert_complete("antismash", "databases");
	assert_true(member("clusterblast/proteins.dmnd")->hot);
	assert_true(member("pfam/35.0/Pfam-A.hmm.h3f")->hot);
}

/* InterProScan: interproscan.properties, data/<member>/<version>/. */
static void interproscan(void **state)
{
	(void)state;
	tree_put(root, "ips/interproscan.properties", "data.directory=data\n");
	sample_hmmer_set(root, "ips/data/pfam/37.0/pfam_a.hmm");
	assert_complete("interproscan", "ips");
	assert_true(member("data/pfam/37.0/pfam_a.hmm.h3f")->hot);
}

/* Ensembl VEP, cache layout: info.txt of tab-separated keys, a directory a chromosome. */
static void vep(void **state)
{
	(void)state;
	tree_put(root, "homo_sapiens/110_GRCh38/info.txt",
	         "# CACHE UPDATED 2023\nspecies\thomo_sapiens\nassembly\tGRCh38\n");
	tree_put(root, "homo_sapiens/110_GRCh38/1/1-1000000.gz", "xx");
	tree_put(root, "homo_sapiens/110_GRCh38/1/all_vars.gz", "xxx");
	assert_complete("vep", "homo_sapiens/110_GRCh38");
	assert_int_equal(result.databases[0].moves, DBT_MOVES_DIRECTORY);
	assert_true(member("1/all_vars.gz")->hot);
	assert_int_equal(result.databases[0].more_files, 1);
}

/* HUMAnN 3: humann_databases --download. */
static void humann(void **state)
{
	(void)state;
	tree_put(root, "humann/chocophlan/g__A.s__B.centroids.v201901.ffn.gz", "x");
	assert_nothing();
	sample_write(root, "humann/uniref/uniref90.dmnd", sample_diamond(20));
	assert_complete("humann", "humann");
	assert_true(member("uniref/uniref90.dmnd")->hot);
}

/* AMRFinderPlus: a dated directory; `latest` links to it. */
static void amrfinderplus(void **state)
{
	(void)state;
	sample_hmmer_set(root, "data/2024-12-18.1/AMR.LIB");
	tree_put(root, "data/2024-12-18.1/AMR.LIB", "HMMER3/f [3.3.2]\n");
	tree_put(root, "data/2024-12-18.1/AMRProt.fa", ">a\nMKV\n");
	sample_blast_volume(root, "data/2024-12-18.1/AMRProt.fa", true);
	tree_put(root, "data/2024-12-18.1/version.txt", "2024-12-18.1\n");
	tree_symlink(root, "data/latest", "2024-12-18.1");
	assert_complete("amrfinderplus", "2024-12-18.1");
	assert_true(member("AMRProt.fa.psq")->hot);
	assert_int_equal(result.databases[0].n_members, 10);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(twobit),        TEST(bigwig_and_bigbed), TEST(parquet), TEST(kaiju),
		TEST(bwa_mem2),      TEST(kallisto_13),       TEST(kraken1), TEST(dsqdata),
		TEST(sourmash),      TEST(foldseek),          TEST(skani),   TEST(metaphlan),
		TEST(eggnog),        TEST(checkm2),           TEST(gtdbtk),  TEST(alphafold),
		TEST(antismash),     TEST(interproscan),      TEST(vep),     TEST(humann),
		TEST(amrfinderplus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
