/* The words of a command line, sizes, and the text of file names. */
#include "base/buf.h"
#include "base/nearest.h"
#include "base/units.h"
#include "cmd/optable.h"
#include "cmd/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64 };

static void parse_words(char *text, size_t len)
{
	char *words[MAX_WORDS + 1] = { 0 }, *operand;
	struct global_args globals = { 0 };
	struct opt_parser parser = { .words = words };
	const struct command *cmd = NULL;
	struct dbt_err err;
	void *args = NULL;
	size_t n = 0;

	for (char *end = text + len; text < end && n < MAX_WORDS; text += strlen(text) + 1)
		words[n++] = text;
	parser.uses[0] = (struct opt_use){ .opts = global_opts, .args = &globals };
	while (opt_next(&parser, &operand, &err) > 0) {
		if (cmd)
			continue;
		cmd = command_find(operand);
		if (!cmd)
			break;
		args = calloc(1, cmd->args_bytes ? cmd->args_bytes : 1);
		if (!args)
			abort();
		parser.uses[1] = (struct opt_use){ .opts = cmd->opts, .args = args };
	}
	(void)opt_check_required(&parser, &err);
	if (cmd)
		opt_release(cmd->opts, args);
	free(args);
}

static void show_bytes(const char *text, size_t len)
{
	static const char *const words[] = { "scan", "status", "promote" };
	struct dbt_buf buf = { 0 };
	char size[DBT_UNITS_TEXT_BYTES];
	uint64_t bytes;

	if (text_add_utf8(&buf, text, len) == 0 && !text_is_utf8(buf.data ? buf.data : "", buf.len))
		abort();
	dbt_buf_clear(&buf);
	if (text_add_escaped(&buf, text) == 0)
		for (size_t i = 0; i < buf.len; i++)
			if ((unsigned char)buf.data[i] < 0x20 || buf.data[i] == 0x7f)
				abort();
	dbt_buf_clear(&buf);
	if (text_add_base64(&buf, text, len) < 0 || buf.len != (len + 2) / 3 * 4)
		abort();
	dbt_buf_release(&buf);
	(void)dbt_nearest(text, words, 3);
	if (dbt_units_parse_size(text, &bytes) == 0)
		(void)dbt_units_size(bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	if (!text)
		abort();
	memcpy(text, data, len);
	text[len] = '\0';
	show_bytes(text, len);
	parse_words(text, len);
	free(text);
	return 0;
}
