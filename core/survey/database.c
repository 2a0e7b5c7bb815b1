#include "survey/database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *word;
} classes[] = {
	[DBT_CLASS_UNKNOWN] = { "unknown", "unknown" },
	[DBT_CLASS_RANDOM_PREAD] = { "random-pread", "random" },
	[DBT_CLASS_RANDOM_MMAP] = { "random-mmap", "mapped" },
	[DBT_CLASS_SCAN_MMAP] = { "scan-mmap", "mapped" },
	[DBT_CLASS_STREAM] = { "stream", "stream" },
	[DBT_CLASS_STREAM_PER_QUERY] = { "stream-per-query", "stream" },
	[DBT_CLASS_LOAD_ALL] = { "load-all", "loaded" },
	[DBT_CLASS_COLD] = { "cold", "cold" },
};

enum { N_CLASSES = sizeof(classes) / sizeof(classes[0]) };

static size_t index_of(enum dbt_class class)
{
	return (size_t) class < N_CLASSES ? (size_t) class : 0;
}

const char *dbt_class_name(enum dbt_class class)
{
	return classes[index_of(class)].name;
}

const char *dbt_class_word(enum dbt_class class)
{
	return classes[index_of(class)].word;
}

int dbt_class_parse(const char *name, enum dbt_class *ret)
{
	for (size_t i = 0; i < N_CLASSES; i++)
		if (strcmp(name, classes[i].name) == 0) {
			*ret = (enum dbt_class)i;
			return 0;
		}
	return -EINVAL;
}

const char *dbt_database_access(const struct dbt_database *db)
{
	return db->mixed ? "mixed" : dbt_class_word(db->class);
}

void dbt_database_release(struct dbt_database *db)
{
	for (size_t i = 0; i < db->n_members; i++) {
		free(db->members[i].path);
		free(db->members[i].name);
	}
	free(db->members);
	free(db->name);
	free(db->path);
	free(db->dir);
	free(db->incomplete);
	free(db->note);
	free(db->holds);
	*db = (struct dbt_database){ 0 };
}
