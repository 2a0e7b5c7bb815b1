/* An identity as one line of text that a person can read in the ledger too: "dev=1 ino=2 size=3 ...". */
#ifndef DBT_RECORD_IDENT_TEXT_H
#define DBT_RECORD_IDENT_TEXT_H

#include "sys/at.h"

enum { DBT_IDENT_TEXT_BYTES = 256 };

void dbt_ident_text(const struct dbt_ident *ident, char out[DBT_IDENT_TEXT_BYTES]);

/* 0, or -EINVAL for anything that dbt_ident_text does not write. */
int dbt_ident_parse(const char *text, struct dbt_ident *ret);

#endif
