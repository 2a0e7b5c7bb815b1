#include "support/samples.h"
#include "survey/dbkind.h"
#include "survey/formats/format.h"

#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- a candidate in memory ---- */

static ssize_t read_memory(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off)
{
	const struct dbt_buf *bytes = file->read_data;
	size_t n;

	if (off >= bytes->len)
		return 0;
	n = bytes->len - off < len ? (size_t)(bytes->len - off) : len;
	memcpy(buf, bytes->data + off, n);
	return (ssize_t)n;
}

static struct dbt_candidate candidate(const char *name, const struct dbt_buf *bytes)
{
	return (struct dbt_candidate){
		.name = name,
		.size_bytes = bytes->len,
		.head = (const unsigned char *)dbt_buf_str(bytes),
		.head_len = bytes->len < DBT_HEAD_BYTES ? bytes->len : DBT_HEAD_BYTES,
		.read = read_memory,
		.read_data = bytes,
	};
}

static enum dbt_match ask(const char *format, const char *name, const struct dbt_buf *bytes,
                          struct dbt_buf *why)
{
	const struct dbt_format *f = dbt_format_by_id(format);
	struct dbt_candidate file = candidate(name, bytes);

	assert_non_null(f);
	dbt_buf_clear(why);
	return f->test(&file, why);
}

/* The whole file passes, one byte less is "cut", and says of how much. */
static void assert_exact(const char *format, const char *name, struct dbt_buf bytes)
{
	struct dbt_buf why = { 0 };
	char expected[64];

	assert_int_equal(ask(format, name, &bytes, &why), DBT_MATCH_YES);
	(void)snprintf(expected, sizeof(expected), "cut short: %zu of %zu bytes", bytes.len - 1,
	               bytes.len);
	bytes.len--;
	assert_int_equal(ask(format, name, &bytes, &why), DBT_MATCH_CUT);
	assert_string_equal(dbt_buf_str(&why), expected);
	dbt_buf_release(&why);
	dbt_buf_release(&bytes);
}

static void assert_rejected(const char *format, const char *name, struct dbt_buf bytes)
{
	struct dbt_buf why = { 0 };

	assert_int_equal(ask(format, name, &bytes, &why), DBT_MATCH_NO);
	dbt_buf_release(&why);
	dbt_buf_release(&bytes);
}

static struct dbt_buf text(const char *s)
{
	struct dbt_buf b = { 0 };

	put_text(&b, s);
	return b;
}

/* ---- the catalogue ---- */

static bool ends_with_slash(const char *pattern)
{
	return pattern[strlen(pattern) - 1] == '/';
}

static void entries_are_complete(void **state)
{
	(void)state;
	for (const struct dbt_format *const *f = dbt_formats; *f; f++) {
		assert_non_null((*f)->id);
		assert_non_null((*f)->name);
		assert_non_null((*f)->tools);
		assert_non_null((*f)->members);
		assert_non_null((*f)->leads);
		for (const struct dbt_lead *lead = (*f)->leads; lead->pattern; lead++)
			assert_true((*f)->test || ends_with_slash(lead->pattern));
		assert_true((*f)->test || !(*f)->any_name);
		assert_non_null((*f)->leads[0].pattern);
		assert_ptr_equal(dbt_format_by_id((*f)->id), *f);
		assert_int_equal((*f)->parts != NULL, (*f)->shape == DBT_SHAPE_COMPOSITE);
		for (const char *c = (*f)->id; *c; c++)
			assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) ||
			            *c == '-');
	}
	assert_null(dbt_format_by_id("no such format"));
}

/* The name that a pattern stands for, with "x" as base and "07" for digits. */
static void name_for(const char *pattern, char out[128])
{
	size_t n = 0;

	for (; *pattern; pattern++) {
		if (*pattern == '*')
			out[n++] = 'x';
		else if (*pattern == '#')
			n += (size_t)sprintf(out + n, "07");
		else
			out[n++] = *pattern;
	}
	out[n] = '\0';
}

/* Every lead is found by its name: its ending is literal, and the table holds them all. */
static void every_lead_is_found(void **state)
{
	struct dbt_dbkind_lead leads[16];
	char name[128];

	(void)state;
	for (const struct dbt_format *const *f = dbt_formats; *f; f++)
		for (const struct dbt_lead *lead = (*f)->leads; lead->pattern; lead++) {
			bool found = false;
			size_t n;

			name_for(lead->pattern, name);
			assert_true(dbt_dbkind_hint(name) & DBT_HINT_LEAD);
			n = dbt_dbkind_leads(name, UINT64_MAX, leads, 16);
			assert_true(n < 16);
			for (size_t i = 0; i < n; i++)
				found |= leads[i].lead == lead;
			assert_true(found);
		}
}

static void names_tell_little_else(void **state)
{
	(void)state;
	assert_int_equal(dbt_dbkind_hint("reads_1.fastq.gz") & DBT_HINT_LEAD, 0);
	assert_int_equal(dbt_dbkind_hint("run.log"), DBT_HINT_EVERYDAY);
	assert_int_equal(dbt_dbkind_hint("something.odd"), 0);
	assert_int_equal(dbt_dbkind_hint(""), 0);
	assert_int_equal(dbt_dbkind_hint("nr.04.psq"), DBT_HINT_MEMBER);
}

static void patterns_fit(void **state)
{
	static const struct {
		const char *pattern, *base, *name;
		bool fits;
	} cases[] = {
		{ "*.psq", NULL, "a.psq", true },
		{ "*.psq", NULL, "a.psq.gz", false },
		{ "*.psq", "nr", "nr.psq", true },
		{ "*.psq", "nr", "nr.00.psq", false },
		{ "*.#.psq", "nr", "nr.00.psq", true },
		{ "*.#.psq", "nr", "nr.psq", false },
		{ "*.#.psq", "nr", "nr.x0.psq", false },
		{ "*", "nr", "nr", true },
		{ "*", "nr", "nrx", false },
		{ "*", NULL, "", true },
		{ "hash.k2d", "x", "hash.k2d", true },
		{ "database*mers.kmer_distrib", "x", "database100mers.kmer_distrib", true },
		{ "database*mers.kmer_distrib", "x", "database100mers.kraken", false },
		{ "#", NULL, "007", true },
		{ "#", NULL, "7a", false },
		{ "#", NULL, "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(dbt_pattern_fits(cases[i].pattern, cases[i].base, cases[i].name),
		                 cases[i].fits);
}

/* ---- each test ---- */

static void diamond_by_its_arithmetic(void **state)
{
	struct dbt_buf b = sample_diamond(1000);
	struct dbt_buf why = { 0 };

	(void)state;
	assert_exact("diamond", "x.dmnd", sample_diamond(1000));
	assert_exact("diamond", "any.bin", sample_diamond(1));
	/* Taxonomy may follow the array. */
	put_fill(&b, 0, 500);
	assert_int_equal(ask("diamond", "x.dmnd", &b, &why), DBT_MATCH_YES);
	/* A forged count must not wrap the arithmetic around. */
	memset(b.data + 16, 0xff, 8);
	assert_int_equal(ask("diamond", "x.dmnd", &b, &why), DBT_MATCH_CUT);
	memset(b.data + 32, 0xff, 8);
	assert_int_equal(ask("diamond", "x.dmnd", &b, &why), DBT_MATCH_CUT);
	memset(b.data + 16, 0, 8);
	assert_int_equal(ask("diamond", "x.dmnd", &b, &why), DBT_MATCH_NO);
	b.len = 8;
	assert_int_equal(ask("diamond", "x.dmnd", &b, &why), DBT_MATCH_CUT);
	dbt_buf_release(&why);
	dbt_buf_release(&b);
	assert_rejected("diamond", "fake.dmnd", text("not a diamond file, whatever its name\n"));
}

static void sqlite_by_its_pages(void **state)
{
	struct dbt_buf b = { 0 }, why = { 0 };

	(void)state;
	assert_exact("sqlite", "x.db", sample_sqlite(4096, 3));
	assert_exact("sqlite", "x.db", sample_sqlite(512, 2));
	assert_exact("sqlite", "x.db", sample_sqlite(65536, 2));
	assert_rejected("sqlite", "note.db", text("SQLite format 3 is mentioned in this text\n"));
	put_text(&b, "SQLite format 3");
	put_fill(&b, 0, 1);
	assert_rejected("sqlite", "truncated.db", b);
	b = sample_sqlite(4096, 1);
	b.len = 500; /* no page is that small */
	assert_rejected("sqlite", "truncated.db", b);
	b = sample_sqlite(4096, 3);
	b.data[16] = 0x0f; /* no power of two */
	assert_int_equal(ask("sqlite", "x.db", &b, &why), DBT_MATCH_NO);
	dbt_buf_release(&b);
	/* A page count that old writers did not keep is no proof of a cut. */
	b = sample_sqlite(4096, 3);
	b.data[95] = 6;
	b.data[31] = 99;
	assert_int_equal(ask("sqlite", "x.db", &b, &why), DBT_MATCH_YES);
	dbt_buf_release(&b);
	dbt_buf_release(&why);
}

static void kraken2_by_its_cells(void **state)
{
	struct dbt_buf b = sample_kraken2_hash(1000, 32), why = { 0 };

	(void)state;
	assert_exact("kraken2", "hash.k2d", sample_kraken2_hash(1000, 32));
	assert_exact("kraken2", "hash.k2d", sample_kraken2_hash(1000, 40));
	put_fill(&b, 0, 1); /* one byte too many is no cut but something else */
	assert_int_equal(ask("kraken2", "hash.k2d", &b, &why), DBT_MATCH_NO);
	b.data[8] = (char)(1001 & 0xff); /* more used than there is room */
	b.data[9] = 1001 >> 8;
	b.len--;
	assert_int_equal(ask("kraken2", "hash.k2d", &b, &why), DBT_MATCH_NO);
	dbt_buf_release(&b);
	dbt_buf_release(&why);
	put_fill(&b, 0, 4096);
	assert_rejected("kraken2", "hash.k2d", b);
}

static void blast_by_its_offsets(void **state)
{
	struct dbt_buf alias = text("#\nTITLE t\nDBLIST a.00 a.01\n");
	struct dbt_buf why = { 0 };

	(void)state;
	assert_exact("blast", "x.pin", sample_blast_index(4, true, "", 20, 30, 100));
	assert_exact("blast", "x.nin", sample_blast_index(4, false, "", 20, 30, 100));
	assert_exact("blast", "x.pin", sample_blast_index(5, true, "x.pdb", 20, 30, 100));
	assert_exact("blast", "x.nin", sample_blast_index(5, false, "x.ndb", 5000, 30, 100));
	/* Protein under the name of nucleotides, and the other way round. */
	assert_rejected("blast", "x.nin", sample_blast_index(4, true, "", 20, 30, 100));
	assert_rejected("blast", "x.pin", sample_blast_index(4, false, "", 20, 30, 100));
	assert_rejected("blast", "x.pin", sample_blast_index(3, true, "", 20, 30, 100));
	assert_rejected("blast", "x.pin", text("some text that is long enough to be an index\n"));
	assert_int_equal(ask("blast", "x.pal", &alias, &why), DBT_MATCH_YES);
	dbt_buf_release(&alias);
	dbt_buf_release(&why);
	assert_rejected("blast", "x.pal", text("TITLE without a list\n"));
}

static void hmmer_by_its_magics(void **state)
{
	static const char *const magics[] = { "\xf3\xe6\xe6\xb3", "\xf3\xe6\xe5\xb3",
		                              "\xf3\xe6\xe2\xb3", "\xf3\xe6\xb3\xe8" };
	struct dbt_buf why = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		struct dbt_buf b = sample_hmmer_part(magics[i]);

		assert_int_equal(ask("hmmer", "x.h3f", &b, &why), DBT_MATCH_YES);
		dbt_buf_release(&b);
	}
	dbt_buf_release(&why);
	/* Infernal's filter is another thing, and so is the profile part. */
	assert_rejected("hmmer", "x.h3f", sample_hmmer_part("\xf3\xe6\xe1\xb1"));
	assert_rejected("hmmer", "x.h3f", sample_hmmer_part("\xf3\xf0\xe6\xb3"));
	assert_rejected("hmmer", "x.h3f", text("HMM"));
}

static void bakta_by_its_version(void **state)
{
	struct dbt_buf why = { 0 };
	struct dbt_buf b = text("{ \"date\": \"2025-02-24\", \"major\": 6, \"minor\": 0, "
	                        "\"type\": \"full\" }");

	(void)state;
	assert_int_equal(ask("bakta", "version.json", &b, &why), DBT_MATCH_YES);
	dbt_buf_release(&b);
	dbt_buf_release(&why);
	assert_rejected("bakta", "version.json", text("{ \"version\": \"1.2.3\" }"));
	put_fill(&b, ' ', DBT_HEAD_BYTES + 1);
	put_text(&b, "\"date\" \"major\" \"minor\"");
	assert_rejected("bakta", "version.json", b);
}

/* ---- all tests on everything ---- */

/* No test may read beyond the bytes it was given (the sanitizers watch), whatever is cut away. The bytes
 * are copied to the end of an allocation of exactly their size. */
static void every_cut_is_survived(void **state)
{
	struct dbt_buf samples[] = {
		sample_diamond(300),
		sample_sqlite(4096, 2),
		sample_kraken2_hash(1100, 32),
		sample_blast_index(5, true, "x.pdb", 600, 30, 100),
		sample_blast_index(4, false, "", 400, 30, 100),
		sample_hmmer_part("\xf3\xe6\xe6\xb3"),
		sample_ssi(200),
		text("{ \"date\": \"2025-02-24\", \"major\": 6, \"minor\": 0, \"type\": \"full\" "
		     "}"),
		text("TITLE t\nDBLIST a.00 \"a.01\n"),
	};
	struct dbt_buf why = { 0 };

	(void)state;
	for (size_t s = 0; s < sizeof(samples) / sizeof(samples[0]); s++) {
		size_t max = samples[s].len < 4096 ? samples[s].len : 4096;

		for (size_t len = 0; len <= max; len++) {
			struct dbt_buf cut = { .len = len };
			char name[128];

			cut.data = test_malloc(len ? len : 1);
			memcpy(cut.data, samples[s].data, len);
			for (const struct dbt_format *const *f = dbt_formats; *f; f++)
				for (const struct dbt_lead *l = (*f)->leads; l->pattern; l++) {
					struct dbt_candidate file;

					name_for(l->pattern, name);
					file = candidate(name, &cut);
					dbt_buf_clear(&why);
					if ((*f)->test)
						(void)(*f)->test(&file, &why);
				}
			test_free(cut.data);
		}
		dbt_buf_release(&samples[s]);
	}
	dbt_buf_release(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_complete),      cmocka_unit_test(every_lead_is_found),
		cmocka_unit_test(names_tell_little_else),    cmocka_unit_test(patterns_fit),
		cmocka_unit_test(diamond_by_its_arithmetic), cmocka_unit_test(sqlite_by_its_pages),
		cmocka_unit_test(kraken2_by_its_cells),      cmocka_unit_test(blast_by_its_offsets),
		cmocka_unit_test(hmmer_by_its_magics),       cmocka_unit_test(bakta_by_its_version),
		cmocka_unit_test(every_cut_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
