#include "cmd/metrics.h"

#include "base/buf.h"
#include "cmd/text.h"

#include <inttypes.h>
#include <string.h>

/* In a label's value a backslash, a quote and a line break are escaped, and it must be UTF-8. */
static int add_label_value(struct dbt_buf *buf, const char *text)
{
	struct dbt_buf utf8 = { 0 };
	int r = text_add_utf8(&utf8, text, strlen(text));

	for (const char *at = dbt_buf_str(&utf8); r == 0 && *at; at++) {
		if (*at == '\n')
			r = dbt_buf_adds(buf, "\\n");
		else if (*at == '\\' || *at == '"')
			r = dbt_buf_addf(buf, "\\%c", *at);
		else
			r = dbt_buf_addc(buf, *at);
	}
	dbt_buf_release(&utf8);
	return r;
}

/* The labels that tell promotions apart: id="3",name="psc",path="/mnt/db/psc.dmnd" */
static int add_labels(struct dbt_buf *buf, const struct dbt_promotion *p)
{
	int r = dbt_buf_addf(buf, "id=\"%" PRId64 "\",name=\"", p->id);

	if (r == 0)
		r = add_label_value(buf, p->name);
	if (r == 0)
		r = dbt_buf_adds(buf, "\",path=\"");
	if (r == 0)
		r = add_label_value(buf, p->path);
	return r == 0 ? dbt_buf_adds(buf, "\"") : r;
}

static void print_head(const char *name, const char *help, FILE *out)
{
	(void)fprintf(out, "# HELP dbtier_%s %s\n# TYPE dbtier_%s gauge\n", name, help, name);
}

static void print_health(const struct promotion_row *row, const char *labels, FILE *out)
{
	for (int h = DBT_HEALTH_OK; row->judged && h <= DBT_HEALTH_ORIGINAL_CHANGED; h++)
		(void)fprintf(out, "dbtier_promotion_health{%s,health=\"%s\"} %d\n", labels,
		              dbt_health_name((enum dbt_health)h),
		              row->health == (enum dbt_health)h);
}

static void print_size(const struct promotion_row *row, const char *labels, FILE *out)
{
	(void)fprintf(out, "dbtier_promotion_size_bytes{%s} %" PRIu64 "\n", labels,
	              dbt_promotion_size(&row->p));
}

static void print_since(const struct promotion_row *row, const char *labels, FILE *out)
{
	if (row->p.promoted_ns)
		(void)fprintf(out, "dbtier_promotion_since_seconds{%s} %" PRIu64 "\n", labels,
		              row->p.promoted_ns / 1000000000U);
}

static const struct metric {
	const char *name, *help;
	void (*print)(const struct promotion_row *row, const char *labels, FILE *out);
} metrics[] = {
	{ "promotion_health", "1 for the health that the promotion has, 0 for the others.",
	  print_health },
	{ "promotion_size_bytes", "Bytes of all files of the promotion.", print_size },
	{ "promotion_since_seconds", "When it was promoted, in seconds since 1970.", print_since },
};

enum { N_METRICS = sizeof(metrics) / sizeof(metrics[0]) };

void metrics_print(const struct promotion_rows *rows, FILE *out)
{
	size_t unhealthy = 0;

	/* All samples of one metric stand together. */
	for (size_t m = 0; m < N_METRICS; m++) {
		print_head(metrics[m].name, metrics[m].help, out);
		for (size_t i = 0; i < rows->n; i++) {
			struct dbt_buf labels = { 0 };

			if (dbt_state_is_active(rows->items[i].p.state) &&
			    add_labels(&labels, &rows->items[i].p) == 0)
				metrics[m].print(&rows->items[i], dbt_buf_str(&labels), out);
			dbt_buf_release(&labels);
		}
	}
	for (size_t i = 0; i < rows->n; i++)
		unhealthy += dbt_state_is_active(rows->items[i].p.state) &&
		             !(rows->items[i].judged && rows->items[i].health == DBT_HEALTH_OK);
	print_head("unhealthy_promotions", "Promotions that are not healthy, or cannot be judged.",
	           out);
	(void)fprintf(out, "dbtier_unhealthy_promotions %zu\n", unhealthy);
}
