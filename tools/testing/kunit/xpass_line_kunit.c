// SPDX-License-Identifier: GPL-2.0
/* KUnit: the clock of a host's link (net/ipv4/xpass_line.h). */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/ipv4/xpass_line.h"

#define NOW	1000000
#define COST	1000

static atomic64_t line;

static int xpass_line_test_init(struct kunit *test)
{
	atomic64_set(&line, 0);
	return 0;
}

static s64 line_free(void)
{
	return atomic64_read(&line);
}

/* An idle link's queue takes 8 credits at once, as §3.2 has it, and drops the ninth. */
static void xpass_line_takes__a_queue(struct kunit *test)
{
	int i;

	for (i = 1; i <= XPASS_QUEUE; i++) {
		KUNIT_EXPECT_TRUE(test, xpass_line_takes(&line, NOW, COST, COST));
		KUNIT_EXPECT_EQ(test, line_free(), NOW + i * COST);
	}
	KUNIT_EXPECT_EQ(test, XPASS_QUEUE, 8);
	KUNIT_EXPECT_FALSE(test, xpass_line_takes(&line, NOW, COST, COST));
	KUNIT_EXPECT_EQ(test, line_free(), NOW + 8 * COST);
	/* One credit is through, and not a nanosecond before. */
	KUNIT_EXPECT_FALSE(test, xpass_line_takes(&line, NOW + COST - 1, COST, COST));
	KUNIT_EXPECT_TRUE(test, xpass_line_takes(&line, NOW + COST, COST, COST));
	KUNIT_EXPECT_FALSE(test, xpass_line_takes(&line, NOW + COST, COST, COST));
}

/* An idle time earns no credits beyond the queue. */
static void xpass_line_takes__idle(struct kunit *test)
{
	int taken = 0;

	KUNIT_EXPECT_TRUE(test, xpass_line_takes(&line, NOW, COST, COST));
	while (xpass_line_takes(&line, 100 * NOW, COST, COST))
		taken++;
	KUNIT_EXPECT_EQ(test, taken, XPASS_QUEUE);
	KUNIT_EXPECT_EQ(test, line_free(), 100 * NOW + 8 * COST);
}

/* The queue holds time: next to packets of six times the size, small ones have no less room. */
static void xpass_line_takes__sizes(struct kunit *test)
{
	const u64 large = 6 * COST;

	while (xpass_line_takes(&line, NOW, large, large))
		;
	KUNIT_EXPECT_EQ(test, line_free(), NOW + 8 * large);
	KUNIT_EXPECT_FALSE(test, xpass_line_takes(&line, NOW + large - 1, COST, large));
	KUNIT_EXPECT_TRUE(test, xpass_line_takes(&line, NOW + large, COST, large));
	KUNIT_EXPECT_EQ(test, line_free(), NOW + 8 * large + COST);
	/* Neither of them has now. */
	KUNIT_EXPECT_FALSE(test, xpass_line_takes(&line, NOW + large, COST, large));
	KUNIT_EXPECT_FALSE(test, xpass_line_takes(&line, NOW + large, large, large));
}

/* In the long run the link carries what it can: one credit a COST. */
static void xpass_line_takes__rate(struct kunit *test)
{
	int i, taken = 0;

	for (i = 0; i < 1000 * COST; i += 10)
		taken += xpass_line_takes(&line, NOW + i, COST, COST);
	KUNIT_EXPECT_EQ(test, taken, 1000 + XPASS_QUEUE - 1);
}

/* ACKs take room from credits. */
static void xpass_line_yields__busy(struct kunit *test)
{
	int i;

	while (xpass_line_takes(&line, NOW, COST, COST))
		;
	xpass_line_yields(&line, NOW, COST / 2);
	KUNIT_EXPECT_EQ(test, line_free(), NOW + 8 * COST + COST / 2);
	KUNIT_EXPECT_FALSE(test, xpass_line_takes(&line, NOW + COST, COST, COST));
	KUNIT_EXPECT_TRUE(test, xpass_line_takes(&line, NOW + 3 * COST / 2, COST, COST));
	/* The clock is not more than 256 ACKs ahead. */
	for (i = 0; i < 1000; i++)
		xpass_line_yields(&line, NOW, COST);
	KUNIT_EXPECT_GE(test, line_free(), NOW + 256 * COST);
	KUNIT_EXPECT_LT(test, line_free(), NOW + 257 * COST);
}

/* While the link is idle there is room anyway: credits do not feel it. */
static void xpass_line_yields__idle(struct kunit *test)
{
	int taken = 0;

	xpass_line_yields(&line, NOW, COST);
	KUNIT_EXPECT_EQ(test, line_free(), COST);
	while (xpass_line_takes(&line, NOW, COST, COST))
		taken++;
	KUNIT_EXPECT_EQ(test, taken, XPASS_QUEUE);
}

static struct kunit_case xpass_line_cases[] = {
	KUNIT_CASE(xpass_line_takes__a_queue),
	KUNIT_CASE(xpass_line_takes__idle),
	KUNIT_CASE(xpass_line_takes__sizes),
	KUNIT_CASE(xpass_line_takes__rate),
	KUNIT_CASE(xpass_line_yields__busy),
	KUNIT_CASE(xpass_line_yields__idle),
	{}
};

static struct kunit_suite xpass_line_suite = {
	.name		= "xpass_line",
	.init		= xpass_line_test_init,
	.test_cases	= xpass_line_cases,
};

kunit_test_suite(xpass_line_suite);

MODULE_DESCRIPTION("KUnit tests of the clock of xpass's link");
MODULE_LICENSE("GPL");
