/* What every picture has: a frame that is readable in light and dark, colours that people with any
 * colour vision tell apart, a logarithmic scale, and text that is valid XML. */
#ifndef DBT_CMD_SVG_H
#define DBT_CMD_SVG_H

#include <stddef.h>
#include <stdio.h>

/* Classes c0 to c7: Okabe and Ito's palette (2008), lighter in dark surroundings. */
enum { SVG_COLORS = 8 };

void svg_begin(FILE *out, const char *title, const char *description, double width, double height);
void svg_end(FILE *out);

/* Text with the five characters of XML escaped, and what XML may not hold replaced. */
void svg_text(FILE *out, const char *text);

/* "<text ...>TEXT</text>"; anchor: start, middle or end. */
void svg_label(FILE *out, double x, double y, const char *anchor, const char *text);

/* A logarithmic axis: value low lies at `from`, value high at `to`. */
struct svg_scale {
	double low, high;
	double from, to;
};
double svg_at(const struct svg_scale *scale, double value);

#endif
