#include "survey/ebwt.h"

/* Is this the .1 file of the reverse index? */
static bool is_reverse(const char *name)
{
	const char *one = strrchr(name, '.');

	/* Back over ".bt2" and ".1". */
	while (one > name && *--one != '.')
		;
	return one - name >= 4 && memcmp(one - 4, ".rev", 4) == 0;
}

static uint32_t u32_at(const unsigned char *p, bool swapped)
{
	return swapped ? dbt_be32(p) : dbt_le32(p);
}

enum dbt_match dbt_ebwt_test(const struct dbt_candidate *file, bool wide)
{
	const unsigned char *p = file->head;
	const size_t width = wide ? 8 : 4;
	uint32_t line_rate, lines, off_rate, ftab_chars;
	uint64_t length;
	int32_t flags;
	bool swapped;

	if (file->head_len < 4 + width + 20 || is_reverse(file->name))
		return DBT_MATCH_NO;
	swapped = dbt_be32(p) == 1;
	if (!swapped && dbt_le32(p) != 1)
		return DBT_MATCH_NO;
	length = !wide ? u32_at(p + 4, swapped) : swapped ? dbt_be64(p + 4) : dbt_le64(p + 4);
	p += 4 + width;
	line_rate = u32_at(p, swapped);
	lines = u32_at(p + 4, swapped);
	off_rate = u32_at(p + 8, swapped);
	ftab_chars = u32_at(p + 12, swapped);
	flags = (int32_t)u32_at(p + 16, swapped);
	if (length == 0 || line_rate < 5 || line_rate > 8 || lines < 1 || lines > 2 ||
	    off_rate > 16 || ftab_chars < 1 || ftab_chars > 16 || flags >= 0 || flags < -4096)
		return DBT_MATCH_NO;
	return file->size_bytes > (width << (2 * ftab_chars)) ? DBT_MATCH_YES : DBT_MATCH_NO;
}
