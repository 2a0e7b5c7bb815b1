#include "survey/ssi.h"

int dbt_ssi_check(struct dbt_group *group, const struct dbt_file *file)
{
	/* Number of secondary keys u64 at 22, size of their records u32 at 50, their offset u64 at 70;
	 * they come last. */
	enum { HEADER_BYTES = 78, N_AT = 22, RECORD_AT = 50, OFFSET_AT = 70 };
	static const unsigned char magic[4] = { 0xd3, 0xd3, 0xc9, 0xb3 };
	unsigned char head[HEADER_BYTES];

	if (!file || file->foreign_link || file->dangling)
		return 0;
	if (dbt_group_read(group, file, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head, magic, sizeof(magic)) != 0)
		return dbt_group_incomplete(group, "'%s' is no index", file->name);
	return dbt_group_expect(group, file,
	                        dbt_size_of(dbt_be64(head + N_AT), dbt_be32(head + RECORD_AT),
	                                    dbt_be64(head + OFFSET_AT)));
}
