// SPDX-License-Identifier: GPL-2.0
/* KUnit: the configuration of a port of the `color` qdisc (net/sched/color_config.c). */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/skbuff.h>

#include "net/sched/color_config.c"
#include "net/sched/color_map.c"
#include "nlattr.h"

#define LIMIT	1000000

static struct color_config cfg;
static struct nlattr *tb[TCA_COLOR_MAX + 1];
static struct netlink_ext_ack extack;

static int color_config_test_init(struct kunit *test)
{
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->mtu = ETH_DATA_LEN;
	dev->hard_header_len = ETH_HLEN;
	memset(&cfg, 0, sizeof(cfg));
	memset(tb, 0, sizeof(tb));
	memset(&extack, 0, sizeof(extack));
	color_config_init(&cfg, dev, 1000);
	return 0;
}

static void set_u32(struct kunit *test, int type, u32 value)
{
	kunit_set_attr(test, tb, type, &value, sizeof(value));
}

/* Parse the attributes in @tb for a device with packets of @packet bytes, and clear them. */
static int parse_for(u32 packet)
{
	int err = color_config_parse(&cfg, packet, tb, &extack);

	memset(tb, 0, sizeof(tb));
	return err;
}

/* Parse with packets of a byte, for which no size is too small. */
static int parse(void)
{
	return parse_for(1);
}

static void color_config_parse__less_than_a_packet(struct kunit *test)
{
	static const int sizes[] = {
		TCA_COLOR_LIMIT, TCA_COLOR_RED, TCA_COLOR_YELLOW, TCA_COLOR_GREEN,
		TCA_COLOR_POOL_SIZE,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		set_u32(test, sizes[i], 1513);
		KUNIT_EXPECT_EQ(test, parse_for(1514), -ERANGE);
		KUNIT_EXPECT_NOT_NULL(test, extack.bad_attr);
		set_u32(test, sizes[i], 1514);
		KUNIT_EXPECT_EQ(test, parse_for(1514), 0);
		/* sizes of earlier requests are not checked again */
		KUNIT_EXPECT_EQ(test, parse_for(9014), 0);
	}
	/* 0 for no threshold, and less than the shortest packet: all red packets are dropped */
	for (i = 0; i < ETH_ZLEN; i++) {
		set_u32(test, TCA_COLOR_RED, i);
		KUNIT_EXPECT_EQ(test, parse_for(1514), 0);
	}
	set_u32(test, TCA_COLOR_RED, ETH_ZLEN);
	KUNIT_EXPECT_EQ(test, parse_for(1514), -ERANGE);
	set_u32(test, TCA_COLOR_LIMIT, 1);
	KUNIT_EXPECT_EQ(test, parse_for(1514), -ERANGE);
}

static void color_config_init__defaults(struct kunit *test)
{
	u8 map[TC_COLOR_DSCPS];
	int i;

	color_map_default(map);
	/* bfifo's: 1000 packets */
	KUNIT_EXPECT_EQ(test, cfg.limit, 1514000);
	KUNIT_EXPECT_EQ(test, cfg.rate, 0);
	KUNIT_EXPECT_EQ(test, cfg.overhead, 0);
	KUNIT_EXPECT_EQ(test, cfg.alpha, TC_COLOR_ALPHA_ONE);
	KUNIT_EXPECT_EQ(test, cfg.ecn.prob, 0);
	KUNIT_EXPECT_EQ(test, cfg.count, TC_COLOR_COUNT_COLOR);
	KUNIT_EXPECT_FALSE(test, cfg.by_ecn);
	KUNIT_EXPECT_EQ(test, cfg.slack, 1000);
	KUNIT_EXPECT_EQ(test, cfg.catch_up, 0);
	/* by default only a port with a rate splits GSO packets */
	KUNIT_EXPECT_FALSE(test, color_config_splits(&cfg));
	cfg.rate = 1;
	KUNIT_EXPECT_TRUE(test, color_config_splits(&cfg));
	for (i = 0; i <= TC_COLOR_MAX; i++)
		KUNIT_EXPECT_EQ(test, cfg.thresh[i], COLOR_NO_THRESH);
	KUNIT_EXPECT_EQ(test, memcmp(cfg.map, map, sizeof(map)), 0);
}

/* A device whose default limit would exceed the maximum */
static void color_config_init__largest(struct kunit *test)
{
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->mtu = 0x10000000;
	color_config_init(&cfg, dev, 1000);
	KUNIT_EXPECT_EQ(test, cfg.limit, TC_COLOR_LIMIT_MAX);
}

static void color_config_parse__every_attribute(struct kunit *test)
{
	const u64 rate = 1250000000;
	struct color_config before;
	u8 map[TC_COLOR_DSCPS];

	memset(map, TC_COLOR_MAP_KEEP, sizeof(map));
	map[46] = TC_COLOR_GREEN;
	kunit_set_attr(test, tb, TCA_COLOR_RATE64, &rate, sizeof(rate));
	kunit_set_attr(test, tb, TCA_COLOR_MAP, map, sizeof(map));
	set_u32(test, TCA_COLOR_OVERHEAD, 24);
	set_u32(test, TCA_COLOR_LIMIT, LIMIT);
	set_u32(test, TCA_COLOR_RED, 1);
	set_u32(test, TCA_COLOR_YELLOW, LIMIT);
	set_u32(test, TCA_COLOR_GREEN, 3);
	set_u32(test, TCA_COLOR_COUNT, TC_COLOR_COUNT_QUEUE);
	set_u32(test, TCA_COLOR_CLASSIFY, TC_COLOR_CLASSIFY_ECN);
	set_u32(test, TCA_COLOR_SPLIT_GSO, 0);
	set_u32(test, TCA_COLOR_SLACK, 5);
	set_u32(test, TCA_COLOR_CATCH_UP, 6);
	set_u32(test, TCA_COLOR_POOL_ALPHA, 7);
	set_u32(test, TCA_COLOR_ECN_MIN, 10);
	set_u32(test, TCA_COLOR_ECN_MAX, LIMIT);
	set_u32(test, TCA_COLOR_ECN_PROB, 5);
	KUNIT_ASSERT_EQ(test, parse(), 0);
	KUNIT_EXPECT_EQ(test, cfg.rate, rate);
	KUNIT_EXPECT_EQ(test, cfg.overhead, 24);
	KUNIT_EXPECT_EQ(test, cfg.limit, LIMIT);
	KUNIT_EXPECT_EQ(test, cfg.thresh[TC_COLOR_RED], 1);
	KUNIT_EXPECT_EQ(test, cfg.thresh[TC_COLOR_YELLOW], LIMIT);
	KUNIT_EXPECT_EQ(test, cfg.thresh[TC_COLOR_GREEN], 3);
	KUNIT_EXPECT_EQ(test, cfg.count, TC_COLOR_COUNT_QUEUE);
	KUNIT_EXPECT_TRUE(test, cfg.by_ecn);
	KUNIT_EXPECT_FALSE(test, color_config_splits(&cfg));
	KUNIT_EXPECT_EQ(test, cfg.slack, 5);
	KUNIT_EXPECT_EQ(test, cfg.catch_up, 6);
	KUNIT_EXPECT_EQ(test, cfg.alpha, 7);
	KUNIT_EXPECT_EQ(test, cfg.ecn.min, 10);
	KUNIT_EXPECT_EQ(test, cfg.ecn.max, LIMIT);
	KUNIT_EXPECT_EQ(test, cfg.ecn.prob, 5);
	KUNIT_EXPECT_EQ(test, cfg.map[46], TC_COLOR_GREEN);
	KUNIT_EXPECT_EQ(test, cfg.map[8], TC_COLOR_RED);
	/* Attributes that are not given do not change the configuration. */
	before = cfg;
	KUNIT_EXPECT_EQ(test, parse(), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &cfg, sizeof(cfg)), 0);
	set_u32(test, TCA_COLOR_CLASSIFY, TC_COLOR_CLASSIFY_DSCP);
	KUNIT_EXPECT_EQ(test, parse(), 0);
	KUNIT_EXPECT_FALSE(test, cfg.by_ecn);
}

static void color_config_parse__thresholds(struct kunit *test)
{
	const struct nlattr *attr;

	set_u32(test, TCA_COLOR_LIMIT, LIMIT);
	set_u32(test, TCA_COLOR_RED, 5000);
	KUNIT_EXPECT_EQ(test, parse(), 0);
	/* 0 removes the threshold. */
	set_u32(test, TCA_COLOR_RED, 0);
	KUNIT_EXPECT_EQ(test, parse(), 0);
	KUNIT_EXPECT_EQ(test, cfg.thresh[TC_COLOR_RED], COLOR_NO_THRESH);
	/* A threshold above the limit never acts, whether the threshold or the limit is new. */
	set_u32(test, TCA_COLOR_GREEN, LIMIT + 1);
	attr = tb[TCA_COLOR_GREEN];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
	cfg.thresh[TC_COLOR_GREEN] = LIMIT;
	set_u32(test, TCA_COLOR_LIMIT, LIMIT - 1);
	attr = tb[TCA_COLOR_LIMIT];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
}

static void color_config_parse__auto(struct kunit *test)
{
	const struct nlattr *attr;

	set_u32(test, TCA_COLOR_LIMIT, LIMIT);
	set_u32(test, TCA_COLOR_RED, 5000);
	KUNIT_EXPECT_EQ(test, parse(), 0);
	set_u32(test, TCA_COLOR_RED_AUTO, 1);
	set_u32(test, TCA_COLOR_RED_MIN, LIMIT);
	KUNIT_EXPECT_EQ(test, parse(), 0);
	KUNIT_EXPECT_TRUE(test, cfg.red_auto);
	KUNIT_EXPECT_EQ(test, cfg.red_min, LIMIT);
	KUNIT_EXPECT_EQ(test, cfg.thresh[TC_COLOR_RED], COLOR_NO_THRESH);
	/* a minimum above the limit, whether the minimum or the limit is new */
	set_u32(test, TCA_COLOR_LIMIT, LIMIT - 1);
	attr = tb[TCA_COLOR_LIMIT];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
	cfg.limit = LIMIT;
	set_u32(test, TCA_COLOR_RED_MIN, LIMIT + 1);
	attr = tb[TCA_COLOR_RED_MIN];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
	cfg.red_min = 9;
	/* auto, and a count other than by colour */
	set_u32(test, TCA_COLOR_COUNT, TC_COLOR_COUNT_PORT);
	attr = tb[TCA_COLOR_COUNT];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
	cfg.count = TC_COLOR_COUNT_COLOR;
	/* a threshold and auto */
	set_u32(test, TCA_COLOR_RED, 0);
	set_u32(test, TCA_COLOR_RED_AUTO, 1);
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	/* A threshold of red, also 0, disables auto and clears the minimum. */
	set_u32(test, TCA_COLOR_RED, 0);
	KUNIT_EXPECT_EQ(test, parse(), 0);
	KUNIT_EXPECT_FALSE(test, cfg.red_auto);
	KUNIT_EXPECT_EQ(test, cfg.red_min, 0);
	/* a minimum without auto is an error, except the default, 0 */
	set_u32(test, TCA_COLOR_RED_MIN, 1);
	attr = tb[TCA_COLOR_RED_MIN];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
	set_u32(test, TCA_COLOR_RED_MIN, 0);
	KUNIT_EXPECT_EQ(test, parse(), 0);
}

static void color_config_parse__ecn(struct kunit *test)
{
	const struct nlattr *attr;

	/* thresholds without a probability */
	set_u32(test, TCA_COLOR_ECN_MIN, 1);
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	memset(&cfg.ecn, 0, sizeof(cfg.ecn));
	set_u32(test, TCA_COLOR_ECN_MAX, 1);
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	/* the minimum above the maximum */
	cfg.ecn = (struct color_ecn){ .min = 10, .max = 10, .prob = 1 };
	KUNIT_EXPECT_EQ(test, parse(), 0);
	set_u32(test, TCA_COLOR_ECN_MAX, 9);
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	/* An ECN threshold above the limit, whether the threshold or the limit is new. */
	cfg.ecn = (struct color_ecn){ .min = 10, .max = 10, .prob = 1 };
	set_u32(test, TCA_COLOR_ECN_MAX, cfg.limit + 1);
	attr = tb[TCA_COLOR_ECN_MAX];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
	cfg.ecn.max = 10;
	set_u32(test, TCA_COLOR_LIMIT, 9);
	attr = tb[TCA_COLOR_LIMIT];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
}

static void color_config_parse__colour_that_does_not_exist(struct kunit *test)
{
	const struct nlattr *attr;
	u8 map[TC_COLOR_DSCPS];

	memset(map, TC_COLOR_MAP_KEEP, sizeof(map));
	map[63] = __TC_COLOR_MAX;
	kunit_set_attr(test, tb, TCA_COLOR_MAP, map, sizeof(map));
	attr = tb[TCA_COLOR_MAP];
	KUNIT_EXPECT_EQ(test, parse(), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, attr);
}

struct policy_case {
	int	type;
	u64	value;
	int	len;
	bool	valid;
};

static const struct policy_case policy_cases[] = {
	{ TCA_COLOR_RATE64, 0, 8, true },
	{ TCA_COLOR_RATE64, TC_COLOR_RATE_MAX, 8, true },
	{ TCA_COLOR_RATE64, TC_COLOR_RATE_MAX + 1, 8, false },
	{ TCA_COLOR_OVERHEAD, 1024, 4, true },
	{ TCA_COLOR_OVERHEAD, 1025, 4, false },
	{ TCA_COLOR_LIMIT, 0, 4, false },
	{ TCA_COLOR_LIMIT, 1, 4, true },
	{ TCA_COLOR_LIMIT, 0x7fffffff, 4, true },
	{ TCA_COLOR_LIMIT, 0x80000000, 4, false },
	{ TCA_COLOR_RED, 0, 4, true },
	{ TCA_COLOR_GREEN, 0x80000000, 4, false },
	{ TCA_COLOR_COUNT, __TC_COLOR_COUNT_MAX - 1, 4, true },
	{ TCA_COLOR_COUNT, __TC_COLOR_COUNT_MAX, 4, false },
	{ TCA_COLOR_CLASSIFY, __TC_COLOR_CLASSIFY_MAX, 4, false },
	{ TCA_COLOR_MAP, 0, 63, false },
	{ TCA_COLOR_MAP, 0, 64, true },
	{ TCA_COLOR_MAP, 0, 65, false },
	{ TCA_COLOR_ECN_PROB, U32_MAX, 4, true },
	{ TCA_COLOR_POOL_SIZE, 0, 4, false },
	{ TCA_COLOR_POOL_ALPHA, 0, 4, false },
	{ TCA_COLOR_POOL_ALPHA, 1024 << 16, 4, true },
	{ TCA_COLOR_POOL_ALPHA, (1024 << 16) + 1, 4, false },
	{ TCA_COLOR_SPLIT_GSO, 2, 4, true },
	{ TCA_COLOR_SPLIT_GSO, 3, 4, false },
	{ TCA_COLOR_BANDS, 0, 4, false },
	{ TCA_COLOR_BANDS, 16, 4, true },
	{ TCA_COLOR_BANDS, 17, 4, false },
	{ TCA_COLOR_SLACK, 0, 4, true },
	{ TCA_COLOR_SLACK, 1000000, 4, true },
	{ TCA_COLOR_SLACK, 1000001, 4, false },
	{ TCA_COLOR_CATCH_UP, 1000000000, 4, true },
	{ TCA_COLOR_CATCH_UP, 1000000001, 4, false },
	{ TCA_COLOR_RED_AUTO, 1, 4, true },
	{ TCA_COLOR_RED_AUTO, 2, 4, false },
	{ TCA_COLOR_RED_MIN, 0x7fffffff, 4, true },
	{ TCA_COLOR_RED_MIN, 0x80000000, 4, false },
	{ TCA_COLOR_POOL, 0x61, 15, true },
	{ TCA_COLOR_POOL, 0x61, 16, true },
	{ TCA_COLOR_POOL, 0x61, 17, false },
	{ TCA_COLOR_MAX + 1, 0, 4, false },
};

static void color_config_policy__ranges(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(policy_cases); i++) {
		const struct policy_case *c = &policy_cases[i];
		struct {
			struct nlattr	attr;
			u8		data[68];
		} __aligned(8) m = {
			.attr = { .nla_type = c->type, .nla_len = nla_attr_size(c->len) },
		};
		int err;

		memcpy(m.data, &c->value, sizeof(c->value));
		err = nla_validate(&m.attr, NLA_ALIGN(m.attr.nla_len), TCA_COLOR_MAX,
				   color_config_policy, NULL);
		KUNIT_EXPECT_EQ_MSG(test, !err, c->valid, "case %d, type %d: %d", i, c->type, err);
	}
}

static void color_config_dump__what_there_is(struct kunit *test)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct nlattr *got[TCA_COLOR_MAX + 1];

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, color_config_dump_thresh(&cfg, skb), 0);
	KUNIT_EXPECT_EQ(test, color_config_dump_ecn(&cfg.ecn, skb), 0);
	KUNIT_EXPECT_EQ(test, skb->len, 0);

	cfg.thresh[TC_COLOR_GREEN] = 77;
	cfg.ecn = (struct color_ecn){ .min = 1, .max = 2, .prob = 3 };
	KUNIT_EXPECT_EQ(test, color_config_dump_thresh(&cfg, skb), 0);
	KUNIT_EXPECT_EQ(test, color_config_dump_ecn(&cfg.ecn, skb), 0);
	KUNIT_ASSERT_EQ(test, nla_parse(got, TCA_COLOR_MAX, (struct nlattr *)skb->data, skb->len,
					color_config_policy, NULL), 0);
	KUNIT_EXPECT_NULL(test, got[TCA_COLOR_RED]);
	KUNIT_ASSERT_NOT_NULL(test, got[TCA_COLOR_GREEN]);
	KUNIT_EXPECT_EQ(test, nla_get_u32(got[TCA_COLOR_GREEN]), 77);
	KUNIT_ASSERT_NOT_NULL(test, got[TCA_COLOR_ECN_PROB]);
	KUNIT_EXPECT_EQ(test, nla_get_u32(got[TCA_COLOR_ECN_MIN]), 1);
	KUNIT_EXPECT_EQ(test, nla_get_u32(got[TCA_COLOR_ECN_MAX]), 2);
	KUNIT_EXPECT_EQ(test, nla_get_u32(got[TCA_COLOR_ECN_PROB]), 3);

	/* no room left */
	skb_put(skb, skb_tailroom(skb));
	KUNIT_EXPECT_EQ(test, color_config_dump_thresh(&cfg, skb), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, color_config_dump_ecn(&cfg.ecn, skb), -EMSGSIZE);
	kfree_skb(skb);
}

static struct kunit_case color_config_cases[] = {
	KUNIT_CASE(color_config_init__defaults),
	KUNIT_CASE(color_config_parse__less_than_a_packet),
	KUNIT_CASE(color_config_init__largest),
	KUNIT_CASE(color_config_parse__every_attribute),
	KUNIT_CASE(color_config_parse__thresholds),
	KUNIT_CASE(color_config_parse__auto),
	KUNIT_CASE(color_config_parse__ecn),
	KUNIT_CASE(color_config_parse__colour_that_does_not_exist),
	KUNIT_CASE(color_config_policy__ranges),
	KUNIT_CASE(color_config_dump__what_there_is),
	{}
};

static struct kunit_suite color_config_suite = {
	.name		= "color_config",
	.init		= color_config_test_init,
	.test_cases	= color_config_cases,
};

kunit_test_suite(color_config_suite);

MODULE_DESCRIPTION("KUnit tests of the color qdisc's configuration");
MODULE_LICENSE("GPL");
