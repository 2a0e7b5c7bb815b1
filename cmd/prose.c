#include "cmd/prose.h"

#include "base/buf.h"
#include "cmd/text.h"

#include <string.h>

int prose_print(FILE *out, unsigned width, const char *before, const char *text)
{
	const unsigned indent = 2;
	struct dbt_buf shown = { 0 };
	size_t at = strlen(before);
	int r = text_add_escaped(&shown, text);
	const char *word = dbt_buf_str(&shown);

	(void)fputs(before, out);
	while (r == 0 && *word) {
		size_t len = strcspn(word, " ");

		if (width > 0 && at > indent && at + len > width) {
			(void)fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		}
		(void)fprintf(out, "%.*s", (int)len, word);
		at += len;
		word += len;
		while (*word == ' ') {
			word++;
			at++;
			if (width == 0 || at < width)
				(void)fputc(' ', out);
		}
	}
	(void)fputc('\n', out);
	dbt_buf_release(&shown);
	return r;
}
