#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The power of 1024 a suffix means, -1 when it is none: "", "k", "KiB", "B" ... */
static int suffix_power(const char *s)
{
	static const char letters[] = "KMGTPE";
	const char *hit;

	if (*s == '\0' || strcmp(s, "B") == 0)
		return 0;
	hit = memchr(letters, toupper((unsigned char)*s), sizeof(letters) - 1);
	if (!hit)
		return -1;
	s++;
	if (*s != '\0' && strcmp(s, "B") != 0 && strcmp(s, "iB") != 0)
		return -1;
	return (int)(hit - letters) + 1;
}

int dbt_units_parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t whole = 0, bytes, part;
	/* The fraction as a number of 10^-9, enough for any unit; digits beyond are dropped. */
	uint64_t frac = 0, scale = 1000000000U;
	int power;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(whole, 10U, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*text - '0'), &whole))
			return -ERANGE;
	if (*text == '.')
		for (text++; isdigit((unsigned char)*text); text++)
			if (scale > 1) {
				scale /= 10;
				frac += (uint64_t)(*text - '0') * scale;
			}
	power = suffix_power(text);
	if (power < 0)
		return -EINVAL;
	if (power == 0 && frac > 0)
		return -EINVAL;
	if (whole > (UINT64_MAX >> (10 * power)))
		return -ERANGE;
	bytes = whole << (10 * power);
	part = (uint64_t)((__extension__(unsigned __int128) frac << (10 * power)) / 1000000000U);
	if (__builtin_add_overflow(bytes, part, ret_bytes))
		return -ERANGE;
	return 0;
}

int dbt_units_parse_amount(const char *text, struct dbt_amount *ret)
{
	struct dbt_amount amount = { 0 };

	if (dbt_units_parse_size(text, &amount.bytes) < 0) {
		/* Looked at first: strtod takes hexadecimal numbers, "inf" and "nan" as well. */
		if (!isdigit((unsigned char)*text) ||
		    strcmp(text + strspn(text, "0123456789."), "%") != 0)
			return -EINVAL;
		amount.percent = strtod(text, NULL);
		if (amount.percent >= 100)
			return -EINVAL;
	}
	*ret = amount;
	return 0;
}

const char *dbt_units_size(uint64_t bytes, char out[DBT_UNITS_TEXT_BYTES])
{
	static const char letters[] = "BKMGTPE";
	unsigned power = 0;
	uint64_t tenths;

	while (power < 6 && (bytes >> (10 * power)) >= 1024)
		power++;
	if (power == 0) {
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%" PRIu64 "B", bytes);
		return out;
	}
	tenths = (uint64_t)(((__extension__(unsigned __int128) bytes * 10) +
	                     (1ULL << (10 * power - 1))) >>
	                    (10 * power));
	if (tenths >= 10240 && power < 6) {
		tenths = 10;
		power++;
	}
	if (tenths % 10 == 0)
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%" PRIu64 "%c", tenths / 10,
		               letters[power]);
	else
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%" PRIu64 ".%" PRIu64 "%c", tenths / 10,
		               tenths % 10, letters[power]);
	return out;
}

const char *dbt_units_duration(uint64_t ns, char out[DBT_UNITS_TEXT_BYTES])
{
	uint64_t s = (ns + 500000000U) / 1000000000U;

	if (ns < 1000000U)
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%.2f ms", (double)ns / 1e6);
	else if (ns < 10000000U)
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%.1f ms", (double)ns / 1e6);
	else if (ns < 1000000000U)
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%.0f ms", (double)ns / 1e6);
	else if (ns < 60000000000U)
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%.1f s", (double)ns / 1e9);
	else if (s < 3600)
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%" PRIu64 "m %02" PRIu64 "s", s / 60,
		               s % 60);
	else
		(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%" PRIu64 "h %02" PRIu64 "m", s / 3600,
		               s / 60 % 60);
	return out;
}

const char *dbt_units_short(double ns, char out[DBT_UNITS_TEXT_BYTES])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	size_t i = 0;

	while (ns >= 999.5 && i + 1 < sizeof(units) / sizeof(units[0])) {
		ns /= 1000;
		i++;
	}
	(void)snprintf(out, DBT_UNITS_TEXT_BYTES, "%.*f %s",
	               ns < 0.995  ? 2
	               : ns < 9.95 ? 1
	                           : 0,
	               ns, units[i]);
	return out;
}

const char *dbt_units_rate(uint64_t bytes_s, char out[DBT_UNITS_TEXT_BYTES])
{
	static const char *const units[] = { "B/s", "kB/s", "MB/s", "GB/s", "TB/s" };
	double v = (double)bytes_s;
	size_t i = 0;

	while (v >= 999.5 && i + 1 < sizeof(units) / sizeof(units[0])) {
		v /= 1000;
		i++;
	}
	(void)snprintf(out, DBT_UNITS_TEXT_BYTES, v < 9.95 && i > 0 ? "%.1f %s" : "%.0f %s", v,
	               units[i]);
	return out;
}
