// SPDX-License-Identifier: GPL-2.0
/*
 * The pure logic of the `color` qdisc: virtual clock, thresholds, shared
 * buffer, CE marks, colour map, bands.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/sched/color_band.c"
#include "net/sched/color_clock.c"
#include "net/sched/color_map.c"
#include "net/sched/color_thresh.h"

#define GBIT(n)		((n) * 125000000ull)	/* bytes/s */
#define PACKETS		1000000

/* --- color_clock.c --- */

/* bytes * 10^9 / rate for up to 2^63 bytes, in two steps */
static u64 exact_ns(u64 bytes, u64 rate)
{
	u64 rem, s = div64_u64_rem(bytes, rate, &rem);

	while (rem > U64_MAX / NSEC_PER_SEC) {
		rem >>= 1;
		rate >>= 1;
	}
	return s * NSEC_PER_SEC + div64_u64(rem * NSEC_PER_SEC, rate);
}

struct clock_case {
	const char	*name;
	u64		rate;
	u32		len;
};

static const struct clock_case clock_cases[] = {
	{ "10 Gbit/s, 1500 B", GBIT(10), 1500 },
	{ "10 Gbit/s, 64 B", GBIT(10), 64 },
	{ "25 Gbit/s, 1500 B", GBIT(25), 1500 },
	{ "25 Gbit/s, 1 B", GBIT(25), 1 },
	{ "40 Gbit/s, 1538 B", GBIT(40), 1538 },
	{ "40 Gbit/s, 9018 B", GBIT(40), 9018 },
	{ "100 Gbit/s, 1500 B", GBIT(100), 1500 },
	{ "100 Gbit/s, 65 B", GBIT(100), 65 },
	{ "400 Gbit/s, 1500 B", GBIT(400), 1500 },
	{ "400 Gbit/s, 1 B", GBIT(400), 1 },
	{ "1 Tbit/s, 64 KiB", GBIT(1000), 65536 },
	{ "100 Tbit/s, 64 KiB", TC_COLOR_RATE_MAX, 65536 },
	{ "100 Tbit/s, 1 B", TC_COLOR_RATE_MAX, 1 },
	{ "an odd rate", 1234567891, 1514 },
	{ "8 bit/s, 1 B", 1, 1 },
	{ "8 bit/s, 8 KiB", 1, 8192 },
	{ "56 kbit/s, 1500 B", 7000, 1500 },
};

static void clock_case_name(const struct clock_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(clock, clock_cases, clock_case_name);

/* After a million packets of a busy port the clock is not before the exact time, and
 * after it by at most the rounding of a byte's time (2^-41) and one nanosecond.
 */
static void color_clock_advance__busy_line_is_exact(struct kunit *test)
{
	const struct clock_case *p = test->param_value;
	struct color_clock c = {};
	u64 exact, slack;
	int i;

	color_clock_set_mult(&c, p->rate);
	for (i = 0; i < PACKETS; i++)
		color_clock_advance(&c, p->len);

	exact = exact_ns((u64)p->len * PACKETS, p->rate);
	slack = 1 + (exact >> 41);
	KUNIT_EXPECT_GE(test, c.next, exact);
	KUNIT_EXPECT_LE(test, c.next, exact + slack);
}

static void color_clock_advance__fraction_is_kept(struct kunit *test)
{
	struct color_clock c = {};
	int i;

	/* 0.08 ns a byte: 25 bytes are 2 ns */
	color_clock_set_mult(&c, GBIT(100));
	for (i = 0; i < 12; i++)
		color_clock_advance(&c, 1);
	KUNIT_EXPECT_EQ(test, c.next, 0);
	color_clock_advance(&c, 1);
	KUNIT_EXPECT_EQ(test, c.next, 1);
	for (i = 13; i < 25; i++)
		color_clock_advance(&c, 1);
	KUNIT_EXPECT_EQ(test, c.next, 2);
}

static void color_clock_set_mult__has_its_bits(struct kunit *test)
{
	static const u64 rates[] = { 1, 2, 3, 999999999, 1000000000,
				     1000000001, GBIT(1000),
				     TC_COLOR_RATE_MAX };
	struct color_clock c;
	int i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		color_clock_set_mult(&c, rates[i]);
		KUNIT_EXPECT_GE(test, c.mult,
				BIT_ULL(COLOR_CLOCK_MULT_BITS - 1));
		KUNIT_EXPECT_LE(test, c.mult, BIT_ULL(COLOR_CLOCK_MULT_BITS));
		KUNIT_EXPECT_LT(test, c.shift, 62);
	}
	color_clock_set_mult(&c, 0);
	KUNIT_EXPECT_EQ(test, c.mult, 0);
}

static void color_clock_advance__longest_packet_fits(struct kunit *test)
{
	struct color_clock c = { .next = 0 };

	/* the longest packet, with the largest fraction */
	color_clock_set_mult(&c, 1);
	c.frac = BIT_ULL(c.shift) - 1;
	color_clock_advance(&c, COLOR_CLOCK_LEN_MAX);
	KUNIT_EXPECT_EQ(test, c.next, COLOR_CLOCK_LEN_MAX * NSEC_PER_SEC);

	/* longer packets count as the longest */
	color_clock_set_mult(&c, 1);
	c.next = 0;
	color_clock_advance(&c, U32_MAX);
	KUNIT_EXPECT_EQ(test, c.next, COLOR_CLOCK_LEN_MAX * NSEC_PER_SEC);

	color_clock_set_mult(&c, TC_COLOR_RATE_MAX);
	c.next = 0;
	c.frac = BIT_ULL(c.shift) - 1;
	color_clock_advance(&c, COLOR_CLOCK_LEN_MAX);
	KUNIT_EXPECT_EQ(test, c.next, 84);	/* 83.9, and the fraction */
}

static void color_clock_arrive__idle_time_earns_nothing(struct kunit *test)
{
	struct color_clock c = {};

	color_clock_set_mult(&c, GBIT(100));
	color_clock_arrive(&c, 1000);
	color_clock_advance(&c, 1513);		/* 121.04 ns */
	KUNIT_EXPECT_EQ(test, c.next, 1121);
	KUNIT_EXPECT_GT(test, c.frac, 0);

	/* the link is idle: the next packet starts when it arrives */
	color_clock_arrive(&c, 5000);
	KUNIT_EXPECT_EQ(test, c.next, 5000);
	KUNIT_EXPECT_EQ(test, c.frac, 0);
}

static void color_clock_arrive__busy_line_makes_wait(struct kunit *test)
{
	struct color_clock c = {};
	u64 frac;

	color_clock_set_mult(&c, GBIT(100));
	color_clock_arrive(&c, 1000);
	color_clock_advance(&c, 1513);
	frac = c.frac;
	color_clock_arrive(&c, 1100);
	KUNIT_EXPECT_EQ(test, c.next, 1121);
	KUNIT_EXPECT_EQ(test, c.frac, frac);
}

/* A port that is served late catches up with at most the given time. */
static void color_clock_catch_up__bound(struct kunit *test)
{
	struct color_clock c = {};

	color_clock_set_mult(&c, GBIT(10));
	c.next = 1000000;
	c.frac = 5;
	color_clock_catch_up(&c, 1050000, 50000);
	KUNIT_EXPECT_EQ(test, c.next, 1000000);
	KUNIT_EXPECT_EQ(test, c.frac, 5);
	color_clock_catch_up(&c, 1050001, 50000);
	KUNIT_EXPECT_EQ(test, c.next, 1000001);
	KUNIT_EXPECT_EQ(test, c.frac, 0);
	color_clock_catch_up(&c, 1000000000, 50000);
	KUNIT_EXPECT_EQ(test, c.next, 999950000);
	/* now is less than the catch-up time */
	color_clock_catch_up(&c, 10, 50000);
	KUNIT_EXPECT_EQ(test, c.next, 999950000);
}

static void color_clock_set_rate__packet_on_the_line(struct kunit *test)
{
	struct color_clock c = {};

	/* 1500 s are left of a packet at 1 byte/s: 1500 bytes */
	color_clock_set_rate(&c, 0, 1, 0);
	color_clock_advance(&c, 2000);
	color_clock_set_rate(&c, 1, GBIT(10), 500 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, c.next, 500 * NSEC_PER_SEC + 1200);

	/* an idle link stays idle */
	color_clock_set_rate(&c, GBIT(10), GBIT(40), 600 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, c.next, 600 * NSEC_PER_SEC);

	/* without a rate no packet waits */
	color_clock_advance(&c, 1500);
	color_clock_set_rate(&c, GBIT(40), 0, 600 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, c.next, 600 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, c.mult, 0);

	/* the longest packet at the lowest rate */
	color_clock_set_rate(&c, 0, 1, 0);
	color_clock_advance(&c, COLOR_CLOCK_LEN_MAX);
	color_clock_set_rate(&c, 1, GBIT(1), 0);
	KUNIT_EXPECT_EQ(test, c.next, COLOR_CLOCK_LEN_MAX * 8);
}

/* --- color_thresh.h --- */

static void color_fits__boundary(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, color_fits(0, 0, 0));
	KUNIT_EXPECT_FALSE(test, color_fits(0, 1, 0));
	KUNIT_EXPECT_TRUE(test, color_fits(268500, 1500, 270000));
	KUNIT_EXPECT_FALSE(test, color_fits(268501, 1500, 270000));
	KUNIT_EXPECT_FALSE(test, color_fits(268500, 1501, 270000));
}

static void color_fits__beyond_32_bits(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, color_fits(U32_MAX, 1, U32_MAX));
	KUNIT_EXPECT_FALSE(test, color_fits(U32_MAX, U32_MAX, U32_MAX));
	KUNIT_EXPECT_TRUE(test, color_fits(U32_MAX, U32_MAX, 2ull * U32_MAX));
	KUNIT_EXPECT_TRUE(test, color_fits(U32_MAX, U32_MAX, COLOR_NO_THRESH));
}

static void color_pool_thresh__alpha(struct kunit *test)
{
	const u64 size = 4500000;

	KUNIT_EXPECT_EQ(test, color_pool_thresh(size, 0, TC_COLOR_ALPHA_ONE),
			size);
	KUNIT_EXPECT_EQ(test, color_pool_thresh(size, 1500000,
						TC_COLOR_ALPHA_ONE), 3000000);
	/* 1/16 and 64 */
	KUNIT_EXPECT_EQ(test, color_pool_thresh(size, 1300000, 0x1000), 200000);
	KUNIT_EXPECT_EQ(test, color_pool_thresh(size, 4400000, 0x400000),
			6400000);
	KUNIT_EXPECT_EQ(test, color_pool_thresh(size, 0, 1), size >> 16);
}

static void color_pool_thresh__full_and_beyond(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, color_pool_thresh(1000, 1000,
						TC_COLOR_ALPHA_MAX), 0);
	KUNIT_EXPECT_EQ(test, color_pool_thresh(1000, 1001,
						TC_COLOR_ALPHA_MAX), 0);
	KUNIT_EXPECT_EQ(test, color_pool_thresh(1000, U64_MAX / 2,
						TC_COLOR_ALPHA_MAX), 0);
}

static void color_pool_thresh__largest(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, color_pool_thresh(TC_COLOR_LIMIT_MAX, 0,
						TC_COLOR_ALPHA_MAX),
			TC_COLOR_LIMIT_MAX * 1024ull);
}

/* One busy port at alpha 1 holds half of the buffer (parameters of TLT). */
static void color_pool_fits__one_hot_port(struct kunit *test)
{
	u64 q = 0;

	while (color_pool_fits(4500000, q, TC_COLOR_ALPHA_ONE, q, 1500))
		q += 1500;
	KUNIT_EXPECT_EQ(test, q, 2250000);
}

/* Two busy ports at alpha 1 hold a third each. */
static void color_pool_fits__two_hot_ports(struct kunit *test)
{
	u64 a = 0, b = 0;
	bool more = true;

	while (more) {
		more = false;
		if (color_pool_fits(4500000, a + b, TC_COLOR_ALPHA_ONE, a,
				    1500)) {
			a += 1500;
			more = true;
		}
		if (color_pool_fits(4500000, a + b, TC_COLOR_ALPHA_ONE, b,
				    1500)) {
			b += 1500;
			more = true;
		}
	}
	KUNIT_EXPECT_EQ(test, a, 1500000);
	KUNIT_EXPECT_EQ(test, b, 1500000);
}

static void color_pool_fits__never_more_than_there_is(struct kunit *test)
{
	u64 q = 0;

	while (color_pool_fits(100000, q, 64 * TC_COLOR_ALPHA_ONE, q, 1500))
		q += 1500;
	KUNIT_EXPECT_EQ(test, q, 99000);
	KUNIT_EXPECT_FALSE(test, color_pool_fits(100000, 99000,
						 TC_COLOR_ALPHA_MAX, 0, 1500));
	KUNIT_EXPECT_TRUE(test, color_pool_fits(100000, 98500,
						TC_COLOR_ALPHA_MAX, 0, 1500));
}

static void color_ecn_prob__step(struct kunit *test)
{
	const struct color_ecn e = { 200000, 200000, TC_COLOR_PROB_ONE };

	KUNIT_EXPECT_EQ(test, color_ecn_prob(&e, 0), 0);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&e, 200000), 0);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&e, 200001), TC_COLOR_PROB_ONE);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&e, U64_MAX / 2),
			TC_COLOR_PROB_ONE);
}

static void color_ecn_prob__linear(struct kunit *test)
{
	const struct color_ecn e = { 100000, 400000, TC_COLOR_PROB_ONE / 5 };

	KUNIT_EXPECT_EQ(test, color_ecn_prob(&e, 100000), 0);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&e, 250000), e.prob / 2);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&e, 400000), e.prob);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&e, 400001), TC_COLOR_PROB_ONE);
}

static void color_ecn_prob__extremes(struct kunit *test)
{
	const struct color_ecn off = { 0, 0, 0 };
	const struct color_ecn all = { 0, TC_COLOR_LIMIT_MAX,
				       TC_COLOR_PROB_ONE };

	KUNIT_EXPECT_EQ(test, color_ecn_prob(&off, 1), 0);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&all, 0), 0);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&all, TC_COLOR_LIMIT_MAX),
			TC_COLOR_PROB_ONE);
	KUNIT_EXPECT_EQ(test, color_ecn_prob(&all, 1), 2);
}

static void color_ecn_hit__bounds(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, color_ecn_hit(0, 0));
	KUNIT_EXPECT_TRUE(test, color_ecn_hit(1, 0));
	KUNIT_EXPECT_FALSE(test, color_ecn_hit(1, 1));
	KUNIT_EXPECT_TRUE(test, color_ecn_hit(TC_COLOR_PROB_ONE, U32_MAX));
}

/* --- color_map.c --- */

static void color_map_default__codepoints(struct kunit *test)
{
	static const u8 green[] = { 10, 13, 17, 21, 25, 33, 49, 61 };
	static const u8 red[] = { 5, 8, 9, 29 };
	u8 map[TC_COLOR_DSCPS];
	int i, yellow = 0;

	color_map_default(map);
	for (i = 0; i < ARRAY_SIZE(red); i++)
		KUNIT_EXPECT_EQ(test, map[red[i]], TC_COLOR_RED);
	for (i = 0; i < ARRAY_SIZE(green); i++)
		KUNIT_EXPECT_EQ(test, map[green[i]], TC_COLOR_GREEN);
	for (i = 0; i < TC_COLOR_DSCPS; i++)
		yellow += map[i] == TC_COLOR_YELLOW;
	KUNIT_EXPECT_EQ(test, yellow, TC_COLOR_DSCPS - ARRAY_SIZE(red) - ARRAY_SIZE(green));
}

static void color_map_merge__only_what_is_given(struct kunit *test)
{
	u8 map[TC_COLOR_DSCPS], change[TC_COLOR_DSCPS];

	color_map_default(map);
	memset(change, TC_COLOR_MAP_KEEP, sizeof(change));
	change[0] = TC_COLOR_RED;
	change[63] = TC_COLOR_GREEN;
	KUNIT_EXPECT_TRUE(test, color_map_merge(map, change, TC_COLOR_MAX));
	KUNIT_EXPECT_EQ(test, map[0], TC_COLOR_RED);
	KUNIT_EXPECT_EQ(test, map[63], TC_COLOR_GREEN);
	KUNIT_EXPECT_EQ(test, map[8], TC_COLOR_RED);
	KUNIT_EXPECT_EQ(test, map[10], TC_COLOR_GREEN);
	KUNIT_EXPECT_EQ(test, map[1], TC_COLOR_YELLOW);
}

static void color_map_merge__bad_entry_changes_nothing(struct kunit *test)
{
	u8 map[TC_COLOR_DSCPS], before[TC_COLOR_DSCPS];
	u8 change[TC_COLOR_DSCPS];

	color_map_default(map);
	memcpy(before, map, sizeof(map));
	memset(change, TC_COLOR_RED, sizeof(change));
	change[63] = TC_COLOR_MAX + 1;
	KUNIT_EXPECT_FALSE(test, color_map_merge(map, change, TC_COLOR_MAX));
	KUNIT_EXPECT_EQ(test, memcmp(map, before, sizeof(map)), 0);
	change[63] = TC_COLOR_MAP_KEEP - 1;
	KUNIT_EXPECT_FALSE(test, color_map_merge(map, change, TC_COLOR_MAX));
	KUNIT_EXPECT_EQ(test, memcmp(map, before, sizeof(map)), 0);
}

static void color_map_spread__every_tos(struct kunit *test)
{
	u8 map[TC_COLOR_DSCPS], of[256];
	int tos;

	for (tos = 0; tos < TC_COLOR_DSCPS; tos++)
		map[tos] = tos % 3;
	color_map_spread(of, map, false);
	for (tos = 0; tos < 256; tos++)
		KUNIT_EXPECT_EQ(test, of[tos], map[tos / 4]);
	color_map_spread(of, map, true);
	for (tos = 0; tos < 256; tos++)
		KUNIT_EXPECT_EQ(test, of[tos], tos % 4 ? TC_COLOR_GREEN : TC_COLOR_RED);
}

/* --- color_band.h --- */

/* Three bands with a packet each, and the clock of a link. */
struct band_port {
	struct color_clock	line;
	struct color_bands	*bands;
	struct sk_buff		skb;
};

static struct band_port *band_port(struct kunit *test, u64 line)
{
	struct band_port *port = kunit_kzalloc(test, sizeof(*port), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, port);
	port->bands = kunit_kzalloc(test, struct_size(port->bands, band, 3),
				    GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, port->bands);
	color_band_config_init(&port->bands->cfg, 3);
	for (i = 0; i < 3; i++) {
		port->bands->band[i].q.head = &port->skb;
		port->bands->band[i].bit = BIT(i);
	}
	port->bands->busy = 7;
	color_clock_set_mult(&port->line, line);
	return port;
}

static int next_band(struct band_port *port, u64 now, u64 *start)
{
	struct color_band *band = color_bands_next(port->bands, &port->line,
						   now, start);

	return band ? band - port->bands->band : -1;
}

static void color_bands_next__first_that_may(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	u64 start;

	KUNIT_EXPECT_EQ(test, next_band(port, 1000, &start), 0);
	band[0].clock.next = 1001;
	KUNIT_EXPECT_EQ(test, next_band(port, 1000, &start), 1);
	KUNIT_EXPECT_EQ(test, next_band(port, 1001, &start), 0);
	band[1].q.head = NULL;
	color_bands_popped(port->bands, &band[1]);
	KUNIT_EXPECT_EQ(test, next_band(port, 1000, &start), 2);
}

static void color_bands_next__when_nobody_may(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	u64 start;

	/* the link is busy */
	port->line.next = 2000;
	KUNIT_EXPECT_EQ(test, next_band(port, 1999, &start), -1);
	KUNIT_EXPECT_EQ(test, start, 2000);
	/* all bands wait: until the earliest may send, if the link is free then */
	band[0].clock.next = 2300;
	band[1].clock.next = 2100;
	band[2].clock.next = 2200;
	KUNIT_EXPECT_EQ(test, next_band(port, 2099, &start), -1);
	KUNIT_EXPECT_EQ(test, start, 2100);
	KUNIT_EXPECT_EQ(test, next_band(port, 2100, &start), 1);
	/* an empty band does not count */
	band[1].q.head = NULL;
	color_bands_popped(port->bands, &band[1]);
	KUNIT_EXPECT_EQ(test, next_band(port, 2100, &start), -1);
	KUNIT_EXPECT_EQ(test, start, 2200);
}

/* After a late timer the link loses no time, and the high band is still served first. */
static void color_bands_next__late_timer(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	u64 start;

	port->line.next = 1000;
	band[0].clock.next = 1500;
	KUNIT_EXPECT_EQ(test, next_band(port, 1600, &start), 0);
	KUNIT_EXPECT_EQ(test, start, 1000);

	/* the link has really been idle until band 1 was permitted to send */
	band[1].clock.next = 1400;
	band[2].q.head = NULL;
	color_bands_popped(port->bands, &band[2]);
	KUNIT_EXPECT_EQ(test, next_band(port, 1600, &start), 0);
	KUNIT_EXPECT_EQ(test, start, 1400);
}

static void color_bands_due__as_next_says(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	int state, due = 0;
	u64 start;

	/* clocks of the link and the first two bands: each just before, at, and just after now */
	for (state = 0; state < 3 * 3 * 3; state++) {
		port->line.next = 99 + state % 3;
		band[0].clock.next = 99 + state / 3 % 3;
		band[1].clock.next = 99 + state / 9;
		if (!color_bands_due(band, &port->line, 100))
			continue;
		KUNIT_EXPECT_EQ_MSG(test, next_band(port, 100, &start), 0, "state %d", state);
		KUNIT_EXPECT_EQ_MSG(test, start, port->line.next, "state %d", state);
		due++;
	}
	/* link at 99: first band at 99; link at 100: at 99 or 100; each with 3 of the second */
	KUNIT_EXPECT_EQ(test, due, 9);
}

static void color_bands_next__busy_line_needs_one_look(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	u64 start;

	/* the link was idle until the last band was permitted to send */
	port->line.next = 1000;
	band[0].clock.next = 1300;
	band[1].clock.next = 1400;
	band[2].clock.next = 1200;
	KUNIT_EXPECT_EQ(test, next_band(port, 1600, &start), 0);
	KUNIT_EXPECT_EQ(test, start, 1200);
	/* the link was busy until 1350 */
	port->line.next = 1350;
	KUNIT_EXPECT_EQ(test, next_band(port, 1600, &start), 0);
	KUNIT_EXPECT_EQ(test, start, 1350);
	/* the link is still busy */
	port->line.next = 1700;
	KUNIT_EXPECT_EQ(test, next_band(port, 1600, &start), -1);
	KUNIT_EXPECT_EQ(test, start, 1700);
}

static void color_bands_take__what_was_shown(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;

	KUNIT_EXPECT_PTR_EQ(test, color_bands_take(port->bands, &band[0]),
			    &band[0]);
	port->bands->peeked = &band[1];
	KUNIT_EXPECT_PTR_EQ(test, color_bands_take(port->bands, &band[0]),
			    &band[1]);
	KUNIT_EXPECT_PTR_EQ(test, color_bands_take(port->bands, &band[0]),
			    &band[0]);
}

static void color_band_advance__idle_line_earns_nothing(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));

	color_band_advance(&port->bands->band[1], &port->line, 5000, 1000, 1);
	KUNIT_EXPECT_EQ(test, port->line.next, 5800);
	/* without a rate, the band's clock follows the start */
	KUNIT_EXPECT_EQ(test, port->bands->band[1].clock.next, 5000);
}

/* Credits that data packets delay by less than their interval keep their rate ... */
static void color_band_advance__delay_is_made_up_for(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	int i;

	color_clock_set_mult(&band->clock, GBIT(1));
	for (i = 0; i < 1000; i++)
		color_band_advance(band, &port->line, i * 800 + i % 800, 100, 1);
	KUNIT_EXPECT_EQ(test, band->clock.next, 800000);
}

/* ... and after a long delay they are not a burst: two packets, then the band's rate. */
static void color_band_advance__starved_band_does_not_burst(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;

	color_clock_set_mult(&band->clock, GBIT(1));
	color_band_advance(band, &port->line, 1000000, 100, 1);
	KUNIT_EXPECT_EQ(test, band->clock.next, 1000000);
	color_band_advance(band, &port->line, 1000080, 100, 1);
	KUNIT_EXPECT_EQ(test, band->clock.next, 1000800);
}

/* The length of a credit does not matter to a band whose clock counts packets. */
static void color_band_advance__by_packet(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	struct color_band_config cfg = port->bands->cfg;

	cfg.rate[0] = 1000000 | TC_COLOR_BAND_RATE_PPS;
	color_bands_set(port->bands, &cfg, true, 0);
	color_band_advance(band, &port->line, 0, 62, 1);
	KUNIT_EXPECT_EQ(test, band->clock.next, 1000);
	color_band_advance(band, &port->line, 1000, 1500, 1);
	KUNIT_EXPECT_EQ(test, band->clock.next, 2000);
	color_band_advance(band, &port->line, 2000, 3000, 2);
	KUNIT_EXPECT_EQ(test, band->clock.next, 4000);
	/* by bytes again: the clock starts at the time of the change */
	cfg.rate[0] = GBIT(1);
	color_bands_set(port->bands, &cfg, true, 3000);
	KUNIT_EXPECT_EQ(test, band->clock.next, 3000);
	color_band_advance(band, &port->line, 3000, 1000, 1);
	KUNIT_EXPECT_EQ(test, band->clock.next, 11000);
}

/* A part of the link time of other bands, without losing fractions of a nanosecond. */
static void color_bands_yield__part_of_others_time(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	struct color_band_config cfg = port->bands->cfg;
	int i;

	cfg.rate[0] = 1000000 | TC_COLOR_BAND_RATE_PPS;
	cfg.yield[0] = TC_COLOR_BAND_YIELD_ONE / 4;
	cfg.yield[1] = TC_COLOR_BAND_YIELD_ONE;
	color_bands_set(port->bands, &cfg, true, 0);
	band[0].clock.next = 5000;
	for (i = 0; i < 10000; i++)
		color_bands_yield(port->bands, &band[2], &port->line, 0, 1);
	/* 0.8 ns a byte; rounding may leave it just below */
	KUNIT_EXPECT_GE(test, band[0].clock.next, 5000 + 1999);
	KUNIT_EXPECT_LE(test, band[0].clock.next, 5000 + 2000);
	/* a band's own packet does not advance its clock; a band without a rate does not yield */
	color_bands_yield(port->bands, &band[0], &port->line, 0, 1000);
	KUNIT_EXPECT_LE(test, band[0].clock.next, 5000 + 2000);
	KUNIT_EXPECT_EQ(test, band[1].clock.next, 0);
}

/* The clock of an empty band advances for the packet that starts, not for earlier ones. */
static void color_bands_yield__idle(struct kunit *test)
{
	struct band_port *port = band_port(test, GBIT(10));
	struct color_band *band = port->bands->band;
	struct color_band_config cfg = port->bands->cfg;

	cfg.rate[0] = GBIT(1);
	cfg.yield[0] = TC_COLOR_BAND_YIELD_ONE;
	color_bands_set(port->bands, &cfg, true, 0);
	band[0].q.head = NULL;
	color_bands_popped(port->bands, &band[0]);
	color_bands_yield(port->bands, &band[2], &port->line, 7000, 1000);
	KUNIT_EXPECT_EQ(test, band[0].clock.next, 7800);
	color_bands_yield(port->bands, &band[2], &port->line, 9000, 1000);
	KUNIT_EXPECT_EQ(test, band[0].clock.next, 9800);
}

/* The longest packet on the slowest and the fastest link, any two clocks. */
static void color_clock_yield__extremes(struct kunit *test)
{
	static const u64 rates[] = { 1, GBIT(10), TC_COLOR_RATE_MAX };
	int i, j;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (j = 0; j < ARRAY_SIZE(rates); j++) {
			struct color_clock line = {}, own = {}, whole = {};

			color_clock_set_mult(&line, rates[i]);
			color_clock_set_mult(&own, rates[j]);
			color_clock_set_mult(&whole, rates[i]);
			color_clock_yield(&own, &line, U64_MAX, TC_COLOR_BAND_YIELD_ONE);
			color_clock_advance(&whole, U64_MAX);
			/* rounded: 16 bits of the link's fraction, and 1 ns of the band's clock */
			KUNIT_EXPECT_LE(test, own.next, whole.next);
			KUNIT_EXPECT_GE(test, own.next + 1 + (BIT_ULL(16) >> line.shift),
					whole.next);
		}
	}
}

static void color_band_fits__packets(struct kunit *test)
{
	struct band_port *port = band_port(test, 0);
	struct color_band_config cfg = port->bands->cfg;
	struct color_band *band = port->bands->band;

	color_bands_set(port->bands, &cfg, false, 0);
	band[1].stats.qlen = 7;
	KUNIT_EXPECT_TRUE(test, color_band_fits(&band[1], 1000));
	cfg.limit[1] = 8;
	color_bands_set(port->bands, &cfg, false, 0);
	KUNIT_EXPECT_TRUE(test, color_band_fits(&band[1], 1));
	KUNIT_EXPECT_FALSE(test, color_band_fits(&band[1], 2));
	KUNIT_EXPECT_TRUE(test, color_band_fits(&band[0], 1000));
}

static void color_bands_of__every_tos(struct kunit *test)
{
	struct band_port *port = band_port(test, 0);
	struct color_band *band = port->bands->band;
	int tos;

	port->bands->cfg.prio[33] = 0;
	port->bands->cfg.prio[0] = 1;
	for (tos = 0; tos < 256; tos++)
		KUNIT_EXPECT_PTR_EQ(test, color_bands_of(port->bands, tos),
				    &band[tos / 4 == 33 ? 0 :
					  tos / 4 == 0 ? 1 : 2]);
	KUNIT_EXPECT_PTR_EQ(test, color_bands_of(port->bands, -1), &band[2]);
}

static void color_refused_lately__window(struct kunit *test)
{
	struct color_refused r = {};
	unsigned long now = ULONG_MAX - 3;

	color_refused_add(&r, 100, now, 10);
	color_refused_add(&r, 100, now + 9, 10);
	KUNIT_EXPECT_EQ(test, color_refused_lately(&r, now + 9, 10), 200);
	KUNIT_EXPECT_EQ(test, color_refused_lately(&r, now + 10, 10), 0);
	color_refused_add(&r, 100, now + 10, 10);
	KUNIT_EXPECT_EQ(test, color_refused_lately(&r, now + 10, 10), 100);
}

static void color_refused_lately__half_a_turn_later(struct kunit *test)
{
	struct color_refused r = {};
	unsigned long later = 5ul + 10 + LONG_MAX + 2;

	color_refused_add(&r, 100, 5, 10);
	KUNIT_EXPECT_EQ(test, color_refused_lately(&r, later, 10), 0);
	color_refused_add(&r, 50, later, 10);
	KUNIT_EXPECT_EQ(test, color_refused_lately(&r, later, 10), 50);
}

static struct kunit_case color_test_cases[] = {
	KUNIT_CASE_PARAM(color_clock_advance__busy_line_is_exact,
			 clock_gen_params),
	KUNIT_CASE(color_clock_advance__fraction_is_kept),
	KUNIT_CASE(color_clock_set_mult__has_its_bits),
	KUNIT_CASE(color_clock_advance__longest_packet_fits),
	KUNIT_CASE(color_clock_arrive__idle_time_earns_nothing),
	KUNIT_CASE(color_clock_arrive__busy_line_makes_wait),
	KUNIT_CASE(color_clock_catch_up__bound),
	KUNIT_CASE(color_clock_set_rate__packet_on_the_line),
	KUNIT_CASE(color_fits__boundary),
	KUNIT_CASE(color_fits__beyond_32_bits),
	KUNIT_CASE(color_pool_thresh__alpha),
	KUNIT_CASE(color_pool_thresh__full_and_beyond),
	KUNIT_CASE(color_pool_thresh__largest),
	KUNIT_CASE(color_pool_fits__one_hot_port),
	KUNIT_CASE(color_pool_fits__two_hot_ports),
	KUNIT_CASE(color_pool_fits__never_more_than_there_is),
	KUNIT_CASE(color_ecn_prob__step),
	KUNIT_CASE(color_ecn_prob__linear),
	KUNIT_CASE(color_ecn_prob__extremes),
	KUNIT_CASE(color_ecn_hit__bounds),
	KUNIT_CASE(color_map_default__codepoints),
	KUNIT_CASE(color_map_merge__only_what_is_given),
	KUNIT_CASE(color_map_merge__bad_entry_changes_nothing),
	KUNIT_CASE(color_map_spread__every_tos),
	KUNIT_CASE(color_bands_next__first_that_may),
	KUNIT_CASE(color_bands_next__when_nobody_may),
	KUNIT_CASE(color_bands_next__late_timer),
	KUNIT_CASE(color_bands_next__busy_line_needs_one_look),
	KUNIT_CASE(color_bands_due__as_next_says),
	KUNIT_CASE(color_bands_take__what_was_shown),
	KUNIT_CASE(color_band_advance__idle_line_earns_nothing),
	KUNIT_CASE(color_band_advance__delay_is_made_up_for),
	KUNIT_CASE(color_band_advance__starved_band_does_not_burst),
	KUNIT_CASE(color_band_advance__by_packet),
	KUNIT_CASE(color_bands_yield__part_of_others_time),
	KUNIT_CASE(color_bands_yield__idle),
	KUNIT_CASE(color_clock_yield__extremes),
	KUNIT_CASE(color_band_fits__packets),
	KUNIT_CASE(color_bands_of__every_tos),
	KUNIT_CASE(color_refused_lately__window),
	KUNIT_CASE(color_refused_lately__half_a_turn_later),
	{}
};

static struct kunit_suite color_test_suite = {
	.name = "color",
	.test_cases = color_test_cases,
};

kunit_test_suite(color_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the color qdisc");
