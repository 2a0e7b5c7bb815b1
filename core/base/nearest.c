#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST_WORD = 64 };

static size_t least(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap neighbours) that turn a into b; both at most LONGEST_WORD.
 */
static size_t distance(const char *a, const char *b)
{
	size_t d[LONGEST_WORD + 1][LONGEST_WORD + 1];
	size_t n = strlen(a), m = strlen(b);

	for (size_t i = 0; i <= n; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1,
			                d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	return d[n][m];
}

const char *dbt_nearest(const char *text, const char *const *words, size_t n)
{
	size_t len = strlen(text), best = SIZE_MAX;
	const char *nearest = NULL;

	if (len == 0 || len > LONGEST_WORD)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t allowed = len < 3 ? 1 : len / 3, edits;

		if (strlen(words[i]) > LONGEST_WORD)
			continue;
		/* The beginning of a word is nearer than any misspelling. */
		edits = len >= 3 && strncmp(words[i], text, len) == 0 ? 0
		                                                      : distance(text, words[i]);
		if (edits <= allowed && edits < best) {
			best = edits;
			nearest = words[i];
		}
	}
	return nearest;
}
