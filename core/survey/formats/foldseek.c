/* Foldseek: an MMseqs2 database X with X_ss (3Di letters) and X_ca (coordinates), each with its own .index
 * and .dbtype; clustered ones have X_seq, X_aln, X_clu as well. */
#include "survey/mmseqs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_mmseqs_test(file);
}

static int collect(struct dbt_group *group, bool *use_rules)
{
	static const struct {
		const char *end;
		enum dbt_class class;
		bool hot;
	} stems[] = {
		{ "", DBT_CLASS_SCAN_MMAP, true },
		{ "_ss", DBT_CLASS_SCAN_MMAP, true },
		{ "_ca", DBT_CLASS_RANDOM_MMAP, true },
		{ ".idx", DBT_CLASS_RANDOM_MMAP, true },
		{ "_h", DBT_CLASS_COLD, false },
		{ "_ss_h", DBT_CLASS_COLD, false },
		{ "_seq", DBT_CLASS_COLD, false },
		{ "_seq_h", DBT_CLASS_COLD, false },
		{ "_seq_ss", DBT_CLASS_COLD, false },
		{ "_seq_ca", DBT_CLASS_COLD, false },
		{ "_aln", DBT_CLASS_COLD, false },
		{ "_clu", DBT_CLASS_COLD, false },
		{ "_ss.idx", DBT_CLASS_RANDOM_MMAP, true },
	};
	int r = 0;

	(void)use_rules;
	/* X_seq_ss belongs to the clustered X. */
	if (dbt_mmseqs_is_derived(group, group->base) || !dbt_group_part(group, "*.dbtype") ||
	    !dbt_group_part(group, "*.index"))
		return -ENOENT;
	for (size_t i = 0; r == 0 && i < sizeof(stems) / sizeof(stems[0]); i++) {
		char *stem;

		if (asprintf(&stem, "%s%s", group->base, stems[i].end) < 0)
			return -ENOMEM;
		r = dbt_mmseqs_add(group, stem, stems[i].class, stems[i].hot);
		if (r > 0)
			r = dbt_mmseqs_check(group, stem);
		free(stem);
	}
	return r;
}

static const struct dbt_lead leads[] = { { .pattern = "*_ss.dbtype" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*_mapping", DBT_CLASS_COLD, 0, 0 },
	{ "*_taxonomy", DBT_CLASS_COLD, 0, 0 },
	{ "*.version", DBT_CLASS_COLD, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_foldseek = {
	.id = "foldseek",
	.name = "Foldseek database",
	.tools = "Foldseek",
	.members = "X, X_ss, X_ca, X_h, each with .index and .dbtype; X_seq*, X_aln*, X_clu*",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_SCAN_MMAP,
	.leads = leads,
	.rules = rules,
	.test = test,
	.collect = collect,
};
