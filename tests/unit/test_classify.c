/* Measurement against flags, on stacks made by hand. */
#include "survey/classify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ext4 on one disk. Strings are borrowed: nothing of it is released. */
struct hand {
	struct dbt_node nodes[2];
	size_t below[1];
	struct dbt_stack stack;
	char fstype[8], name[16], tran[16], target[2], source[2];
};

static void hand_make(struct hand *h, const char *name, const char *tran, int rota)
{
	*h = (struct hand){ .below = { 1 }, .fstype = "ext4", .target = "/", .source = "x" };
	(void)snprintf(h->name, sizeof(h->name), "%s", name);
	(void)snprintf(h->tran, sizeof(h->tran), "%s", tran);
	h->nodes[0] = (struct dbt_node){ .is_fs = true,
		                         .fstype = h->fstype,
		                         .target = h->target,
		                         .source = h->source,
		                         .below = h->below,
		                         .n_below = 1 };
	h->nodes[1].blk =
		(struct dbt_blkdev){ .name = h->name, .tran = h->tran, .rota = rota, .rpm = -1 };
	h->stack = (struct dbt_stack){ .items = h->nodes, .n = 2 };
}

static struct dbt_speeds speeds_of(double iops, uint64_t stream)
{
	return (struct dbt_speeds){
		.random1 = { .proved = true, .iops = iops },
		.stream1 = { .proved = stream > 0, .rate_bytes_s = stream },
		.span_bytes = 10ULL << 30,
	};
}

static void a_measurement_outranks_flags(void **state)
{
	static const struct {
		const char *name, *tran;
		int rota;
		double iops;
		uint64_t stream;
		enum dbt_tier tier;
		bool by_probe;
	} cases[] = {
		/* Nothing is known but the speed. */
		{ "vda", "virtio", 1, 207, 0, DBT_TIER_HDD, true },
		{ "vda", "virtio", 1, 11000, 400000000, DBT_TIER_SSD, true },
		{ "vda", "virtio", 1, 11000, 2000000000, DBT_TIER_NVME, true },
		{ "vda", "virtio", 1, 600, 0, DBT_TIER_UNKNOWN, false },
		/* The flag is wrong. */
		{ "sda", "sata", 1, 9000, 500000000, DBT_TIER_SSD, true },
		{ "sda", "sata", 0, 120, 150000000, DBT_TIER_HDD, true },
		{ "nvme0n1", "pcie", 0, 90, 50000000, DBT_TIER_HDD, true },
		/* The flag is right; slow flash stays what it is, a fast SATA disk no NVMe. */
		{ "sda", "sata", 1, 180, 150000000, DBT_TIER_HDD, true },
		{ "nvme0n1", "pcie", 0, 1100, 200000000, DBT_TIER_NVME, true },
		{ "sda", "sata", 0, 12000, 5000000000, DBT_TIER_SSD, true },
		{ "nvme0n1", "pcie", 0, 500, 0, DBT_TIER_NVME, false },
		/* A network stays a network. */
		{ "nvme0n1", "tcp", 0, 20000, 2000000000, DBT_TIER_NETWORK, false },
		{ "sda", "iscsi", 1, 100, 0, DBT_TIER_NETWORK, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dbt_speeds speeds = speeds_of(cases[i].iops, cases[i].stream);
		struct dbt_judgement j;
		struct hand h;

		hand_make(&h, cases[i].name, cases[i].tran, cases[i].rota);
		assert_int_equal(dbt_classify(&h.stack, &speeds, NULL, &j), 0);
		if (j.tier != cases[i].tier || j.by_probe != cases[i].by_probe)
			fail_msg("case %zu: %s", i, dbt_tier_name(j.tier));
		/* Both the measurement and the flag are shown, the measurement first. */
		assert_true(j.evidence.n >= 2);
		assert_non_null(strstr(j.evidence.items[0], "measured"));
		assert_non_null(strstr(j.evidence.items[1], cases[i].name));
		dbt_judgement_release(&j);
	}
}

static void a_disagreement_is_said(void **state)
{
	struct dbt_speeds speeds = speeds_of(9000, 0);
	struct dbt_judgement j;
	struct hand h;

	(void)state;
	hand_make(&h, "sda", "sata", 1);
	assert_int_equal(dbt_classify(&h.stack, &speeds, NULL, &j), 0);
	assert_non_null(strstr(j.evidence.items[0], "flags and drivers say hdd"));
	assert_non_null(j.note);
	assert_non_null(strstr(j.note, "measured as ssd"));
	dbt_judgement_release(&j);
}

static void an_unproved_measurement_counts_for_nothing(void **state)
{
	struct dbt_speeds speeds = speeds_of(250000, 9000000000);
	struct dbt_judgement j;
	struct hand h;

	(void)state;
	speeds.random1.proved = false;
	hand_make(&h, "sda", "sata", 1);
	assert_int_equal(dbt_classify(&h.stack, &speeds, NULL, &j), 0);
	assert_int_equal(j.tier, DBT_TIER_HDD);
	assert_false(j.by_probe);
	assert_null(strstr(j.evidence.items[0], "measured"));
	dbt_judgement_release(&j);
}

/* A disk answers from its own cache when all reads lie on a few tracks. */
static void a_small_span_does_not_make_a_disk_flash(void **state)
{
	struct dbt_speeds speeds = speeds_of(9000, 0);
	struct dbt_judgement j;
	struct hand h;

	(void)state;
	speeds.span_bytes = 8 << 20;
	hand_make(&h, "sda", "sata", 1);
	assert_int_equal(dbt_classify(&h.stack, &speeds, NULL, &j), 0);
	assert_int_equal(j.tier, DBT_TIER_HDD);
	assert_non_null(strstr(j.evidence.items[0], "does not decide"));
	dbt_judgement_release(&j);
}

/* Other people's work makes any SSD slow, and no disk fast: what was measured is the least that the device can
 * do, and what would be left without the others the most. Both must say the same. */
static void under_load_only_what_both_bounds_say(void **state)
{
	static const struct {
		const char *tran;
		int rota;
		double iops, load;
		enum dbt_tier tier;
		bool by_probe;
		const char *evidence; /* in one of the sentences */
	} cases[] = {
		{ "virtio", 1, 90, 0.6, DBT_TIER_UNKNOWN, false, "other work took 60 %" },
		{ "virtio", 1, 207, 0.3, DBT_TIER_UNKNOWN, false, "other work took 30 %" },
		{ "virtio", 1, 207, 0.2, DBT_TIER_HDD, true, "" },
		{ "virtio", 1, 350, 0.2, DBT_TIER_UNKNOWN, false, "may be faster" },
		{ "virtio", 1, 300, 0, DBT_TIER_HDD, true, "" },
		{ "virtio", 1, 1200, 0.9, DBT_TIER_SSD, true, "may be faster than ssd" },
		{ "virtio", 1, 1200, 0, DBT_TIER_SSD, true, "nvme begins at 800 MB/s" },
		{ "sata", 0, 90, 0.6, DBT_TIER_SSD, false, "does not decide" },
		{ "sata", 1, 30, 0.6, DBT_TIER_HDD, false, "does not decide" },
		{ "sata", 1, 9000, 0.6, DBT_TIER_SSD, true, "" },
		{ "pcie", 0, 9000, 0.6, DBT_TIER_NVME, true, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dbt_speeds speeds = speeds_of(cases[i].iops, 300000000);
		struct dbt_judgement j;
		bool said = false;
		struct hand h;

		speeds.load = cases[i].load;
		hand_make(&h, strcmp(cases[i].tran, "pcie") == 0 ? "nvme0n1" : "sda", cases[i].tran,
		          cases[i].rota);
		assert_int_equal(dbt_classify(&h.stack, &speeds, NULL, &j), 0);
		for (size_t k = 0; k < j.evidence.n; k++)
			said = said || strstr(j.evidence.items[k], cases[i].evidence);
		if (j.tier != cases[i].tier || j.by_probe != cases[i].by_probe || !said)
			fail_msg("case %zu: %s, by probe %d: %s", i, dbt_tier_name(j.tier),
			         j.by_probe, j.evidence.items[0]);
		dbt_judgement_release(&j);
	}
}

static void the_drive_itself_outranks_the_flag(void **state)
{
	struct dbt_judgement j;
	struct hand h;

	(void)state;
	hand_make(&h, "sda", "sata", 1);
	h.nodes[1].blk.rpm = 1;
	assert_int_equal(dbt_classify(&h.stack, NULL, NULL, &j), 0);
	assert_int_equal(j.tier, DBT_TIER_SSD);
	dbt_judgement_release(&j);
	hand_make(&h, "sda", "usb", 1);
	h.nodes[1].blk.rpm = 5400;
	assert_int_equal(dbt_classify(&h.stack, NULL, NULL, &j), 0);
	assert_int_equal(j.tier, DBT_TIER_HDD);
	assert_non_null(strstr(j.evidence.items[0], "5400 rpm"));
	dbt_judgement_release(&j);
}

/* A ladder of pairs has 2^30 paths from top to bottom: the text stays short, the time too. */
static void a_ladder_of_layers_ends(void **state)
{
	enum { RUNGS = 30 };
	static struct dbt_node nodes[2 * RUNGS];
	static size_t below[RUNGS][2];
	static char names[2 * RUNGS][8];
	struct dbt_stack stack = { .items = nodes, .n = 2 * RUNGS };
	struct dbt_judgement j;

	(void)state;
	for (size_t i = 0; i < 2 * RUNGS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "dm-%zu", i);
		nodes[i].blk = (struct dbt_blkdev){
			.name = names[i], .kind = DBT_BLK_DM, .rota = 1, .rpm = -1
		};
		if (i / 2 + 1 == RUNGS)
			continue;
		below[i / 2][0] = (i / 2 + 1) * 2;
		below[i / 2][1] = (i / 2 + 1) * 2 + 1;
		nodes[i].below = below[i / 2];
		nodes[i].n_below = 2;
	}
	assert_int_equal(dbt_classify(&stack, NULL, NULL, &j), 0);
	assert_int_equal(j.tier, DBT_TIER_UNKNOWN);
	assert_true(strlen(j.stack) < 8192);
	dbt_judgement_release(&j);
}

static void the_configuration_outranks_everything(void **state)
{
	static char what[][16] = { "/", "sda" }, where[] = "/etc/dbtier.conf, line 1";
	struct dbt_speeds speeds = speeds_of(90, 0);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct dbt_override item = { .what = what[i],
			                     .tier = DBT_TIER_NVME,
			                     .where = where };
		struct dbt_overrides overrides = { .items = &item, .n = 1 };
		struct dbt_judgement j;
		struct hand h;

		/* By name a disk is what the configuration says until it is measured. */
		hand_make(&h, "sda", "sata", 1);
		assert_int_equal(dbt_classify(&h.stack, i == 0 ? &speeds : NULL, &overrides, &j),
		                 0);
		assert_int_equal(j.tier, DBT_TIER_NVME);
		assert_false(j.by_probe);
		assert_non_null(strstr(j.evidence.items[0], "by configuration"));
		assert_non_null(strstr(j.evidence.items[0], where));
		dbt_judgement_release(&j);
	}
}

static void tiers_have_names_and_ranks(void **state)
{
	enum dbt_tier tier;

	(void)state;
	assert_int_equal(dbt_tier_parse("nvme", &tier), 0);
	assert_int_equal(tier, DBT_TIER_NVME);
	assert_true(dbt_tier_parse("floppy", &tier) < 0);
	assert_true(dbt_tier_rank(DBT_TIER_NVME) < dbt_tier_rank(DBT_TIER_SSD));
	assert_true(dbt_tier_rank(DBT_TIER_SSD) < dbt_tier_rank(DBT_TIER_HDD));
	assert_int_equal(dbt_tier_rank(DBT_TIER_UNKNOWN), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_measurement_outranks_flags),
		cmocka_unit_test(a_disagreement_is_said),
		cmocka_unit_test(an_unproved_measurement_counts_for_nothing),
		cmocka_unit_test(a_small_span_does_not_make_a_disk_flash),
		cmocka_unit_test(under_load_only_what_both_bounds_say),
		cmocka_unit_test(the_drive_itself_outranks_the_flag),
		cmocka_unit_test(a_ladder_of_layers_ends),
		cmocka_unit_test(the_configuration_outranks_everything),
		cmocka_unit_test(tiers_have_names_and_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
