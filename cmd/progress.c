#include "cmd/progress.h"

#include "base/units.h"
#include "cmd/text.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/ioctl.h>

enum { SAMPLE_NS = 500000000, LINE_NS = 100000000, JSON_NS = 1000000000 };

/* There is one stderr. */
static struct progress *on_screen;

static const struct progress_sample *oldest(const struct progress *p)
{
	size_t n = PROGRESS_SAMPLES;

	return &p->samples[(p->newest + n - (p->n_samples - 1)) % n];
}

uint64_t progress_rate(const struct progress *p)
{
	const struct progress_sample *first, *last;

	if (p->n_samples < 2)
		return 0;
	first = oldest(p);
	last = &p->samples[p->newest];
	if (last->at_ns <= first->at_ns || last->done_bytes < first->done_bytes)
		return 0;
	return (uint64_t)((double)(last->done_bytes - first->done_bytes) * 1e9 /
	                  (double)(last->at_ns - first->at_ns));
}

static void sample(struct progress *p, const struct dbt_progress *now, uint64_t now_ns)
{
	char phase[PROGRESS_PHASE_BYTES];

	(void)snprintf(phase, sizeof(phase), "%s", now->phase);
	if (strcmp(p->phase, phase) != 0 ||
	    (p->n_samples && now->done_bytes < p->samples[p->newest].done_bytes)) {
		memcpy(p->phase, phase, sizeof(phase));
		p->n_samples = 0;
		p->newest = 0;
		p->shown_ns = 0;
	} else if (now_ns - p->samples[p->newest].at_ns < SAMPLE_NS) {
		return;
	} else {
		p->newest = (p->newest + 1) % PROGRESS_SAMPLES;
	}
	if (p->n_samples < PROGRESS_SAMPLES)
		p->n_samples++;
	p->samples[p->newest] =
		(struct progress_sample){ .at_ns = now_ns, .done_bytes = now->done_bytes };
}

/* Seconds left at the present rate; -1 while unknown. */
static int64_t seconds_left(const struct progress *p, const struct dbt_progress *now)
{
	uint64_t rate = progress_rate(p);

	if (rate == 0 || now->total_bytes < now->done_bytes || now->total_bytes == 0)
		return -1;
	return (int64_t)((now->total_bytes - now->done_bytes) / rate);
}

static size_t terminal_width(FILE *out)
{
	struct winsize size = { 0 };

	if (ioctl(fileno(out), TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return 80;
	return size.ws_col;
}

/* "copy  42%  1.2G of 4G  210 MB/s  13 s left  psc.dmnd" */
static int line_text(const struct progress *p, const struct dbt_progress *now, struct dbt_buf *buf)
{
	char done[DBT_UNITS_TEXT_BYTES], total[DBT_UNITS_TEXT_BYTES], rate[DBT_UNITS_TEXT_BYTES],
		left[DBT_UNITS_TEXT_BYTES];
	int64_t seconds = seconds_left(p, now);
	int r = dbt_buf_addf(buf, "%s", now->phase);

	if (r == 0 && now->total_bytes)
		r = dbt_buf_addf(buf, "  %3.0f%%",
		                 100.0 * (double)now->done_bytes / (double)now->total_bytes);
	if (r == 0 && now->done_bytes)
		r = dbt_buf_addf(buf, "  %s", dbt_units_size(now->done_bytes, done));
	if (r == 0 && now->total_bytes)
		r = dbt_buf_addf(buf, " of %s", dbt_units_size(now->total_bytes, total));
	if (r == 0 && progress_rate(p))
		r = dbt_buf_addf(buf, "  %s", dbt_units_rate(progress_rate(p), rate));
	if (r == 0 && seconds >= 0 && seconds < 60)
		r = dbt_buf_addf(buf, "  %" PRId64 " s left", seconds);
	else if (r == 0 && seconds >= 60)
		r = dbt_buf_addf(buf, "  %s left",
		                 dbt_units_duration((uint64_t)seconds * 1000000000U, left));
	if (r == 0 && now->name)
		r = dbt_buf_adds(buf, "  ");
	if (r == 0 && now->name)
		r = text_add_escaped(buf, now->name);
	return r;
}

/* Cuts text after width characters, each taken as one column wide. */
static void cut(struct dbt_buf *buf, size_t width)
{
	size_t at = 0;

	for (size_t n; at < buf->len && width > 0; at += n, width--) {
		n = text_utf8_len(buf->data + at, buf->len - at);
		n = n ? n : 1;
	}
	if (at < buf->len) {
		buf->data[at] = '\0';
		buf->len = at;
	}
}

static void show_line(struct progress *p, const struct dbt_progress *now)
{
	struct dbt_buf buf = { 0 };

	if (line_text(p, now, &buf) == 0) {
		cut(&buf, terminal_width(p->out) - 1);
		(void)fprintf(p->out, "\r%s\033[K", dbt_buf_str(&buf));
		(void)fflush(p->out);
		p->line_shown = true;
		on_screen = p;
	}
	dbt_buf_release(&buf);
}

static void show_json(struct progress *p, const struct dbt_progress *now)
{
	int64_t left = seconds_left(p, now);
	struct dbt_buf name = { 0 };
	json_t *line = NULL;

	if (text_add_utf8(&name, now->name ? now->name : "", now->name ? strlen(now->name) : 0) ==
	    0)
		line = json_pack("{s:s, s:s, s:I, s:o, s:I, s:o}", "phase", now->phase, "name",
		                 dbt_buf_str(&name), "done", (json_int_t)now->done_bytes, "total",
		                 now->total_bytes ? json_integer((json_int_t)now->total_bytes)
		                                  : json_null(),
		                 "rate", (json_int_t)progress_rate(p), "seconds_left",
		                 left < 0 ? json_null() : json_integer((json_int_t)left));
	if (line && json_dumpf(line, p->out, JSON_COMPACT) == 0) {
		(void)fputc('\n', p->out);
		(void)fflush(p->out);
	}
	json_decref(line);
	dbt_buf_release(&name);
}

void progress_report(void *data, const struct dbt_progress *now)
{
	struct progress *p = data;
	uint64_t now_ns, pause_ns = p->mode == PROGRESS_JSON ? JSON_NS : LINE_NS;

	if (p->mode == PROGRESS_OFF)
		return;
	now_ns = p->sys->now_ns();
	sample(p, now, now_ns);
	if (p->shown_ns && now_ns - p->shown_ns < pause_ns)
		return;
	p->shown_ns = now_ns;
	if (p->mode == PROGRESS_JSON)
		show_json(p, now);
	else
		show_line(p, now);
}

void progress_clear(struct progress *p)
{
	if (!p->line_shown)
		return;
	(void)fputs("\r\033[K", p->out);
	(void)fflush(p->out);
	p->line_shown = false;
	on_screen = NULL;
}

void progress_hide(void)
{
	if (on_screen)
		progress_clear(on_screen);
}
