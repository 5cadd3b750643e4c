// SPDX-License-Identifier: GPL-2.0
/* KUnit: the wait of a crowd's connections (net/ipv4/tlt_crowd.c). */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/ipv4/tlt_crowd.c"

#define TARGET	150U

#define US	1000U
#define NS_MAX	(10000 * US)

/* By hand: 75 us, and the root of 9.375 us and the wait. */
static void tlt_crowd_goal__increases(struct kunit *test)
{
	static const struct { u32 wait, goal; } row[] = {
		{ 0, 75000 }, { 150 * US, 112500 }, { 600 * US, 150000 }, { 2400 * US, 225000 },
		{ NS_MAX, 381186 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(row); i++)
		KUNIT_EXPECT_EQ_MSG(test, tlt_crowd_goal(row[i].wait, TARGET), row[i].goal,
				    "wait %u ns", row[i].wait);
}

/* In the time of the queue and the wait, by half of the difference between queue and goal. */
static void tlt_crowd_wait__by_half(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(0, 375, 375, TARGET), 150 * US);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(600 * US, 250, 850, TARGET), 650 * US);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(600 * US, 50, 650, TARGET), 550 * US);
	/* At the goal it stays, ... */
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(600 * US, 150, 750, TARGET), 600 * US);
	/* ... in a part of the time it changes by a part, ... */
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(600 * US, 250, 85, TARGET), 605 * US);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(600 * US, 250, 0, TARGET), 600 * US);
	/* ... and in a longer time no more. */
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(600 * US, 250, 10000, TARGET), 650 * US);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(600 * US, 250, U32_MAX, TARGET), 650 * US);
}

/* Any values of an entry, and any queue, leave a wait within its limits. */
static void tlt_crowd_wait__limits(struct kunit *test)
{
	static const u32 any[] = { 0, 1, 75, 150, 1000, 100000, 10000000, INT_MAX, U32_MAX };
	u32 w, q, t, d, next;

	for (w = 0; w < 7; w++)
		for (q = 0; q < ARRAY_SIZE(any); q++)
			for (t = 0; t < ARRAY_SIZE(any); t++)
				for (d = 1; d < 6; d++) {
					next = tlt_crowd_wait(any[w], any[q], any[t], any[d]);
					KUNIT_ASSERT_LE(test, next, NS_MAX);
				}
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(NS_MAX, U32_MAX, U32_MAX, TARGET), NS_MAX);
	KUNIT_EXPECT_EQ(test, tlt_crowd_wait(0, 0, U32_MAX, TARGET), 0);
}

/* A port of N packets' transmission time: the queue finds its goal, and does not oscillate.  Two
 * hosts with a long and with no wait, and half of the connections each, wait equally long.
 */
static void tlt_crowd_wait__settles(struct kunit *test)
{
	static const u32 all[] = { 400, 900, 1800, 4000 };
	u32 i, n, queue, a, b;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		/* The port holds 360 us. */
		for (n = 0, a = 2 * all[i] * US, b = 0; n < 600; n++) {
			u32 late = (a + b) / 2 / US;

			queue = min(all[i] - min(all[i], late), 360U);
			a = tlt_crowd_wait(a, queue, U32_MAX, TARGET);
			b = tlt_crowd_wait(b, queue, U32_MAX, TARGET);
		}
		KUNIT_EXPECT_LE_MSG(test, abs((int)(a - b)), a / 20, "%u us", all[i]);
		KUNIT_EXPECT_LE_MSG(test, abs((int)(queue * US - (u32)tlt_crowd_goal(a, TARGET))),
				    10 * US, "%u us", all[i]);
	}
}

/* Two destinations with one entry: the first one with a crowd has it. */
static void tlt_crowd_find__only_its_own(struct kunit *test)
{
	struct tlt_crowds *crowds = kunit_kzalloc(test, sizeof(*crowds), GFP_KERNEL);
	struct sock *one = kunit_kzalloc(test, sizeof(struct tcp_sock), GFP_KERNEL);
	struct sock *two = kunit_kzalloc(test, sizeof(struct tcp_sock), GFP_KERNEL);
	u32 addr = 1;

	KUNIT_ASSERT_TRUE(test, crowds && one && two);
	tlt_crowds_init(crowds);
	one->sk_family = AF_INET;
	two->sk_family = AF_INET;
	do {
		two->sk_daddr = (__force __be32)addr++;
	} while ((tlt_crowd_key(one, crowds) ^ tlt_crowd_key(two, crowds)) &
		 (ARRAY_SIZE(crowds->dest) - 1));

	KUNIT_EXPECT_NULL(test, tlt_crowd_find(one, crowds));
	tlt_crowd_report(one, crowds);
	KUNIT_ASSERT_NOT_NULL(test, tlt_crowd_find(one, crowds));
	tlt_crowd_find(one, crowds)->wait = 5;
	KUNIT_EXPECT_NULL(test, tlt_crowd_find(two, crowds));
	tlt_crowd_report(two, crowds);
	KUNIT_EXPECT_NULL(test, tlt_crowd_find(two, crowds));
	KUNIT_EXPECT_EQ(test, tlt_crowd_find(one, crowds)->wait, 5);

	/* The first crowd has ended. */
	tlt_crowd_find(one, crowds)->sign -= usecs_to_jiffies(TLT_CROWD_LIFE) + 1;
	tlt_crowd_report(two, crowds);
	KUNIT_EXPECT_NULL(test, tlt_crowd_find(one, crowds));
	KUNIT_ASSERT_NOT_NULL(test, tlt_crowd_find(two, crowds));
	KUNIT_EXPECT_EQ(test, tlt_crowd_find(two, crowds)->wait, 0);
}

static struct kunit_case tlt_cases[] = {
	KUNIT_CASE(tlt_crowd_goal__increases),
	KUNIT_CASE(tlt_crowd_wait__by_half),
	KUNIT_CASE(tlt_crowd_wait__limits),
	KUNIT_CASE(tlt_crowd_wait__settles),
	KUNIT_CASE(tlt_crowd_find__only_its_own),
	{}
};

static struct kunit_suite tlt_suite = {
	.name		= "tlt",
	.test_cases	= tlt_cases,
};

kunit_test_suite(tlt_suite);

MODULE_DESCRIPTION("KUnit tests of TLT");
MODULE_LICENSE("GPL");
