/* The JSON schema of every answer, from the same tables that print them. */
#include "cmd/describe.h"
#include "cmd/table.h"

static const char *type_of(const struct column *c)
{
	switch (c->type) {
	case COLUMN_TEXT:
	case COLUMN_NAME:
		return "[\"string\", \"null\"]";
	case COLUMN_SIZE:
	case COLUMN_COUNT:
	case COLUMN_TIME:
		return "[\"integer\", \"null\"]";
	case COLUMN_NS:
	case COLUMN_SECONDS:
	case COLUMN_RATE:
	case COLUMN_REAL:
	case COLUMN_SHARE:
		return "[\"number\", \"null\"]";
	case COLUMN_BOOL:
		return "[\"boolean\", \"null\"]";
	case COLUMN_LIST:
		break;
	}
	return "[\"array\", \"null\"]";
}

static void text(const char *value, FILE *out)
{
	json_t *json = json_string(value ? value : "");

	if (json)
		(void)json_dumpf(json, out, JSON_ENCODE_ANY);
	json_decref(json);
}

static void rows(const struct table_spec *table, FILE *out);

static void property(const struct column *c, const char *comma, FILE *out)
{
	(void)fprintf(out, "%s\n\"%s\": {\"type\": %s, \"description\": ", comma, c->key,
	              type_of(c));
	text(c->help, out);
	if (c->nested) {
		(void)fputs(", \"items\": ", out);
		rows(c->nested, out);
	} else if (c->type == COLUMN_LIST && !c->json_only) {
		(void)fputs(", \"items\": {\"type\": \"string\"}", out);
	}
	(void)fputc('}', out);
	if (c->type == COLUMN_NAME)
		(void)fprintf(out,
		              ",\n\"%s_raw\": {\"type\": [\"string\", \"null\"], \"description\": "
		              "\"base64 of the bytes of %s where they are not valid UTF-8\"}",
		              c->key, c->key);
}

/* One row: every key is there, and no other. */
static void rows(const struct table_spec *table, FILE *out)
{
	(void)fputs("{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {",
	            out);
	for (const struct column *c = table->columns; c->key; c++)
		if (!c->text_only)
			property(c, c == table->columns ? "" : ",", out);
	(void)fputs("},\n\"required\": [", out);
	for (const struct column *c = table->columns; c->key; c++) {
		if (c->text_only)
			continue;
		(void)fprintf(out, "%s\"%s\"", c == table->columns ? "" : ", ", c->key);
		if (c->type == COLUMN_NAME)
			(void)fprintf(out, ", \"%s_raw\"", c->key);
	}
	(void)fputs("]}", out);
}

/* The answer of a command; suffix tells its other table from its usual one. */
static void definition(const struct command *cmd, const struct table_spec *table,
                       const char *suffix, const char *comma, FILE *out)
{
	(void)fprintf(out,
	              "%s\n\"%s%s\": {\"type\": \"object\", \"required\": [\"%s\"], "
	              "\"properties\": {\"%s\": {\"type\": \"array\", \"items\": ",
	              comma, cmd->name, suffix, table->key, table->key);
	rows(table, out);
	(void)fputs("}}}", out);
}

static const char other_suffix[] = "-other";

void describe_schema(const struct command *cmd, FILE *out)
{
	const char *comma = "";

	(void)cmd;
	(void)fputs("\"$defs\": {", out);
	for (size_t i = 0; commands[i]; i++) {
		if (!describe_is_listed(commands[i]) || !commands[i]->table)
			continue;
		definition(commands[i], commands[i]->table, "", comma, out);
		comma = ",";
		if (commands[i]->other_table)
			definition(commands[i], commands[i]->other_table, other_suffix, comma, out);
	}
	(void)fputs("\n},\n\"anyOf\": [", out);
	comma = "";
	for (size_t i = 0; commands[i]; i++) {
		if (!describe_is_listed(commands[i]) || !commands[i]->table)
			continue;
		(void)fprintf(out, "%s{\"$ref\": \"#/$defs/%s\"}", comma, commands[i]->name);
		comma = ", ";
		if (commands[i]->other_table)
			(void)fprintf(out, ", {\"$ref\": \"#/$defs/%s%s\"}", commands[i]->name,
			              other_suffix);
	}
	(void)fputs("]\n", out);
}
