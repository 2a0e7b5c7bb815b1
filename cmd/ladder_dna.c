/* The table of the DNA experiment: a row for each way to count, with the time of a byte. */
#include "cmd/ladder.h"

#include <string.h>

static const double BAR_FLOOR_NS = 0.1;

static const struct series_row *series(const void *row)
{
	return row;
}

static const struct dbt_dna_point *at(const struct series_row *row, unsigned bits)
{
	for (size_t i = 0; i < row->n; i++)
		if (row->points[i].bits == bits)
			return row->points[i].known ? &row->points[i] : NULL;
	return NULL;
}

static json_t *time_at(const void *row, unsigned bits)
{
	const struct dbt_dna_point *p = at(row, bits);

	return p ? table_json_real(p->ns) : json_null();
}

static json_t *get_series(const void *row)
{
	return table_json_text(dbt_dna_words(series(row)->points[0].mode));
}

static json_t *get_id(const void *row)
{
	return table_json_text(dbt_dna_id(series(row)->points[0].mode));
}

static json_t *get_directory(const void *row)
{
	return table_json_name(series(row)->dir);
}

static json_t *get_short(const void *row)
{
	return time_at(row, DBT_DNA_MIN_BITS);
}

static json_t *get_middle(const void *row)
{
	return time_at(row, (DBT_DNA_MIN_BITS + series(row)->dna->max_bits) / 2);
}

static json_t *get_long(const void *row)
{
	return time_at(row, series(row)->dna->max_bits);
}

static json_t *get_cold(const void *row)
{
	return json_boolean(dbt_dna_is_cold(series(row)->points[0].mode));
}

static json_t *get_proved(const void *row)
{
	bool proved = true;

	if (!dbt_dna_is_cold(series(row)->points[0].mode))
		return json_null();
	for (size_t i = 0; i < series(row)->n; i++)
		proved = proved && series(row)->points[i].proved;
	return json_boolean(proved);
}

static json_t *get_before(const void *row)
{
	return series(row)->before_ns > 0 ? table_json_real(series(row)->before_ns) : json_null();
}

static json_t *get_change(const void *row)
{
	const struct dbt_dna_point *now = at(row, series(row)->dna->max_bits);

	return now && series(row)->before_ns > 0 ? table_json_real(now->ns / series(row)->before_ns)
	                                         : json_null();
}

static json_t *get_bar(const void *row)
{
	const struct dbt_dna_point *p = at(row, series(row)->dna->max_bits);
	char buf[LADDER_BAR_BYTES];

	return p ? table_json_text(ladder_bar(p->ns, BAR_FLOOR_NS, buf)) : json_null();
}

static json_t *get_note(const void *row)
{
	for (size_t i = 0; i < series(row)->n; i++)
		if (series(row)->points[i].note)
			return table_json_text(series(row)->points[i].note);
	return json_null();
}

static json_t *known(double value)
{
	return value >= 0 ? table_json_real(value) : json_null();
}

static const struct dbt_dna_point *point(const void *row)
{
	return row;
}

static json_t *get_bytes(const void *row)
{
	return table_json_size(UINT64_C(1) << point(row)->bits);
}

static json_t *get_ns(const void *row)
{
	return point(row)->known ? table_json_real(point(row)->ns) : json_null();
}

static json_t *get_counted(const void *row)
{
	return table_json_size(point(row)->counted);
}

static json_t *get_rounds(const void *row)
{
	return table_json_size(point(row)->rounds);
}

static json_t *get_point_proved(const void *row)
{
	return dbt_dna_is_cold(point(row)->mode) ? json_boolean(point(row)->proved) : json_null();
}

static json_t *get_cache_misses(const void *row)
{
	return known(point(row)->cache_misses);
}

static json_t *get_tlb_misses(const void *row)
{
	return known(point(row)->tlb_misses);
}

static json_t *get_point_note(const void *row)
{
	return table_json_text(point(row)->note);
}

static const struct column point_columns[] = {
	{ .key = "bytes", .type = COLUMN_SIZE, .get = get_bytes, .help = "length of the text" },
	{ .key = "ns", .type = COLUMN_NS, .get = get_ns, .help = "time of a byte" },
	{ .key = "counted", .type = COLUMN_COUNT, .get = get_counted, .help = "bytes of a round" },
	{ .key = "rounds", .type = COLUMN_COUNT, .get = get_rounds, .help = "how many" },
	{ .key = "proved",
	  .type = COLUMN_BOOL,
	  .get = get_point_proved,
	  .help = "cold reads: the disks' own counters saw them" },
	{ .key = "cache_misses",
	  .type = COLUMN_REAL,
	  .get = get_cache_misses,
	  .help = "of the last cache, a byte" },
	{ .key = "tlb_misses", .type = COLUMN_REAL, .get = get_tlb_misses, .help = "a byte" },
	{ .key = "note", .get = get_point_note, .help = "why there is no time" },
	{ 0 },
};

static const struct table_spec points_table = { .key = "points", .columns = point_columns };

static json_t *get_points(const void *row)
{
	return table_json_rows(&points_table, TABLE_ROWS(series(row)->points, series(row)->n));
}

static const struct column columns[] = {
	{ .key = "series",
	  .shown = true,
	  .get = get_series,
	  .help = "where the bytes come from, and in which order" },
	{ .key = "id", .get = get_id, .help = "the same for programs" },
	{ .key = "directory",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = get_directory,
	  .help = "where the file is; none for memory" },
	{ .key = "shortest_ns",
	  .type = COLUMN_NS,
	  .shown = true,
	  .get = get_short,
	  .help = "time of a byte in a text of 2^15 bytes" },
	{ .key = "middle_ns",
	  .type = COLUMN_NS,
	  .shown = true,
	  .get = get_middle,
	  .help = "... of the length half-way (2^20)" },
	{ .key = "longest_ns",
	  .type = COLUMN_NS,
	  .shown = true,
	  .get = get_long,
	  .help = "... of the longest (2^25, or as --max says)" },
	{ .key = "cold", .type = COLUMN_BOOL, .get = get_cold, .help = "read past the page cache" },
	{ .key = "proved",
	  .type = COLUMN_BOOL,
	  .get = get_proved,
	  .help = "cold reads: the disks' own counters saw them all" },
	{ .key = "before_ns",
	  .type = COLUMN_NS,
	  .get = get_before,
	  .help = "at the same length in the answer that --compare names" },
	{ .key = "change", .type = COLUMN_REAL, .get = get_change, .help = "now against before" },
	{ .key = "bar",
	  .shown = true,
	  .text_only = true,
	  .get = get_bar,
	  .help = "longest_ns, three characters for a factor of ten" },
	{ .key = "note",
	  .shown = true,
	  .wrap = true,
	  .get = get_note,
	  .help = "why a time is missing" },
	{ .key = "points",
	  .type = COLUMN_LIST,
	  .json_only = true,
	  .nested = &points_table,
	  .get = get_points,
	  .help = "all lengths" },
	{ 0 },
};

const struct table_spec ladder_dna_table = { .key = "series", .columns = columns };

/* The time that a series has at a length. */
static double time_in(const json_t *earlier_series, uint64_t bytes)
{
	const json_t *points = json_object_get(earlier_series, points_table.key), *item;
	size_t i;

	json_array_foreach(points, i, item)
	{
		if ((uint64_t)json_integer_value(json_object_get(item, "bytes")) == bytes)
			return json_number_value(json_object_get(item, "ns"));
	}
	return 0;
}

static double earlier_time(const json_t *earlier, const struct series_row *row)
{
	const json_t *list = json_object_get(earlier, ladder_dna_table.key), *item;
	json_t *id = get_id(row), *dir = table_json_text(row->dir);
	double ns = 0;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (id && dir && json_equal(json_object_get(item, "id"), id) &&
		    json_equal(json_object_get(item, "directory"), dir))
			ns = time_in(item, UINT64_C(1) << row->dna->max_bits);
	}
	json_decref(id);
	json_decref(dir);
	return ns;
}

size_t ladder_dna_rows(const struct dbt_dna *dna, const char *const *dirs, const json_t *earlier,
                       struct series_row *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < dna->n; i++) {
		const struct dbt_dna_point *p = &dna->items[i];

		if (n > 0 && rows[n - 1].points[0].mode == p->mode &&
		    rows[n - 1].points[0].dir == p->dir) {
			rows[n - 1].n++;
			continue;
		}
		rows[n++] = (struct series_row){
			.dna = dna,
			.points = p,
			.n = 1,
			.dir = dbt_dna_is_file(p->mode) ? dirs[p->dir] : NULL,
		};
	}
	for (size_t i = 0; i < n; i++)
		rows[i].before_ns = earlier_time(earlier, &rows[i]);
	return n;
}

json_t *ladder_dna_more(const struct dbt_dna *dna, const struct dbt_sentences *conclusion)
{
	return json_pack("{s:I, s:f, s:o}", "max_bytes", (json_int_t)(UINT64_C(1) << dna->max_bits),
	                 "huge_page_share", dna->huge_share, "conclusion",
	                 table_json_strings((const char *const *)conclusion->items, conclusion->n));
}
