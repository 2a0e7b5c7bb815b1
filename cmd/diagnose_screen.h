/* The answer of `diagnose` on one screen. */
#ifndef DBT_CMD_DIAGNOSE_SCREEN_H
#define DBT_CMD_DIAGNOSE_SCREEN_H

#include "cmd/app.h"
#include "observe/diagnosis.h"

#include <stdio.h>

/* width: characters a line of prose may have; 0: 100. Colours by `color`. */
int diagnose_screen(const struct app *app, const struct dbt_observation *obs,
                    const struct dbt_diagnosis *d, unsigned width, bool color, FILE *out,
                    struct dbt_err *err);

#endif
