/* Operands of promote that are archives: those of one set are unpacked together. */
#ifndef DBT_CMD_ARCHIVES_H
#define DBT_CMD_ARCHIVES_H

#include "cmd/app.h"
#include "record/ledger.h"

struct archives {
	char **paths;
	size_t n;
};

/* The archives that the first operands are, as far as they belong to one set; none when the first is no archive. Each is
 * one operand. ledger may be NULL. 0 or -ENOMEM. */
int archives_take(struct app *app, struct dbt_ledger *ledger, char **operands, size_t n,
                  struct archives *ret, struct dbt_err *err);
void archives_release(struct archives *archives);

#endif
