// SPDX-License-Identifier: GPL-2.0
/* KUnit: the telemetry of a port (net/sched/color_int.c). */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/sched/color_ip.c"
#include "net/sched/color_int.c"

#define RATE	5000000000ull		/* 40 Gbit/s */
#define RTT	20000			/* ns: 100 kB */
#define LEN	1500

static struct color_int t;
static struct color_config cfg;

static int color_int_test_init(struct kunit *test)
{
	memset(&t, 0, sizeof(t));
	cfg = (struct color_config){ .rate = RATE, .int_rtt = RTT };
	color_int_set(&t, &cfg);
	return 0;
}

static void color_int_set__bandwidth_delay_product(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, t.bdp, 100000);
	cfg.rate = TC_COLOR_RATE_MAX;
	cfg.int_rtt = TC_COLOR_INT_RTT_MAX;
	color_int_set(&t, &cfg);
	KUNIT_EXPECT_EQ(test, t.bdp, TC_COLOR_RATE_MAX);
	cfg.rate = 1;
	cfg.int_rtt = TC_COLOR_INT_RTT_MIN;
	color_int_set(&t, &cfg);
	KUNIT_EXPECT_EQ(test, t.bdp, 1);
}

/* A fully used link sends B T bytes in the time T, a half used link half of that. */
static void color_int_utilisation__rate(struct kunit *test)
{
	u64 now = 1000000;
	int gap, i;

	for (gap = 300; gap <= 1200; gap *= 2) {
		for (i = 0; i < 10000; i++)
			color_int_sent(&t, now += gap, LEN);
		KUNIT_EXPECT_GE(test, color_int_utilisation(&t, 0), 1024 * 300 / gap - 2);
		/* the last packet counts in full */
		KUNIT_EXPECT_LE(test, color_int_utilisation(&t, 0), 1024 * 300 / gap + 16);
	}
	/* After the RTT without a packet no earlier byte counts. */
	color_int_sent(&t, now + RTT, LEN);
	KUNIT_EXPECT_EQ(test, t.sent, LEN);
	/* If a change of the rate has set the clock back, earlier bytes do not decay. */
	color_int_sent(&t, 5, LEN);
	KUNIT_EXPECT_EQ(test, t.sent, 2 * LEN);
	KUNIT_EXPECT_EQ(test, t.last, 5);
}

static void color_int_utilisation__queue(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, color_int_utilisation(&t, 0), 0);
	KUNIT_EXPECT_EQ(test, color_int_utilisation(&t, 100000), 1024);
	KUNIT_EXPECT_EQ(test, color_int_utilisation(&t, 50000), 512);
	KUNIT_EXPECT_EQ(test, color_int_utilisation(&t, 10000000), GL_INT_MAX);
	KUNIT_EXPECT_EQ(test, color_int_utilisation(&t, TC_COLOR_LIMIT_MAX), GL_INT_MAX);
}

static struct kunit_case color_int_cases[] = {
	KUNIT_CASE(color_int_set__bandwidth_delay_product),
	KUNIT_CASE(color_int_utilisation__rate),
	KUNIT_CASE(color_int_utilisation__queue),
	{}
};

static struct kunit_suite color_int_suite = {
	.name		= "color_int",
	.init		= color_int_test_init,
	.test_cases	= color_int_cases,
};

kunit_test_suite(color_int_suite);

MODULE_DESCRIPTION("KUnit tests of the color qdisc's telemetry");
MODULE_LICENSE("GPL");
