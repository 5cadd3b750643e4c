// SPDX-License-Identifier: GPL-2.0
/* KUnit: the automatic threshold of red packets (net/sched/color_auto.c). */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/sched/color_auto.c"

#define LIMIT	(1800u << 10)
#define PACKET	1514
#define RATE	5000000000ull		/* 40 Gbit/s */

static struct color_auto a;
static struct color_config cfg;
static struct color_share share;
static struct color_pool pool;

static int color_auto_test_init(struct kunit *test)
{
	memset(&a, 0, sizeof(a));
	memset(&share, 0, sizeof(share));
	memset(&pool, 0, sizeof(pool));
	cfg = (struct color_config){
		.rate = RATE, .limit = LIMIT, .alpha = TC_COLOR_ALPHA_ONE, .red_auto = true,
	};
	color_auto_set(&a, &cfg, PACKET);
	color_auto_reset(&a, 0);
	return 0;
}

struct min_case {
	u64	rate;
	u32	limit;
	u32	red_min;
	u32	min;
};

static const struct min_case min_cases[] = {
	{ RATE, LIMIT, 0, 125000 },			/* 25 us */
	{ RATE, LIMIT, 77, 77 },
	{ RATE, LIMIT, LIMIT, LIMIT },
	{ RATE, 400000, 0, 100000 },			/* no more than a quarter */
	{ RATE / 40, LIMIT, 0, 16 * PACKET },		/* 3 kB would be two packets */
	{ 0, LIMIT, 0, LIMIT / 16 },
	{ 0, 100000, 0, 16 * PACKET },
	{ 1, 16000, 0, 4000 },
	{ TC_COLOR_RATE_MAX, TC_COLOR_LIMIT_MAX, 0, 312500000 },
	{ 0, 1, 0, 0 },
};

static void color_auto_set__minimum(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(min_cases); i++) {
		cfg.rate = min_cases[i].rate;
		cfg.limit = min_cases[i].limit;
		cfg.red_min = min_cases[i].red_min;
		color_auto_set(&a, &cfg, PACKET);
		KUNIT_EXPECT_EQ_MSG(test, a.min, min_cases[i].min, "case %d", i);
	}
}

/* The transmission time of a full buffer, from 1 ms to 1 s, and never 0 jiffies */
static void color_auto_set__window(struct kunit *test)
{
	unsigned long since;

	KUNIT_EXPECT_EQ(test, a.window, msecs_to_jiffies(1));
	cfg.rate = RATE / 400;
	color_auto_set(&a, &cfg, PACKET);
	KUNIT_EXPECT_EQ(test, a.window, msecs_to_jiffies(147));
	/* A window of another length begins now. */
	since = jiffies - 1000000;
	a.since = since;
	color_auto_set(&a, &cfg, PACKET);
	KUNIT_EXPECT_EQ(test, a.since, since);
	color_auto_saw(&a, 8000);
	cfg.rate = 1;
	cfg.limit = TC_COLOR_LIMIT_MAX;
	color_auto_set(&a, &cfg, PACKET);
	KUNIT_EXPECT_EQ(test, a.window, msecs_to_jiffies(1000));
	KUNIT_EXPECT_LE(test, jiffies - a.since, 1000);
	KUNIT_EXPECT_EQ(test, a.peak, 8192);
	cfg.rate = 0;
	color_auto_set(&a, &cfg, PACKET);
	KUNIT_EXPECT_GE(test, a.window, 1);
}

static void color_auto_need__peak_and_growth(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, color_auto_need(&a, 0), 0);
	KUNIT_EXPECT_EQ(test, color_auto_need(&a, 1000), 3000);
	a.peak = 5000;
	KUNIT_EXPECT_EQ(test, color_auto_need(&a, 0), 5000);
	KUNIT_EXPECT_EQ(test, color_auto_need(&a, 1666), 5000);
	KUNIT_EXPECT_EQ(test, color_auto_need(&a, 1667), 5001);
	KUNIT_EXPECT_EQ(test, color_auto_need(&a, 5000), 15000);
}

static void color_auto_saw__in_steps(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, color_auto_saw(&a, 0));
	KUNIT_EXPECT_TRUE(test, color_auto_saw(&a, 1));
	KUNIT_EXPECT_EQ(test, a.top, 4096);
	KUNIT_EXPECT_FALSE(test, color_auto_saw(&a, 4096));
	KUNIT_EXPECT_TRUE(test, color_auto_saw(&a, 4097));
	KUNIT_EXPECT_EQ(test, a.top, 8192);
}

/* A peak counts in full for a window, then loses 1/64 in each. */
static void color_auto_roll__busy_port_forgets(struct kunit *test)
{
	unsigned long now = a.since;
	int i;

	color_auto_saw(&a, 1 << 20);
	KUNIT_EXPECT_FALSE(test, color_auto_due(&a, now + a.window - 1));
	color_auto_roll(&a, 0, now + a.window - 1);
	KUNIT_EXPECT_EQ(test, a.peak, 0);

	now += a.window;
	KUNIT_EXPECT_TRUE(test, color_auto_due(&a, now));
	color_auto_roll(&a, 4096, now);
	KUNIT_EXPECT_EQ(test, a.peak, 1 << 20);
	KUNIT_EXPECT_EQ(test, a.top, 4096);
	KUNIT_EXPECT_EQ(test, a.since, now);

	for (i = 0; i < 44; i++)
		color_auto_roll(&a, 4096, now += a.window);
	KUNIT_EXPECT_GT(test, a.peak, (1 << 19) - (1 << 13));
	KUNIT_EXPECT_LT(test, a.peak, (1 << 19) + (1 << 13));
	/* not below the peak of each window */
	for (i = 0; i < 1000; i++)
		color_auto_roll(&a, 4096, now += a.window);
	KUNIT_EXPECT_EQ(test, a.peak, 4096);
}

/* The peak of an idle port is from the first of the windows that have passed, and decays in the
 * others; the rest of the time belongs to the current window.
 */
static void color_auto_roll__idle_port_forgets(struct kunit *test)
{
	unsigned long now = a.since;

	color_auto_saw(&a, 1 << 20);
	color_auto_roll(&a, 0, now + 33 * a.window + a.window / 2);
	KUNIT_EXPECT_EQ(test, a.peak, 1 << 19);
	KUNIT_EXPECT_EQ(test, a.since, now + 33 * a.window);
	color_auto_roll(&a, 0, now + 200 * a.window);
	KUNIT_EXPECT_EQ(test, a.peak, 0);
	/* the longest difference of jiffies, and jiffies that wrap around */
	color_auto_saw(&a, 1 << 20);
	color_auto_roll(&a, 0, a.since - 1);
	KUNIT_EXPECT_EQ(test, a.peak, 0);
	a.since = 0ul - a.window;
	color_auto_saw(&a, 1 << 20);
	color_auto_roll(&a, 0, 0);
	KUNIT_EXPECT_EQ(test, a.peak, 1 << 20);
}

static u64 red_thresh(u64 queued, u64 protected, u64 others)
{
	return color_auto_thresh(&a, &cfg, &share, queued, protected, others);
}

static void color_auto_thresh__limit(struct kunit *test)
{
	const u64 room = LIMIT - LIMIT / 8;

	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, 0), room);
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, 1000), room - 1000);
	KUNIT_EXPECT_EQ(test, red_thresh(0, 1000, 1000), room - 4000);
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, room - a.min - 1), a.min + 1);
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, room), a.min);
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, 1ull << 40), a.min);
}

static void color_auto_thresh__pool(struct kunit *test)
{
	pool.size = 1 << 20;
	share.pool = &pool;
	/* to make it simple */
	a.alpha = 1 << 15;
	a.min = 1000;
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, 0), 1 << 19);
	/* Green counts once in the half, three times in 7/8; bytes kept for it count as used. */
	atomic64_set(&pool.used, 1 << 16);
	share.held = 1 << 16;
	KUNIT_EXPECT_EQ(test, red_thresh(1 << 16, 1 << 16, 0), (15 << 15) - (1 << 16));
	atomic64_set(&pool.used, 2 << 16);
	share.held = 2 << 16;
	KUNIT_EXPECT_EQ(test, red_thresh(2 << 16, 2 << 16, 0), (70 << 13) - (6 << 16));
	atomic64_set(&pool.used, 0);
	share.held = 0;
	a.peak = 1 << 18;
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, 1 << 16), (12 << 15) - (5 << 16));
	a.peak = 0;
	/* the port's own reserve is free, that of other ports is not */
	atomic64_set(&pool.used, 3 << 16);
	share.held = 1 << 16;
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, 0), 7 << 16);
	KUNIT_EXPECT_EQ(test, red_thresh(1 << 16, 0, 1 << 16), (13 << 15) - (1 << 16));
	/* the limit, if that is less; the minimum in a pool that is full */
	cfg.limit = 200000;
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, 0), 175000);
	atomic64_set(&pool.used, 1 << 21);
	KUNIT_EXPECT_EQ(test, red_thresh(0, 0, 0), a.min);
}

/* Red at its threshold on one port, then on a second: the first may hold more than it does. */
static void color_auto_thresh__second_port(struct kunit *test)
{
	static const u32 alphas[] = { 1, 1 << 12, 1 << 15, 1 << 16, 1 << 17, 1 << 20, 1 << 26 };
	u64 first, second, may;
	int i;

	pool.size = 1 << 30;
	share.pool = &pool;
	for (i = 0; i < ARRAY_SIZE(alphas); i++) {
		cfg.alpha = alphas[i];
		cfg.red_min = 1;
		cfg.limit = TC_COLOR_LIMIT_MAX;
		color_auto_set(&a, &cfg, PACKET);
		for (first = 0, atomic64_set(&pool.used, 0);
		     red_thresh(0, 0, 0) > first;
		     first += 1024)
			atomic64_set(&pool.used, first + 1024);
		for (second = 0;
		     red_thresh(0, 0, 0) > second;
		     second += 1024)
			atomic64_set(&pool.used, first + second + 1024);
		may = color_pool_thresh(pool.size, first + second, cfg.alpha);
		/* in steps of 1024 */
		KUNIT_EXPECT_GE_MSG(test, may + 4096 + (cfg.alpha >> 4), first, "alpha %u",
				    cfg.alpha);
		/* and not much more, if steps are small */
		if (cfg.alpha >= 1 << 15 && cfg.alpha <= 1 << 17)
			KUNIT_EXPECT_LE_MSG(test, may, first + first / 100, "alpha %u",
					    cfg.alpha);
		if (cfg.alpha == TC_COLOR_ALPHA_ONE)
			KUNIT_EXPECT_EQ(test, first * 1000 >> 30, 381);
	}
}

/* @flows send @window packets each, the last of them green, to a port of LIMIT at eight times the
 * rate of its link.  Return: green packets that find no room.
 */
static int first_round_trip(int flows, int window)
{
	u64 red = 0, green = 0, thresh, total, at, mark;
	int t, i, lost = 0;

	total = (u64)flows * window / 8;
	/* transmitted packets have the average mix of the queue */
	for (t = 0; t < total; t++) {
		for (i = 0; i < 8; i++) {
			bool protected = (t + i * (window / 2 + 1)) % window == window - 1;

			thresh = red_thresh(0, green, 0);
			if (!protected && !color_fits(red, PACKET, thresh))
				continue;
			if (!color_fits(red + green, PACKET, LIMIT)) {
				lost += protected;
				continue;
			}
			*(protected ? &green : &red) += PACKET;
		}
		at = red + green;
		if (!at)
			continue;
		mark = at >= PACKET ? PACKET : at;
		red -= mark * red / at;
		green = at - mark - red;
	}
	return lost;
}

static void color_auto_need__first_round_trip(struct kunit *test)
{
	int window;

	for (window = 1; window <= 16; window++)
		KUNIT_EXPECT_EQ_MSG(test, first_round_trip(1000, window), 0, "window %d", window);
	/* the buffer cannot hold the green packets of 1600 flows */
	KUNIT_EXPECT_GT(test, first_round_trip(1600, 1), 0);
}

/* A crowd after a recent peak of any size. */
static void color_auto_need__larger_crowd(struct kunit *test)
{
	int window;

	for (a.peak = 0; a.peak < LIMIT; a.peak += 40000)
		for (window = 1; window <= 16; window++)
			KUNIT_EXPECT_EQ_MSG(test, first_round_trip(1000, window), 0,
					    "peak %llu, window %d", a.peak, window);
}

static struct kunit_case color_auto_cases[] = {
	KUNIT_CASE(color_auto_set__minimum),
	KUNIT_CASE(color_auto_set__window),
	KUNIT_CASE(color_auto_need__peak_and_growth),
	KUNIT_CASE(color_auto_saw__in_steps),
	KUNIT_CASE(color_auto_roll__busy_port_forgets),
	KUNIT_CASE(color_auto_roll__idle_port_forgets),
	KUNIT_CASE(color_auto_thresh__limit),
	KUNIT_CASE(color_auto_thresh__pool),
	KUNIT_CASE(color_auto_thresh__second_port),
	KUNIT_CASE(color_auto_need__first_round_trip),
	KUNIT_CASE(color_auto_need__larger_crowd),
	{}
};

static struct kunit_suite color_auto_suite = {
	.name		= "color_auto",
	.init		= color_auto_test_init,
	.test_cases	= color_auto_cases,
};

kunit_test_suite(color_auto_suite);

MODULE_DESCRIPTION("KUnit tests of the color qdisc's red auto");
MODULE_LICENSE("GPL");
