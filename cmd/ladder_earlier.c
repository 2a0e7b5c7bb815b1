/* An answer of an earlier run. */
#include "cmd/ladder.h"

#include <errno.h>

int ladder_load_earlier(const char *file, json_t **ret, struct dbt_err *err)
{
	json_error_t error;
	json_t *top = json_load_file(file, JSON_REJECT_DUPLICATES, &error);

	if (!top && json_error_code(&error) == json_error_cannot_open_file)
		return dbt_err_sys(err, -errno, "cannot open '%s'", file);
	if (!top)
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' is no answer of 'dbtier ladder --json': line %d: %s", file,
		                   error.line, error.text);
	if (!json_is_array(json_object_get(top, ladder_rungs_table.key)) &&
	    !json_is_array(json_object_get(top, ladder_dna_table.key))) {
		json_decref(top);
		return dbt_err_set(err, DBT_ERR_USAGE, -EINVAL,
		                   "'%s' is no answer of 'dbtier ladder --json': it has neither "
		                   "rungs nor series",
		                   file);
	}
	*ret = top;
	return 0;
}
