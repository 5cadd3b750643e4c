// SPDX-License-Identifier: GPL-2.0
/* KUnit: DCQCN's reaction point (net/ipv4/dcqcn_rate.c), against a trace computed by hand. */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/ipv4/dcqcn_rate.c"

/* A link of 10 Gbit/s, and increases with simple sums. */
static const struct dcqcn_params params = {
	.max = 1250000, .ai = 250, .hai = 2500, .counter = 10000000,
	.timer_us = 55, .alpha_us = 55, .g = 8, .fast = 5,
};

struct dcqcn_step {
	u32 at;			/* us */
	u32 bytes;		/* sent since the previous step */
	bool cut;		/* a notification arrives then */
	u32 cur;
	u32 target;
};

static const struct dcqcn_step trace[] = {
	/* alpha is 1: half */
	{ 1000, 0, true, 625000, 1250000 },
	/* alpha stays 1, because it grows by 1/256 of 1 - alpha: half again */
	{ 1050, 0, true, 312500, 625000 },
	/* not yet a period, and not enough bytes */
	{ 1104, 9999999, false, 312500, 625000 },
	/* a byte more is an event: halfway back to the target */
	{ 1104, 1, false, 468750, 625000 },
	/* and so is the 55th us: (468750 + 625000 + 1) / 2 */
	{ 1105, 0, false, 546875, 625000 },
	/* the second and third of time: 585938 (rounded up), 605469 */
	{ 1215, 0, false, 605469, 625000 },
	/* the fourth is still fast recovery: 615235 */
	{ 1270, 0, false, 615235, 625000 },
	/* the fifth is additive: target 625250, (615235 + 625250 + 1) / 2 */
	{ 1325, 0, false, 620243, 625250 },
	/* and so is the second of bytes, because time has had five:
	 * 625500, (620243 + 625500 + 1) / 2
	 */
	{ 1325, 10000000, false, 622872, 625500 },
	/* the sixth of time: 625750, 624311 */
	{ 1380, 0, false, 624311, 625750 },
	/* the third to fifth of bytes: 626000, 625156; 626250, 625703; 626500, 626102 */
	{ 1380, 30000000, false, 626102, 626500 },
	/* the sixth of bytes: six of both, one more than F, is hyper: 629000, 627551 */
	{ 1380, 10000000, false, 627551, 629000 },
	/* the seventh of time: the minimum is still 6: 631500, 629526 */
	{ 1435, 0, false, 629526, 631500 },
	/* the seventh of bytes: the minimum is 7, twice hai: 636500, 633013 */
	{ 1435, 10000000, false, 633013, 636500 },
	/* alpha has lost 1/256 seven times; see below for the value */
	{ 1440, 0, true, 325061, 633013 },
	/* and the events begin anew: fast recovery, (325061 + 633013 + 1) / 2 */
	{ 1495, 0, false, 479037, 633013 },
};

static void dcqcn_rate__by_hand(struct kunit *test)
{
	struct dcqcn_rate r;
	u32 alpha = DCQCN_ONE;
	int i;

	dcqcn_rate_init(&r, &params, 1000);
	KUNIT_EXPECT_EQ(test, r.cur, 1250000);
	for (i = 0; i < ARRAY_SIZE(trace); i++) {
		const struct dcqcn_step *step = &trace[i];

		dcqcn_rate_advance(&r, &params, step->at, step->bytes);
		if (step->cut)
			dcqcn_rate_cut(&r, &params, step->at);
		KUNIT_EXPECT_EQ_MSG(test, r.cur, step->cur, "rate, step %d", i);
		KUNIT_EXPECT_EQ_MSG(test, r.target, step->target, "target, step %d", i);
	}
	/* Seven periods from 1050 to 1435, a notification, and one to 1495:
	 * alpha = 1044723530 of 2^30 = 0.972975, so that 633013 (1 - 0.972975 / 2) = 325061
	 */
	for (i = 0; i < 7; i++)
		alpha -= alpha >> 8;
	KUNIT_EXPECT_EQ(test, 633013 - (u32)((u64)633013 * alpha / DCQCN_ONE / 2), 325061);
	alpha += (DCQCN_ONE - alpha) >> 8;
	KUNIT_EXPECT_EQ(test, r.alpha, alpha - (alpha >> 8));
}

/* One update after a long time and many in between have the same result. */
static void dcqcn_rate_advance__lazy(struct kunit *test)
{
	struct dcqcn_rate often, seldom;
	u32 now;

	dcqcn_rate_init(&often, &params, 0);
	dcqcn_rate_cut(&often, &params, 0);
	dcqcn_rate_cut(&often, &params, 0);
	seldom = often;
	for (now = 1; now <= 55 * 40; now++)
		dcqcn_rate_advance(&often, &params, now, 0);
	dcqcn_rate_advance(&seldom, &params, 55 * 40, 0);
	KUNIT_EXPECT_EQ(test, seldom.cur, often.cur);
	KUNIT_EXPECT_EQ(test, seldom.target, often.target);
	KUNIT_EXPECT_EQ(test, seldom.alpha, often.alpha);
	KUNIT_EXPECT_EQ(test, seldom.timers, 40);
}

/* More than DCQCN_PERIODS periods are computed at once, with the same result. */
static void long_pause(struct kunit *test, u8 fast, u32 periods)
{
	struct dcqcn_params p = params;
	struct dcqcn_rate often, seldom;
	u32 i;

	p.fast = fast;
	dcqcn_rate_init(&often, &p, 0);
	dcqcn_rate_cut(&often, &p, 0);
	dcqcn_rate_cut(&often, &p, 0);
	seldom = often;
	for (i = 1; i <= periods; i++)
		dcqcn_rate_advance(&often, &p, 55 * i, 0);
	dcqcn_rate_advance(&seldom, &p, 55 * periods, 0);
	KUNIT_EXPECT_EQ(test, seldom.target, often.target);
	KUNIT_EXPECT_LE(test, abs((int)(seldom.cur - often.cur)), 2);
	KUNIT_EXPECT_EQ(test, seldom.timer_at, often.timer_at);
	KUNIT_EXPECT_EQ(test, seldom.timers, often.timers);
	/* some 2500 steps lead from half of the maximum to all of it */
	dcqcn_rate_advance(&seldom, &p, 55 * 4000, 0);
	KUNIT_EXPECT_EQ(test, seldom.cur, p.max);
	KUNIT_EXPECT_EQ(test, seldom.target, p.max);
}

static void dcqcn_rate_advance__long_pause(struct kunit *test)
{
	long_pause(test, 5, 1000);
}

/* Fast recovery lasts longer than DCQCN_PERIODS, and the pause as long, or longer. */
static void dcqcn_rate_advance__long_recovery(struct kunit *test)
{
	long_pause(test, 100, 80);
	long_pause(test, 100, 99);
	long_pause(test, 100, 100);
	long_pause(test, 255, 1000);
}

/* A pause of more than an hour, and a clock that wraps around. */
static void dcqcn_rate_advance__wraps(struct kunit *test)
{
	struct dcqcn_rate r;

	dcqcn_rate_init(&r, &params, U32_MAX - 10);
	dcqcn_rate_cut(&r, &params, U32_MAX - 10);
	dcqcn_rate_advance(&r, &params, 43, 0);
	KUNIT_EXPECT_EQ(test, r.timers, 0);
	dcqcn_rate_advance(&r, &params, 44, 0);
	KUNIT_EXPECT_EQ(test, r.timers, 1);
	dcqcn_rate_advance(&r, &params, 44 - 1, U32_MAX);
	KUNIT_EXPECT_EQ(test, r.cur, params.max);
	KUNIT_EXPECT_LT(test, r.alpha, 256);
}

/* The rate has a floor, and alpha stays 1 at most. */
static void dcqcn_rate_cut__floor(struct kunit *test)
{
	struct dcqcn_rate r;
	int i;

	dcqcn_rate_init(&r, &params, 0);
	for (i = 0; i < 100; i++) {
		dcqcn_rate_cut(&r, &params, 0);
		KUNIT_EXPECT_LE(test, r.alpha, DCQCN_ONE);
		KUNIT_EXPECT_LE(test, r.cur, r.target);
	}
	/* 1250000 / 1024 + 1 */
	KUNIT_EXPECT_EQ(test, r.cur, 1221);
}

/* Fewer notifications make smaller cuts: alpha has decayed in between. */
static void dcqcn_rate_cut__alpha(struct kunit *test)
{
	struct dcqcn_rate r;

	dcqcn_rate_init(&r, &params, 0);
	/* (255/256)^2000 = 0.0004 */
	dcqcn_rate_advance(&r, &params, 55 * 2000, 0);
	dcqcn_rate_cut(&r, &params, 55 * 2000);
	KUNIT_EXPECT_GT(test, r.cur, params.max - 300);
	KUNIT_EXPECT_LT(test, r.cur, params.max);
	KUNIT_EXPECT_EQ(test, r.target, params.max);
}

static void dcqcn_rate_fit__line(struct kunit *test)
{
	struct dcqcn_params slow = params, fast = params;
	struct dcqcn_rate r;

	slow.max = 125000;
	fast.max = 2000000000;
	dcqcn_rate_init(&r, &params, 0);
	dcqcn_rate_fit(&r, &slow);
	KUNIT_EXPECT_EQ(test, r.cur, 125000);
	KUNIT_EXPECT_EQ(test, r.target, 125000);
	/* with a faster link the target does not change, and the rate rises to its new minimum */
	dcqcn_rate_fit(&r, &fast);
	KUNIT_EXPECT_EQ(test, r.target, 125000);
	KUNIT_EXPECT_EQ(test, r.cur, 2000000000 / 1024 + 1);
}

/* The extremes of net.ipv4.dcqcn_*: no overflow, and no rate above the maximum. */
static void dcqcn_rate__extremes(struct kunit *test)
{
	static const struct dcqcn_params extreme[] = {
		{ .max = 125, .ai = 1, .hai = 1, .counter = 65536, .timer_us = 1,
		  .alpha_us = 1, .g = 1, .fast = 1 },
		{ .max = 200000000, .ai = 200000000, .hai = 200000000, .counter = 1 << 30,
		  .timer_us = 1000000, .alpha_us = 1000000, .g = 10, .fast = 100 },
		{ .max = 200000000, .ai = 1, .hai = 200000000, .counter = 65536,
		  .timer_us = 1, .alpha_us = 1, .g = 10, .fast = 1 },
	};
	u32 now = 0;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(extreme); i++) {
		const struct dcqcn_params *p = &extreme[i];
		struct dcqcn_rate r;

		dcqcn_rate_init(&r, p, now);
		for (k = 0; k < 200; k++) {
			u32 step = 1U << (k % 32);

			now += step;
			dcqcn_rate_advance(&r, p, now, step);
			KUNIT_EXPECT_LE(test, r.cur, p->max);
			KUNIT_EXPECT_LE(test, r.target, p->max);
			if (k % 3 == 0)
				dcqcn_rate_cut(&r, p, now);
			KUNIT_EXPECT_GE(test, r.cur, dcqcn_rate_least(p));
			KUNIT_EXPECT_LE(test, r.alpha, DCQCN_ONE);
		}
	}
}

static struct kunit_case dcqcn_rate_cases[] = {
	KUNIT_CASE(dcqcn_rate__by_hand),
	KUNIT_CASE(dcqcn_rate_advance__lazy),
	KUNIT_CASE(dcqcn_rate_advance__long_pause),
	KUNIT_CASE(dcqcn_rate_advance__long_recovery),
	KUNIT_CASE(dcqcn_rate_advance__wraps),
	KUNIT_CASE(dcqcn_rate_cut__floor),
	KUNIT_CASE(dcqcn_rate_cut__alpha),
	KUNIT_CASE(dcqcn_rate_fit__line),
	KUNIT_CASE(dcqcn_rate__extremes),
	{}
};

static struct kunit_suite dcqcn_rate_suite = {
	.name		= "dcqcn_rate",
	.test_cases	= dcqcn_rate_cases,
};

kunit_test_suite(dcqcn_rate_suite);

MODULE_DESCRIPTION("KUnit tests of DCQCN's reaction point");
MODULE_LICENSE("GPL");
