/* The pictures of the ladder: bars for the rungs, lines for the DNA experiment. Every mark carries
 * the number it stands for. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cmd/ladder.h"
#include "cmd/svg.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const char *string(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Whole decades around all the values that were seen. */
struct range {
	double low, high;
};

static void widen(struct range *range, double value)
{
	if (value <= 0)
		return;
	if (range->low <= 0 || value < range->low)
		range->low = value;
	if (value > range->high)
		range->high = value;
}

static void round_range(struct range *range)
{
	if (range->low <= 0)
		*range = (struct range){ 1, 10 };
	range->low = pow(10, floor(log10(range->low)));
	range->high = pow(10, ceil(log10(range->high)));
	if (range->high <= range->low)
		range->high = range->low * 10;
}

/* How many lines a grid has, each factor times the one before. */
static int steps(const struct svg_scale *scale, double factor)
{
	return (int)floor(log(scale->high / scale->low) / log(factor) + 0.001) + 1;
}

/* --- rungs --- */

enum { ROW = 46, BARS_X = 220, BARS_END = 700, WIDTH = 960, BARS_Y = 84 };

static void draw_rung(FILE *out, const json_t *rung, const struct svg_scale *x, double y, int color)
{
	double ns = number(rung, "latency_ns"), book = number(rung, "textbook_ns");
	char text[DBT_UNITS_TEXT_BYTES], rate[DBT_UNITS_TEXT_BYTES];

	svg_label(out, BARS_X - 14, y + 18, "end", string(rung, "rung"));
	if (ns <= 0) {
		svg_label(out, BARS_X + 6, y + 18, "start", "not measured");
		return;
	}
	(void)fprintf(out,
	              "<rect class=\"bar c%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"26\" "
	              "rx=\"3\" data-ns=\"%.17g\"/>\n",
	              color, x->from, y, svg_at(x, ns) - x->from, ns);
	if (book > 0)
		(void)fprintf(
			out,
			"<line class=\"book\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" "
			"data-textbook-ns=\"%.17g\"/>\n",
			svg_at(x, book), svg_at(x, book), y - 4, y + 30, book);
	svg_label(out, BARS_END + 14, y + 18, "start", dbt_units_short(ns, text));
	if (number(rung, "stream") > 0)
		svg_label(out, WIDTH - 24, y + 18, "end",
		          dbt_units_rate((uint64_t)number(rung, "stream"), rate));
}

static void decades(FILE *out, const struct svg_scale *x, double top, double bottom)
{
	char text[DBT_UNITS_TEXT_BYTES];

	for (int i = 0; i < steps(x, 10); i++) {
		double v = x->low * pow(10, i);

		(void)fprintf(out,
		              "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
		              "y2=\"%.1f\"/>\n",
		              svg_at(x, v), svg_at(x, v), top, bottom);
		svg_label(out, svg_at(x, v), bottom + 20, "middle", dbt_units_short(v, text));
	}
}

static void draw_rungs(FILE *out, const json_t *answer)
{
	const json_t *rungs = json_object_get(answer, ladder_rungs_table.key), *rung;
	const double bottom = BARS_Y + (double)(ROW * json_array_size(rungs));
	struct range range = { 0 };
	struct svg_scale x;
	size_t i;

	json_array_foreach(rungs, i, rung)
	{
		widen(&range, number(rung, "latency_ns"));
		widen(&range, number(rung, "textbook_ns"));
	}
	round_range(&range);
	x = (struct svg_scale){ range.low, range.high, BARS_X, BARS_END };
	svg_begin(out, "One read, from cache to disk",
	          "Latency of each rung on a logarithmic scale; the upright lines are textbook "
	          "values.",
	          WIDTH, bottom + 70);
	decades(out, &x, BARS_Y - 8, bottom);
	svg_label(out, BARS_END + 14, BARS_Y - 18, "start", "one read");
	svg_label(out, WIDTH - 24, BARS_Y - 18, "end", "one stream");
	json_array_foreach(rungs, i, rung)
		draw_rung(out, rung, &x, BARS_Y + (double)(ROW * i), (int)(i % SVG_COLORS));
	(void)fprintf(out, "<line class=\"book\" x1=\"24\" x2=\"24\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
	              bottom + 36, bottom + 58);
	svg_label(out, 34, bottom + 52, "start", "textbook");
	svg_end(out);
}

/* --- lines --- */

enum {
	PLOT_X = 90,
	PLOT_END = 600,
	PLOT_Y = 60,
	PLOT_BOTTOM = 500,
	LEGEND_X = 626,
	LEGEND_ROW = 22,
	SHAPES = 4,
};

static void mark(FILE *out, size_t i, double x, double y, const char *data)
{
	switch (i % SHAPES) {
	case 0:
		(void)fprintf(out, "<circle class=\"mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"%s/>\n",
		              x, y, data);
		break;
	case 1:
		(void)fprintf(out,
		              "<rect class=\"mark\" x=\"%.1f\" y=\"%.1f\" width=\"7\" "
		              "height=\"7\"%s/>\n",
		              x - 3.5, y - 3.5, data);
		break;
	case 2:
		(void)fprintf(out, "<path class=\"mark\" d=\"M%.1f %.1fl4.5 8h-9z\"%s/>\n", x,
		              y - 5, data);
		break;
	default:
		(void)fprintf(
			out, "<path class=\"mark\" d=\"M%.1f %.1fl4.5 4.5-4.5 4.5-4.5-4.5z\"%s/>\n",
			x, y - 4.5, data);
	}
}

/* Series with the same colour again are told apart by their dashes. */
static void begin_series(FILE *out, const json_t *series, size_t i)
{
	(void)fprintf(out, "<g class=\"c%zu\" data-id=\"", i % SVG_COLORS);
	svg_text(out, string(series, "id"));
	(void)fputs("\" data-directory=\"", out);
	svg_text(out, string(series, "directory"));
	(void)fprintf(out, "\"%s>\n", i / SVG_COLORS % 2 ? " stroke-dasharray=\"6 4\"" : "");
}

static void draw_line(FILE *out, const json_t *points, const struct svg_scale *x,
                      const struct svg_scale *y)
{
	const json_t *point;
	bool open = false;
	size_t i;

	(void)fputs("<path class=\"line\" d=\"", out);
	json_array_foreach(points, i, point)
	{
		double ns = number(point, "ns");

		if (ns > 0)
			(void)fprintf(out, "%c%.1f %.1f", open ? 'L' : 'M',
			              svg_at(x, number(point, "bytes")), svg_at(y, ns));
		open = ns > 0;
	}
	(void)fputs("\"/>\n", out);
}

static void draw_series(FILE *out, const json_t *series, size_t i, const struct svg_scale *x,
                        const struct svg_scale *y)
{
	const json_t *points = json_object_get(series, "points"), *point;
	const double row = PLOT_Y + (double)(LEGEND_ROW * i);
	char data[128];
	size_t k;

	begin_series(out, series, i);
	draw_line(out, points, x, y);
	json_array_foreach(points, k, point)
	{
		double ns = number(point, "ns");

		(void)snprintf(data, sizeof(data), " data-bytes=\"%.0f\" data-ns=\"%.17g\"",
		               number(point, "bytes"), ns);
		if (ns > 0)
			mark(out, i, svg_at(x, number(point, "bytes")), svg_at(y, ns), data);
	}
	(void)fprintf(out, "<path class=\"line\" d=\"M%d %.1fh26\"/>\n", LEGEND_X, row);
	mark(out, i, LEGEND_X + 13, row, "");
	(void)fputs("</g>\n", out);
	(void)fprintf(out, "<text x=\"%d\" y=\"%.1f\">", LEGEND_X + 34, row + 4);
	svg_text(out, string(series, "series"));
	if (*string(series, "directory")) {
		(void)fputs(" <tspan class=\"dim\">", out);
		svg_text(out, string(series, "directory"));
		(void)fputs("</tspan>", out);
	}
	(void)fputs("</text>\n", out);
}

static void draw_axes(FILE *out, const struct svg_scale *x, const struct svg_scale *y)
{
	char text[DBT_UNITS_TEXT_BYTES];

	for (int i = 0; i < steps(y, 10); i++) {
		double v = y->low * pow(10, i);

		(void)fprintf(
			out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
			PLOT_X, PLOT_END, svg_at(y, v), svg_at(y, v));
		svg_label(out, PLOT_X - 10, svg_at(y, v) + 4, "end", dbt_units_short(v, text));
	}
	for (int i = 0; i < steps(x, 4); i++) {
		double v = x->low * pow(4, i);

		(void)fprintf(
			out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n",
			svg_at(x, v), svg_at(x, v), PLOT_Y, PLOT_BOTTOM);
		svg_label(out, svg_at(x, v), PLOT_BOTTOM + 20, "middle",
		          dbt_units_size((uint64_t)v, text));
	}
	svg_label(out, (PLOT_X + PLOT_END) / 2.0, PLOT_BOTTOM + 44, "middle",
	          "length of the text (bytes)");
}

static void describe_lines(const json_t *answer, char **ret)
{
	const json_t *lines = json_object_get(answer, "conclusion"), *line;
	size_t size, i;
	FILE *out = open_memstream(ret, &size);

	if (!out)
		return;
	json_array_foreach(lines, i, line)(void)
		fprintf(out, "%s%s", i ? " " : "", json_string_value(line));
	(void)fclose(out);
}

static void draw_dna(FILE *out, const json_t *answer)
{
	const json_t *list = json_object_get(answer, ladder_dna_table.key), *series, *point;
	const double legend = PLOT_Y + (double)(LEGEND_ROW * json_array_size(list));
	struct range times = { 0 }, lengths = { 0 };
	struct svg_scale x, y;
	char *description = NULL;
	size_t i, k;

	json_array_foreach(list, i, series)
		json_array_foreach(json_object_get(series, "points"), k, point)
	{
		widen(&times, number(point, "ns"));
		widen(&lengths, number(point, "bytes"));
	}
	round_range(&times);
	x = (struct svg_scale){ lengths.low, lengths.high, PLOT_X, PLOT_END };
	if (x.high <= x.low)
		x.high = x.low * 2;
	y = (struct svg_scale){ times.low, times.high, PLOT_BOTTOM, PLOT_Y };
	describe_lines(answer, &description);
	svg_begin(out, "Time to count one letter", description ? description : "", WIDTH,
	          legend > PLOT_BOTTOM + 60 ? legend + 10 : PLOT_BOTTOM + 60);
	free(description);
	draw_axes(out, &x, &y);
	json_array_foreach(list, i, series) draw_series(out, series, i, &x, &y);
	svg_end(out);
}

/* A device, a pipe or a terminal is written to as it is. */
static bool is_replaced(const char *file)
{
	struct stat st;

	return stat(file, &st) < 0 || S_ISREG(st.st_mode);
}

/* The directory that holds the name. The caller frees; NULL when out of memory. */
static char *directory_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	return !slash ? strdup(".") : strndup(file, slash == file ? 1 : (size_t)(slash - file));
}

int ladder_check_svg(const char *file, const char *read_file_or_null, struct dbt_err *err)
{
	dbt_autofree char *dir = directory_of(file);
	struct stat st, other;
	bool is_there = stat(file, &st) == 0;

	if (!dir)
		return dbt_err_sys(err, -ENOMEM, "cannot write '%s'", file);
	if (is_there && read_file_or_null && stat(read_file_or_null, &other) == 0 &&
	    st.st_dev == other.st_dev && st.st_ino == other.st_ino)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' cannot be both compared with and drawn to; name another "
		                   "file after --svg",
		                   file);
	if (is_there && S_ISDIR(st.st_mode))
		return dbt_err_sys(err, -EISDIR, "cannot write '%s'", file);
	if (is_there && access(file, W_OK) < 0)
		return dbt_err_sys(err, -errno, "cannot write '%s'", file);
	if (is_replaced(file) && access(dir, W_OK | X_OK) < 0)
		return dbt_err_sys(err, -errno, "cannot write '%s' into '%s'", file, dir);
	return 0;
}

static int draw_to(FILE *out, const json_t *answer)
{
	bool failed;

	if (json_object_get(answer, ladder_dna_table.key))
		draw_dna(out, answer);
	else
		draw_rungs(out, answer);
	failed = ferror(out) != 0;
	return fclose(out) != 0 || failed ? (errno ? -errno : -EIO) : 0;
}

/* Under another name first; real is no symbolic link. */
static int replace(const json_t *answer, const char *real)
{
	const mode_t mask = umask(0);
	dbt_autofree char *temp = NULL;
	FILE *out;
	int fd, r;

	(void)umask(mask);
	if (asprintf(&temp, "%s.XXXXXX", real) < 0) {
		temp = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)fchmod(fd, 0666 & ~mask);
	out = fdopen(fd, "w");
	if (!out)
		(void)close(fd);
	r = out ? draw_to(out, answer) : -ENOMEM;
	if (r == 0 && rename(temp, real) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(temp);
	return r;
}

int ladder_write_svg(const json_t *answer, const char *file, struct dbt_err *err)
{
	dbt_autofree char *real = realpath(file, NULL);
	FILE *out;
	int r;

	errno = 0;
	if (is_replaced(file)) {
		r = replace(answer, real ? real : file);
	} else {
		out = fopen(file, "we");
		r = out ? draw_to(out, answer) : -errno;
	}
	return r < 0 ? dbt_err_sys(err, r, "cannot draw '%s'", file) : 0;
}
