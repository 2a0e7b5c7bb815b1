/* The rows and columns in which promotions are shown: what promote, rollback and reclaim did, and what status,
 * verify and recover find. */
#ifndef DBT_CMD_ROWS_H
#define DBT_CMD_ROWS_H

#include "cmd/app.h"
#include "cmd/table.h"
#include "flow/health.h"
#include "record/promotion.h"

struct promotion_row {
	struct dbt_promotion p; /* owned */
	const char *state;      /* the word to show instead of p.state's; NULL */
	bool judged;            /* health counts */
	enum dbt_health health;
	char *detail; /* owned */
};

struct promotion_rows {
	struct promotion_row *items;
	size_t n, cap;
};

/* Takes over what p holds. -ENOMEM leaves p with the caller. */
int rows_add(struct promotion_rows *rows, struct dbt_promotion *p, const char *state);
void rows_release(struct promotion_rows *rows);

/* Prints them as a table or JSON; returns the exit status `done`, or that of the failure to print. */
int rows_print(struct app *app, const struct table_spec *spec, const struct promotion_rows *rows,
               int done);

/* What promote, rollback and reclaim end with: the rows of moved_table, if there are any (or JSON asks), and their
 * release. Returns the exit status. */
int rows_end(struct app *app, struct promotion_rows *rows, int status);

extern const struct table_spec moved_table;  /* promote, rollback, reclaim */
extern const struct table_spec status_table; /* status, verify */

#endif
