#include "survey/classify.h"

#include "base/buf.h"
#include "base/units.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random 4k reads a second, one at a time. A 15,000 rpm disk reaches about 350, a slow flash
 * device through encryption or emulation more than 1,000; between the limits a measurement does not
 * decide. */
static const double HDD_LIKE_BELOW = 400.0, FLASH_LIKE_ABOVE = 800.0;

/* SATA carries 600 MB/s; what reads faster than this is no single SATA disk. */
static const uint64_t NVME_LIKE_STREAM = 800000000, NVME_LIKE_STREAM4 = 1200000000;
static const double NVME_LIKE_IOPS4 = 150000.0;

/* A disk that rotates answers from its own cache when the bytes lie so close together. */
static const uint64_t SMALL_SPAN_BYTES = 64U << 20;

/* Stacks that fan out and join again would be written out once per path. */
enum { STACK_TEXT_MAX = 4096 };

struct judge {
	const struct dbt_stack *stack;
	const struct dbt_overrides *overrides; /* may be NULL */
	struct dbt_judgement *out;
	struct dbt_buf notes;
	bool *done;
	bool failed; /* out of memory */
};

void dbt_judgement_release(struct dbt_judgement *j)
{
	for (size_t i = 0; i < j->evidence.n; i++)
		free(j->evidence.items[i]);
	free(j->evidence.items);
	free(j->stack);
	free(j->note);
	free(j->tiers);
	*j = (struct dbt_judgement){ 0 };
}

static void say(struct judge *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct judge *j, const char *fmt, ...)
{
	struct dbt_buf text = { 0 };
	char **slot, line[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	slot = dbt_buf_adds(&text, line) == 0 ? dbt_vec_push(&j->out->evidence) : NULL;
	if (!slot) {
		dbt_buf_release(&text);
		j->failed = true;
		return;
	}
	*slot = dbt_buf_take(&text);
}

static void note(struct judge *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct judge *j, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if ((j->notes.len > 0 && dbt_buf_adds(&j->notes, "; ") < 0) ||
	    dbt_buf_adds(&j->notes, line) < 0)
		j->failed = true;
}

static const struct dbt_node *node_at(const struct judge *j, size_t at)
{
	return &j->stack->items[at];
}

/* What is not known may be slower than anything. */
static bool is_slower(enum dbt_tier a, enum dbt_tier than)
{
	if (a == DBT_TIER_UNKNOWN || than == DBT_TIER_UNKNOWN)
		return a == DBT_TIER_UNKNOWN && than != DBT_TIER_UNKNOWN;
	return dbt_tier_rank(a) > dbt_tier_rank(than);
}

static const char *member_name(const struct dbt_node *node)
{
	if (node->is_fs)
		return node->target;
	return node->blk.dm_name ? node->blk.dm_name : node->blk.name;
}

static enum dbt_tier judge_node(struct judge *j, size_t at);

/* The slowest of what lies below and holds data. */
static enum dbt_tier judge_below(struct judge *j, size_t at)
{
	const struct dbt_node *node = node_at(j, at);
	enum dbt_tier tier = DBT_TIER_UNKNOWN, one;
	size_t n = 0, slowest = 0;
	bool differ = false;

	for (size_t i = 0; i < node->n_below; i++) {
		if (node_at(j, node->below[i])->blk.metadata_only)
			continue;
		one = judge_node(j, node->below[i]);
		differ = differ || (n > 0 && one != tier);
		if (n == 0 || is_slower(one, tier)) {
			slowest = node->below[i];
			tier = one;
		}
		n++;
	}
	if (differ && !node->cache) {
		j->out->mixed = true;
		note(j, "mixed: as slow as its slowest member, %s (%s)",
		     member_name(node_at(j, slowest)), dbt_tier_name(j->out->tiers[slowest]));
	}
	return n == 0 ? DBT_TIER_UNKNOWN : tier;
}

static bool members_differ(const struct judge *j, const struct dbt_node *node)
{
	for (size_t i = 1; i < node->n_below; i++)
		if (j->out->tiers[node->below[i]] != j->out->tiers[node->below[0]])
			return true;
	return false;
}

static enum dbt_tier judge_cache(struct judge *j, size_t at)
{
	const struct dbt_node *node = node_at(j, at);

	note(j,
	     "%s is a %s: its speed depends on what the cache holds, only a measurement can tell",
	     member_name(node), node->cache);
	return DBT_TIER_UNKNOWN;
}

/* The configuration may know a disk better than its flags. */
static enum dbt_tier judge_disk(struct judge *j, const struct dbt_blkdev *blk)
{
	const struct dbt_override *o = dbt_override_find(j->overrides, "", blk->name);
	enum dbt_tier tier;
	char why[512];

	if (!o)
		o = dbt_override_find(j->overrides, "model=", blk->model);
	tier = dbt_classify_disk(blk, why, sizeof(why));
	if (o)
		say(j, "disk %s: %s by configuration (%s)", blk->name, dbt_tier_name(o->tier),
		    o->where);
	say(j, "%s", why);
	if (blk->zoned)
		note(j, "%s is zoned (%s)", blk->name, blk->zoned);
	return o ? o->tier : tier;
}

static enum dbt_tier judge_device(struct judge *j, size_t at)
{
	const struct dbt_node *node = node_at(j, at);
	enum dbt_tier tier;

	if (node->n_below == 0 && !node->trouble)
		return judge_disk(j, &node->blk);
	tier = judge_below(j, at);
	if (node->trouble) {
		note(j, "%s", node->trouble);
		return DBT_TIER_UNKNOWN;
	}
	/* A target that nobody names may be a cache as well as a chain. */
	if (node->blk.kind == DBT_BLK_DM && members_differ(j, node)) {
		note(j, "how %s combines its members is not known: only a measurement can tell",
		     member_name(node));
		return DBT_TIER_UNKNOWN;
	}
	return node->cache ? judge_cache(j, at) : tier;
}

static enum dbt_tier judge_fs(struct judge *j, size_t at)
{
	const struct dbt_node *node = node_at(j, at);
	enum dbt_tier tier;

	switch (node->fs_kind) {
	case DBT_FS_NETWORK:
		say(j, "%s from '%s' is behind a network or a host", node->fstype, node->source);
		return DBT_TIER_NETWORK;
	case DBT_FS_RAM:
		say(j, "%s is memory, not a disk", node->fstype);
		return DBT_TIER_RAM;
	case DBT_FS_USERSPACE:
		note(j, "%s is served by a program: what is behind it cannot be seen",
		     node->fstype);
		return DBT_TIER_UNKNOWN;
	case DBT_FS_OPAQUE:
		note(j, "%s does not show its disks: only a measurement can tell", node->fstype);
		return DBT_TIER_UNKNOWN;
	case DBT_FS_PSEUDO:
		note(j, "%s holds no files of anybody", node->fstype);
		return DBT_TIER_UNKNOWN;
	case DBT_FS_CLUSTER:
		say(j, "%s is a cluster filesystem: other machines use the same disks",
		    node->fstype);
		break;
	case DBT_FS_OVERLAY:
	case DBT_FS_BLOCK:
	default:
		break;
	}
	tier = judge_below(j, at);
	if (node->missing > 0)
		note(j, "%u member%s of the filesystem %s missing", node->missing,
		     node->missing == 1 ? "" : "s", node->missing == 1 ? "is" : "are");
	if (node->trouble) {
		note(j, "%s", node->trouble);
		return DBT_TIER_UNKNOWN;
	}
	/* bcachefs keeps hot data on some members by its own rules. */
	if (strcmp(node->fstype, "bcachefs") == 0 && j->out->mixed) {
		note(j, "bcachefs chooses between its members: only a measurement can tell");
		return DBT_TIER_UNKNOWN;
	}
	return tier;
}

/* Each node is judged once, whatever number of layers share it. */
static enum dbt_tier judge_node(struct judge *j, size_t at)
{
	if (j->done[at])
		return j->out->tiers[at];
	j->done[at] = true;
	j->out->tiers[at] = node_at(j, at)->is_fs ? judge_fs(j, at) : judge_device(j, at);
	return j->out->tiers[at];
}

/* --- the layers as text --- */

static const char *kind_word(const struct dbt_blkdev *blk)
{
	switch (blk->kind) {
	case DBT_BLK_PART:
		return "part";
	case DBT_BLK_CRYPT:
		return "crypt";
	case DBT_BLK_LVM:
		return "lvm";
	case DBT_BLK_MPATH:
		return "mpath";
	case DBT_BLK_DM:
		return "dm";
	case DBT_BLK_MD:
		return blk->md_level ? blk->md_level : "md";
	case DBT_BLK_LOOP:
		return "loop";
	case DBT_BLK_BCACHE:
		return "bcache";
	case DBT_BLK_DRBD:
		return "drbd";
	case DBT_BLK_ZRAM:
		return "zram";
	case DBT_BLK_DISK:
	case DBT_BLK_RAMDISK:
	default:
		return "disk";
	}
}

static bool is_disk(const struct dbt_node *node)
{
	return !node->is_fs && strcmp(kind_word(&node->blk), "disk") == 0;
}

static void add(struct judge *j, struct dbt_buf *out, const char *text)
{
	if (out->len < STACK_TEXT_MAX && dbt_buf_adds(out, text) < 0)
		j->failed = true;
}

static void render(struct judge *j, size_t at, struct dbt_buf *out);

static void render_below(struct judge *j, const struct dbt_node *node, struct dbt_buf *out)
{
	bool plain = true;

	for (size_t i = 0; i < node->n_below; i++)
		plain = plain && is_disk(node_at(j, node->below[i]));
	add(j, out, plain ? " < disks " : " < (");
	for (size_t i = 0; i < node->n_below && out->len < STACK_TEXT_MAX; i++) {
		if (i > 0)
			add(j, out, ", ");
		if (plain)
			add(j, out, node_at(j, node->below[i])->blk.name);
		else
			render(j, node->below[i], out);
	}
	if (!plain)
		add(j, out, ")");
}

static void render(struct judge *j, size_t at, struct dbt_buf *out)
{
	const struct dbt_node *node = node_at(j, at);

	if (out->len >= STACK_TEXT_MAX)
		return;
	if (node->is_fs) {
		add(j, out, node->fstype);
	} else {
		add(j, out, kind_word(&node->blk));
		add(j, out, " ");
		add(j, out, member_name(node));
	}
	if (node->n_below == 1) {
		add(j, out, " < ");
		render(j, node->below[0], out);
	} else if (node->n_below > 1) {
		render_below(j, node, out);
	}
}

/* --- what the layers add to the evidence --- */

static void say_layer(struct judge *j, const struct dbt_node *node)
{
	const struct dbt_blkdev *b = &node->blk;
	const char *by = b->said == DBT_SAID_BLKID ? "libblkid" : "udev";

	if (b->kind == DBT_BLK_CRYPT)
		say(j, "crypt %s: %s; whether it bypasses the crypt work queues is not known",
		    member_name(node),
		    strncmp(b->dm_uuid, "CRYPT-LUKS2", 11) == 0   ? "LUKS2"
		    : strncmp(b->dm_uuid, "CRYPT-LUKS1", 11) == 0 ? "LUKS1"
		    : strncmp(b->dm_uuid, "CRYPT-PLAIN", 11) == 0 ? "plain dm-crypt"
		                                                  : "dm-crypt");
	if (b->kind == DBT_BLK_LOOP && b->loop_file)
		say(j, "loop %s: the file '%s'%s", b->name, b->loop_file,
		    b->loop_deleted ? ", which has no name any more" : "");
	if (b->content && node->n_below + (size_t)is_disk(node) > 0)
		say(j, "%s holds %s (says %s)", b->name, b->content, by);
}

static void say_layers(struct judge *j)
{
	for (size_t i = 0; i < j->stack->n; i++) {
		const struct dbt_node *node = node_at(j, i);

		if (node->is_fs && node->uuid && node->n_below > 1)
			say(j, "%s %s has %zu members", node->fstype, node->uuid, node->n_below);
		if (!node->is_fs)
			say_layer(j, node);
	}
}

/* --- the measurement --- */

static bool is_nvme_like(const struct dbt_speeds *s)
{
	return (s->stream1.proved && s->stream1.rate_bytes_s >= NVME_LIKE_STREAM) ||
	       (s->stream4.proved && s->stream4.rate_bytes_s >= NVME_LIKE_STREAM4) ||
	       (s->random4.proved && s->random4.iops >= NVME_LIKE_IOPS4);
}

/* What the device alone might reach at most. Reads of the idle class wait behind everybody's: under more
 * than a little load nobody knows. */
static double most_iops(const struct dbt_speeds *s)
{
	return s->load <= DBT_LOADED ? s->random1.iops / (1 - s->load) : INFINITY;
}

/* The tier that the speeds point to. UNKNOWN: they do not decide. What is measured under load is the
 * least that the device can do: that proves flash, but a disk only if the most is slow as well. */
static enum dbt_tier measured_tier(const struct dbt_speeds *s, enum dbt_tier by_flags)
{
	if (most_iops(s) < HDD_LIKE_BELOW)
		return DBT_TIER_HDD;
	if (s->random1.iops <= FLASH_LIKE_ABOVE)
		return DBT_TIER_UNKNOWN;
	if (by_flags == DBT_TIER_NVME || by_flags == DBT_TIER_SSD)
		return by_flags; /* both flash; the bus tells which better than a short read */
	if (by_flags == DBT_TIER_HDD && s->span_bytes != 0 && s->span_bytes < SMALL_SPAN_BYTES)
		return DBT_TIER_UNKNOWN;
	return is_nvme_like(s) ? DBT_TIER_NVME : DBT_TIER_SSD;
}

static void say_undecided(struct judge *j, const struct dbt_speeds *s, const char *each)
{
	char why[128] = "";

	if (s->random1.iops > FLASH_LIKE_ABOVE)
		(void)snprintf(why, sizeof(why),
		               ": the bytes lie so close together that the disk's own cache may "
		               "have answered");
	else if (s->load > 0 && s->random1.iops < HDD_LIKE_BELOW)
		(void)snprintf(why, sizeof(why),
		               ": other work took %.0f %% of the time, so the device may be faster",
		               100 * s->load);
	say(j, "measured: a random 4k read takes %s (%.0f a second), which does not decide%s", each,
	    s->random1.iops, why);
}

/* Which flash it is was decided by figures that other work or a slow processor make smaller. */
static void say_which_flash(struct judge *j, const struct dbt_speeds *s)
{
	char best[DBT_UNITS_TEXT_BYTES], limit[DBT_UNITS_TEXT_BYTES];
	uint64_t rate = s->stream1.proved ? s->stream1.rate_bytes_s : 0;
	bool four = s->stream4.proved && s->stream4.rate_bytes_s > rate;

	if (four)
		rate = s->stream4.rate_bytes_s;
	if (rate == 0)
		return;
	say(j, "measured: %s read%s %s, nvme begins at %s%s", four ? "four streams" : "one stream",
	    four ? "" : "s", dbt_units_rate(rate, best),
	    dbt_units_rate(four ? NVME_LIKE_STREAM4 : NVME_LIKE_STREAM, limit),
	    s->load > DBT_LOADED && !is_nvme_like(s)
	            ? "; other work took time, so it may be faster than ssd"
	            : "");
}

static void weigh_speeds(struct judge *j, const struct dbt_speeds *s)
{
	enum dbt_tier flags = j->out->tier, measured;
	char each[DBT_UNITS_TEXT_BYTES];

	if (!s || !s->random1.proved || !(s->random1.iops > 0))
		return;
	measured = measured_tier(s, flags);
	(void)dbt_units_duration((uint64_t)(1e9 / s->random1.iops), each);
	if (flags == DBT_TIER_RAM || flags == DBT_TIER_NETWORK) {
		say(j, "measured: a random 4k read takes %s; it stays %s whatever its speed", each,
		    dbt_tier_name(flags));
		return;
	}
	if (measured == DBT_TIER_UNKNOWN) {
		say_undecided(j, s, each);
		return;
	}
	j->out->by_probe = true;
	j->out->tier = measured;
	if (measured != DBT_TIER_HDD && flags != measured)
		say_which_flash(j, s);
	if (flags != DBT_TIER_UNKNOWN && flags != measured) {
		say(j,
		    "measured: a random 4k read takes %s (%.0f a second): %s, although flags and "
		    "drivers say %s",
		    each, s->random1.iops, dbt_tier_name(measured), dbt_tier_name(flags));
		note(j, "measured as %s, although flags and drivers say %s",
		     dbt_tier_name(measured), dbt_tier_name(flags));
	} else {
		say(j, "measured: a random 4k read takes %s (%.0f a second): %s", each,
		    s->random1.iops, dbt_tier_name(measured));
	}
}

/* The whole filesystem, by where it is mounted or by its UUID. */
static void weigh_configuration(struct judge *j)
{
	const struct dbt_node *top = node_at(j, 0);
	const struct dbt_override *o = NULL;
	const char *uuid = top->is_fs ? top->uuid : top->blk.content_uuid;

	if (top->is_fs)
		o = dbt_override_find(j->overrides, "", top->target);
	if (top->is_fs && !uuid && top->n_below > 0)
		uuid = node_at(j, top->below[0])->blk.content_uuid;
	if (!o)
		o = dbt_override_find(j->overrides, "uuid=", uuid);
	if (!o)
		return;
	say(j, "%s by configuration (%s); otherwise it would be %s", dbt_tier_name(o->tier),
	    o->where, dbt_tier_name(j->out->tier));
	note(j, "%s by configuration", dbt_tier_name(o->tier));
	j->out->tier = o->tier;
	j->out->by_probe = false;
}

/* What is weighed last is the most decisive, and is told first. */
static void move_last_to_front(struct dbt_judgement *out)
{
	char *last;

	if (out->evidence.n < 2)
		return;
	last = out->evidence.items[out->evidence.n - 1];
	memmove(out->evidence.items + 1, out->evidence.items,
	        (out->evidence.n - 1) * sizeof(*out->evidence.items));
	out->evidence.items[0] = last;
}

static void decide(struct judge *j, const struct dbt_speeds *speeds)
{
	size_t before;

	j->out->tier = judge_node(j, 0);
	before = j->out->evidence.n;
	weigh_speeds(j, speeds);
	if (j->out->evidence.n > before)
		move_last_to_front(j->out);
	before = j->out->evidence.n;
	weigh_configuration(j);
	if (j->out->evidence.n > before)
		move_last_to_front(j->out);
	/* Nobody should have to ask for the evidence to learn why nothing is known. */
	if (j->out->tier == DBT_TIER_UNKNOWN && j->notes.len == 0 && j->out->evidence.n > 0)
		note(j, "%s", j->out->evidence.items[0]);
	say_layers(j);
}

int dbt_classify(const struct dbt_stack *stack, const struct dbt_speeds *speeds,
                 const struct dbt_overrides *overrides, struct dbt_judgement *ret)
{
	struct dbt_judgement out = { 0 };
	struct judge j = { .stack = stack, .overrides = overrides, .out = &out };
	struct dbt_buf text = { 0 };

	if (stack->n == 0)
		return -EINVAL;
	out.tiers = calloc(stack->n, sizeof(*out.tiers));
	j.done = calloc(stack->n, sizeof(*j.done));
	j.failed = !out.tiers || !j.done;
	if (!j.failed) {
		decide(&j, speeds);
		render(&j, 0, &text);
	}
	free(j.done);
	if (j.notes.len > 0)
		out.note = dbt_buf_take(&j.notes);
	dbt_buf_release(&j.notes);
	out.stack = dbt_buf_take(&text);
	if (j.failed || !out.stack) {
		dbt_judgement_release(&out);
		return -ENOMEM;
	}
	*ret = out;
	return 0;
}
