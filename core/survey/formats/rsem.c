/* RSEM reference: texts that are known only together: X.grp (numbers), X.ti, X.seq, X.transcripts.fa,
 * X.idx.fa, X.n2g.idx.fa, X.chrlist; an aligner's index of X stands beside them as its own. */
#include "survey/formats/format.h"

#include <ctype.h>

static enum dbt_match test(const struct dbt_candidate *file, struct dbt_buf *why)
{
	(void)why;
	for (size_t i = 0; i < file->head_len; i++)
		if (!isdigit(file->head[i]) && file->head[i] != '\n')
			return DBT_MATCH_NO;
	return file->head_len > 1 ? DBT_MATCH_YES : DBT_MATCH_NO;
}

static const struct dbt_lead leads[] = { { .pattern = "*.grp" }, { 0 } };

static const struct dbt_rule rules[] = {
	{ "*.grp", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.ti", DBT_CLASS_LOAD_ALL, DBT_RULE_CORE, 0 },
	{ "*.seq", DBT_CLASS_LOAD_ALL, DBT_RULE_HOT | DBT_RULE_CORE, 0 },
	{ "*.transcripts.fa", DBT_CLASS_LOAD_ALL, DBT_RULE_REQUIRED, 0 },
	{ "*.idx.fa", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.n2g.idx.fa", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.chrlist", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.ta", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ "*.gt", DBT_CLASS_LOAD_ALL, 0, 0 },
	{ 0 },
};

const struct dbt_format dbt_format_rsem = {
	.id = "rsem",
	.name = "RSEM reference",
	.tools = "rsem-calculate-expression",
	.members = "X.{grp,ti,seq,chrlist,transcripts.fa,idx.fa,n2g.idx.fa}",
	.note = "a cut in one of its files is not noticed: nothing tells how long they are",
	.proof = DBT_PROOF_SIBLINGS,
	.shape = DBT_SHAPE_SET,
	.moves = DBT_MOVES_SET,
	.class = DBT_CLASS_LOAD_ALL,
	.leads = leads,
	.rules = rules,
	.test = test,
};
