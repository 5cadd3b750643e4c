// SPDX-License-Identifier: GPL-2.0
/* KUnit: the feedback control of xpass (net/ipv4/xpass_rate.c), against updates
 * computed by hand.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/ipv4/xpass_rate.c"

/* The maximum rate, credits/s: a hundred times 1024, so that products with w are simple. */
#define LINE	102400

struct xpass_round {
	u32 sent;
	u32 lost;
	u32 cur;
	u16 w;
};

/* Start: cur = 6400, 1/16 of the maximum, and w = 64. */
static const struct xpass_round rounds[] = {
	/* The first clean update does not change w:
	 * (64 * 102400 + 960 * 6400) / 1024 = 6400 + 6000
	 */
	{ 100, 0, 12400, 64 },
	/* The second raises w, 64 + 51:
	 * (115 * 102400 + 909 * 12400) / 1024 = 11500 + 11007.4
	 */
	{ 100, 0, 22507, 115 },
	/* and so does the third, 115 + 51:
	 * (166 * 102400 + 858 * 22507) / 1024 = 16600 + 18858.4
	 */
	{ 100, 0, 35458, 166 },
	/* aim = 128 * (102400 - 35458) / 102400 = 83.7; 20 % are 204.8 / 1024.
	 * w halves; what arrives: 35458 * 80 / 100 = 28366.4, and
	 * 28366 * (1024 + 83) / 1024 = 30665.2
	 */
	{ 100, 20, 30665, 83 },
	/* aim = 128 * (102400 - 30665) / 102400 = 89.7: 89 lost of 1024 are within
	 * it, so this is the first clean update:
	 * (83 * 102400 + 941 * 30665) / 1024 = 8300 + 28179.5
	 */
	{ 1024, 89, 36479, 83 },
	/* aim = 128 * (102400 - 36479) / 102400 = 82.4: 83 are too many.
	 * 36479 * 941 / 1024 = 33522.2, 33522 * (1024 + 82) / 1024 = 36206.4
	 */
	{ 1024, 83, 36206, 41 },
	/* All are lost: half */
	{ 10, 10, 18103, 20 },
	{ 10, 10, 9051, 10 },
	/* w has a floor, 0.01 */
	{ 1, 1, 4525, 10 },
	/* and the rate rises again: (10 * 102400 + 1014 * 4525) / 1024 = 1000 + 4480.8 */
	{ 1, 0, 5480, 10 },
	/* (61 * 102400 + 963 * 5480) / 1024 = 6100 + 5153.6 */
	{ 1, 0, 11253, 61 },
};

static void xpass_rate_update__by_hand(struct kunit *test)
{
	struct xpass_rate r = { .max = LINE };
	int i;

	xpass_rate_init(&r, 16);
	KUNIT_EXPECT_EQ(test, r.cur, 6400);
	KUNIT_EXPECT_EQ(test, r.w, 64);
	for (i = 0; i < ARRAY_SIZE(rounds); i++) {
		xpass_rate_update(&r, rounds[i].sent, rounds[i].lost);
		KUNIT_EXPECT_EQ_MSG(test, r.cur, rounds[i].cur, "cur, round %d", i);
		KUNIT_EXPECT_EQ_MSG(test, r.w, rounds[i].w, "w, round %d", i);
	}
	KUNIT_EXPECT_EQ(test, r.max, LINE);
}

static void xpass_rate_init__share(struct kunit *test)
{
	struct xpass_rate r = { .max = 800000, .clean = true };

	xpass_rate_init(&r, 1);
	KUNIT_EXPECT_EQ(test, r.cur, 800000);
	KUNIT_EXPECT_FALSE(test, r.clean);
	xpass_rate_init(&r, 1000);
	KUNIT_EXPECT_EQ(test, r.cur, 800);
	/* the minimum is one credit per second */
	r.max = 5;
	xpass_rate_init(&r, 16);
	KUNIT_EXPECT_EQ(test, r.cur, 1);
}

/* Clean updates reach the maximum rate, up to rounding, and w its ceiling. */
static void xpass_rate_update__fills_the_line(struct kunit *test)
{
	struct xpass_rate r = { .max = LINE };
	int i;

	xpass_rate_init(&r, 1000);
	for (i = 0; i < 9; i++)
		xpass_rate_update(&r, 100, 0);
	/* 64 + 8 * 51 */
	KUNIT_EXPECT_EQ(test, r.w, 472);
	xpass_rate_update(&r, 100, 0);
	KUNIT_EXPECT_EQ(test, r.w, 512);
	for (i = 0; i < 20; i++) {
		u32 before = r.cur;

		xpass_rate_update(&r, 100, 0);
		KUNIT_EXPECT_GE(test, r.cur, before);
		KUNIT_EXPECT_LE(test, r.cur, LINE);
	}
	KUNIT_EXPECT_EQ(test, r.w, 512);
	KUNIT_EXPECT_GE(test, r.cur, LINE - 1);
}

/* At the maximum rate the target loss is 0: one of 1024 is too much. */
static void xpass_rate_update__full_line(struct kunit *test)
{
	struct xpass_rate r = { .max = LINE };

	xpass_rate_init(&r, 1);
	xpass_rate_update(&r, 1024, 1);
	/* 102400 * 1023 / 1024 */
	KUNIT_EXPECT_EQ(test, r.cur, 102300);
	KUNIT_EXPECT_EQ(test, r.w, 32);
}

/* At the minimum rate the target loss is just below an eighth. */
static void xpass_rate_update__aim_at_nothing(struct kunit *test)
{
	struct xpass_rate r = { .max = U32_MAX, .cur = 4194304, .w = 64 };

	/* aim = 128 * (1 - 1 / 1024) = 127.9 */
	xpass_rate_update(&r, 1024, 127);
	KUNIT_EXPECT_TRUE(test, r.clean);
	r.cur = 4194304;
	xpass_rate_update(&r, 1024, 128);
	KUNIT_EXPECT_FALSE(test, r.clean);
	/* 3670016 * (1024 + 127) / 1024 = 4125184, but the minimum is 4194304 */
	KUNIT_EXPECT_EQ(test, r.cur, 4194304);
}

static void xpass_rate_update__slowest_line(struct kunit *test)
{
	struct xpass_rate r = { .max = 1 };
	int i;

	xpass_rate_init(&r, 16);
	for (i = 0; i < 20; i++) {
		xpass_rate_update(&r, 1, i & 1);
		KUNIT_EXPECT_EQ(test, r.cur, 1);
	}
}

static void xpass_rate_update__fastest_line(struct kunit *test)
{
	struct xpass_rate r = { .max = U32_MAX };
	int i;

	xpass_rate_init(&r, 1);
	KUNIT_EXPECT_EQ(test, r.cur, U32_MAX);
	xpass_rate_update(&r, 1, 0);
	KUNIT_EXPECT_EQ(test, r.cur, U32_MAX);
	/* one in 2^32 - 1: (2^32 - 1) * (2^32 - 2) / (2^32 - 1) */
	xpass_rate_update(&r, U32_MAX, 1);
	KUNIT_EXPECT_EQ(test, r.cur, U32_MAX - 1);
	xpass_rate_update(&r, U32_MAX, U32_MAX);
	KUNIT_EXPECT_EQ(test, r.cur, U32_MAX / 2);
	for (i = 0; i < 20; i++)
		xpass_rate_update(&r, U32_MAX, U32_MAX);
	/* (2^32 - 1) / 1024 + 1 */
	KUNIT_EXPECT_EQ(test, r.cur, 4194304);
	for (i = 0; i < 60; i++)
		xpass_rate_update(&r, U32_MAX, 0);
	KUNIT_EXPECT_GE(test, r.cur, U32_MAX - 1);
}

/* Two flows share a link; one had its full rate, the other begins.  Each loses the
 * credits by which their sum exceeds the maximum rate.
 */
static void xpass_rate_update__two_become_equal(struct kunit *test)
{
	struct xpass_rate a = { .max = LINE }, b = { .max = LINE };
	u32 more, less;
	int i;

	xpass_rate_init(&a, 1);
	xpass_rate_init(&b, 16);
	for (i = 0; i < 100; i++) {
		u32 sum = a.cur + b.cur;
		u32 lost = sum > LINE ? sum - LINE : 0;

		xpass_rate_update(&a, sum, lost);
		xpass_rate_update(&b, sum, lost);
	}
	more = max(a.cur, b.cur);
	less = min(a.cur, b.cur);
	KUNIT_EXPECT_LE(test, more - less, less / 10);
	/* and together they use at least 95 % of the link */
	KUNIT_EXPECT_GE(test, more + less, LINE * 95 / 100);
}

static struct kunit_case xpass_rate_cases[] = {
	KUNIT_CASE(xpass_rate_update__by_hand),
	KUNIT_CASE(xpass_rate_init__share),
	KUNIT_CASE(xpass_rate_update__fills_the_line),
	KUNIT_CASE(xpass_rate_update__full_line),
	KUNIT_CASE(xpass_rate_update__aim_at_nothing),
	KUNIT_CASE(xpass_rate_update__slowest_line),
	KUNIT_CASE(xpass_rate_update__fastest_line),
	KUNIT_CASE(xpass_rate_update__two_become_equal),
	{}
};

static struct kunit_suite xpass_rate_suite = {
	.name		= "xpass_rate",
	.test_cases	= xpass_rate_cases,
};

kunit_test_suite(xpass_rate_suite);

MODULE_DESCRIPTION("KUnit tests of xpass's feedback control");
MODULE_LICENSE("GPL");
