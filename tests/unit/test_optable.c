#include "cmd/optable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct args {
	bool flag, other, third;
	unsigned count;
	const char *string, *choice, *maybe;
	struct opt_strings strings;
	uint64_t bytes, number;
	struct opt_reserve reserve;
};

static const char *const colors[] = { "red", "green", NULL };

#define AT(member) offsetof(struct args, member)

static const struct opt_spec opts[] = {
	{ .name = "flag", .letter = 'f', .at = AT(flag), .conflicts = 1, .help = "a flag" },
	{ .name = "other", .letter = 'o', .at = AT(other), .conflicts = 3, .help = "another" },
	{ .name = "third", .at = AT(third), .conflicts = 2, .help = "a third" },
	{ .name = "count", .letter = 'c', .kind = OPT_COUNT, .at = AT(count), .help = "counted" },
	{ .name = "string",
	  .letter = 's',
	  .kind = OPT_STRING,
	  .at = AT(string),
	  .metavar = "TEXT",
	  .help = "a string" },
	{ .name = "choice",
	  .kind = OPT_CHOICE,
	  .at = AT(choice),
	  .metavar = "COLOR",
	  .choices = colors,
	  .help = "a choice" },
	{ .name = "maybe",
	  .letter = 'm',
	  .kind = OPT_CHOICE,
	  .at = AT(maybe),
	  .metavar = "COLOR",
	  .choices = colors,
	  .optional_value = true,
	  .help = "a choice with a default" },
	{ .name = "add",
	  .letter = 'a',
	  .kind = OPT_STRINGS,
	  .at = AT(strings),
	  .metavar = "TEXT",
	  .help = "more than once" },
	{ .name = "bytes",
	  .kind = OPT_BYTES,
	  .at = AT(bytes),
	  .metavar = "SIZE",
	  .help = "a size" },
	{ .name = "number",
	  .kind = OPT_NUMBER,
	  .at = AT(number),
	  .metavar = "N",
	  .help = "a number" },
	{ .name = "some",
	  .kind = OPT_NUMBER,
	  .at = AT(number),
	  .metavar = "N",
	  .least = 2,
	  .most = 8,
	  .help = "a number within bounds" },
	{ .name = "much",
	  .kind = OPT_BYTES,
	  .at = AT(bytes),
	  .metavar = "SIZE",
	  .least = 1024,
	  .help = "a size from a bound on" },
	{ .name = "reserve",
	  .kind = OPT_RESERVE,
	  .at = AT(reserve),
	  .metavar = "SIZE|%",
	  .help = "what stays free" },
	{ .name = "secret", .at = AT(flag), .hidden = true, .help = "not shown" },
	{ 0 },
};

struct parsed {
	struct args args;
	char *operands[16];
	size_t n;
	struct dbt_err err;
	int r;
};

/* words: separated by blanks, changed in place; they must outlive the result. */
static void parse(char *words, struct parsed *ret)
{
	char *list[32], *save = NULL, *operand;
	struct opt_parser parser = { .words = list };
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		list[n++] = w;
	list[n] = NULL;
	parser.uses[1] = (struct opt_use){ .opts = opts, .args = &ret->args };
	while ((ret->r = opt_next(&parser, &operand, &ret->err)) > 0)
		ret->operands[ret->n++] = operand;
	if (ret->r == 0)
		ret->r = opt_check_required(&parser, &ret->err);
}

#define PARSE(text)                                                                                \
	char words[] = text;                                                                       \
	struct parsed p;                                                                           \
	(void)state;                                                                               \
	parse(words, &p)

static void nothing_is_fine(void **state)
{
	PARSE("");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.n, 0);
}

static void options_and_operands_in_any_order(void **state)
{
	PARSE("one --string=x two -c --count -f three");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.args.string, "x");
	assert_int_equal(p.args.count, 2);
	assert_true(p.args.flag);
	assert_int_equal(p.n, 3);
	assert_string_equal(p.operands[2], "three");
}

static void letters_in_a_cluster_with_a_value_at_its_end(void **state)
{
	PARSE("-ccfsvalue -s next -cs last");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.args.count, 3);
	assert_true(p.args.flag);
	assert_string_equal(p.args.string, "last");
	assert_int_equal(p.n, 0);
}

static void after_two_dashes_all_are_operands(void **state)
{
	PARSE("-f -- -f --string -- -");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.n, 4);
	assert_string_equal(p.operands[0], "-f");
	assert_string_equal(p.operands[2], "--");
	assert_string_equal(p.operands[3], "-");
}

static void a_dash_alone_is_an_operand(void **state)
{
	PARSE("- -f");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.n, 1);
	assert_true(p.args.flag);
}

static void a_value_may_look_like_an_option(void **state)
{
	PARSE("--string --flag -s -f");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.args.string, "-f");
	assert_false(p.args.flag);
}

static void an_empty_value_is_a_value(void **state)
{
	PARSE("--string=");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.args.string, "");
}

static void several_strings_are_collected(void **state)
{
	PARSE("-a one --add two --add=three");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.args.strings.n, 3);
	assert_string_equal(p.args.strings.items[1], "two");
	opt_release(opts, &p.args);
	assert_null(p.args.strings.items);
}

static void an_optional_value_comes_with_an_equals_sign_only(void **state)
{
	PARSE("--maybe green");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.args.maybe, "red");
	assert_int_equal(p.n, 1);
}

static void choices_are_checked(void **state)
{
	char good[] = "--choice green --maybe=green", bad[] = "--choice blue";
	struct parsed p;

	(void)state;
	parse(good, &p);
	assert_int_equal(p.r, 0);
	assert_ptr_equal(p.args.choice, colors[1]);
	assert_ptr_equal(p.args.maybe, colors[1]);
	parse(bad, &p);
	assert_true(p.r < 0);
	assert_int_equal(p.err.kind, DBT_ERR_USAGE);
	assert_string_equal(p.err.text, "'--choice' cannot be 'blue'; it is one of red, green");
}

static void sizes_numbers_and_shares(void **state)
{
	static const struct {
		const char *words;
		bool ok;
		uint64_t bytes, number;
		struct opt_reserve reserve;
	} cases[] = {
		{ "--bytes 10K", true, 10240, 0, { 0 } },
		{ "--bytes 1.5G", true, 1610612736, 0, { 0 } },
		{ "--bytes x", false, 0, 0, { 0 } },
		{ "--bytes -1", false, 0, 0, { 0 } },
		{ "--bytes 99999999999G", false, 0, 0, { 0 } },
		{ "--number 18446744073709551615", true, 0, UINT64_MAX, { 0 } },
		{ "--number 18446744073709551616", false, 0, 0, { 0 } },
		{ "--number -1", false, 0, 0, { 0 } },
		{ "--number 1x", false, 0, 0, { 0 } },
		{ "--number=", false, 0, 0, { 0 } },
		{ "--reserve 2G", true, 0, 0, { true, { 2147483648U, 0 } } },
		{ "--reserve 0", true, 0, 0, { true, { 0, 0 } } },
		{ "--reserve 12.5%", true, 0, 0, { true, { 0, 12.5 } } },
		{ "--reserve 100%", false, 0, 0, { 0 } },
		{ "--reserve nan%", false, 0, 0, { 0 } },
		{ "--reserve 0x5%", false, 0, 0, { 0 } },
		{ "--reserve -5%", false, 0, 0, { 0 } },
		{ "--reserve %", false, 0, 0, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parsed p;
		char words[64];

		(void)snprintf(words, sizeof(words), "%s", cases[i].words);
		parse(words, &p);
		if (cases[i].ok != (p.r == 0))
			fail_msg("'%s': %s", cases[i].words, p.r ? p.err.text : "taken");
		if (!cases[i].ok) {
			assert_int_equal(p.err.kind, DBT_ERR_USAGE);
			continue;
		}
		assert_true(p.args.bytes == cases[i].bytes);
		assert_true(p.args.number == cases[i].number);
		assert_int_equal(p.args.reserve.set, cases[i].reserve.set);
		assert_true(p.args.reserve.amount.bytes == cases[i].reserve.amount.bytes);
		assert_true(p.args.reserve.amount.percent == cases[i].reserve.amount.percent);
	}
}

static void mistakes_are_explained(void **state)
{
	static const struct {
		const char *words, *text;
	} cases[] = {
		{ "--sting x", "unknown option '--sting' (did you mean '--string'?); "
		               "see 'dbtier --help'" },
		{ "--str x",
		  "unknown option '--str' (did you mean '--string'?); see 'dbtier --help'" },
		{ "--zzz", "unknown option '--zzz'; see 'dbtier --help'" },
		{ "--secre", "unknown option '--secre'; see 'dbtier --help'" },
		{ "-x", "unknown option '-x'; see 'dbtier --help'" },
		{ "-fx", "unknown option '-x'; see 'dbtier --help'" },
		{ "--flag=1", "'--flag' takes no value; see 'dbtier --help'" },
		{ "--string", "'--string' wants a value (TEXT); see 'dbtier --help'" },
		{ "-fs", "'--string' wants a value (TEXT); see 'dbtier --help'" },
		{ "-f -o", "'--flag' and '--other' exclude each other; see 'dbtier --help'" },
		{ "--third -o", "'--third' and '--other' exclude each other; see 'dbtier --help'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parsed p;
		char words[64];

		(void)snprintf(words, sizeof(words), "%s", cases[i].words);
		parse(words, &p);
		assert_true(p.r < 0);
		assert_int_equal(p.err.kind, DBT_ERR_USAGE);
		assert_string_equal(p.err.text, cases[i].text);
	}
}

static void bounds_are_kept_and_told(void **state)
{
	static const struct {
		const char *words, *text;
	} cases[] = {
		{ "--some 2 --much 1K", NULL },
		{ "--some=8", NULL },
		{ "--some 0", "'--some' takes 2 to 8, not '0'" },
		{ "--some 9", "'--some' takes 2 to 8, not '9'" },
		{ "--much 1023", "'--much' takes 1K or more, not '1023'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parsed p;
		char words[64];

		(void)snprintf(words, sizeof(words), "%s", cases[i].words);
		parse(words, &p);
		if (cases[i].text) {
			assert_int_equal(p.err.kind, DBT_ERR_USAGE);
			assert_string_equal(p.err.text, cases[i].text);
		} else {
			assert_int_equal(p.r, 0);
		}
	}
}

static void options_of_different_groups_stand_together(void **state)
{
	PARSE("-f --third -f");
	assert_int_equal(p.r, 0);
}

static void required_options_are_asked_for(void **state)
{
	static const struct opt_spec needy[] = {
		{ .name = "to",
		  .kind = OPT_STRING,
		  .metavar = "DIR",
		  .required = true,
		  .help = "x" },
		{ 0 },
	};
	const char *to = NULL;
	char *words[] = { NULL };
	struct opt_parser parser = { .words = words, .command = "promote" };
	struct dbt_err err;

	(void)state;
	parser.uses[1] = (struct opt_use){ .opts = needy, .args = &to };
	assert_true(opt_check_required(&parser, &err) < 0);
	assert_string_equal(err.text, "'--to DIR' is missing; see 'dbtier promote --help'");
}

static void help_is_aligned_and_hides_what_is_hidden(void **state)
{
	static const char wanted[] = "  -f, --flag            a flag\n"
				     "  -o, --other           another\n"
				     "      --third           a third\n"
				     "  -c, --count           counted\n"
				     "  -s, --string TEXT     a string\n"
				     "      --choice COLOR    a choice\n"
				     "  -m, --maybe[=COLOR]   a choice with a default\n"
				     "  -a, --add TEXT        more than once\n"
				     "      --bytes SIZE      a size\n"
				     "      --number N        a number\n"
				     "      --some N          a number within bounds\n"
				     "      --much SIZE       a size from a bound on\n"
				     "      --reserve SIZE|%  what stays free\n";
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	opt_print_help(opts, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, wanted);
	free(text);
}

/* The tables of the program itself: no option twice, none without help, choices where wanted. */
static void the_tables_of_the_program_are_sound(void **state)
{
	(void)state;
	for (size_t c = 0; commands[c]; c++) {
		const struct opt_spec *own = commands[c]->opts;
		size_t n = 0;

		assert_non_null(commands[c]->summary);
		assert_non_null(commands[c]->run);
		assert_true(commands[c]->min_operands <= commands[c]->max_operands);
		assert_ptr_equal(command_find(commands[c]->name), commands[c]);
		for (size_t i = 0; own && own[i].name; i++, n++) {
			assert_non_null(own[i].help);
			assert_true(own[i].at < commands[c]->args_bytes);
			assert_true(own[i].kind != OPT_CHOICE || own[i].choices);
			assert_true(own[i].kind == OPT_FLAG || own[i].kind == OPT_COUNT ||
			            own[i].metavar);
			for (size_t g = 0; global_opts[g].name; g++) {
				assert_string_not_equal(own[i].name, global_opts[g].name);
				assert_true(!own[i].letter ||
				            own[i].letter != global_opts[g].letter);
			}
			for (size_t j = 0; j < i; j++) {
				assert_string_not_equal(own[i].name, own[j].name);
				assert_true(!own[i].letter || own[i].letter != own[j].letter);
			}
		}
		assert_true(n <= 64);
	}
	assert_null(command_find("no-such-command"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_fine),
		cmocka_unit_test(options_and_operands_in_any_order),
		cmocka_unit_test(letters_in_a_cluster_with_a_value_at_its_end),
		cmocka_unit_test(after_two_dashes_all_are_operands),
		cmocka_unit_test(a_dash_alone_is_an_operand),
		cmocka_unit_test(a_value_may_look_like_an_option),
		cmocka_unit_test(an_empty_value_is_a_value),
		cmocka_unit_test(several_strings_are_collected),
		cmocka_unit_test(an_optional_value_comes_with_an_equals_sign_only),
		cmocka_unit_test(choices_are_checked),
		cmocka_unit_test(sizes_numbers_and_shares),
		cmocka_unit_test(mistakes_are_explained),
		cmocka_unit_test(bounds_are_kept_and_told),
		cmocka_unit_test(options_of_different_groups_stand_together),
		cmocka_unit_test(required_options_are_asked_for),
		cmocka_unit_test(help_is_aligned_and_hides_what_is_hidden),
		cmocka_unit_test(the_tables_of_the_program_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
