/* The answer of `diagnose` on one screen. */
#ifndef DBT_CMD_DIAGNOSE_SCREEN_H
#define DBT_CMD_DIAGNOSE_SCREEN_H

#include "cmd/app.h"
#include "observe/diagnosis.h"

#include <stdio.h>

struct screen_look {
	unsigned width; /* characters a line of prose may have; 0: 100 */
	bool color;
	bool verdict_first; /* for a screen that may be cut at its end */
};

int diagnose_screen(const struct app *app, const struct dbt_observation *obs,
                    const struct dbt_diagnosis *d, const struct screen_look *look, FILE *out,
                    struct dbt_err *err);

#endif
