/* An answer of an earlier run. */
#include "cmd/ladder.h"

#include <errno.h>
#include <sys/stat.h>

static bool has_rows(const json_t *top, const struct table_spec *table)
{
	return json_array_size(json_object_get(top, table->key)) > 0;
}

static int check_kind(const json_t *top, const char *file, bool dna, struct dbt_err *err)
{
	const struct table_spec *wanted = dna ? &ladder_dna_table : &ladder_rungs_table;
	const struct table_spec *other = dna ? &ladder_rungs_table : &ladder_dna_table;

	if (has_rows(top, wanted))
		return 0;
	if (has_rows(top, other))
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' has the %s of 'dbtier ladder%s --json', which cannot "
		                   "stand beside %s; %s --dna",
		                   file, other->key, dna ? "" : " --dna", wanted->key,
		                   dna ? "leave out" : "add");
	return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
	                   "'%s' is no answer of 'dbtier ladder --json': it has neither rungs nor "
	                   "series",
	                   file);
}

int ladder_load_earlier(const char *file, bool dna, json_t **ret, struct dbt_err *err)
{
	json_error_t error;
	struct stat st;
	json_t *top;
	int r = stat(file, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : 0;

	if (r < 0)
		return dbt_err_sys(err, r, "cannot read '%s'", file);
	top = json_load_file(file, JSON_REJECT_DUPLICATES, &error);
	if (!top && json_error_code(&error) == json_error_cannot_open_file)
		return dbt_err_sys(err, -errno, "cannot open '%s'", file);
	if (!top)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' is no answer of 'dbtier ladder --json': line %d: %s", file,
		                   error.line, error.text);
	r = check_kind(top, file, dna, err);
	if (r < 0)
		json_decref(top);
	else
		*ret = top;
	return r;
}
