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

struct header {
	bool swapped;
	uint64_t length; /* of the genome without its gaps */
	uint32_t off_rate, ftab_chars;
};

static uint64_t number_at(const unsigned char *p, bool wide, bool swapped)
{
	if (!wide)
		return u32_at(p, swapped);
	return swapped ? dbt_be64(p) : dbt_le64(p);
}

static bool parse(const unsigned char *p, size_t len, bool wide, struct header *ret)
{
	const size_t width = wide ? 8 : 4;
	uint32_t line_rate, lines;
	int32_t flags;

	if (len < 4 + width + 20)
		return false;
	ret->swapped = dbt_be32(p) == 1;
	if (!ret->swapped && dbt_le32(p) != 1)
		return false;
	ret->length = number_at(p + 4, wide, ret->swapped);
	p += 4 + width;
	line_rate = u32_at(p, ret->swapped);
	lines = u32_at(p + 4, ret->swapped);
	ret->off_rate = u32_at(p + 8, ret->swapped);
	ret->ftab_chars = u32_at(p + 12, ret->swapped);
	flags = (int32_t)u32_at(p + 16, ret->swapped);
	return ret->length > 0 && line_rate >= 5 && line_rate <= 8 && lines >= 1 && lines <= 2 &&
	       ret->off_rate <= 16 && ret->ftab_chars >= 1 && ret->ftab_chars <= 16 && flags < 0 &&
	       flags >= -4096;
}

/* What .1 has at least: two bits a base, and the table of 4^ftabChars numbers and one. */
static uint64_t least_bytes(const struct header *header, size_t width)
{
	return dbt_size_of(width, (1ULL << (2 * header->ftab_chars)) + 1, header->length / 4);
}

enum dbt_match dbt_ebwt_test(const struct dbt_candidate *file, bool wide, struct dbt_buf *why)
{
	struct header header;
	uint64_t least;

	if (is_reverse(file->name) || !parse(file->head, file->head_len, wide, &header))
		return DBT_MATCH_NO;
	least = least_bytes(&header, wide ? 8 : 4);
	return file->size_bytes >= least ? DBT_MATCH_YES
	                                 : dbt_match_cut(why, file->size_bytes, least);
}

static int expect(struct dbt_group *group, const char *part, const char *ending, uint64_t bytes)
{
	return dbt_group_expect(
		group, dbt_group_findf(group, "%s.%s.%s", group->base, part, ending), bytes);
}

/* u32 1, the number of stretches, and two numbers and a byte for each; in the order of bytes of this file. */
static int check_stretches(struct dbt_group *group, const char *ending, bool wide)
{
	const struct dbt_file *file = dbt_group_findf(group, "%s.3.%s", group->base, ending);
	const size_t width = wide ? 8 : 4;
	unsigned char head[12];
	bool swapped;

	if (!file || file->foreign_link)
		return 0;
	if (dbt_group_read(group, file, head, 4 + width, 0) != (ssize_t)(4 + width))
		return dbt_group_expect(group, file, 4 + width);
	swapped = dbt_be32(head) == 1;
	if (!swapped && dbt_le32(head) != 1)
		return 0;
	return dbt_group_expect(
		group, file,
		dbt_size_of(number_at(head + 4, wide, swapped), 2 * width + 1, 4 + width));
}

int dbt_ebwt_check(struct dbt_group *group, const char *ending, bool wide)
{
	const size_t width = wide ? 8 : 4;
	unsigned char head[64];
	struct header header;
	ssize_t got = dbt_group_read(group, group->lead, head, sizeof(head), 0);
	uint64_t samples;
	int r;

	if (got < 0 || !parse(head, (size_t)got, wide, &header))
		return 0;
	samples = dbt_size_of(width, (header.length >> header.off_rate) + 1, 4);
	r = expect(group, "2", ending, samples);
	if (r == 0)
		r = check_stretches(group, ending, wide);
	if (r == 0)
		r = expect(group, "4", ending, header.length / 4 + (header.length % 4 != 0));
	if (r == 0)
		r = expect(group, "rev.1", ending, least_bytes(&header, width));
	return r < 0 ? r : expect(group, "rev.2", ending, samples);
}
