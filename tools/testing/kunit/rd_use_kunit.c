// SPDX-License-Identifier: GPL-2.0
/* KUnit: whether a sender uses its credits (net/greenlane/rd_use.c). */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/greenlane/rd_use.c"

#define COST	1000ULL

static struct rd_use use;

static int rd_use_test_init(struct kunit *test)
{
	use = (struct rd_use) {};
	return 0;
}

/* The sender reports @granted credits; @arrived packets have arrived since the last report. */
static bool report(u32 granted, u32 arrived)
{
	return rd_use_report(&use, granted, use.segs + arrived);
}

/* Each report halves the share of a sender that uses no credits, down to the lowest. */
static void rd_use_report__nothing_arrives(struct kunit *test)
{
	int i;

	KUNIT_EXPECT_FALSE(test, report(RD_USE_MIN - 1, 0));
	KUNIT_EXPECT_EQ(test, use.low, 0);
	report(1, 0);
	KUNIT_EXPECT_EQ(test, use.low, 1);
	/* With a reduced share each report counts. */
	for (i = 2; i < 2 * RD_USE_LOW; i++) {
		KUNIT_EXPECT_FALSE(test, report(1, 0));
		KUNIT_EXPECT_EQ(test, use.low, min(i, RD_USE_LOW));
	}
}

static void rd_use_report__half_is_enough(struct kunit *test)
{
	report(100, 50);
	KUNIT_EXPECT_EQ(test, use.low, 0);
	report(100, 49);
	KUNIT_EXPECT_EQ(test, use.low, 1);
	/* Data that is a report late does not harm ... */
	use.low = 0;
	report(10, 2);
	report(10, 18);
	KUNIT_EXPECT_EQ(test, use.low, 0);
	/* ... and unscheduled data before does not help. */
	report(0, 1000);
	report(16, 0);
	KUNIT_EXPECT_EQ(test, use.low, 1);
}

static void rd_use_report__used_again(struct kunit *test)
{
	u64 sum = 0;
	int n = 0;

	use.low = RD_USE_LOW;
	while (use.low) {
		KUNIT_EXPECT_TRUE(test, report(1, 1));
		if (use.low)
			sum += rd_use_gap(&use, 0, COST);
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, 4);
	KUNIT_EXPECT_EQ(test, sum, (64 + 8 + 2) * COST);
	KUNIT_EXPECT_FALSE(test, report(1, 1));
}

/* The number of packets wraps around. */
static void rd_use_report__wraps(struct kunit *test)
{
	use.segs = U16_MAX - 7;
	report(16, 16);
	KUNIT_EXPECT_EQ(test, use.segs, 8);
	KUNIT_EXPECT_EQ(test, use.low, 0);
}

static void rd_use_gap__bounds(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rd_use_gap(&use, 123, COST), 123);
	use.low = 3;
	KUNIT_EXPECT_EQ(test, rd_use_gap(&use, 123, COST), 8 * COST);
	KUNIT_EXPECT_EQ(test, rd_use_gap(&use, 9 * COST, COST), 9 * COST);
	use.low = RD_USE_LOW;
	KUNIT_EXPECT_EQ(test, rd_use_gap(&use, 0, 100 * COST), RD_USE_GAP);
	KUNIT_EXPECT_EQ(test, rd_use_gap(&use, 0, 2 * RD_USE_GAP), 2 * RD_USE_GAP);
}

static struct kunit_case rd_use_cases[] = {
	KUNIT_CASE(rd_use_report__nothing_arrives),
	KUNIT_CASE(rd_use_report__half_is_enough),
	KUNIT_CASE(rd_use_report__used_again),
	KUNIT_CASE(rd_use_report__wraps),
	KUNIT_CASE(rd_use_gap__bounds),
	{}
};

static struct kunit_suite rd_use_suite = {
	.name		= "rd_use",
	.init		= rd_use_test_init,
	.test_cases	= rd_use_cases,
};

kunit_test_suite(rd_use_suite);

MODULE_DESCRIPTION("KUnit tests of senders' use of credits");
MODULE_LICENSE("GPL");
