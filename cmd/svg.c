#include "cmd/svg.h"

#include <math.h>

static const char *const light[SVG_COLORS] = { "#0072b2", "#d55e00", "#007a59", "#a8437e",
	                                       "#9c6b00", "#2a86b8", "#5b5b5b", "#8c3b00" };
static const char *const dark[SVG_COLORS] = { "#56b4e9", "#ff8f45", "#2fd3a3", "#e79cc4",
	                                      "#e69f00", "#9ad4f5", "#c2c2c2", "#f0e442" };

static void colors(FILE *out, const char *const palette[SVG_COLORS])
{
	for (int i = 0; i < SVG_COLORS; i++)
		(void)fprintf(out, ".c%d{--c:%s}", i, palette[i]);
}

void svg_begin(FILE *out, const char *title, const char *description, double width, double height)
{
	(void)fprintf(out,
	              "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
	              "width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>",
	              width, height, width, height);
	svg_text(out, title);
	(void)fputs("</title>\n<desc>", out);
	svg_text(out, description);
	(void)fputs(
		"</desc>\n<style>\n"
		"svg{--bg:#fff;--fg:#1b1f24;--dim:#57606a;--grid:#d8dee4;background:var(--bg)}\n"
		"text{font:13px sans-serif;fill:var(--fg)}"
		".head{font-size:17px;font-weight:bold}.dim{fill:var(--dim)}\n"
		".grid{stroke:var(--grid)}.line{fill:none;stroke:var(--c);stroke-width:2}"
		".mark,.bar{fill:var(--c)}.book{stroke:var(--fg);stroke-width:2}\n",
		out);
	colors(out, light);
	(void)fputs("\n@media(prefers-color-scheme:dark){"
	            "svg{--bg:#0d1117;--fg:#e6edf3;--dim:#9ba5b0;--grid:#30363d}",
	            out);
	colors(out, dark);
	(void)fprintf(out,
	              "}\n</style>\n<rect width=\"%.0f\" height=\"%.0f\" "
	              "style=\"fill:var(--bg)\"/>\n<text class=\"head\" x=\"24\" y=\"32\">",
	              width, height);
	svg_text(out, title);
	(void)fputs("</text>\n", out);
}

void svg_end(FILE *out)
{
	(void)fputs("</svg>\n", out);
}

void svg_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '&')
			(void)fputs("&amp;", out);
		else if (c == '<')
			(void)fputs("&lt;", out);
		else if (c == '>')
			(void)fputs("&gt;", out);
		else if (c == '"')
			(void)fputs("&quot;", out);
		else if (c == '\'')
			(void)fputs("&apos;", out);
		else if (c < ' ' || c == 0x7f)
			(void)fputs("\xef\xbf\xbd", out);
		else
			(void)fputc(c, out);
	}
}

void svg_label(FILE *out, double x, double y, const char *anchor, const char *text)
{
	(void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	svg_text(out, text);
	(void)fputs("</text>\n", out);
}

double svg_at(const struct svg_scale *scale, double value)
{
	return scale->from +
	       (scale->to - scale->from) * log(value / scale->low) / log(scale->high / scale->low);
}
