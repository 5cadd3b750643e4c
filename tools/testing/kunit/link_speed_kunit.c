// SPDX-License-Identifier: GPL-2.0
/* KUnit: the speed of a link, and the bytes of packets on it (include/net/link_speed.h). */
#include <kunit/test.h>
#include <linux/module.h>
#include <net/link_speed.h>

static void link_speed_mbit_of__rates(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, link_speed_mbit_of(0), 0);
	KUNIT_EXPECT_EQ(test, link_speed_mbit_of(1), 1);		/* not unknown */
	KUNIT_EXPECT_EQ(test, link_speed_mbit_of(125000), 1);
	KUNIT_EXPECT_EQ(test, link_speed_mbit_of(1250000000), 10000);
	KUNIT_EXPECT_EQ(test, link_speed_mbit_of(1250000000 - 1), 9999);
	KUNIT_EXPECT_EQ(test, link_speed_mbit_of(200000000000ULL), LINK_SPEED_MBIT_MAX);
	KUNIT_EXPECT_EQ(test, link_speed_mbit_of(U64_MAX), LINK_SPEED_MBIT_MAX);
	/* in kB/s, the sum of two is a u32 */
	KUNIT_EXPECT_LE(test, 2 * 125ULL * LINK_SPEED_MBIT_MAX, U32_MAX);
}

static void link_speed_ns__packets(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, link_speed_ns(10000, 1538), 1230);
	KUNIT_EXPECT_EQ(test, link_speed_ns(1, 9038), 72304000);
	KUNIT_EXPECT_EQ(test, link_speed_ns(LINK_SPEED_MBIT_MAX, 84), 0);
}

/* Headroom of GRE and vxlan on Ethernet, above the maximum, less than an Ethernet header, and 0. */
static void link_speed_headers__tunnels(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, link_speed_headers(24 + ETH_HLEN, ETH_HLEN), 24);
	KUNIT_EXPECT_EQ(test, link_speed_headers(50 + ETH_HLEN, ETH_HLEN), 50);
	KUNIT_EXPECT_EQ(test, link_speed_headers(500, ETH_HLEN), LINK_SPEED_EXTRA_MAX);
	KUNIT_EXPECT_EQ(test, link_speed_headers(ETH_HLEN - 1, ETH_HLEN), 0);
	KUNIT_EXPECT_EQ(test, link_speed_headers(0, ETH_HLEN), 0);
}

/* The use of an unknown speed is counted, except on loopback, which has no speed. */
static void link_speed_mbit__unknown(struct kunit *test)
{
	static struct link_speed link;

	link.mbit = 25000;
	KUNIT_EXPECT_EQ(test, link_speed_mbit(&link), 25000);
	KUNIT_EXPECT_EQ(test, atomic_read(&link.guesses), 0);
	link.mbit = 0;
	KUNIT_EXPECT_EQ(test, link_speed_mbit(&link), LINK_SPEED_MBIT);
	KUNIT_EXPECT_EQ(test, atomic_read(&link.guesses), 1);
	link.local = true;
	KUNIT_EXPECT_EQ(test, link_speed_mbit(&link), LINK_SPEED_MBIT);
	KUNIT_EXPECT_EQ(test, atomic_read(&link.guesses), 1);
}

static struct kunit_case link_speed_cases[] = {
	KUNIT_CASE(link_speed_mbit_of__rates),
	KUNIT_CASE(link_speed_ns__packets),
	KUNIT_CASE(link_speed_headers__tunnels),
	KUNIT_CASE(link_speed_mbit__unknown),
	{}
};

static struct kunit_suite link_speed_suite = {
	.name		= "link_speed",
	.test_cases	= link_speed_cases,
};

kunit_test_suite(link_speed_suite);

MODULE_DESCRIPTION("KUnit tests of a link's speed and bytes");
MODULE_LICENSE("GPL");
