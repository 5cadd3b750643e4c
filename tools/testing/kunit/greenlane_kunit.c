// SPDX-License-Identifier: GPL-2.0
/* KUnit: the codepoint table (include/net/gl_codepoint.h). */
#include <kunit/test.h>
#include <linux/module.h>

#include "include/net/gl_codepoint.h"

static struct gl_codepoints cp;

static int gl_codepoint_test_init(struct kunit *test)
{
	gl_codepoints_init(&cp);
	return 0;
}

/* Both ways say the same, for every DSCP and every kind. */
static void gl_expect_consistent(struct kunit *test)
{
	int dscp, kind, owners = 0;

	for (kind = GL_DATA; kind < GL_KINDS; kind++)
		KUNIT_EXPECT_EQ(test, cp.kind[cp.dscp[kind]], kind);
	for (dscp = 0; dscp < GL_DSCPS; dscp++)
		owners += cp.kind[dscp] != GL_NONE;
	KUNIT_EXPECT_EQ(test, owners, GL_KINDS - GL_DATA);
}

static void gl_codepoints_init_defaults(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_DATA], 8);
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_IMPORTANT], 10);
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_CLOCK], 18);
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_CLOCK_ECHO], 20);
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_CONTROL], 26);
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_CREDIT], 33);
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_SPENT_END], 57);
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_SHORT], 3);
	KUNIT_EXPECT_EQ(test, cp.dscp[GL_KINDS - 1], 63);
	gl_expect_consistent(test);
}

static void gl_kind_of_ignores_ecn(struct kunit *test)
{
	int ecn;

	for (ecn = 0; ecn < 4; ecn++) {
		KUNIT_EXPECT_EQ(test, gl_kind_of(&cp, 10 << 2 | ecn), GL_IMPORTANT);
		KUNIT_EXPECT_EQ(test, gl_kind_of(&cp, 0 << 2 | ecn), GL_NONE);
	}
}

static void gl_kind_of_every_dsfield(struct kunit *test)
{
	int dsfield, ours = 0;

	for (dsfield = 0; dsfield < 256; dsfield++)
		ours += gl_kind_of(&cp, dsfield) != GL_NONE;
	KUNIT_EXPECT_EQ(test, ours, 4 * (GL_KINDS - GL_DATA));
}

static void gl_codepoints_set_moves(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cp, GL_CONTROL, 46));
	KUNIT_EXPECT_EQ(test, gl_kind_of(&cp, 46 << 2), GL_CONTROL);
	KUNIT_EXPECT_EQ(test, gl_kind_of(&cp, 26 << 2), GL_NONE);
	gl_expect_consistent(test);
	/* to where it is */
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cp, GL_CONTROL, 46));
	gl_expect_consistent(test);
	/* and the place that it left is free */
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cp, GL_CLOCK, 12));
	gl_expect_consistent(test);
}

static void gl_codepoints_set_refuses(struct kunit *test)
{
	static const int bad[] = { -1, 0, 64, 255, 256 + 9, INT_MAX, INT_MIN };
	struct gl_codepoints before = cp;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_FALSE(test, gl_codepoints_set(&cp, GL_CLOCK, bad[i]));
	/* another kind's */
	KUNIT_EXPECT_FALSE(test, gl_codepoints_set(&cp, GL_CLOCK, GL_DSCP_MAX));
	KUNIT_EXPECT_FALSE(test, gl_codepoints_set(&cp, GL_CLOCK, GL_DSCP_DATA));
	KUNIT_EXPECT_EQ(test, memcmp(&before, &cp, sizeof(cp)), 0);
}

static void gl_codepoints_set_edges(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cp, GL_DATA, 1));
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cp, GL_CONTROL, 62));
	gl_expect_consistent(test);
}

static void gl_kind_protected_kinds(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, gl_kind_protected(GL_NONE));
	KUNIT_EXPECT_FALSE(test, gl_kind_protected(GL_DATA));
	KUNIT_EXPECT_TRUE(test, gl_kind_protected(GL_IMPORTANT));
	KUNIT_EXPECT_TRUE(test, gl_kind_protected(GL_CONTROL));
}

static struct kunit_case gl_codepoint_cases[] = {
	KUNIT_CASE(gl_codepoints_init_defaults),
	KUNIT_CASE(gl_kind_of_ignores_ecn),
	KUNIT_CASE(gl_kind_of_every_dsfield),
	KUNIT_CASE(gl_codepoints_set_moves),
	KUNIT_CASE(gl_codepoints_set_refuses),
	KUNIT_CASE(gl_codepoints_set_edges),
	KUNIT_CASE(gl_kind_protected_kinds),
	{}
};

static struct kunit_suite gl_codepoint_suite = {
	.name		= "greenlane_codepoint",
	.init		= gl_codepoint_test_init,
	.test_cases	= gl_codepoint_cases,
};
kunit_test_suite(gl_codepoint_suite);

MODULE_DESCRIPTION("KUnit tests of greenlane's codepoint table");
MODULE_LICENSE("GPL");
