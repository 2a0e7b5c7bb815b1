/* MMseqs2. With a precomputed index X.idx a search opens nothing but that and small files; without it X is
 * read in order to build the index, headers X_h at the end. Names are the prefix as given plus a suffix, so
 * that a single linked file without its siblings is not found. Some members are links that MMseqs2 made
 * itself. Never name anything X.0 beside X: it would be preferred. */
#include "survey/mmseqs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	return dbt_mmseqs_test(file);
}

static int add_stem(struct dbt_group *group, const char *end, enum dbt_class class, bool hot)
{
	char *stem;
	int r;

	if (asprintf(&stem, "%s%s", group->base, end) < 0)
		return -ENOMEM;
	r = dbt_mmseqs_add(group, stem, class, hot);
	if (r > 0 && dbt_mmseqs_check(group, stem) < 0)
		r = -ENOMEM;
	free(stem);
	return r;
}

static int collect(struct dbt_group *group, bool *use_rules)
{
	static const char *const others[] = { "_h",  "_seq", "_seq_h", "_aln",     "_clu",
		                              "_id", "_pad", "_pad_h", "_aln.idx", "_seq.idx" };
	int indexed, data, r = 0;

	(void)use_rules;
	if (dbt_mmseqs_is_derived(group, group->base) || !dbt_group_part(group, "*.index"))
		return -ENOENT;
	indexed = add_stem(group, ".idx", DBT_CLASS_RANDOM_MMAP, true);
	data = add_stem(group, "", DBT_CLASS_SCAN_MMAP, indexed == 0);
	if (indexed < 0 || data < 0)
		return -ENOMEM;
	if (indexed == 0 && data == 0) {
		/* Type and index alone may be of anything; with the headers beside them the data are missing. */
		if (!dbt_group_part(group, "*_h.index") || !dbt_group_part(group, "*.lookup"))
			return -ENOENT;
		r = dbt_group_incomplete(group, "'%s' is missing", group->base);
		if (r == 0)
			r = dbt_group_add(group, dbt_group_part(group, "*.index"),
			                  DBT_CLASS_SCAN_MMAP, false);
	}
	for (size_t i = 0; r >= 0 && i < sizeof(others) / sizeof(others[0]); i++)
		r = add_stem(group, others[i], DBT_CLASS_COLD, false);
	return r < 0 ? r : 0;
}

static const struct dbt_lead leads[] = { { .pattern = "*.dbtype" }, { 0 } };

/* What has no index of its own. */
static const struct dbt_rule rules[] = {
	{ "*_mapping", DBT_CLASS_COLD, 0, 0 },     { "*_taxonomy", DBT_CLASS_COLD, 0, 0 },
	{ "*_nodes.dmp", DBT_CLASS_COLD, 0, 0 },   { "*_names.dmp", DBT_CLASS_COLD, 0, 0 },
	{ "*_merged.dmp", DBT_CLASS_COLD, 0, 0 },  { "*_delnodes.dmp", DBT_CLASS_COLD, 0, 0 },
	{ "*.idx_mapping", DBT_CLASS_COLD, 0, 0 }, { "*.idx_taxonomy", DBT_CLASS_COLD, 0, 0 },
	{ "*.version", DBT_CLASS_COLD, 0, 0 },     { 0 },
};

const struct dbt_format dbt_format_mmseqs = {
	.id = "mmseqs",
	.name = "MMseqs2 database",
	.tools = "MMseqs2, ColabFold, eggNOG-mapper",
	.members = "X (or X.0, X.1 ...), X.index, X.dbtype, X.lookup, X.source, X_h*, X.idx*, "
		   "X_mapping, X_taxonomy, X_seq*, X_aln*, X_clu*",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.leads = leads,
	.rules = rules,
	.test = test,
	.collect = collect,
};
