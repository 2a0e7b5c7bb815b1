/* Feeds foreign bytes to every recogniser: as the head of each lead of each format, in memory, and, for the
 * checks that compare the files of a set, as files in a directory that is scanned.
 *
 * The first byte chooses: below 64 all tests in memory; else the format whose set is written, the second
 * byte which lead, the third at which of its files the bytes are cut in two. */
#include "survey/dbkind.h"
#include "survey/scan.h"
#include "sys/root.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct memory {
	const uint8_t *data;
	size_t len;
};

static ssize_t read_memory(const struct dbt_candidate *file, void *buf, size_t len, uint64_t off)
{
	const struct memory *m = file->read_data;
	size_t n;

	if (off >= m->len)
		return 0;
	n = m->len - off < len ? (size_t)(m->len - off) : len;
	memcpy(buf, m->data + off, n);
	return (ssize_t)n;
}

/* A name that fits the pattern, with "x" as base and "00" as number. */
static void name_for(const char *pattern, char out[128])
{
	size_t n = 0;

	for (; *pattern && n < 120; pattern++) {
		if (*pattern == '#') {
			out[n++] = '0';
			out[n++] = '0';
		} else {
			out[n++] = *pattern == '*' ? 'x' : *pattern;
		}
	}
	out[n] = '\0';
}

static void all_in_memory(const uint8_t *data, size_t len)
{
	const struct memory memory = { .data = data, .len = len };
	struct dbt_buf why = { 0 };
	char name[128];

	for (const struct dbt_format *const *f = dbt_formats; *f; f++)
		for (const struct dbt_lead *lead = (*f)->leads; lead->pattern; lead++) {
			struct dbt_candidate file = {
				.name = name,
				.size_bytes = len,
				.head = data,
				.head_len = len < DBT_HEAD_BYTES ? len : DBT_HEAD_BYTES,
				.read = read_memory,
				.read_data = &memory,
			};

			name_for(lead->pattern, name);
			dbt_buf_clear(&why);
			if ((*f)->test)
				(void)(*f)->test(&file, &why);
		}
	dbt_buf_release(&why);
}

static void put(int dirfd, const char *name, const uint8_t *data, size_t len)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return; /* a member that is no plain name here */
	if (write(fd, data, len) != (ssize_t)len)
		abort();
	(void)close(fd);
}

/* The lead gets the first part of the bytes, every member named by the rules the rest. */
static void one_set(int dirfd, const char *dir, const struct dbt_format *format, unsigned lead,
                    const uint8_t *data, size_t len, size_t split)
{
	struct dbt_scan_result result;
	struct dbt_root root;
	struct dbt_ctx ctx;
	struct dbt_err err;
	char name[128];
	unsigned n = 0;

	while (format->leads[n].pattern)
		n++;
	for (const struct dbt_rule *rule = format->rules; rule && rule->pattern; rule++) {
		name_for(rule->pattern, name);
		put(dirfd, name, data + split, len - split);
	}
	name_for(format->leads[lead % n].pattern, name);
	put(dirfd, name, data, split);
	if (dbt_root_open(&root, NULL) < 0)
		abort();
	dbt_ctx_init(&ctx, &root);
	if (dbt_scan(&ctx, dir, NULL, &result, &err) == 0)
		dbt_scan_result_release(&result);
	dbt_root_close(&root);
	for (const struct dbt_rule *rule = format->rules; rule && rule->pattern; rule++) {
		name_for(rule->pattern, name);
		(void)unlinkat(dirfd, name, 0);
	}
	name_for(format->leads[lead % n].pattern, name);
	(void)unlinkat(dirfd, name, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static char dir[] = "/dev/shm/dbtier-fuzz-XXXXXX";
	static int dirfd = -1;
	size_t n = 0;

	if (len < 4)
		return 0;
	if (data[0] < 64) {
		all_in_memory(data + 1, len - 1);
		return 0;
	}
	if (dirfd < 0) {
		if (!mkdtemp(dir))
			abort();
		dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	while (dbt_formats[n])
		n++;
	one_set(dirfd, dir, dbt_formats[data[0] % n], data[1], data + 3, len - 3,
	        data[2] * (len - 3) / 255);
	return 0;
}
