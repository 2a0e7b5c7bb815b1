#include "cmd/probe_verdict.h"

#include "base/buf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool both_have(const struct probe_subject *a, const struct probe_subject *b, size_t i)
{
	return a->tried[i] && b->tried[i] && !a->failures[i] && !b->failures[i];
}

static double figure(const struct probe_subject *s, size_t i)
{
	return probe_patterns[i].pattern == DBT_PATTERN_RANDOM ? s->results[i].iops
	                                                       : (double)s->results[i].rate_bytes_s;
}

static bool lies_on(const struct dbt_place *upper, const struct dbt_place *lower)
{
	if (lower->n_layers == 0 || upper->n_layers < 2)
		return false;
	for (size_t i = 1; i < upper->n_layers; i++)
		if (upper->layers[i] == lower->layers[0])
			return true;
	return false;
}

static int add_ratio(struct dbt_buf *line, double ratio, const char *words)
{
	int digits = ratio >= 100 ? 0 : ratio >= 0.995 ? 1 : 2;

	return dbt_buf_addf(line, "%s%.*fx for %s", line->len ? ", " : "", digits, ratio, words);
}

static int print_ratio(const struct probe_subject *base, const struct probe_subject *s)
{
	struct dbt_buf line = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < N_PATTERNS; i++)
		if (both_have(base, s, i) && figure(base, i) > 0)
			r = add_ratio(&line, figure(s, i) / figure(base, i),
			              probe_patterns[i].words);
	if (r == 0 && line.len > 0)
		(void)printf("%s against %s: %s\n", s->path, base->path, dbt_buf_str(&line));
	dbt_buf_release(&line);
	return r;
}

/* What the layers between cost, pattern by pattern. Less than the measurement's own uncertainty (at
 * least 5 %) is no cost that could be seen. */
static int add_cost(struct dbt_buf *line, const struct probe_subject *upper,
                    const struct probe_subject *lower, size_t i)
{
	double cost = 1 - figure(upper, i) / figure(lower, i),
	       noise = fmax(0.05, fmax(upper->results[i].interval, lower->results[i].interval));
	const char *sep = line->len ? "; " : "";

	if (cost <= noise)
		return dbt_buf_addf(line, "%s%s: nothing measurable (within %.0f %%)", sep,
		                    probe_patterns[i].words, 100 * noise);
	return dbt_buf_addf(line, "%s%s: %.0f %%", sep, probe_patterns[i].words, 100 * cost);
}

static int print_cost(const struct probe_subject *upper, const struct probe_subject *lower)
{
	bool crypt = strncmp(upper->place.stack, "crypt ", 6) == 0;
	struct dbt_buf line = { 0 };
	bool proved = true;
	int r = 0;

	for (size_t i = 0; r == 0 && i < N_PATTERNS; i++) {
		if (!both_have(upper, lower, i) || figure(lower, i) <= 0)
			continue;
		proved = proved && upper->results[i].proved && lower->results[i].proved;
		r = add_cost(&line, upper, lower, i);
	}
	if (r == 0 && line.len > 0)
		(void)printf("%s lies on %s; what %s costs: %s%s\n", upper->path, lower->path,
		             crypt ? "encryption" : "the layers between", dbt_buf_str(&line),
		             proved ? "" : " (not proved)");
	dbt_buf_release(&line);
	return r;
}

void probe_print_verdicts(const struct probe_subject *subjects, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (print_ratio(&subjects[0], &subjects[i]) < 0)
			return;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			if (i != k && lies_on(&subjects[i].place, &subjects[k].place))
				(void)print_cost(&subjects[i], &subjects[k]);
}
