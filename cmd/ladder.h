/* The parts of the command ladder: two tables, one for the rungs and one for the DNA experiment,
 * and a picture that is drawn from the JSON of either, so that all outputs show the same numbers
 * in the same order. */
#ifndef DBT_CMD_LADDER_H
#define DBT_CMD_LADDER_H

#include "cmd/table.h"
#include "ladder/conclude.h"
#include "ladder/dna.h"
#include "ladder/rungs.h"

#include <jansson.h>
#include <stddef.h>

/* An earlier answer of --json, with or without --dna; NULL in the functions below when there is
 * none. On success the caller has a reference. */
int ladder_load_earlier(const char *file, bool dna, json_t **ret, struct dbt_err *err);

/* --- rungs --- */

struct rung_row {
	const struct dbt_rung *rung;
	const struct dbt_rung *above; /* the next faster one; NULL for the first */
	double before_ns;             /* in the earlier answer; 0 there is none */
};
extern const struct table_spec ladder_rungs_table;

/* rows: as many as there are rungs. */
void ladder_rungs_rows(const struct dbt_rungs *rungs, const json_t *earlier, struct rung_row *rows);

/* What to know about single rungs, for below the table. Returns 0 or -ENOMEM; on success the caller
 * releases. */
int ladder_rungs_notes(const struct dbt_rungs *rungs, struct dbt_sentences *ret);

/* The keys beside the array; NULL when out of memory. */
json_t *ladder_rungs_more(void);

/* --- the DNA experiment --- */

struct series_row {
	const struct dbt_dna *dna;
	const struct dbt_dna_point *points; /* of one series, by length */
	size_t n;
	const char *dir;  /* NULL for memory */
	double before_ns; /* at the same length in the earlier answer; 0 there is none */
};
extern const struct table_spec ladder_dna_table;

/* Returns the number of rows; rows has room for dna->n. */
size_t ladder_dna_rows(const struct dbt_dna *dna, const char *const *dirs, const json_t *earlier,
                       struct series_row *rows);
json_t *ladder_dna_more(const struct dbt_dna *dna, const struct dbt_sentences *conclusion);

/* --- the picture --- */

/* Can the file be written? Told before a minute is spent. It must be none that is read. */
int ladder_check_svg(const char *file, const char *read_file_or_null, struct dbt_err *err);

/* Draws the JSON object of an answer. A picture that was there stays until the new one is whole. */
int ladder_write_svg(const json_t *answer, const char *file, struct dbt_err *err);

/* A bar for a terminal, one character for a third of a decade above floor_ns: buf is returned. */
enum { LADDER_BAR_BYTES = 128 };
const char *ladder_bar(double ns, double floor_ns, char buf[LADDER_BAR_BYTES]);

#endif
