#include "cmd/diagnose_screen.h"

#include "base/buf.h"
#include "base/units.h"
#include "cmd/diagnose_tables.h"
#include "cmd/prose.h"
#include "cmd/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* So many rows of each table fit on a screen with the rest. */
enum { MAX_DEVICES = 4, MAX_GROUPS = 5, MAX_FILES = 5, PROSE_WIDTH = 100 };

struct screen {
	const struct app *app;
	const struct dbt_observation *obs;
	const struct dbt_diagnosis *d;
	unsigned width;
	bool color;
	FILE *out;
};

static int percent(struct dbt_buf *buf, const char *what, double share)
{
	return share < 0 ? 0 : dbt_buf_addf(buf, "%s %.0f %%", what, share * 100);
}

/* "10.0 s on 2 CPUs: busy 15 %, waiting for I/O 62 %, idle 23 %; memory 20.1G of 23G free" */
static int print_machine(const struct screen *s)
{
	const struct dbt_obs_machine *m = &s->obs->machine;
	char a[DBT_UNITS_TEXT_BYTES], b[DBT_UNITS_TEXT_BYTES];
	struct dbt_buf buf = { 0 };
	int r = dbt_buf_addf(&buf, "%.1f s on %u CPU%s:", s->obs->seconds, m->cpus,
	                     m->cpus == 1 ? "" : "s");

	if (r == 0)
		r = percent(&buf, " busy", m->busy);
	if (r == 0)
		r = percent(&buf, ", iowait", m->iowait);
	if (r == 0)
		r = percent(&buf, ", idle", m->idle);
	if (r == 0 && m->steal > 0.01)
		r = percent(&buf, ", stolen", m->steal);
	if (r == 0 && m->memory_bytes > 0)
		r = dbt_buf_addf(&buf, "; memory %s of %s available",
		                 dbt_units_size(m->available_bytes, a),
		                 dbt_units_size(m->memory_bytes, b));
	if (r == 0 && m->limit_bytes > 0)
		r = dbt_buf_addf(&buf, ", the jobs' cgroup %s of %s",
		                 dbt_units_size(m->limit_used_bytes, a),
		                 dbt_units_size(m->limit_bytes, b));
	if (r == 0 && m->swapped_in_pages > 0)
		r = dbt_buf_addf(&buf, ", %llu pages back from swap",
		                 (unsigned long long)m->swapped_in_pages);
	if (r == 0 && m->io_some >= 0)
		r = dbt_buf_addf(&buf,
		                 "; pressure: I/O some %.0f %% full %.0f %%, memory some %.0f %% "
		                 "full %.0f %%",
		                 m->io_some * 100, m->io_full * 100, m->memory_some * 100,
		                 m->memory_full * 100);
	else if (r == 0)
		r = dbt_buf_adds(&buf,
		                 "; pressure (PSI): this kernel does not tell (psi=1 at boot)");
	if (r == 0)
		r = prose_print(s->out, s->width, "", dbt_buf_str(&buf));
	dbt_buf_release(&buf);
	return r;
}

/* Where the figures come from, and what could not be seen. */
static int print_sources(const struct screen *s)
{
	const struct dbt_observation *obs = s->obs;
	struct dbt_buf buf = { 0 };
	int r = 0;

	if (obs->traced)
		r = dbt_buf_addf(
			&buf,
			"seen by: /proc/stat, diskstats, states of threads; files by the trace "
			"of the page cache%s",
			obs->traced_share < 0.95 ? " in a part of the time" : "");
	else
		r = dbt_buf_addf(
			&buf,
			"seen by: /proc/stat, diskstats, states of threads; files by what is "
			"open and /proc/PID/io (%s): requests and jumps of single files are not "
			"known",
			obs->untraced ? obs->untraced : "not traced");
	if (r == 0 && obs->traced_share > 0 && obs->traced_share < 0.95)
		r = dbt_buf_addf(&buf, " (%.0f %%, to stay cheap)", obs->traced_share * 100);
	if (r == 0 && obs->hidden > 0)
		r = dbt_buf_addf(
			&buf, "; %u process%s of other users could not be looked into (root can)",
			obs->hidden, obs->hidden == 1 ? "" : "es");
	if (r == 0 && obs->dropped > 0)
		r = dbt_buf_adds(&buf, "; there were more active processes than are followed");
	if (r == 0)
		r = prose_print(s->out, s->width, "", dbt_buf_str(&buf));
	dbt_buf_release(&buf);
	return r;
}

static int print_table(const struct screen *s, const struct table_spec *spec, size_t n,
                       struct dbt_err *err)
{
	struct diagnose_row *rows;
	struct global_args args = s->app->args;
	int r;

	if (n == 0)
		return 0;
	(void)fputc('\n', s->out);
	rows = diagnose_rows(s->obs, s->d, n);
	if (!rows)
		return dbt_err_sys(err, -ENOMEM, "cannot print the answer");
	args.json = false;
	args.output = NULL;
	r = table_print(spec, &args, TABLE_ROWS(rows, n), s->out, err);
	free(rows);
	return r;
}

static size_t at_most(size_t n, size_t max)
{
	return n < max ? n : max;
}

/* Rows that say something: lists are sorted, so these are the first ones. */
static size_t busy_devices(const struct screen *s)
{
	size_t n = 0;

	while (n < s->d->devices.n && n < MAX_DEVICES && s->d->devices.items[n].busy >= 0.01)
		n++;
	return n;
}

static const char *colour_of(enum dbt_diag_kind kind)
{
	switch (kind) {
	case DBT_DIAG_NOTHING:
		return "\033[32m";
	case DBT_DIAG_CPU:
		return "\033[33m";
	case DBT_DIAG_STORAGE:
	case DBT_DIAG_NETWORK:
	case DBT_DIAG_WRITES:
	case DBT_DIAG_MEMORY:
		break;
	}
	return "\033[31m";
}

static int print_verdict(const struct screen *s)
{
	struct dbt_buf buf = { 0 };
	int r = 0;

	(void)fprintf(s->out, "\n%s%s%s\n", s->color ? colour_of(s->d->kind) : "",
	              dbt_diag_kind_name(s->d->kind), s->color ? "\033[0m" : "");
	r = prose_print(s->out, s->width, "  ", s->d->text);
	for (size_t i = 0; r == 0 && i < s->d->remedies.n; i++) {
		const struct dbt_remedy *m = &s->d->remedies.items[i];

		dbt_buf_clear(&buf);
		r = dbt_buf_addf(&buf, "%s%s%s%s", m->text, m->basis ? " (" : "",
		                 m->basis ? m->basis : "", m->basis ? ")" : "");
		if (r == 0)
			r = prose_print(s->out, s->width, "- ", dbt_buf_str(&buf));
	}
	dbt_buf_release(&buf);
	return r;
}

static int print_tables(const struct screen *s, struct dbt_err *err)
{
	int r = print_table(s, &diagnose_devices, busy_devices(s), err);

	if (r == 0)
		r = print_table(s, &diagnose_processes, at_most(s->d->groups.n, MAX_GROUPS), err);
	if (r == 0)
		r = print_table(s, &diagnose_databases, at_most(s->d->files.n, MAX_FILES), err);
	return r;
}

int diagnose_screen(const struct app *app, const struct dbt_observation *obs,
                    const struct dbt_diagnosis *d, const struct screen_look *look, FILE *out,
                    struct dbt_err *err)
{
	const struct screen s = { .app = app,
		                  .obs = obs,
		                  .d = d,
		                  .width = look->width ? look->width : PROSE_WIDTH,
		                  .color = look->color,
		                  .out = out };
	int r = print_machine(&s);

	if (r == 0 && look->verdict_first)
		r = print_verdict(&s);
	if (r == 0)
		r = print_sources(&s);
	if (r < 0)
		return dbt_err_sys(err, r, "cannot print the answer");
	r = print_tables(&s, err);
	if (r < 0 || look->verdict_first)
		return r;
	r = print_verdict(&s);
	return r < 0 ? dbt_err_sys(err, r, "cannot print the answer") : 0;
}
