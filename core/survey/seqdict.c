#include "survey/seqdict.h"

int dbt_seqdict_add(struct dbt_group *group)
{
	size_t len = strlen(group->base);
	const char *dot;
	struct dbt_file *dict;

	if (len > 3 && strcmp(group->base + len - 3, ".gz") == 0)
		len -= 3;
	dot = memrchr(group->base, '.', len);
	dict = dot ? dbt_group_findf(group, "%.*s.dict", (int)(dot - group->base), group->base)
	           : NULL;
	return dict && !dict->claimed ? dbt_group_add(group, dict, DBT_CLASS_LOAD_ALL, false) : 0;
}
