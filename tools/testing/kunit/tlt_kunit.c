// SPDX-License-Identifier: GPL-2.0
/* KUnit: the share of a connection in a crowd (net/ipv4/tlt_crowd.c). */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/ipv4/tlt_crowd.c"

#define TARGET	150U

/* By hand: the goal is halved with each 30 us above the target, and straight in between. */
static void tlt_crowd_goal__halves(struct kunit *test)
{
	static const struct { u32 queue, goal; } row[] = {
		{ 0, 1024 }, { 149, 1024 }, { 150, 1024 }, { 165, 768 }, { 180, 512 }, { 195, 384 },
		{ 210, 256 }, { 240, 128 }, { 270, 64 }, { 300, 32 }, { 330, 32 }, { 360, 32 },
		{ 1000000, 32 }, { U32_MAX, 32 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(row); i++)
		KUNIT_EXPECT_EQ_MSG(test, tlt_crowd_goal(row[i].queue, TARGET), row[i].goal,
				    "queue %u us", row[i].queue);
	/* A target below the steps, and none. */
	KUNIT_EXPECT_EQ(test, tlt_crowd_goal(3, 2), 512);
	KUNIT_EXPECT_EQ(test, tlt_crowd_goal(U32_MAX, U32_MAX), TLT_CROWD_WHOLE);
}

static void tlt_crowd_share__moves_half(struct kunit *test)
{
	/* Down, by half of the difference, ... */
	KUNIT_EXPECT_EQ(test, tlt_crowd_share(1024, 180, TARGET), 768);
	/* ... and up, by an eighth at most, ... */
	KUNIT_EXPECT_EQ(test, tlt_crowd_share(256, 180, TARGET), 256 + 33);
	KUNIT_EXPECT_EQ(test, tlt_crowd_share(500, 180, TARGET), 506);
	/* ... or to the double if the queue is almost empty. */
	KUNIT_EXPECT_EQ(test, tlt_crowd_share(100, 37, TARGET), 113);
	KUNIT_EXPECT_EQ(test, tlt_crowd_share(100, 36, TARGET), 200);
	KUNIT_EXPECT_EQ(test, tlt_crowd_share(1000, 0, TARGET), 1012);
}

/* Two connections with shares of 1 and 1/32 see the same queue. */
static void tlt_crowd_share__equal_soon(struct kunit *test)
{
	u32 a = TLT_CROWD_WHOLE, b = TLT_CROWD_LEAST, n;

	for (n = 0; a > b + b / 10; n++) {
		KUNIT_ASSERT_LT(test, n, 40);
		a = tlt_crowd_share(a, 200, TARGET);
		b = tlt_crowd_share(b, 200, TARGET);
	}
	KUNIT_EXPECT_LE(test, n, 25);
}

/* After any echo the share is within its limits; without a crowd it is soon one. */
static void tlt_crowd_share__limits(struct kunit *test)
{
	u32 queue, share, n;

	for (share = TLT_CROWD_LEAST; share <= TLT_CROWD_WHOLE; share++) {
		for (queue = 0; queue < 500; queue += 7) {
			u32 next = tlt_crowd_share(share, queue, TARGET);

			KUNIT_ASSERT_GE(test, next, TLT_CROWD_LEAST);
			KUNIT_ASSERT_LE(test, next, TLT_CROWD_WHOLE);
		}
	}
	share = TLT_CROWD_LEAST;
	for (n = 0; share < TLT_CROWD_WHOLE; n++)
		share = tlt_crowd_share(share, 0, U32_MAX);
	KUNIT_EXPECT_LE(test, n, 16);
}

static void tlt_crowd_wait__of_a_share(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(1024, 500), 0);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(512, 500), 500);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(256, 300), 900);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(32, 100), 3100);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(32, 400), TLT_CROWD_WAIT_MAX);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(32, U32_MAX), TLT_CROWD_WAIT_MAX);
}

static struct kunit_case tlt_cases[] = {
	KUNIT_CASE(tlt_crowd_goal__halves),
	KUNIT_CASE(tlt_crowd_share__moves_half),
	KUNIT_CASE(tlt_crowd_share__equal_soon),
	KUNIT_CASE(tlt_crowd_share__limits),
	KUNIT_CASE(tlt_crowd_wait__of_a_share),
	{}
};

static struct kunit_suite tlt_suite = {
	.name		= "tlt",
	.test_cases	= tlt_cases,
};

kunit_test_suite(tlt_suite);

MODULE_DESCRIPTION("KUnit tests of TLT");
MODULE_LICENSE("GPL");
