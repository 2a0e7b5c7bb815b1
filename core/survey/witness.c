#include "survey/witness.h"

#include "base/buf.h"
#include "survey/blkdev.h"
#include "survey/sysfs.h"
#include "sys/root.h"

#include <stdio.h>
#include <string.h>

/* The counters count what was asked of the disks: a little less than ours is a rounding of ramp and
 * partial blocks, much less is memory. */
static const double PROVED_SHARE = 0.98;

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

struct dbt_witness dbt_witness_take(const struct dbt_ctx *ctx, const struct dbt_place *place)
{
	struct dbt_witness w = { 0 };

	count_disks(ctx, place, &w);
	count_self(ctx, &w);
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
	else if (fraction(disks, read_bytes) < PROVED_SHARE)
		(void)snprintf(text, size,
		               "not proved: the disks delivered only %.0f %% of the bytes, the "
		               "rest came from memory",
		               100 * fraction(disks, read_bytes));
	else if (before->self_known && after->self_known &&
	         fraction(self, read_bytes) < PROVED_SHARE)
		(void)snprintf(text, size,
		               "not proved: the kernel counts only %.0f %% of the bytes as read "
		               "from a device",
		               100 * fraction(self, read_bytes));
	return *text == '\0';
}
