// SPDX-License-Identifier: GPL-2.0
/* KUnit: the round trip in a request (net/greenlane/rd_internal.h). */
#include <kunit/test.h>
#include <linux/module.h>

#include "net/greenlane/rd_internal.h"

/* The code of each round trip up to the longest: not too short, and at most 3 % too long. */
static void rd_rtt_code__all(struct kunit *test)
{
	u32 us, code, before = 0;

	for (us = 0; us <= USEC_PER_SEC; us++) {
		code = rd_rtt_code(us);
		if (code < before || code > FIELD_MAX(RD_RTT) || rd_rtt_us(code) < us ||
		    rd_rtt_us(code) - us > us / 32 || (us <= 64 && rd_rtt_us(code) != us)) {
			KUNIT_FAIL(test, "%u us: code %u, %u us", us, code, rd_rtt_us(code));
			return;
		}
		before = code;
	}
}

/* Any code of a peer's is a round trip of at most 2^20 us. */
static void rd_rtt_us__all(struct kunit *test)
{
	u32 code;

	for (code = 0; code < FIELD_MAX(RD_RTT); code++)
		KUNIT_EXPECT_LT(test, rd_rtt_us(code), rd_rtt_us(code + 1));
	KUNIT_EXPECT_EQ(test, rd_rtt_us(0), 0);
	KUNIT_EXPECT_LT(test, rd_rtt_us(code), 1U << 20);
}

static struct kunit_case rd_rtt_cases[] = {
	KUNIT_CASE(rd_rtt_code__all),
	KUNIT_CASE(rd_rtt_us__all),
	{}
};

static struct kunit_suite rd_rtt_suite = {
	.name		= "rd_rtt",
	.test_cases	= rd_rtt_cases,
};

kunit_test_suite(rd_rtt_suite);

MODULE_DESCRIPTION("KUnit tests of the round trip in a request");
MODULE_LICENSE("GPL");
