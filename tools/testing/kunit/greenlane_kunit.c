// SPDX-License-Identifier: GPL-2.0
/* KUnit: codepoints and their DSCPs (include/net/gl_codepoint.h). */
#include <kunit/test.h>
#include <linux/module.h>

#include "include/net/gl_codepoint.h"

static struct gl_codepoints cps;

static int gl_codepoint_test_init(struct kunit *test)
{
	gl_codepoints_init(&cps);
	return 0;
}

/* Both directions of the map agree, for every DSCP and every codepoint. */
static void gl_expect_consistent(struct kunit *test)
{
	int i, owners = 0;

	for (i = GL_CP_NONE + 1; i < GL_CPS; i++)
		KUNIT_EXPECT_EQ(test, cps.of[cps.dscp[i]], i);
	for (i = 0; i < GL_DSCPS; i++)
		owners += cps.of[i] != GL_CP_NONE;
	KUNIT_EXPECT_EQ(test, owners, GL_CPS - 1);
}

/* ABI between the hosts and the switches of a site. */
static void gl_codepoints_init_defaults(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_DROPPABLE], 8);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_PROTECTED], 10);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_PROTECTED_END], 49);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_SCHEDULED], 25);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_UNSCHEDULED], 29);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_CREDIT], 33);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_MESSAGE], 37);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_MESSAGE_END], 41);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_SPENT], 53);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_SPENT_END], 57);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CP_SHORT], 3);
	KUNIT_EXPECT_EQ(test, cps.dscp[GL_CPS - 1], 63);
	gl_expect_consistent(test);
}

static void gl_codepoint_of_ignores_ecn(struct kunit *test)
{
	int ecn;

	for (ecn = 0; ecn < 4; ecn++) {
		KUNIT_EXPECT_EQ(test, gl_codepoint_of(&cps, 10 << 2 | ecn), GL_CP_PROTECTED);
		KUNIT_EXPECT_EQ(test, gl_codepoint_of(&cps, 0 << 2 | ecn), GL_CP_NONE);
	}
}

static void gl_codepoint_of_every_dsfield(struct kunit *test)
{
	int dsfield, ours = 0;

	for (dsfield = 0; dsfield < 256; dsfield++)
		ours += gl_codepoint_of(&cps, dsfield) != GL_CP_NONE;
	KUNIT_EXPECT_EQ(test, ours, 4 * (GL_CPS - 1));
}

static void gl_short_codepoint_and_back(struct kunit *test)
{
	int dscp;

	for (dscp = GL_DEFLECT_POOL; dscp < GL_DSCPS; dscp += 4)
		KUNIT_EXPECT_EQ(test, gl_short_dscp(gl_short_codepoint(dscp)), dscp);
}

static void gl_codepoints_set_moves(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cps, GL_CP_PROTECTED, 46));
	KUNIT_EXPECT_EQ(test, gl_codepoint_of(&cps, 46 << 2), GL_CP_PROTECTED);
	KUNIT_EXPECT_EQ(test, gl_codepoint_of(&cps, 10 << 2), GL_CP_NONE);
	gl_expect_consistent(test);
	/* to the DSCP that it has */
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cps, GL_CP_PROTECTED, 46));
	gl_expect_consistent(test);
	/* and its former DSCP is free */
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cps, GL_CP_CREDIT, 10));
	gl_expect_consistent(test);
}

static void gl_codepoints_set_refuses(struct kunit *test)
{
	static const int bad[] = { -1, 0, 64, 255, 256 + 9, INT_MAX, INT_MIN };
	struct gl_codepoints before = cps;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_FALSE(test, gl_codepoints_set(&cps, GL_CP_CREDIT, bad[i]));
	/* the DSCP of another codepoint */
	KUNIT_EXPECT_FALSE(test, gl_codepoints_set(&cps, GL_CP_CREDIT, GL_DSCP_MAX));
	KUNIT_EXPECT_FALSE(test, gl_codepoints_set(&cps, GL_CP_CREDIT, GREENLANE_DSCP_DROPPABLE));
	KUNIT_EXPECT_EQ(test, memcmp(&before, &cps, sizeof(cps)), 0);
}

static void gl_codepoints_set_edges(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cps, GL_CP_DROPPABLE, 1));
	KUNIT_EXPECT_TRUE(test, gl_codepoints_set(&cps, GL_CP_CREDIT, 62));
	gl_expect_consistent(test);
}

static void gl_codepoint_protected_ones(struct kunit *test)
{
	int i, n = 0;

	for (i = 0; i < GL_CPS; i++)
		n += gl_codepoint_protected(i);
	KUNIT_EXPECT_EQ(test, n, 8);
	KUNIT_EXPECT_TRUE(test, gl_codepoint_protected(GL_CP_PROTECTED));
	KUNIT_EXPECT_TRUE(test, gl_codepoint_protected(GL_CP_PROTECTED_END));
	KUNIT_EXPECT_TRUE(test, gl_codepoint_protected(GL_CP_SCHEDULED));
	KUNIT_EXPECT_TRUE(test, gl_codepoint_protected(GL_CP_SCHEDULED_4));
	KUNIT_EXPECT_TRUE(test, gl_codepoint_protected(GL_CP_CREDIT));
	KUNIT_EXPECT_TRUE(test, gl_codepoint_protected(GL_CP_TRIMMED));
}

static struct kunit_case gl_codepoint_cases[] = {
	KUNIT_CASE(gl_codepoints_init_defaults),
	KUNIT_CASE(gl_codepoint_of_ignores_ecn),
	KUNIT_CASE(gl_codepoint_of_every_dsfield),
	KUNIT_CASE(gl_short_codepoint_and_back),
	KUNIT_CASE(gl_codepoints_set_moves),
	KUNIT_CASE(gl_codepoints_set_refuses),
	KUNIT_CASE(gl_codepoints_set_edges),
	KUNIT_CASE(gl_codepoint_protected_ones),
	{}
};

static struct kunit_suite gl_codepoint_suite = {
	.name		= "greenlane_codepoint",
	.init		= gl_codepoint_test_init,
	.test_cases	= gl_codepoint_cases,
};
kunit_test_suite(gl_codepoint_suite);

MODULE_DESCRIPTION("KUnit tests of greenlane's codepoints");
MODULE_LICENSE("GPL");
