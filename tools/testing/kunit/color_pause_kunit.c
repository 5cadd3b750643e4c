// SPDX-License-Identifier: GPL-2.0
/* KUnit: pause frames and their times (net/sched/color_pfc.h), thresholds and maps of priorities
 * (net/sched/color_pause.c).
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/sched/color_stats.c"
#include "net/sched/color_pause.c"

#define MS	((u64)NSEC_PER_MSEC)

static void color_pfc_ns__exact(struct kunit *test)
{
	/* 10 Gbit/s: 51.2 ns a quantum */
	KUNIT_EXPECT_EQ(test, color_pfc_ns(1, 1250000000), 51);
	KUNIT_EXPECT_EQ(test, color_pfc_ns(65535, 1250000000), 3355392);
	KUNIT_EXPECT_EQ(test, color_pfc_ns(0, 1250000000), 0);
	/* 8 bit/s and 100 Tbit/s: no overflow, and not nothing */
	KUNIT_EXPECT_EQ(test, color_pfc_ns(65535, 1), 65535ull * 64 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, color_pfc_ns(65535, TC_COLOR_RATE_MAX), 335);
}

static void color_pfc_headroom__exact(struct kunit *test)
{
	/* 40 Gbit/s by 5 us is 25000 bytes */
	KUNIT_EXPECT_EQ(test, color_pfc_headroom(5000000000, 5000, 1514), 2 * (25000 + 1514) + 60);
	KUNIT_EXPECT_EQ(test, color_pfc_headroom(1, 0, 0), 60);
	KUNIT_EXPECT_EQ(test, color_pfc_headroom(TC_COLOR_RATE_MAX, TC_COLOR_PAUSE_DELAY_MAX, 0),
			2 * 125000000000ull + 60);
}

static void color_pfc_fill__bytes(struct kunit *test)
{
	static const u8 source[ETH_ALEN] __aligned(2) = { 2, 0, 0, 0, 0, 9 };
	static const u8 want[60] = {
		0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 2, 0, 0, 0, 0, 9, 0x88, 0x08,
		0x01, 0x01, 0x00, 0xc1,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff,
	};
	struct color_pfc_frame frame;

	memset(&frame, 0xaa, sizeof(frame));
	/* 0, 6 and 7 have a time; 7 pauses; of 5 nothing is said */
	color_pfc_fill(&frame, source, 0xc1, 0xa0);
	KUNIT_EXPECT_EQ(test, sizeof(frame), 60);
	KUNIT_EXPECT_EQ(test, memcmp(&frame, want, sizeof(want)), 0);
}

static void color_pfc_hear__times(struct kunit *test)
{
	struct color_pfc_heard h = {};
	u64 now = 1000 * MS;

	KUNIT_EXPECT_FALSE(test, color_pfc_hear(&h, 10 * MS, now, 0));
	KUNIT_EXPECT_EQ(test, h.until, now + 10 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 4 * MS), 4 * MS);
	/* extended */
	color_pfc_hear(&h, 10 * MS, now + 5 * MS, 0);
	KUNIT_EXPECT_EQ(test, h.until, now + 15 * MS);
	/* shortened: the last frame counts */
	color_pfc_hear(&h, 2 * MS, now + 6 * MS, 0);
	KUNIT_EXPECT_EQ(test, h.until, now + 8 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 100 * MS), 8 * MS);
	/* a zero after the end, and one before it */
	color_pfc_hear(&h, 0, now + 20 * MS, 0);
	KUNIT_EXPECT_EQ(test, h.until, now + 8 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 100 * MS), 8 * MS);
	color_pfc_hear(&h, 10 * MS, now + 30 * MS, 0);
	color_pfc_hear(&h, 0, now + 33 * MS, 0);
	KUNIT_EXPECT_EQ(test, h.until, now + 33 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 100 * MS), 11 * MS);
}

static void color_pfc_hear__storm(struct kunit *test)
{
	struct color_pfc_heard h = {};
	u64 now = 1000 * MS;
	int i, storms = 0;

	/* a pause of 10 ms every 5 ms, 100 ms long at most */
	for (i = 0; i < 60; i++)
		storms += color_pfc_hear(&h, 10 * MS, now + i * 5 * MS, 100 * MS);
	KUNIT_EXPECT_EQ(test, storms, 1);
	KUNIT_EXPECT_EQ(test, h.until, now + 100 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 1000 * MS), 100 * MS);
	/* the last one came at 295 ms: 100 ms later it is not quiet yet, 201 ms later it is */
	color_pfc_hear(&h, 10 * MS, now + 395 * MS, 100 * MS);
	KUNIT_EXPECT_TRUE(test, h.storm);
	color_pfc_hear(&h, 10 * MS, now + 496 * MS, 100 * MS);
	KUNIT_EXPECT_FALSE(test, h.storm);
	KUNIT_EXPECT_EQ(test, h.until, now + 506 * MS);
}

static void color_pfc_hear__pauses_with_ends_are_no_storm(struct kunit *test)
{
	struct color_pfc_heard h = {};
	u64 now = 1000 * MS;
	int i;

	/* ended by a zero, then by time */
	for (i = 0; i < 100; i++) {
		KUNIT_EXPECT_FALSE(test, color_pfc_hear(&h, 60 * MS, now, 100 * MS));
		now += i < 50 ? 50 * MS : 61 * MS;
		if (i < 50)
			color_pfc_hear(&h, 0, now, 100 * MS);
	}
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now), 50 * 50 * MS + 50 * 60 * MS);
}

static void color_pfc_hear__one_that_is_too_long_is_cut(struct kunit *test)
{
	struct color_pfc_heard h = {};
	u64 now = 1000 * MS;

	KUNIT_EXPECT_FALSE(test, color_pfc_hear(&h, 500 * MS, now, 100 * MS));
	KUNIT_EXPECT_EQ(test, h.until, now + 100 * MS);
	/* the neighbour asks for more, also when the pause has been over for it: it is a storm */
	KUNIT_EXPECT_FALSE(test, color_pfc_hear(&h, 500 * MS, now + 80 * MS, 100 * MS));
	KUNIT_EXPECT_EQ(test, h.until, now + 100 * MS);
	KUNIT_EXPECT_TRUE(test, color_pfc_hear(&h, 500 * MS, now + 150 * MS, 100 * MS));
	KUNIT_EXPECT_EQ(test, h.until, now + 100 * MS);
	/* a zero ends it */
	color_pfc_hear(&h, 0, now + 160 * MS, 100 * MS);
	KUNIT_EXPECT_FALSE(test, color_pfc_hear(&h, 50 * MS, now + 170 * MS, 100 * MS));
	KUNIT_EXPECT_EQ(test, h.until, now + 220 * MS);
}

static void color_pause_map__defaults(struct kunit *test)
{
	static const u8 want[][TC_COLOR_PAUSE_PRIOS + 1] = {
		{ 1,  0, 0, 0, 0, 0, 0, 0, 0 },
		{ 2,  1, 1, 1, 1, 1, 1, 1, 0 },
		{ 3,  2, 2, 2, 2, 2, 2, 1, 0 },
		{ 8,  7, 6, 5, 4, 3, 2, 1, 0 },
		{ 16, 7, 6, 5, 4, 3, 2, 1, 0 },
	};
	u8 map[TC_COLOR_PAUSE_PRIOS];
	int i;

	for (i = 0; i < ARRAY_SIZE(want); i++) {
		color_pause_map_default(map, want[i][0]);
		KUNIT_EXPECT_EQ(test, memcmp(map, want[i] + 1, sizeof(map)), 0);
	}
}

static void color_pause_map__bad_changes_nothing(struct kunit *test)
{
	u8 change[TC_COLOR_PAUSE_PRIOS] = {
		TC_COLOR_MAP_KEEP, 0, TC_COLOR_PAUSE_NO_BAND, TC_COLOR_MAP_KEEP,
		TC_COLOR_MAP_KEEP, TC_COLOR_MAP_KEEP, TC_COLOR_MAP_KEEP, 2,
	};
	u8 map[TC_COLOR_PAUSE_PRIOS] = {}, before[TC_COLOR_PAUSE_PRIOS];

	color_pause_map_default(map, 2);
	memcpy(before, map, sizeof(map));
	KUNIT_EXPECT_FALSE(test, color_pause_map_merge(map, change, 2));
	KUNIT_EXPECT_EQ(test, memcmp(map, before, sizeof(map)), 0);
	KUNIT_EXPECT_TRUE(test, color_pause_map_merge(map, change, 3));
	KUNIT_EXPECT_EQ(test, map[0], 1);
	KUNIT_EXPECT_EQ(test, map[1], 0);
	KUNIT_EXPECT_EQ(test, map[2], TC_COLOR_PAUSE_NO_BAND);
	KUNIT_EXPECT_EQ(test, map[7], 2);
}

static void color_pause_wanted__hysteresis(struct kunit *test)
{
	struct color_pause_link *link = kunit_kzalloc(test, sizeof(*link), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, link);
	link->xoff = 10000;
	link->xon = 5000;
	atomic64_set(&link->bytes[3], 10000);
	KUNIT_EXPECT_EQ(test, color_pause_wanted(link, 0), 0);
	KUNIT_EXPECT_EQ(test, color_pause_wanted(link, BIT(3)), BIT(3));
	atomic64_set(&link->bytes[3], 10001);
	KUNIT_EXPECT_EQ(test, color_pause_wanted(link, 0), BIT(3));
	atomic64_set(&link->bytes[3], 5001);
	KUNIT_EXPECT_EQ(test, color_pause_wanted(link, BIT(3)), BIT(3));
	atomic64_set(&link->bytes[3], 5000);
	KUNIT_EXPECT_EQ(test, color_pause_wanted(link, BIT(3)), 0);
	/* no priority is paused any more */
	atomic64_set(&link->bytes[3], 20000);
	link->xoff = COLOR_PAUSE_NEVER;
	KUNIT_EXPECT_EQ(test, color_pause_wanted(link, BIT(3)), 0);
}

static void color_pause_share__all_links_fill_the_buffer(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, color_pause_share(1000000, 4, 50000), 200000);
	KUNIT_EXPECT_EQ(test, color_pause_share(100000, 4, 50000), -25000);
}

static void color_pause_charge__one_word(struct kunit *test)
{
	struct color_pause_link *link = kunit_kzalloc(test, sizeof(*link), GFP_KERNEL);
	int prio;

	KUNIT_ASSERT_NOT_NULL(test, link);
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		refcount_set(&link->refs, 2);
		atomic64_set(&link->bytes[prio], 1500);
		KUNIT_EXPECT_PTR_EQ(test, color_pause_word_link((unsigned long)link | prio), link);
		color_pause_uncharge((unsigned long)link | prio, 1000);
		KUNIT_EXPECT_EQ(test, atomic64_read(&link->bytes[prio]), 500);
		KUNIT_EXPECT_EQ(test, refcount_read(&link->refs), 1);
	}
	color_pause_uncharge(0, 1000);
}

static struct kunit_case color_pause_cases[] = {
	KUNIT_CASE(color_pfc_ns__exact),
	KUNIT_CASE(color_pfc_headroom__exact),
	KUNIT_CASE(color_pfc_fill__bytes),
	KUNIT_CASE(color_pfc_hear__times),
	KUNIT_CASE(color_pfc_hear__storm),
	KUNIT_CASE(color_pfc_hear__pauses_with_ends_are_no_storm),
	KUNIT_CASE(color_pfc_hear__one_that_is_too_long_is_cut),
	KUNIT_CASE(color_pause_map__defaults),
	KUNIT_CASE(color_pause_map__bad_changes_nothing),
	KUNIT_CASE(color_pause_wanted__hysteresis),
	KUNIT_CASE(color_pause_share__all_links_fill_the_buffer),
	KUNIT_CASE(color_pause_charge__one_word),
	{}
};

static struct kunit_suite color_pause_suite = {
	.name		= "color_pause",
	.test_cases	= color_pause_cases,
};

kunit_test_suite(color_pause_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit: pause frames of the color qdisc");
