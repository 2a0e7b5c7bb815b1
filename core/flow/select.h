/* What an argument of promote means: a path, or a name from the last scan; one file, or a database with the
 * members that move. */
#ifndef DBT_FLOW_SELECT_H
#define DBT_FLOW_SELECT_H

#include "base/err.h"
#include "record/ledger.h"
#include "survey/database.h"
#include "sys/ctx.h"

struct dbt_selection {
	char *name;         /* of the promotion: the database's, or the file's */
	char *path;         /* what status shows */
	char *dir;          /* members' names are relative to it */
	const char *format; /* "file" for a file that belongs to no known database; static */
	bool is_set;
	bool is_tree; /* paths[0] is a directory that moves as one name, what else there is are files in it to
	                    measure by; n is 1 all the same */
	size_t n_probes; /* of paths, from paths[1] on */
	bool uri_target; /* no ? # % in the target */
	char *note;      /* what to know before moving it; NULL */
	char **paths;    /* of the files to move, absolute */
	char **names;    /* relative to dir */
	size_t n;
};

/* ledger may be NULL. Refuses links, members of sets that must move whole, directories without a database. */
int dbt_select(const struct dbt_ctx *ctx, struct dbt_ledger *ledger, const char *what,
               bool all_files, struct dbt_selection *ret, struct dbt_err *err);
void dbt_selection_release(struct dbt_selection *selection);

#endif
