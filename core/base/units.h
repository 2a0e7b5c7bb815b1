/* Sizes, durations and rates as people write them. Powers of 1024 with the letters of lsblk. */
#ifndef DBT_BASE_UNITS_H
#define DBT_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum { DBT_UNITS_TEXT_BYTES = 32 };

/* "4096", "10G", "10GiB", "1.5T", "512k": powers of 1024. Returns 0, -EINVAL (not a size) or
 * -ERANGE. */
int dbt_units_parse_size(const char *text, uint64_t *ret_bytes);

/* What somebody wants kept free: "10G", or "5%" of the whole. */
struct dbt_amount {
	uint64_t bytes;
	double percent; /* above 0 and below 100: a share counts, not bytes */
};

/* Returns 0 or -EINVAL. */
int dbt_units_parse_amount(const char *text, struct dbt_amount *ret);

/* "42.9G", "512B", "0B" as lsblk prints them. The buffer is returned. */
const char *dbt_units_size(uint64_t bytes, char out[DBT_UNITS_TEXT_BYTES]);

/* "3m 05s", "850 ms", "0.05 ms", "2h 10m". */
const char *dbt_units_duration(uint64_t ns, char out[DBT_UNITS_TEXT_BYTES]);

/* For times from less than a nanosecond on, two digits: "0.52 ns", "170 ns", "19 us", "8.1 ms". */
const char *dbt_units_short(double ns, char out[DBT_UNITS_TEXT_BYTES]);

/* "210 MB/s", "3.2 GB/s": powers of 1000, as disks are sold. */
const char *dbt_units_rate(uint64_t bytes_s, char out[DBT_UNITS_TEXT_BYTES]);

#endif
