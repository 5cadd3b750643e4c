// SPDX-License-Identifier: GPL-2.0
/* KUnit: HPCC's window (net/ipv4/hpcc_window.c), against a trace computed by hand. */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/ipv4/hpcc_window.c"

#define ONE		1024		/* a full link without a queue */
#define HIGHEST		0x7fff

/* 8 Gbit/s and 10 us are 10,000 bytes.  With a target of 3/4 all sums are exact, and the additive
 * increase is a quarter of that divided by 100: 25 bytes.
 */
static void simple(struct hpcc_params *p, bool average)
{
	*p = (struct hpcc_params) { .stages = 2, .average = average };
	hpcc_params_set(p, 8000, 10, 75, 100);
}

static void hpcc_params_set__units(struct kunit *test)
{
	struct hpcc_params p;

	simple(&p, false);
	KUNIT_EXPECT_EQ(test, p.init, 10000 << HPCC_SHIFT);
	KUNIT_EXPECT_EQ(test, p.ai, 25 << HPCC_SHIFT);
	KUNIT_EXPECT_EQ(test, p.rtt, 10000);
	KUNIT_EXPECT_EQ(test, p.eta, 3 << 18);
	/* The paper's: 100 Gbit/s, 13 us, W_AI = 80 bytes (81.25). */
	hpcc_params_set(&p, 100000, 13, 95, 100);
	KUNIT_EXPECT_EQ(test, p.init, 162500 << HPCC_SHIFT);
	KUNIT_EXPECT_EQ(test, p.ai, (81 << HPCC_SHIFT) + 64);
	/* No increase is 0, and an RTT of 0 or of hours is limited. */
	hpcc_params_set(&p, 1, 0, 100, 100000);
	KUNIT_EXPECT_EQ(test, p.ai, 1);
	KUNIT_EXPECT_EQ(test, p.rtt, 1000);
	hpcc_params_set(&p, 1, U32_MAX, 95, 1);
	KUNIT_EXPECT_EQ(test, p.rtt, HPCC_RTT_MAX);
}

struct hpcc_step {
	u32 util;		/* 2^-10 */
	bool update;
	u32 now;		/* 2^-8 bytes */
	u32 base;
	u16 stage;
};

#define BYTES(n)	((u32)((n) * 256))

static const struct hpcc_step trace[] = {
	/* 10000 * 0.75 / 2 + 25 */
	{ 2 * ONE, true, BYTES(3775), BYTES(3775), 0 },
	/* in the same round trip, from the same base: 3775 * 0.75 / 1 + 25 */
	{ ONE, false, 731200, BYTES(3775), 0 },
	/* below the target: 3775 + 25 */
	{ ONE / 2, false, BYTES(3800), BYTES(3775), 0 },
	{ ONE / 2, true, BYTES(3800), BYTES(3800), 1 },
	{ ONE / 2, true, BYTES(3825), BYTES(3825), 2 },
	/* both stages are over: 3825 * 0.75 / 0.5 + 25; without an update they stay over */
	{ ONE / 2, false, 1475200, BYTES(3825), 2 },
	{ ONE / 2, true, 1475200, 1475200, 0 },
	{ ONE / 2, true, 1481600, 1481600, 1 },
	/* the target itself multiplies, by 1, and begins the stages anew */
	{ 3 * ONE / 4, true, 1488000, 1488000, 0 },
	/* an idle path: two stages, then 768-fold, which is limited to 4 * 10000 */
	{ 1, true, 1494400, 1494400, 1 },
	{ 1, true, 1500800, 1500800, 2 },
	{ 1, true, BYTES(40000), BYTES(40000), 0 },
	/* 0 counts as 1 */
	{ 0, true, BYTES(40000), BYTES(40000), 1 },
	/* the maximum: 40000 * 256 * 0.75 * 1024 / 32767 + 25 * 256 = 240007 + 6400 */
	{ HIGHEST, true, 246407, 246407, 0 },
};

static void hpcc_window_sample__by_hand(struct kunit *test)
{
	struct hpcc_params p;
	struct hpcc_window w;
	int i;

	simple(&p, false);
	hpcc_window_init(&w, &p);
	KUNIT_EXPECT_EQ(test, hpcc_window_bytes(&w), 10000);
	for (i = 0; i < ARRAY_SIZE(trace); i++) {
		const struct hpcc_step *step = &trace[i];

		hpcc_window_sample(&w, &p, step->util, 1000 * i, step->update);
		KUNIT_EXPECT_EQ_MSG(test, w.now, step->now, "window, step %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.base, step->base, "base, step %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.stage, step->stage, "stage, step %d", i);
	}
}

/* U = (1 - tau/T) U + tau/T u */
static void hpcc_window_sample__average(struct kunit *test)
{
	struct hpcc_params p;
	struct hpcc_window w;

	simple(&p, true);
	hpcc_window_init(&w, &p);
	/* the first sample counts in full */
	hpcc_window_sample(&w, &p, 2 * ONE, 1, true);
	KUNIT_EXPECT_EQ(test, w.util, 2 << 20);
	/* a quarter of T later, a quarter of it: 0.75 * 2 + 0.25 * 1 */
	hpcc_window_sample(&w, &p, ONE, 2501, false);
	KUNIT_EXPECT_EQ(test, w.util, 7 << 18);
	KUNIT_EXPECT_EQ(test, w.now, 420571);	/* 3775 * 256 * 3 / 7 + 25 * 256 */
	/* at the same time, or before (other CPU), nothing */
	hpcc_window_sample(&w, &p, HIGHEST, 2501, false);
	hpcc_window_sample(&w, &p, HIGHEST, 2400, false);
	KUNIT_EXPECT_EQ(test, w.util, 7 << 18);
	/* T later and after any longer time, all of it */
	hpcc_window_sample(&w, &p, ONE / 2, 12501, false);
	KUNIT_EXPECT_EQ(test, w.util, 1 << 19);
	hpcc_window_sample(&w, &p, ONE, NSEC_PER_SEC * 5000, false);
	KUNIT_EXPECT_EQ(test, w.util, 1 << 20);
}

/* The highest utilisation in each packet leaves a window, and W_AI keeps it above the minimum. */
static void hpcc_window_sample__forged(struct kunit *test)
{
	struct hpcc_params p;
	struct hpcc_window w;
	int i;

	simple(&p, true);
	hpcc_window_init(&w, &p);
	for (i = 0; i < 1000; i++)
		hpcc_window_sample(&w, &p, HIGHEST, 100000 * i, true);
	KUNIT_EXPECT_EQ(test, hpcc_window_bytes(&w), 25);
	KUNIT_EXPECT_EQ(test, hpcc_window_packets(&w, 1538), 1);
	hpcc_params_set(&p, 8000, 10, 100, 100000);
	for (i = 0; i < 1000; i++)
		hpcc_window_sample(&w, &p, HIGHEST, 100000 * i, true);
	KUNIT_EXPECT_EQ(test, w.now, (10000 << HPCC_SHIFT) / HPCC_SHARES + 1);
	/* It recovers in the round trips of a few multiplications. */
	for (i = 0; i < 12; i++)
		hpcc_window_sample(&w, &p, ONE / 16, 200000000 + 100000 * i, true);
	KUNIT_EXPECT_EQ(test, hpcc_window_bytes(&w), 40000);
}

/* All rates and round-trip times, with all utilisations: no overflow. */
static void hpcc_window_sample__range(struct kunit *test)
{
	static const u32 mbit[] = { 1, 10, 1000, 10000, 400000, 1600000 };
	static const u32 rtt[] = { 1, 10, 1000, 1000000 };
	static const u32 util[] = { 0, 1, ONE, HIGHEST };
	struct hpcc_window w;
	int i, j, k, n;

	for (i = 0; i < ARRAY_SIZE(mbit); i++)
		for (j = 0; j < ARRAY_SIZE(rtt); j++)
			for (k = 0; k < ARRAY_SIZE(util); k++) {
				struct hpcc_params p = { .stages = 5, .average = k & 1 };
				u64 line = mbit[i] * 125000ULL;

				hpcc_params_set(&p, mbit[i], rtt[j], 95, 1);
				hpcc_window_init(&w, &p);
				KUNIT_EXPECT_EQ(test, hpcc_window_rate(&w, &p), line);
				for (n = 0; n < 20; n++)
					hpcc_window_sample(&w, &p, util[k], n * 2000000000ULL,
							   true);
				KUNIT_EXPECT_LE(test, hpcc_window_rate(&w, &p), 4 * line);
				KUNIT_EXPECT_GE(test, hpcc_window_rate(&w, &p), line / 4096);
				if (util[k] < ONE)
					KUNIT_EXPECT_EQ(test, w.now, 4 * p.init);
				else
					KUNIT_EXPECT_LT(test, w.now, 2 * p.init);
			}
}

static void hpcc_window_timeout__one_packet(struct kunit *test)
{
	struct hpcc_params p;
	struct hpcc_window w;

	simple(&p, true);
	hpcc_window_init(&w, &p);
	hpcc_window_sample(&w, &p, ONE, 1, true);
	hpcc_window_timeout(&w, &p, 1538);
	KUNIT_EXPECT_EQ(test, hpcc_window_bytes(&w), 1538);
	/* the next sample counts in full and multiplies: 1538 * 0.75 / 0.5 + 25 */
	hpcc_window_sample(&w, &p, ONE / 2, 2, true);
	KUNIT_EXPECT_EQ(test, hpcc_window_bytes(&w), 2332);
	/* a timeout does not make a smaller window larger */
	w.base = 100 << HPCC_SHIFT;
	hpcc_window_timeout(&w, &p, 1538);
	KUNIT_EXPECT_EQ(test, hpcc_window_bytes(&w), 100);
}

static void hpcc_window_packets__round_up(struct kunit *test)
{
	struct hpcc_window w = { .now = 3000 << HPCC_SHIFT };

	KUNIT_EXPECT_EQ(test, hpcc_window_packets(&w, 1500), 2);
	KUNIT_EXPECT_EQ(test, hpcc_window_packets(&w, 1499), 3);
	KUNIT_EXPECT_EQ(test, hpcc_window_packets(&w, 9000), 1);
	w.now = 0;
	KUNIT_EXPECT_EQ(test, hpcc_window_packets(&w, 1500), 1);
}

/* A link that has become slower. */
static void hpcc_window_fit__limits(struct kunit *test)
{
	struct hpcc_params p;
	struct hpcc_window w;

	simple(&p, true);
	hpcc_window_init(&w, &p);
	hpcc_params_set(&p, 800, 10, 75, 100);
	hpcc_window_fit(&w, &p);
	KUNIT_EXPECT_EQ(test, hpcc_window_bytes(&w), 4000);
	KUNIT_EXPECT_EQ(test, hpcc_window_rate(&w, &p), 400000000);
}

static struct kunit_case hpcc_cases[] = {
	KUNIT_CASE(hpcc_params_set__units),
	KUNIT_CASE(hpcc_window_sample__by_hand),
	KUNIT_CASE(hpcc_window_sample__average),
	KUNIT_CASE(hpcc_window_sample__forged),
	KUNIT_CASE(hpcc_window_sample__range),
	KUNIT_CASE(hpcc_window_timeout__one_packet),
	KUNIT_CASE(hpcc_window_packets__round_up),
	KUNIT_CASE(hpcc_window_fit__limits),
	{}
};

static struct kunit_suite hpcc_suite = {
	.name = "hpcc",
	.test_cases = hpcc_cases,
};

kunit_test_suite(hpcc_suite);

MODULE_DESCRIPTION("Tests of HPCC's window");
MODULE_LICENSE("GPL");
