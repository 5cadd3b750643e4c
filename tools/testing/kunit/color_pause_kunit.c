// SPDX-License-Identifier: GPL-2.0
/* KUnit: pause frames and their times (net/sched/color_pfc.c), thresholds and maps of priorities
 * (net/sched/color_pause.c).
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/sched/color_map.c"
#include "net/sched/color_pfc.c"
#include "net/sched/color_pool.c"
#include "net/sched/color_stats.c"
#include "net/sched/color_pause.c"

#define MS	((u64)NSEC_PER_MSEC)

static void color_pfc_ns__exact(struct kunit *test)
{
	/* 10 Gbit/s: 51.2 ns a quantum */
	KUNIT_EXPECT_EQ(test, color_pfc_ns(1, 1250000000), 51);
	KUNIT_EXPECT_EQ(test, color_pfc_ns(65535, 1250000000), 3355392);
	KUNIT_EXPECT_EQ(test, color_pfc_ns(0, 1250000000), 0);
	/* 8 bit/s and 100 Tbit/s: no overflow, and not 0 */
	KUNIT_EXPECT_EQ(test, color_pfc_ns(65535, 1), 65535ull * 64 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, color_pfc_ns(65535, TC_COLOR_RATE_MAX), 335);
}

static void color_pfc_quanta__not_longer_than_the_time(struct kunit *test)
{
	/* 50 ms: more than the maximum above 671 Mbit/s, 976 quanta of 51.2 us at 10 Mbit/s */
	KUNIT_EXPECT_EQ(test, color_pfc_quanta(50 * MS, 1250000000), 65535);
	KUNIT_EXPECT_EQ(test, color_pfc_quanta(50 * MS, 1250000), 976);
	KUNIT_EXPECT_EQ(test, color_pfc_quanta(50 * MS, 1), 1);
	KUNIT_EXPECT_EQ(test, color_pfc_quanta(50 * MS, TC_COLOR_RATE_MAX), 65535);
}

static void color_pfc_headroom__exact(struct kunit *test)
{
	/* 40 Gbit/s times 2 * 5 us is 50000 bytes */
	struct color_pfc_reach r = {
		.rate = 5000000000, .delay = 5000, .unit = 1514, .packet = 1514,
	};

	KUNIT_EXPECT_EQ(test, color_pfc_headroom(&r), 50000 + 3 * 1514 + 60);
	r.burst = 20000;
	KUNIT_EXPECT_EQ(test, color_pfc_headroom(&r), 150000 + 3 * 1514 + 60);
	r.unit = 65536;
	KUNIT_EXPECT_EQ(test, color_pfc_headroom(&r), 150000 + 2 * 65536 + 1514 + 60);
	r = (struct color_pfc_reach) { .rate = 1 };
	KUNIT_EXPECT_EQ(test, color_pfc_headroom(&r), 60);
	r = (struct color_pfc_reach) {
		.rate = TC_COLOR_RATE_MAX, .delay = TC_COLOR_PAUSE_DELAY_MAX,
		.burst = TC_COLOR_CATCH_UP_MAX,
	};
	KUNIT_EXPECT_EQ(test, color_pfc_headroom(&r), 1020 * 12500000000ull + 60);
}

static void color_pfc_fill__bytes(struct kunit *test)
{
	static const u8 source[ETH_ALEN] __aligned(2) = { 2, 0, 0, 0, 0, 9 };
	static const u8 want[60] = {
		0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 2, 0, 0, 0, 0, 9, 0x88, 0x08,
		0x01, 0x01, 0x00, 0xc1,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe,
	};
	struct color_pfc_frame frame;

	memset(&frame, 0xaa, sizeof(frame));
	/* priorities 0, 6 and 7 are enabled; 7 pauses; 5 is not enabled, so it has no time */
	color_pfc_fill(&frame, source, 0xc1, 0xa0, 0xfffe);
	KUNIT_EXPECT_EQ(test, sizeof(frame), 60);
	KUNIT_EXPECT_EQ(test, memcmp(&frame, want, sizeof(want)), 0);
}

/* ns for which the port was stopped, up to @now */
static u64 color_pfc_paused(struct color_pfc_received *h, u64 now)
{
	struct color_pfc_received then = *h;

	color_pfc_account(&then, now, 0);
	return then.paused;
}

static void color_pfc_receive__times(struct kunit *test)
{
	struct color_pfc_received h = {};
	u64 now = 1000 * MS;

	KUNIT_EXPECT_FALSE(test, color_pfc_receive(&h, 10 * MS, now, 0));
	KUNIT_EXPECT_EQ(test, h.until, now + 10 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 4 * MS), 4 * MS);
	/* extended */
	color_pfc_receive(&h, 10 * MS, now + 5 * MS, 0);
	KUNIT_EXPECT_EQ(test, h.until, now + 15 * MS);
	/* shortened: the last frame counts */
	color_pfc_receive(&h, 2 * MS, now + 6 * MS, 0);
	KUNIT_EXPECT_EQ(test, h.until, now + 8 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 19 * MS), 8 * MS);
	/* a frame with 0 after the end of a pause, and one before it */
	color_pfc_receive(&h, 0, now + 20 * MS, 0);
	KUNIT_EXPECT_EQ(test, h.until, now + 8 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 29 * MS), 8 * MS);
	color_pfc_receive(&h, 10 * MS, now + 30 * MS, 0);
	color_pfc_receive(&h, 0, now + 33 * MS, 0);
	KUNIT_EXPECT_EQ(test, h.until, now + 33 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 100 * MS), 11 * MS);
}

static void color_pfc_receive__storm(struct kunit *test)
{
	struct color_pfc_received h = {};
	u64 now = 1000 * MS;
	int i, storms = 0;

	/* a pause of 10 ms every 5 ms, of which 100 ms are obeyed */
	for (i = 0; i < 60; i++)
		storms += color_pfc_receive(&h, 10 * MS, now + i * 5 * MS, 100 * MS);
	KUNIT_EXPECT_EQ(test, storms, 1);
	KUNIT_EXPECT_EQ(test, h.until, now + 100 * MS);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now + 299 * MS), 100 * MS);
	/* the last pause ends at 305 ms: 1 ms later the storm lasts, after 1/64 of 100 ms not */
	color_pfc_receive(&h, 10 * MS, now + 306 * MS, 100 * MS);
	KUNIT_EXPECT_TRUE(test, h.storm);
	color_pfc_receive(&h, 10 * MS, now + 318 * MS, 100 * MS);
	KUNIT_EXPECT_FALSE(test, h.storm);
	KUNIT_EXPECT_EQ(test, h.until, now + 328 * MS);
}

static void color_pfc_receive__an_end_without_time_is_none(struct kunit *test)
{
	struct color_pfc_received h = {};
	u64 now = 1000 * MS;
	int i, storms = 0;

	/* a frame ends each pause, and the next pause begins at the same time */
	for (i = 0; i < 100; i++) {
		storms += color_pfc_receive(&h, 60 * MS, now, 100 * MS);
		now += 50 * MS;
		storms += color_pfc_receive(&h, 0, now, 100 * MS);
	}
	KUNIT_EXPECT_EQ(test, storms, 1);
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now), 100 * MS);
}

static void color_pfc_receive__a_part_of_the_time_is_no_storm(struct kunit *test)
{
	struct color_pfc_received h = {};
	u64 now = 1000 * MS;
	int i;

	/* stopped for 50 of 51 ms; a frame with 0 or time ends the pause */
	for (i = 0; i < 100; i++) {
		KUNIT_EXPECT_FALSE(test, color_pfc_receive(&h, i & 1 ? 50 * MS : 60 * MS, now,
							   100 * MS));
		KUNIT_EXPECT_FALSE(test, color_pfc_receive(&h, 0, now + 50 * MS, 100 * MS));
		now += 51 * MS;
	}
	KUNIT_EXPECT_EQ(test, color_pfc_paused(&h, now), 100 * 50 * MS);
}

static void color_pfc_receive__one_that_is_too_long_is_cut(struct kunit *test)
{
	struct color_pfc_received h = {};
	u64 now = 1000 * MS;

	KUNIT_EXPECT_FALSE(test, color_pfc_receive(&h, 500 * MS, now, 100 * MS));
	KUNIT_EXPECT_EQ(test, h.until, now + 100 * MS);
	/* the neighbour requests more, also after the longest pause is over: it is a storm */
	KUNIT_EXPECT_FALSE(test, color_pfc_receive(&h, 500 * MS, now + 80 * MS, 100 * MS));
	KUNIT_EXPECT_EQ(test, h.until, now + 100 * MS);
	KUNIT_EXPECT_TRUE(test, color_pfc_receive(&h, 500 * MS, now + 150 * MS, 100 * MS));
	KUNIT_EXPECT_EQ(test, h.until, now + 100 * MS);
	/* the neighbour lets the port send, for long enough */
	color_pfc_receive(&h, 0, now + 160 * MS, 100 * MS);
	KUNIT_EXPECT_FALSE(test, color_pfc_receive(&h, 50 * MS, now + 170 * MS, 100 * MS));
	KUNIT_EXPECT_EQ(test, h.until, now + 220 * MS);
	/* a storm is detected without a frame */
	color_pfc_receive(&h, 500 * MS, now + 300 * MS, 100 * MS);
	KUNIT_EXPECT_FALSE(test, color_pfc_account(&h, now + 400 * MS, 100 * MS));
	KUNIT_EXPECT_TRUE(test, color_pfc_account(&h, now + 401 * MS, 100 * MS));
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
	/* then no priority is paused */
	atomic64_set(&link->bytes[3], 20000);
	link->xoff = COLOR_PAUSE_NEVER;
	KUNIT_EXPECT_EQ(test, color_pause_wanted(link, BIT(3)), 0);
}

/* --- room ------------------------------------------------------------------- */

#define PACKET	1514u

/* Two links of 10 Gbit/s, each with a port */
struct room {
	struct color_pause_net	cn;
	struct net_device	dev;
	struct color_pool	pool;
	struct color_pause_link	link[2];
	struct color_pause	port[2];
};

static struct room *room_new(struct kunit *test, u64 limit)
{
	struct room *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int i, prio;

	KUNIT_ASSERT_NOT_NULL(test, r);
	xa_init(&r->cn.links);
	INIT_LIST_HEAD(&r->pool.shares);
	r->dev.gso_max_size = 65536;
	r->dev.hard_header_len = ETH_HLEN;
	r->dev.mtu = PACKET - ETH_HLEN;
	for (i = 0; i < 2; i++) {
		struct color_pause *pause = &r->port[i];

		r->link[i].dev = &r->dev;
		r->link[i].speed = 1250000000;
		INIT_LIST_HEAD(&r->link[i].ports);
		KUNIT_ASSERT_EQ(test, xa_err(xa_store(&r->cn.links, i, &r->link[i],
						      GFP_KERNEL)), 0);
		pause->link = &r->link[i];
		pause->cfg = (struct color_pause_config) {
			.mode = TC_COLOR_PAUSE_ALL, .delay = 2000, .unit = PACKET,
		};
		pause->port = (struct color_pause_port) {
			.fill = { .limit = limit, .alpha = TC_COLOR_ALPHA_ONE },
			.green = COLOR_NO_THRESH,
			.bands = 1,
		};
		memset(pause->prio, COLOR_PAUSE_NO_PRIO, sizeof(pause->prio));
		for (prio = TC_COLOR_PAUSE_PRIOS - 1; prio >= 0; prio--)
			pause->prio[0] = prio;
		list_add(&pause->entry, &r->link[i].ports);
	}
	return r;
}

#define HEADROOM	(1250000000 / 250000 + 3 * PACKET + 60)

/* Xoff of a link, and in @why the limit that determines it */
static s64 room_xoff(struct room *r, int i, enum color_pause_why *why)
{
	struct color_pause_plan plan = { .cn = &r->cn };
	struct color_pause_sum sum;

	rtnl_lock();
	color_pause_solve(&plan, &sum);
	rtnl_unlock();
	*why = sum.why;
	return color_pause_xoff(&r->link[i], &r->port[i], &sum);
}

static void room_free(struct room *r)
{
	xa_destroy(&r->cn.links);
}

static void color_pause_solve__the_least_limit_of_all(struct kunit *test)
{
	struct room *r = room_new(test, 1000000);
	enum color_pause_why why;

	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 500000 - HEADROOM);
	r->port[1].port.fill.limit = 200000;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 100000 - HEADROOM);
	KUNIT_EXPECT_EQ(test, room_xoff(r, 1, &why), 100000 - HEADROOM);
	KUNIT_EXPECT_EQ(test, why, COLOR_PAUSE_LIMIT);
	/* a link that only obeys pauses needs no room, but its port's limit counts */
	r->port[1].cfg.mode = TC_COLOR_PAUSE_OBEY;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 200000 - HEADROOM);
	/* a link with an Xoff of its own needs that, and its headroom */
	r->port[1].cfg.mode = TC_COLOR_PAUSE_ALL;
	r->port[1].cfg.xoff = 50000;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 150000 - 2 * HEADROOM);
	room_free(r);
}

static void color_pause_solve__the_pool_by_its_alpha(struct kunit *test)
{
	struct color_share lossy = { .fill = { .limit = 1000000, .alpha = TC_COLOR_ALPHA_ONE } };
	struct room *r = room_new(test, 1000000);
	enum color_pause_why why;

	r->pool.size = 600000;
	r->port[0].port.pool = &r->pool;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 150000 - HEADROOM);
	KUNIT_EXPECT_EQ(test, why, COLOR_PAUSE_POOL);
	r->port[0].port.fill.alpha = 2 * TC_COLOR_ALPHA_ONE;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 200000 - HEADROOM);
	/* a port that does not pause takes half */
	list_add(&lossy.entry, &r->pool.shares);
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 100000 - HEADROOM);
	list_del(&lossy.entry);
	/* red packets of both ports use the pool, but do not count for the links */
	r->port[0].cfg.mode = TC_COLOR_PAUSE_GREEN;
	r->port[0].port.others = 60000;
	r->port[1].port.others = 90000;
	r->port[1].port.pool = &r->pool;
	r->port[1].port.fill.alpha = 2 * TC_COLOR_ALPHA_ONE;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 150000 - HEADROOM);
	r->port[1].port.others = 0;
	room_xoff(r, 0, &why);
	KUNIT_EXPECT_EQ(test, why, COLOR_PAUSE_RED);
	room_free(r);
}

static void color_pause_solve__bands_and_colours(struct kunit *test)
{
	struct room *r = room_new(test, 1000000);
	struct color_pause *pause = &r->port[1];
	enum color_pause_why why;

	pause->port.bands = 2;
	pause->prio[0] = 7;
	pause->prio[1] = 0;
	/* the priorities of all ports, 0 and 7, may be full */
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 250000 - HEADROOM);
	pause->port.band_limit[0] = 1000;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 30000 - HEADROOM);
	KUNIT_EXPECT_EQ(test, why, COLOR_PAUSE_BAND);
	/* a band without a priority uses up to its limit, in packets of the MTU */
	pause->prio[0] = COLOR_PAUSE_NO_PRIO;
	pause->port.band_limit[0] = 100;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), (1000000 - 100 * PACKET) / 2 - HEADROOM);
	pause->port.band_limit[0] = 0;
	room_xoff(r, 0, &why);
	KUNIT_EXPECT_EQ(test, why, COLOR_PAUSE_OPEN);
	pause->port.bands = 1;
	pause->prio[0] = 0;
	pause->port.green = 100000;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 50000 - HEADROOM);
	KUNIT_EXPECT_EQ(test, why, COLOR_PAUSE_COLOR);
	room_free(r);
}

static void color_pause_solve__the_neighbour(struct kunit *test)
{
	struct room *r = room_new(test, 1000000);
	struct device parent;
	enum color_pause_why why;

	/* faster than the device reports; served late; with GSO packets of 123 segments */
	r->port[0].port.rate = 2500000000;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 500000 - HEADROOM - 5000);
	r->port[0].port.burst = 20000;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 500000 - HEADROOM - 55000);
	r->port[0].cfg.unit = 0;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why),
			500000 - HEADROOM - 55000 - 2 * (65536 + 123 * 114 - PACKET));
	/* on a real link no burst arrives faster than its rate, and no packet exceeds the MTU */
	r->dev.dev.parent = &parent;
	KUNIT_EXPECT_EQ(test, room_xoff(r, 0, &why), 500000 - HEADROOM - 5000);
	room_free(r);
}

static void color_pause_check__not_worse(struct kunit *test)
{
	struct room *r = room_new(test, 30000);
	struct color_pause_plan plan = { .cn = &r->cn, .old = &r->port[0] };
	struct color_pause other = r->port[0];

	plan.new = &other;
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, color_pause_check(&plan, NULL, NULL), 0);
	other.port.fill.limit = 20000;
	KUNIT_EXPECT_EQ(test, color_pause_check(&plan, NULL, NULL), -ENOSPC);
	r->port[0].port.fill.limit = 15000;
	KUNIT_EXPECT_EQ(test, color_pause_check(&plan, NULL, NULL), 0);
	rtnl_unlock();
	room_free(r);
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
	KUNIT_CASE(color_pfc_quanta__not_longer_than_the_time),
	KUNIT_CASE(color_pfc_headroom__exact),
	KUNIT_CASE(color_pfc_fill__bytes),
	KUNIT_CASE(color_pfc_receive__times),
	KUNIT_CASE(color_pfc_receive__storm),
	KUNIT_CASE(color_pfc_receive__an_end_without_time_is_none),
	KUNIT_CASE(color_pfc_receive__a_part_of_the_time_is_no_storm),
	KUNIT_CASE(color_pfc_receive__one_that_is_too_long_is_cut),
	KUNIT_CASE(color_pause_map__defaults),
	KUNIT_CASE(color_pause_map__bad_changes_nothing),
	KUNIT_CASE(color_pause_wanted__hysteresis),
	KUNIT_CASE(color_pause_solve__the_least_limit_of_all),
	KUNIT_CASE(color_pause_solve__the_pool_by_its_alpha),
	KUNIT_CASE(color_pause_solve__bands_and_colours),
	KUNIT_CASE(color_pause_solve__the_neighbour),
	KUNIT_CASE(color_pause_check__not_worse),
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
