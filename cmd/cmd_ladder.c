/* dbtier ladder: this machine's storage hierarchy, measured. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cmd/app.h"
#include "cmd/ladder.h"
#include "cmd/prose.h"
#include "cmd/screenful.h"
#include "cmd/table.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct ladder_args {
	bool dna;
	uint64_t max_bytes;
	uint64_t seconds;
	const char *svg;
	const char *compare;
};

/* Everything that one run shows, in whichever form. */
struct answer {
	const struct table_spec *table;
	struct table_rows rows;
	const struct dbt_sentences *sentences; /* below the table */
};

/* The object that --json prints with every column; the picture is drawn from it. */
static json_t *whole_object(const struct answer *answer)
{
	json_t *list = table_json_rows(answer->table, answer->rows);
	json_t *top = list ? json_pack("{s:o}", answer->table->key, list) : NULL;

	if (top && json_object_update(top, answer->rows.more) < 0) {
		json_decref(top);
		return NULL;
	}
	return top;
}

static int draw(const struct answer *answer, const char *file, struct dbt_err *err)
{
	json_t *top = whole_object(answer);
	int r = top ? ladder_write_svg(top, file, err)
	            : dbt_err_sys(err, -ENOMEM, "cannot draw '%s'", file);

	json_decref(top);
	return r;
}

static int show(struct app *app, const struct ladder_args *args, const struct answer *answer,
                struct dbt_err *err)
{
	struct global_args shown = app->args;
	int r;

	if (args->compare && !shown.output && !shown.all_columns && !shown.json)
		shown.output = "+before_ns,change";
	r = table_print(answer->table, &shown, answer->rows, stdout, err);
	if (r == 0 && !shown.json && !shown.raw && !shown.pairs && answer->sentences->n > 0) {
		(void)putchar('\n');
		for (size_t i = 0; i < answer->sentences->n && r == 0; i++)
			r = prose_print(stdout, screen_width(stdout), "",
			                answer->sentences->items[i]);
		if (r < 0)
			r = dbt_err_sys(err, r, "cannot show the experiment");
	}
	if (r == 0 && args->svg)
		r = draw(answer, args->svg, err);
	return r;
}

/* Tells of a directory without figures; the others were shown. */
static int tell_failure(const char *dir, const char *why)
{
	struct dbt_err err;

	(void)dbt_err_set(&err, DBT_ERR_SYSTEM, -EIO, "'%s' could not be measured: %s", dir,
	                  why ? why : "no reads came back");
	return msg_fail(&err);
}

static int tell_failed_rungs(const struct dbt_rungs *rungs)
{
	int status = EXIT_DONE;

	for (size_t i = 0; i < rungs->n; i++)
		if (rungs->items[i].failed)
			status = tell_failure(rungs->items[i].name, rungs->items[i].note);
	return status;
}

static int tell_failed_files(const struct dbt_dna *dna, const char *const *dirs, size_t n_dirs)
{
	int status = EXIT_DONE;

	for (size_t i = 0; i < n_dirs; i++) {
		const struct dbt_dna_point *p =
			dbt_dna_find(dna, DBT_DNA_FILE_ORDER_COLD, i, dna->max_bits);

		if (dbt_dna_failed(dna, i))
			status = tell_failure(dirs[i], p ? p->note : NULL);
	}
	return status;
}

/* Both return an exit status, or < 0 with a sentence. */
static int run_rungs(struct app *app, const struct ladder_args *args, const char *const *dirs,
                     size_t n_dirs, const json_t *earlier, struct dbt_err *err)
{
	const struct dbt_rungs_opts opts = { .dirs = dirs,
		                             .n_dirs = n_dirs,
		                             .pattern_ns = args->seconds * 1000000000U };
	struct dbt_rungs rungs;
	struct dbt_sentences notes = { 0 };
	struct answer answer = { .table = &ladder_rungs_table, .sentences = &notes };
	dbt_autofree struct rung_row *rows = NULL;
	json_t *more = ladder_rungs_more();
	int r = dbt_rungs_measure(&app->ctx, &opts, &rungs, err);

	if (r < 0) {
		json_decref(more);
		return r;
	}
	rows = calloc(rungs.n, sizeof(*rows));
	if (!rows || !more || ladder_rungs_notes(&rungs, &notes) < 0) {
		r = dbt_err_sys(err, -ENOMEM, "cannot show the ladder");
	} else {
		ladder_rungs_rows(&rungs, earlier, rows);
		answer.rows = TABLE_ROWS(rows, rungs.n);
		answer.rows.more = more;
		r = show(app, args, &answer, err);
	}
	if (r == 0)
		r = tell_failed_rungs(&rungs);
	json_decref(more);
	dbt_sentences_release(&notes);
	dbt_rungs_release(&rungs);
	return r;
}

static int show_dna(struct app *app, const struct ladder_args *args, const struct dbt_dna *dna,
                    const char *const *dirs, size_t n_dirs, const json_t *earlier,
                    struct dbt_err *err)
{
	struct answer answer = { .table = &ladder_dna_table };
	dbt_autofree struct series_row *rows = calloc(dna->n, sizeof(*rows));
	struct dbt_sentences conclusion = { 0 };
	json_t *more;
	int r;

	if (!rows || dbt_dna_conclude(dna, dirs, n_dirs, &conclusion) < 0)
		return dbt_err_sys(err, -ENOMEM, "cannot show the experiment");
	more = ladder_dna_more(dna, &conclusion);
	answer.rows = TABLE_ROWS(rows, ladder_dna_rows(dna, dirs, earlier, rows));
	if (earlier && !(rows[0].before_ns > 0))
		msg_tell(app, MSG_WARNING, "'%s' has no times at 2^%u: nothing stands beside",
		         args->compare, dna->max_bits);
	answer.rows.more = more;
	answer.sentences = &conclusion;
	r = more ? show(app, args, &answer, err)
	         : dbt_err_sys(err, -ENOMEM, "cannot show the experiment");
	json_decref(more);
	dbt_sentences_release(&conclusion);
	return r;
}

/* The exponent of the longest text. The option's bounds are kept already. */
static int bits_of(uint64_t max_bytes, unsigned *ret, struct dbt_err *err)
{
	char below[DBT_UNITS_TEXT_BYTES], above[DBT_UNITS_TEXT_BYTES];
	unsigned bits = DBT_DNA_MIN_BITS;

	if (max_bytes == 0) {
		*ret = DBT_DNA_MAX_BITS;
		return 0;
	}
	while (UINT64_C(1) << bits < max_bytes)
		bits++;
	if (UINT64_C(1) << bits != max_bytes)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'--max' takes a power of two, such as %s or %s",
		                   dbt_units_size(UINT64_C(1) << (bits - 1), below),
		                   dbt_units_size(UINT64_C(1) << bits, above));
	*ret = bits;
	return 0;
}

static int run_dna(struct app *app, const struct ladder_args *args, const char *const *dirs,
                   size_t n_dirs, const json_t *earlier, struct dbt_err *err)
{
	struct dbt_dna_opts opts = { .dirs = dirs, .n_dirs = n_dirs };
	struct dbt_dna dna;
	int r = bits_of(args->max_bytes, &opts.max_bits, err);

	if (r < 0)
		return r;
	r = dbt_dna_run(&app->ctx, &opts, &dna, err);
	if (r < 0)
		return r;
	r = show_dna(app, args, &dna, dirs, n_dirs, earlier, err);
	if (r == 0)
		r = tell_failed_files(&dna, dirs, n_dirs);
	dbt_dna_release(&dna);
	return r;
}

static int check_dirs(const char *const *dirs, size_t n, struct dbt_err *err)
{
	struct stat st;

	for (size_t i = 0; i < n; i++) {
		int r = stat(dirs[i], &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;

		if (r < 0)
			return dbt_err_sys(err, r, "cannot measure '%s'; nothing was measured",
			                   dirs[i]);
	}
	return 0;
}

/* Whatever can be told before the measurement is. */
static int check(const struct ladder_args *args, const char *const *dirs, size_t n,
                 json_t **ret_earlier, struct dbt_err *err)
{
	int r = 0;

	if (args->max_bytes > 0 && !args->dna)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "--max goes with --dna");
	if (args->seconds > 0 && args->dna)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL, "--seconds goes without --dna");
	if (args->svg)
		r = ladder_check_svg(args->svg, args->compare, err);
	if (r == 0)
		r = check_dirs(dirs, n, err);
	return r == 0 && args->compare
	               ? ladder_load_earlier(args->compare, args->dna, ret_earlier, err)
	               : r;
}

static int run(struct app *app, void *data, char **operands, size_t n_operands)
{
	const struct ladder_args *args = data;
	const char *const *dirs = (const char *const *)operands;
	json_t *earlier = NULL;
	struct dbt_err err;
	int r = check(args, dirs, n_operands, &earlier, &err);

	if (r == 0)
		r = (args->dna ? run_dna : run_rungs)(app, args, dirs, n_operands, earlier, &err);
	json_decref(earlier);
	return r < 0 ? msg_fail(&err) : r;
}

static bool wants_series(const void *args)
{
	return ((const struct ladder_args *)args)->dna;
}

static const struct opt_spec opts[] = {
	{ .name = "dna",
	  .at = offsetof(struct ladder_args, dna),
	  .help = "count letters in order and at random instead" },
	{ .name = "max",
	  .kind = OPT_BYTES,
	  .at = offsetof(struct ladder_args, max_bytes),
	  .least = UINT64_C(1) << DBT_DNA_MIN_BITS,
	  .most = UINT64_C(1) << DBT_DNA_BITS_LIMIT,
	  .metavar = "SIZE",
	  .help = "with --dna: the longest text, a power of two (32M)" },
	{ .name = "seconds",
	  .kind = OPT_NUMBER,
	  .at = offsetof(struct ladder_args, seconds),
	  .least = 1,
	  .most = 60,
	  .metavar = "N",
	  .help = "time for each pattern on a device at most (3)" },
	{ .name = "svg",
	  .kind = OPT_STRING,
	  .at = offsetof(struct ladder_args, svg),
	  .metavar = "FILE",
	  .complete = COMPLETE_FILE,
	  .help = "draw the answer" },
	{ .name = "compare",
	  .kind = OPT_STRING,
	  .at = offsetof(struct ladder_args, compare),
	  .metavar = "FILE",
	  .complete = COMPLETE_FILE,
	  .help = "an earlier answer of --json to put beside this one" },
	{ 0 },
};

const struct command cmd_ladder = {
	.name = "ladder",
	.operands = "[DIR...]",
	.summary = "measure this machine's hierarchy of storage, from cache to disk",
	.help = "Latency and bandwidth of caches and memory and, for each directory, of the\n"
		"device below it. With --dna a text of random letters is counted in order and\n"
		"in random order, from memory and from a temporary file in each directory, and\n"
		"what follows from the times is told. Takes less than a minute.",
	.opts = opts,
	.args_bytes = sizeof(struct ladder_args),
	.max_operands = UINT_MAX,
	.operand_kind = OPERAND_PATH,
	.table = &ladder_rungs_table,
	.other_table = &ladder_dna_table,
	.wants_other_table = wants_series,
	.run = run,
};
