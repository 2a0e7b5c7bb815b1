/* Promotions as metrics, in the text format that Prometheus reads (version 0.0.4). */
#ifndef DBT_CMD_METRICS_H
#define DBT_CMD_METRICS_H

#include "cmd/rows.h"

#include <stdio.h>

/* Names and values are for ever, like the keys of JSON. A row that could not be judged has no health. */
void metrics_print(const struct promotion_rows *rows, FILE *out);

#endif
