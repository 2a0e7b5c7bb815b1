#include "survey/witness.h"

#include "base/buf.h"
#include "survey/blkdev.h"
#include "survey/sysfs.h"
#include "sys/root.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

static void count_disks(const struct dbt_ctx *ctx, const struct dbt_place *place,
                        struct dbt_witness *w)
{
	struct dbt_blk_counters one;

	w->disks_known = place->n_disks > 0;
	for (size_t i = 0; i < place->n_disks; i++) {
		if (dbt_blkdev_counters(ctx, place->disks[i].devno, &one) < 0) {
			w->disks_known = false;
			return;
		}
		w->read_bytes += one.read_sectors512 * 512;
		w->written_bytes += one.written_sectors512 * 512;
		w->requests += one.reads + one.writes;
		if (one.busy_ms > w->busy_ms)
			w->busy_ms = one.busy_ms;
	}
}

static void count_self(const struct dbt_ctx *ctx, struct dbt_witness *w)
{
	struct dbt_buf text = { 0 };
	const char *line;

	if (dbt_root_read(ctx->root, "proc/self/io", 4096, &text) == 0 &&
	    (line = strstr(dbt_buf_str(&text), "\nread_bytes: "))) {
		line += strlen("\nread_bytes:");
		w->self_known = dbt_scan_u64(&line, &w->self_read_bytes);
	}
	dbt_buf_release(&text);
}

static bool is_a_disk(const struct dbt_place *place, uint64_t devno)
{
	for (size_t i = 0; i < place->n_disks; i++)
		if (place->disks[i].devno == devno)
			return true;
	return false;
}

/* A loop device without direct I/O reads its file through the page cache. */
static bool has_cache_between(const struct dbt_ctx *ctx, const struct dbt_place *place)
{
	struct dbt_buf text = { 0 };
	bool cache = false;
	char path[64];

	for (size_t i = 0; !cache && i < place->n_layers; i++) {
		if (is_a_disk(place, place->layers[i]))
			continue;
		(void)snprintf(path, sizeof(path), "sys/dev/block/%u:%u/loop/dio",
		               major(place->layers[i]), minor(place->layers[i]));
		cache = dbt_root_read_line(ctx->root, path, &text) == 0 &&
		        strcmp(dbt_buf_str(&text), "0") == 0;
	}
	dbt_buf_release(&text);
	return cache;
}

struct dbt_witness dbt_witness_take(const struct dbt_ctx *ctx, const struct dbt_place *place)
{
	struct dbt_witness w = { 0 };

	count_disks(ctx, place, &w);
	count_self(ctx, &w);
	w.cache_between = has_cache_between(ctx, place);
	return w;
}

static double fraction(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

bool dbt_witness_proves(const struct dbt_place *place, const struct dbt_witness *before,
                        const struct dbt_witness *after, uint64_t read_bytes,
                        char text[DBT_WITNESS_TEXT_BYTES])
{
	uint64_t disks = after->read_bytes - before->read_bytes,
		 self = after->self_read_bytes - before->self_read_bytes;
	const size_t size = DBT_WITNESS_TEXT_BYTES;

	*text = '\0';
	if (place->n_disks == 0)
		(void)snprintf(text, size,
		               "not proved: there is no local disk whose counters could tell");
	else if (!before->disks_known || !after->disks_known)
		(void)snprintf(text, size, "not proved: a disk keeps no counters");
	else if (disks == 0)
		(void)snprintf(
			text, size,
			"not proved: the disks' counters did not move; they are switched off "
			"(queue/iostats), or everything came from memory");
	else if (fraction(disks, read_bytes) < DBT_WITNESS_SHARE)
		(void)snprintf(text, size,
		               "not proved: the disks delivered only %.0f %% of the bytes, the "
		               "rest came from memory",
		               100 * fraction(disks, read_bytes));
	else if (before->self_known && after->self_known &&
	         fraction(self, read_bytes) < DBT_WITNESS_SHARE)
		(void)snprintf(text, size,
		               "not proved: the kernel counts only %.0f %% of the bytes as read "
		               "from a device",
		               100 * fraction(self, read_bytes));
	return *text == '\0';
}
