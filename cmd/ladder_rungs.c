/* The table of rungs. */
#include "base/vec.h"
#include "cmd/ladder.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double BAR_FLOOR_NS = 0.2;

static const struct dbt_rung *rung_of(const void *row)
{
	return ((const struct rung_row *)row)->rung;
}

static json_t *known(double value)
{
	return value > 0 ? table_json_real(value) : json_null();
}

static json_t *known_size(uint64_t value)
{
	return value > 0 ? table_json_size(value) : json_null();
}

const char *ladder_bar(double ns, double floor_ns, char buf[LADDER_BAR_BYTES])
{
	const char *block = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "\xe2\x96\x88" : "#";
	double length = ns > floor_ns ? ceil(3 * log10(ns / floor_ns)) : 1;
	size_t used = 0;

	for (double i = 0; i < length && used + strlen(block) < LADDER_BAR_BYTES; i++) {
		memcpy(buf + used, block, strlen(block));
		used += strlen(block);
	}
	buf[used] = '\0';
	return buf;
}

static json_t *get_rung(const void *row)
{
	return table_json_name(rung_of(row)->name);
}

static json_t *get_device(const void *row)
{
	return table_json_text(rung_of(row)->device);
}

static json_t *get_tier(const void *row)
{
	return table_json_text(dbt_tier_name(rung_of(row)->tier));
}

static json_t *get_size(const void *row)
{
	return known_size(rung_of(row)->size_bytes);
}

static json_t *get_set(const void *row)
{
	return known_size(rung_of(row)->set_bytes);
}

static json_t *get_latency(const void *row)
{
	return known(rung_of(row)->lat_ns);
}

static json_t *get_small(const void *row)
{
	return known(rung_of(row)->lat_small_ns);
}

static json_t *get_ratio(const void *row)
{
	const struct rung_row *r = row;

	return r->above && r->above->lat_ns > 0 && r->rung->lat_ns > 0
	               ? table_json_real(r->rung->lat_ns / r->above->lat_ns)
	               : json_null();
}

static json_t *get_book(const void *row)
{
	return known(rung_of(row)->book_lat_ns);
}

static json_t *get_iops(const void *row)
{
	return known(rung_of(row)->iops1);
}

static json_t *get_iops4(const void *row)
{
	return known(rung_of(row)->iops4);
}

static json_t *get_stream(const void *row)
{
	return known_size(rung_of(row)->stream1);
}

static json_t *get_streams(const void *row)
{
	return known_size(rung_of(row)->stream4);
}

static json_t *get_book_stream(const void *row)
{
	return known_size(rung_of(row)->book_stream);
}

static json_t *get_proved(const void *row)
{
	const struct dbt_rung *r = rung_of(row);

	return r->kind == DBT_RUNG_DEVICE ? json_boolean(r->proved) : json_null();
}

static json_t *get_bar(const void *row)
{
	char buf[LADDER_BAR_BYTES];
	double ns = rung_of(row)->lat_ns;

	return ns > 0 ? table_json_text(ladder_bar(ns, BAR_FLOOR_NS, buf)) : json_null();
}

static json_t *get_before(const void *row)
{
	return known(((const struct rung_row *)row)->before_ns);
}

static json_t *get_change(const void *row)
{
	const struct rung_row *r = row;

	return r->before_ns > 0 && r->rung->lat_ns > 0
	               ? table_json_real(r->rung->lat_ns / r->before_ns)
	               : json_null();
}

static json_t *get_note(const void *row)
{
	return table_json_text(rung_of(row)->note);
}

static const struct column columns[] = {
	{ .key = "rung",
	  .type = COLUMN_NAME,
	  .shown = true,
	  .get = get_rung,
	  .help = "a cache, the memory, or a directory" },
	{ .key = "device", .get = get_device, .help = "topmost block device below a directory" },
	{ .key = "tier", .shown = true, .get = get_tier, .help = "class of what was measured" },
	{ .key = "size",
	  .type = COLUMN_SIZE,
	  .shown = true,
	  .get = get_size,
	  .help = "how much fits" },
	{ .key = "set",
	  .type = COLUMN_SIZE,
	  .get = get_set,
	  .help = "how much the reads were spread over" },
	{ .key = "latency_ns",
	  .type = COLUMN_NS,
	  .shown = true,
	  .get = get_latency,
	  .help = "one read that waits: a load (huge pages), or 4 KiB of a device" },
	{ .key = "latency_4k_ns",
	  .type = COLUMN_NS,
	  .get = get_small,
	  .help = "a load with 4 KiB pages: address translation included" },
	{ .key = "ratio",
	  .type = COLUMN_REAL,
	  .shown = true,
	  .get = get_ratio,
	  .help = "latency against the rung above" },
	{ .key = "textbook_ns",
	  .type = COLUMN_NS,
	  .shown = true,
	  .get = get_book,
	  .help = "latency as textbooks have it" },
	{ .key = "iops",
	  .type = COLUMN_REAL,
	  .get = get_iops,
	  .help = "random reads of 4 KiB a second, one job" },
	{ .key = "iops4",
	  .type = COLUMN_REAL,
	  .get = get_iops4,
	  .help = "the same with four jobs" },
	{ .key = "stream",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .get = get_stream,
	  .help = "one stream; of memory: one thread" },
	{ .key = "streams",
	  .type = COLUMN_RATE,
	  .shown = true,
	  .get = get_streams,
	  .help = "four streams together; of memory: a thread on each processor" },
	{ .key = "textbook_stream",
	  .type = COLUMN_RATE,
	  .get = get_book_stream,
	  .help = "one stream as textbooks have it" },
	{ .key = "before_ns",
	  .type = COLUMN_NS,
	  .get = get_before,
	  .help = "latency in the answer that --compare names" },
	{ .key = "change",
	  .type = COLUMN_REAL,
	  .get = get_change,
	  .help = "latency now against before" },
	{ .key = "bar",
	  .shown = true,
	  .text_only = true,
	  .get = get_bar,
	  .help = "latency, three characters for a factor of ten" },
	{ .key = "proved",
	  .type = COLUMN_BOOL,
	  .get = get_proved,
	  .help = "the disks' own counters saw the reads" },
	{ .key = "note",
	  .wrap = true,
	  .get = get_note,
	  .help = "what to know about it; told below the table, too" },
	{ 0 },
};

const struct table_spec ladder_rungs_table = { .key = "rungs", .columns = columns };

/* A latency of memory can be compared only where the reads were spread over as much. */
static bool is_same_rung(const struct dbt_rung *rung, const json_t *name, const json_t *item)
{
	return json_equal(json_object_get(item, "rung"), name) &&
	       (rung->kind == DBT_RUNG_DEVICE ||
	        (uint64_t)json_integer_value(json_object_get(item, "set")) == rung->set_bytes);
}

static double earlier_latency(const json_t *earlier, const struct dbt_rung *rung)
{
	const json_t *list = json_object_get(earlier, ladder_rungs_table.key);
	json_t *name = table_json_text(rung->name), *item;
	double ns = 0;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (name && is_same_rung(rung, name, item))
			ns = json_number_value(json_object_get(item, "latency_ns"));
	}
	json_decref(name);
	return ns;
}

void ladder_rungs_rows(const struct dbt_rungs *rungs, const json_t *earlier, struct rung_row *rows)
{
	for (size_t i = 0; i < rungs->n; i++)
		rows[i] = (struct rung_row){
			.rung = &rungs->items[i],
			.above = i > 0 ? &rungs->items[i - 1] : NULL,
			.before_ns = earlier_latency(earlier, &rungs->items[i]),
		};
}

int ladder_rungs_notes(const struct dbt_rungs *rungs, struct dbt_sentences *ret)
{
	struct dbt_sentences notes = { 0 };

	for (size_t i = 0; i < rungs->n; i++) {
		const struct dbt_rung *rung = &rungs->items[i];
		char **slot = rung->note ? dbt_vec_push(&notes) : NULL;

		if (!rung->note)
			continue;
		if (slot && asprintf(slot, "%s: %s", rung->name, rung->note) >= 0)
			continue;
		if (slot)
			*slot = NULL;
		dbt_sentences_release(&notes);
		return -ENOMEM;
	}
	*ret = notes;
	return 0;
}

json_t *ladder_rungs_more(void)
{
	return json_pack("{s:s}", "textbook", dbt_rungs_book);
}
