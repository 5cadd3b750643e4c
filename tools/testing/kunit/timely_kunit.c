// SPDX-License-Identifier: GPL-2.0
/* KUnit: TIMELY's rate (net/ipv4/timely_rate.c), against a trace computed by hand. */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/ipv4/timely_rate.c"

/* A link of 8 Gbit/s.  With alpha 1/2 and beta 4/5 all sums but a few are exact. */
static const struct timely_params params = {
	.max = 1000000, .delta = 1000, .t_low = 50, .t_high = 500, .min_rtt = 20,
	.alpha = 500, .beta = 800,
};

struct timely_step {
	u32 rtt;		/* us */
	u32 cur;
	s32 diff;		/* 2^-10 us */
};

#define US(n)	((s32)((n) * 1024))

static const struct timely_step trace[] = {
	/* below t_low: the maximum, less than which the rate is only after a decrease */
	{ 40, 1000000, 0 },
	/* still below t_low, although the gradient is positive: half of 8 us */
	{ 48, 1000000, US(4) },
	/* half of 4, and half of 8: 6.  A gradient of 6/20: 1 - 0.8 * 0.3 = 0.76; 0.24 is rounded
	 * down to 251658 of 2^20, and the cut with it
	 */
	{ 56, 760001, US(6) },
	/* 3 - 3: the gradient is 0, and the rate increases: the first time */
	{ 50, 761001, US(0) },
	/* exactly t_high is not above it: half of 450 is 225, a gradient of 11: half, at most */
	{ 500, 380501, US(225) },
	/* above t_high: 112.5 + 62.5.  1 - 0.8 (1 - 500/625) = 0.84, 0.16 of 380501 is 60880 */
	{ 625, 319621, US(175) },
	/* 87.5 - 62; 1 - 0.8 (1 - 500/501), 510 of 319621 */
	{ 501, 319111, US(25.5) },
	/* not above t_high, and falling, for the first time in a row: 12.75 - 25.5 */
	{ 450, 320111, US(-12.75) },
	{ 425, 321111, US(-18.875) },
	{ 400, 322111, US(-21.9375) },
	{ 375, 323111, US(-23.46875) },
	/* the fifth in a row: 5 steps, and so on */
	{ 350, 328111, -24816 },
	{ 325, 333111, -25208 },
	/* below t_low it is one step, and at t_low five again: the average still falls */
	{ 49, 334111, -153916 },
	{ 50, 339111, -76446 },
};

static void timely_rate_sample__by_hand(struct kunit *test)
{
	struct timely_rate r;
	int i;

	timely_rate_init(&r, &params, 1);
	KUNIT_EXPECT_EQ(test, r.cur, 1000000);
	for (i = 0; i < ARRAY_SIZE(trace); i++) {
		timely_rate_sample(&r, &params, trace[i].rtt);
		KUNIT_EXPECT_EQ_MSG(test, r.cur, trace[i].cur, "rate, step %d", i);
		KUNIT_EXPECT_EQ_MSG(test, r.diff, trace[i].diff, "average, step %d", i);
	}
}

/* A positive gradient ends the hyperactive increase. */
static void timely_rate_sample__hai_ends(struct kunit *test)
{
	struct timely_rate r;
	int i;

	timely_rate_init(&r, &params, 10);
	for (i = 1; i <= 4; i++)
		timely_rate_sample(&r, &params, 100);
	KUNIT_EXPECT_EQ(test, r.cur, 104000);
	timely_rate_sample(&r, &params, 100);
	KUNIT_EXPECT_EQ(test, r.cur, 109000);
	/* 0.5 us of 20, 1 - 0.8 / 40: 2180, less a fraction */
	timely_rate_sample(&r, &params, 101);
	KUNIT_EXPECT_EQ(test, r.cur, 106821);
	/* the average is negative at once: 0.25 - 1 */
	timely_rate_sample(&r, &params, 99);
	KUNIT_EXPECT_EQ(test, r.cur, 107821);
	for (i = 1; i <= 3; i++)
		timely_rate_sample(&r, &params, 99);
	KUNIT_EXPECT_EQ(test, r.cur, 110821);
	timely_rate_sample(&r, &params, 99);
	KUNIT_EXPECT_EQ(test, r.cur, 115821);
}

/* The average returns to 0 when the RTT is constant, whatever the weight, and HAI follows. */
static void timely_rate_sample__constant(struct kunit *test)
{
	static const u16 alpha[] = { 1, 500, 875, 999, 1000 };
	struct timely_params p = params;
	struct timely_rate r;
	int i, k;

	for (k = 0; k < ARRAY_SIZE(alpha); k++) {
		p.alpha = alpha[k];
		timely_rate_init(&r, &p, 2);
		timely_rate_sample(&r, &p, 100);
		timely_rate_sample(&r, &p, 101);
		for (i = 0; i < 5000; i++)
			timely_rate_sample(&r, &p, 101);
		KUNIT_EXPECT_LE_MSG(test, r.diff, 0, "alpha %u", alpha[k]);
		KUNIT_EXPECT_EQ_MSG(test, r.falling, 5, "alpha %u", alpha[k]);
	}
}

/* N active flows: C / (N + 1). */
static void timely_rate_init__flows(struct kunit *test)
{
	struct timely_rate r;

	timely_rate_init(&r, &params, 3);
	KUNIT_EXPECT_EQ(test, r.cur, 333333);
	KUNIT_EXPECT_EQ(test, r.rtt, 0);
	timely_rate_init(&r, &params, 1000000);
	KUNIT_EXPECT_EQ(test, r.cur, 977);	/* 1000000 / 1024 + 1 */
}

/* Both limits, and the minimum of slow links: 150 kB/s, or less if the link has less. */
static void timely_rate__limits(struct kunit *test)
{
	struct timely_params p = params;
	struct timely_rate r;
	int i;

	timely_rate_init(&r, &p, 1);
	for (i = 1; i <= 20; i++)
		timely_rate_sample(&r, &p, TIMELY_RTT_MAX);
	KUNIT_EXPECT_EQ(test, r.cur, 977);
	for (i = 1; i <= 2000; i++)
		timely_rate_sample(&r, &p, 10);
	KUNIT_EXPECT_EQ(test, r.cur, 1000000);
	p.max = 12500;
	timely_rate_fit(&r, &p);
	KUNIT_EXPECT_EQ(test, r.cur, 12500);
	for (i = 1; i <= 20; i++)
		timely_rate_sample(&r, &p, TIMELY_RTT_MAX);
	KUNIT_EXPECT_EQ(test, r.cur, 150);
	p.max = 125;
	timely_rate_fit(&r, &p);
	KUNIT_EXPECT_EQ(test, r.cur, 125);
	timely_rate_sample(&r, &p, TIMELY_RTT_MAX);
	KUNIT_EXPECT_EQ(test, r.cur, 125);
}

/* An RTT of 0 us counts as 1, and one of hours as a second. */
static void timely_rate_sample__range(struct kunit *test)
{
	struct timely_rate r;

	timely_rate_init(&r, &params, 1);
	timely_rate_sample(&r, &params, 0);
	KUNIT_EXPECT_EQ(test, r.rtt, 1);
	timely_rate_sample(&r, &params, U32_MAX);
	KUNIT_EXPECT_EQ(test, r.rtt, TIMELY_RTT_MAX);
	KUNIT_EXPECT_EQ(test, r.diff, US(999999) / 2);
	timely_rate_sample(&r, &params, 0);
	KUNIT_EXPECT_EQ(test, r.diff, US(-999999) / 4);
}

/* The extremes of net.ipv4.timely_*: no overflow, and no rate beyond the limits. */
static void timely_rate__extremes(struct kunit *test)
{
	static const struct timely_params extreme[] = {
		{ .max = 125, .delta = 1, .min_rtt = 1, .alpha = 1, .beta = 0 },
		{ .max = 200000000, .delta = 200000000, .t_low = 1000000, .t_high = 1000000,
		  .min_rtt = 1000000, .alpha = 1000, .beta = 1000 },
		{ .max = 200000000, .delta = 1, .min_rtt = 1, .alpha = 1000, .beta = 1000 },
		{ .max = 200000000, .delta = 1, .t_high = 1000000, .min_rtt = 1, .alpha = 1000,
		  .beta = 1000 },
		{ .max = 200000000, .delta = 1, .t_high = 1000000, .min_rtt = 1000000,
		  .alpha = 1000, .beta = 1000 },
	};
	int i, k;

	for (i = 0; i < ARRAY_SIZE(extreme); i++) {
		const struct timely_params *p = &extreme[i];
		struct timely_rate r;

		timely_rate_init(&r, p, 1);
		for (k = 0; k < 200; k++) {
			u32 before = r.cur;

			timely_rate_sample(&r, p, k & 1 ? 1U << (k % 21) : 1);
			KUNIT_EXPECT_LE(test, r.cur, p->max);
			KUNIT_EXPECT_GE(test, r.cur, timely_rate_least(p));
			KUNIT_EXPECT_GE(test, r.cur, before / 2);
			KUNIT_EXPECT_LE(test, abs(r.diff), US(TIMELY_RTT_MAX));
		}
	}
}

static struct kunit_case timely_cases[] = {
	KUNIT_CASE(timely_rate_sample__by_hand),
	KUNIT_CASE(timely_rate_sample__hai_ends),
	KUNIT_CASE(timely_rate_sample__constant),
	KUNIT_CASE(timely_rate_init__flows),
	KUNIT_CASE(timely_rate__limits),
	KUNIT_CASE(timely_rate_sample__range),
	KUNIT_CASE(timely_rate__extremes),
	{}
};

static struct kunit_suite timely_suite = {
	.name = "timely",
	.test_cases = timely_cases,
};

kunit_test_suite(timely_suite);

MODULE_DESCRIPTION("KUnit tests of TIMELY's rate");
MODULE_LICENSE("GPL");
