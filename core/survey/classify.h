/* From facts to a tier, with the reasons. Pure: no files, no clock; what it says depends on the
 * stack and the measurements alone.
 *
 * Flags, drivers and transports decide first. A proved measurement outranks them, except that what
 * lies behind a network stays "network" and memory stays "ram": those are facts, not speeds. The
 * configuration outranks both, and the evidence says so. */
#ifndef DBT_SURVEY_CLASSIFY_H
#define DBT_SURVEY_CLASSIFY_H

#include "survey/override.h"
#include "survey/place.h"
#include "survey/stack.h"
#include "survey/tier.h"

struct dbt_judgement {
	enum dbt_tier tier;
	bool mixed;
	bool by_probe;
	char *stack; /* "ext4 < crypt cryptstore < disk sda" */
	struct {
		char **items;
		size_t n, cap;
	} evidence;           /* most decisive first */
	char *note;           /* NULL none */
	enum dbt_tier *tiers; /* of each node of the stack, by flags */
};

/* Returns 0 or -ENOMEM. speeds and overrides may be NULL. */
int dbt_classify(const struct dbt_stack *stack, const struct dbt_speeds *speeds,
                 const struct dbt_overrides *overrides, struct dbt_judgement *ret);
void dbt_judgement_release(struct dbt_judgement *judgement);

/* The tier of a disk at the bottom, from its own facts; the reason goes to why ("disk sda: ..."). */
enum dbt_tier dbt_classify_disk(const struct dbt_blkdev *disk, char *why, size_t why_size);

#endif
